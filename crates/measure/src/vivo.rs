//! Runs the program again between replays and times only the regions that have codelets. The speed of a shared machine
//! varies, so the minimum over several runs is taken as an invocation's undisturbed time.

use anyhow::{Context, Result, bail};
use cere_capture::classes::kept_invocations;
use cere_capture::input::Input;
use cere_capture::launch::Output;
use cere_capture::profile::{DISPLACED, Run, Which};
use cere_capture::{profile, reads};
use cere_format::package::Manifest;
use cere_format::profile::{ProcessName, Profile, RegionKey, RegionProfile};
use cere_format::store::Store;
use cere_store::build::image::Program;
use cere_store::state;
use cere_system::events::Events;
use cere_timing::stats::weighted_median;
use std::collections::HashMap;

/// The program of a profile, to be run as it was run then.
pub struct InVivo<'a> {
    store: &'a Store,
    profile: &'a Profile,
    program: Program,
    /// The process of the profile.
    which: Which,
    input: Input,
    /// Groups of regions that one run times: regions that hardly run inside one another.
    groups: Vec<Vec<RegionKey>>,
    /// Captured invocations, rising.
    invocations: Vec<u64>,
    /// The environment that gives as many threads as at capture.
    environment: Vec<(String, String)>,
    events: Events,
    _lock: state::Lock,
}

/// A run's times.
pub struct Times {
    regions: HashMap<RegionKey, RegionProfile>,
    tsc_hz: f64,
}

impl From<&Profile> for Times {
    fn from(run: &Profile) -> Self {
        let regions = run.regions.iter().map(|r| (r.key.clone(), r.clone()));
        Self {
            regions: regions.collect(),
            tsc_hz: run.tsc_hz,
        }
    }
}

impl<'a> InVivo<'a> {
    /// Changes to the directory of the profile's run. Regions inside others are timed in runs of their own if their probes would add
    /// more than the share `tolerated` to the time of those. The error says why the program cannot be run as it was.
    pub fn open(
        store: &'a Store,
        profile: &'a Profile,
        codelets: &[&Manifest],
        tolerated: f64,
        events: &Events,
    ) -> Result<Self> {
        let program = reopen(store, profile)?;
        let mut regions: Vec<RegionKey> = codelets.iter().map(|c| c.key.clone()).collect();
        regions.sort();
        regions.dedup();
        let mut invocations: Vec<u64> = codelets.iter().map(|c| c.invocation).collect();
        invocations.sort_unstable();
        invocations.dedup();
        Ok(Self {
            store,
            profile,
            program,
            which: match profile.process == ProcessName::default() {
                true => Which::Main,
                false => Which::Same(profile.process.clone()),
            },
            input: Input::open(events)?,
            groups: group_regions(profile, &regions, tolerated),
            invocations,
            environment: environment(codelets),
            events: events.clone(),
            _lock: state::lock(store)?,
        })
    }

    /// Runs of the program in each [`InVivo::run`]: one for each group of regions.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Only times the `count` groups with most time in their regions.
    pub fn keep_groups(&mut self, count: usize) {
        let seconds = |key: &RegionKey| self.profile.region(key).map_or(0.0, |r| r.self_seconds);
        let sum = |group: &[RegionKey]| group.iter().map(seconds).sum::<f64>();
        self.groups.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
        self.groups.truncate(count);
    }

    /// Whether a region is timed.
    pub fn times(&self, key: &RegionKey) -> bool {
        self.groups.iter().flatten().any(|timed| timed == key)
    }

    /// Runs it once for each group, without output.
    pub fn run(&mut self) -> Result<Times> {
        let mut times = Times {
            regions: HashMap::new(),
            tsc_hz: 0.0,
        };
        for group in &self.groups {
            let mut feed = self.input.for_next_run()?;
            let run = self.unprinted_run(group, &self.environment);
            let found = profile::collect(&run, feed.stdin.take())?.profile;
            let regions = found.regions.into_iter().map(|r| (r.key.clone(), r));
            times.regions.extend(regions);
            times.tsc_hz = found.tsc_hz;
        }
        Ok(times)
    }

    /// Runs it with only these regions timed, in this environment, without output.
    pub fn run_with(
        &mut self,
        only: &[RegionKey],
        environment: &[(String, String)],
    ) -> Result<Profile> {
        let mut feed = self.input.for_next_run()?;
        let run = self.unprinted_run(only, environment);
        Ok(profile::collect(&run, feed.stdin.take())?.profile)
    }

    /// One run like the profile's, without output, that times only these regions.
    fn unprinted_run<'r>(
        &'r self,
        only: &'r [RegionKey],
        environment: &'r [(String, String)],
    ) -> Run<'r> {
        Run {
            store: self.store,
            program: &self.program,
            build: None,
            which: &self.which,
            command: &self.profile.command,
            timeout: None,
            output: Output::Dropped,
            trace: &self.invocations,
            only: Some(only),
            environment,
            energy: None,
            events: &self.events,
        }
    }
}

/// Numbers of threads that codelets of OpenMP programs were captured with, rising, each once.
pub fn threads<'m>(codelets: impl IntoIterator<Item = &'m Manifest>) -> Vec<u32> {
    let openmp = codelets.into_iter().filter_map(|c| c.openmp.as_ref());
    let mut threads: Vec<u32> = openmp.map(|o| o.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Changes to the directory of the profile's run and opens its program. The error says why it cannot be run as it was.
pub fn reopen(store: &Store, profile: &Profile) -> Result<Program> {
    let directory = &profile.directory;
    std::env::set_current_dir(directory)
        .with_context(|| format!("cannot go to {}", directory.display()))?;
    let name = profile.command.first().context("the profile names none")?;
    let program = Program::open(&profile.command, store)?;
    if program.image()?.hash != profile.program {
        bail!("{name} is not the program of the profile any more");
    }
    if !reads::would_read_same(&profile.input, &reads::of(&profile.command)) {
        bail!("it would not read what it read in the profile's run (give it the same input)");
    }
    Ok(program)
}

/// The environment for as many threads as the codelets were captured with; empty unless that is one number.
pub fn environment(codelets: &[&Manifest]) -> Vec<(String, String)> {
    match threads(codelets.iter().copied())[..] {
        [n] => vec![("OMP_NUM_THREADS".to_owned(), n.to_string())],
        _ => Vec::new(),
    }
}

/// Share of a region's time that probes inside it may add.
pub const TOLERATED: f64 = 0.002;

/// Splits `regions` into groups such that the probes of a group lengthen its other regions by the share `tolerated` at most.
fn group_regions(profile: &Profile, regions: &[RegionKey], tolerated: f64) -> Vec<Vec<RegionKey>> {
    let place = |key: &RegionKey| profile.regions.iter().position(|r| r.key == *key);
    // Invocations of one region (second) inside another one.
    let mut inside: HashMap<(usize, usize), u64> = HashMap::new();
    for node in &profile.tree {
        let Some(inner) = node.region else { continue };
        let mut up = node.parent;
        while let Some(above) = up.and_then(|up| profile.tree.get(up)) {
            if let Some(outer) = above.region.filter(|outer| *outer != inner) {
                *inside.entry((outer, inner)).or_default() += node.invocations;
            }
            up = above.parent;
        }
    }
    let lengthens = |outer: usize, inner: usize| {
        let pairs = inside.get(&(outer, inner)).copied().unwrap_or(0) as f64;
        let seconds = profile.regions[outer].inclusive_seconds;
        pairs * DISPLACED / profile.tsc_hz > tolerated * seconds
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for region in regions.iter().filter_map(place) {
        let apart = |other: &usize| !lengthens(region, *other) && !lengthens(*other, region);
        match groups.iter_mut().find(|group| group.iter().all(apart)) {
            Some(group) => group.push(region),
            None => groups.push(vec![region]),
        }
    }
    let key = |place: usize| profile.regions[place].key.clone();
    let keys = |group: Vec<usize>| group.into_iter().map(key).collect();
    groups.into_iter().map(keys).collect()
}

/// Seconds in vivo of the class that `codelet` represents: the median over its invocations of their minima over `runs`.
/// The classes are those that the captured invocations of the region, `captured`, had in `profile`; a codelet that was
/// chosen by number stands for its own invocation. `None` if a run had other invocations.
pub fn seconds(
    runs: &[Times],
    profile: &Profile,
    codelet: &Manifest,
    captured: &[u64],
) -> Option<f64> {
    class(runs, profile, codelet, captured).map(|class| class.middle)
}

/// Seconds of a class of invocations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Class {
    /// Sum over all its invocations.
    pub total: f64,
    /// Median of its invocations.
    pub middle: f64,
}

/// The same, with the time of the whole class; for a codelet that was chosen by number, of all invocations.
pub fn class(
    runs: &[Times],
    profile: &Profile,
    codelet: &Manifest,
    captured: &[u64],
) -> Option<Class> {
    let base = profile.region(&codelet.key)?;
    let in_run = runs
        .iter()
        .map(|run| Some((run.regions.get(&codelet.key)?, run.tsc_hz)));
    let runs: Vec<(&RegionProfile, f64)> = in_run.collect::<Option<_>>()?;
    if runs.is_empty() || runs.iter().any(|r| r.0.invocations != base.invocations) {
        return None;
    }
    let least = |invocation: u64| {
        let times = runs.iter().filter_map(|(region, hz)| {
            let cycles = region.trace.get(invocation).filter(|cycles| *cycles > 0)?;
            Some(cycles as f64 / hz)
        });
        times.min_by(f64::total_cmp)
    };
    let total = |times: &[(f64, f64)]| times.iter().map(|(time, weight)| time * weight).sum();
    let (times, middle) = match codelet.represents {
        None => {
            let all = kept_invocations(base).filter_map(|m| Some((least(m.invocation)?, m.weight)));
            (all.collect(), least(codelet.invocation)?)
        }
        Some(_) => {
            let times = class_members(base, codelet.invocation, captured, least);
            let middle = weighted_median(times.clone())?;
            (times, middle)
        }
    };
    Some(Class {
        total: total(&times),
        middle,
    })
}

/// `time` and weight of the invocations whose time in `base` is nearer to that of `own` than to any other of `captured`.
fn class_members(
    base: &RegionProfile,
    own: u64,
    captured: &[u64],
    time: impl Fn(u64) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let medoids: Vec<(u64, u64)> = captured
        .iter()
        .filter_map(|i| Some((*i, base.trace.get(*i)?)))
        .collect();
    let members = kept_invocations(base).filter(|timed| {
        let nearest = medoids.iter().min_by_key(|m| m.1.abs_diff(timed.cycles));
        timed.cycles > 0 && nearest.is_some_and(|m| m.0 == own)
    });
    let times = members.filter_map(|member| Some((time(member.invocation)?, member.weight)));
    times.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::profile as fixture;

    #[test]
    fn classes_keep_their_members_from_run_to_run() {
        let profile = fixture::profile(&[("f@a.c:1", None, 1.0, 1.0)]);
        let region = |times: &[u64]| {
            let mut region = profile.regions[0].clone();
            region.invocations = times.len() as u64;
            region.trace.first = times.to_vec();
            region
        };
        let base = region(&[100, 900, 110, 920, 90]);
        // Invocation 5 was disturbed, 4 was fast, 3 is not known.
        let now = [120.0, 1000.0, 0.0, 400.0, 5000.0];
        let time = |i: u64| now.get(i as usize - 1).copied().filter(|t| *t > 0.0);
        let times = |own, captured: &[u64]| class_members(&base, own, captured, time);
        let middle = |own, captured: &[u64]| weighted_median(times(own, captured));
        assert_eq!(times(1, &[1, 2]), [(120.0, 1.0), (5000.0, 1.0)]);
        assert_eq!(middle(1, &[1, 2]), Some(120.0));
        assert_eq!(middle(2, &[1, 2]), Some(400.0));
        assert_eq!(middle(1, &[1]), Some(400.0));
        assert_eq!(middle(7, &[7]), None);
    }

    #[test]
    fn what_runs_often_inside_another_is_timed_in_another_run() {
        let regions = [
            ("outer", None, 0.5, 1e6),
            ("short", Some(0), 0.2, 1e4),
            ("long", Some(0), 0.2, 1e8),
            ("beside", None, 0.1, 1e6),
        ];
        let mut profile = fixture::profile(&regions);
        // A million probe pairs of a nanosecond a cycle against 0.9 s.
        profile.tree[2].invocations = 1_000_000;
        let keys: Vec<RegionKey> = profile.regions.iter().map(|r| r.key.clone()).collect();
        let found = group_regions(&profile, &keys, TOLERATED);
        let places = |group: &Vec<RegionKey>| group.iter().map(|k| k.index).collect::<Vec<_>>();
        let found: Vec<Vec<u32>> = found.iter().map(places).collect();
        assert_eq!(found, [vec![0, 2, 3], vec![1]]);
    }
}
