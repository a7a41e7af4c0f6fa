//! The program run again between replays, with only the regions timed that have codelets: both meet the machine as it
//! is then.

use crate::classes::kept;
use crate::image::Program;
use crate::input::Input;
use crate::launch::Output;
use crate::profile::{self, Run};
use crate::{reads, state};
use anyhow::{Context, Result, bail};
use cere_format::package::Manifest;
use cere_format::profile::{Profile, RegionKey, RegionProfile};
use cere_format::store::Store;
use std::collections::HashMap;

/// The program that a profile is of, to be run as it was then.
pub struct InVivo<'a> {
    store: &'a Store,
    profile: &'a Profile,
    program: Program,
    input: Input,
    regions: Vec<RegionKey>,
    /// Captured invocations, rising.
    invocations: Vec<u64>,
    _lock: state::Lock,
}

/// A run's times.
pub struct Times {
    regions: HashMap<RegionKey, RegionProfile>,
    tsc_hz: f64,
}

impl<'a> InVivo<'a> {
    /// Goes to the directory that the profile's run was in. An error tells why the program cannot be run as it was.
    pub fn open(store: &'a Store, profile: &'a Profile, codelets: &[&Manifest]) -> Result<Self> {
        let directory = &profile.directory;
        std::env::set_current_dir(directory)
            .with_context(|| format!("cannot go to {}", directory.display()))?;
        let name = profile.command.first().context("the profile names none")?;
        let program = Program::open(name, store)?;
        if program.hash != profile.program {
            bail!("{name} is not the program of the profile any more");
        }
        if !reads::same(&profile.input, &reads::of(&profile.command)) {
            bail!("it would not read what it read in the profile's run (give it the same input)");
        }
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
            input: Input::open()?,
            regions,
            invocations,
            _lock: state::lock(store)?,
        })
    }

    /// Runs it once, without output.
    pub fn run(&mut self) -> Result<Times> {
        let mut feed = self.input.again()?;
        let run = Run {
            store: self.store,
            program: &self.program,
            command: &self.profile.command,
            timeout: None,
            output: Output::Dropped,
            trace: &self.invocations,
            only: Some(&self.regions),
        };
        let found = profile::collect(&run, feed.stdin.take())?.profile;
        let regions = found.regions.into_iter().map(|r| (r.key.clone(), r));
        Ok(Times {
            regions: regions.collect(),
            tsc_hz: found.tsc_hz,
        })
    }
}

/// The middle of values with weights.
fn weighted_middle(mut values: Vec<(u64, f64)>) -> Option<u64> {
    values.sort_by_key(|v| v.0);
    let half = values.iter().map(|v| v.1).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let middle = values.iter().find(|(_, weight)| {
        below += weight;
        below >= half
    });
    middle.map(|v| v.0)
}

impl Times {
    /// Seconds of what `codelet` stands for: the median of the invocations of its class, by the classes that the captured
    /// invocations of its region, `captured`, had in `profile`; of an invocation that was chosen by number its own. None if the
    /// run was not of the same invocations.
    pub fn of(&self, profile: &Profile, codelet: &Manifest, captured: &[u64]) -> Option<f64> {
        let base = profile.regions.iter().find(|r| r.key == codelet.key)?;
        let now = self.regions.get(&codelet.key)?;
        if base.invocations != now.invocations {
            return None;
        }
        let cycles = match codelet.represents {
            None => now.trace.get(codelet.invocation),
            Some(_) => class_middle(base, now, codelet.invocation, captured),
        };
        let cycles = cycles.filter(|cycles| *cycles > 0)?;
        Some(cycles as f64 / self.tsc_hz)
    }
}

/// Median cycles in `now` of the invocations that in `base` took more nearly as long as `own` than as another of
/// `captured`.
fn class_middle(
    base: &RegionProfile,
    now: &RegionProfile,
    own: u64,
    captured: &[u64],
) -> Option<u64> {
    let medoids: Vec<(u64, u64)> = captured
        .iter()
        .filter_map(|i| Some((*i, base.trace.get(*i)?)))
        .collect();
    let members = kept(now).filter(|timed| {
        let before = base.trace.get(timed.invocation);
        let nearest = before.and_then(|b| medoids.iter().min_by_key(|m| m.1.abs_diff(b)));
        timed.cycles > 0 && nearest.is_some_and(|m| m.0 == own)
    });
    weighted_middle(members.map(|t| (t.cycles, t.weight)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

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
        let now = region(&[120, 1000, 0, 400, 5000]);
        assert_eq!(class_middle(&base, &now, 1, &[1, 2]), Some(120));
        assert_eq!(class_middle(&base, &now, 2, &[1, 2]), Some(400));
        assert_eq!(class_middle(&base, &now, 1, &[1]), Some(400));
        assert_eq!(class_middle(&base, &now, 7, &[7]), None);
    }

    #[test]
    fn heavy_values_count_more() {
        assert_eq!(weighted_middle(vec![(9, 1.0), (5, 1.0), (7, 1.0)]), Some(7));
        assert_eq!(weighted_middle(vec![(9, 5.0), (5, 1.0), (7, 1.0)]), Some(9));
        assert_eq!(weighted_middle(Vec::new()), None);
    }
}
