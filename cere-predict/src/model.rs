//! What is predicted: the sequential part, and regions by their classes.

use anyhow::{Result, bail};
use cere_cluster::predict;
use cere_console::print;
use cere_format::build::RegionKind;
use cere_format::package::Manifest;
use cere_format::profile::{Profile, RegionKey};
use cere_format::replay::Verdict;
use cere_measure::matching::{Pair, counting, in_vitro};
use cere_measure::{Times, class, threads};
use cere_store::current::Codelet;
use cere_store::names::Named;
use serde::Serialize;
use std::path::Path;

/// Per cent of the run from which on a region that is not predicted is named.
const TOLD: f64 = 1.0;
/// How much of a run's time the sequential part may change with the number of threads before people are told.
const CONSTANT: f64 = 0.05;

/// A codelet of a parallel region.
#[derive(Debug, Clone, Copy)]
pub struct OfClass<'a> {
    /// Its package.
    pub file: &'a Path,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Seconds that its class took in the runs that the replays are compared with: at first, in the profile.
    pub seconds: f64,
    /// Seconds of one invocation of the class there, if they are known.
    pub reference: Option<f64>,
}

/// A parallel region of the profile.
pub struct Region<'a> {
    /// Identity.
    pub key: RegionKey,
    /// Display name.
    pub name: String,
    /// Seconds in the profile.
    pub seconds: f64,
    codelets: Vec<OfClass<'a>>,
}

/// What a prediction is made of.
pub struct Plan<'a> {
    /// Parallel regions by falling time.
    pub regions: Vec<Region<'a>>,
    /// Seconds outside of them.
    pub sequential: f64,
    /// Seconds of the run that this is of.
    pub total: f64,
}

impl<'a> Plan<'a> {
    /// The parallel regions of the profile, with their codelets.
    pub fn of(profile: &Profile, known: &[Named], codelets: &'a [Codelet]) -> Result<Self> {
        let parallel = |key: &RegionKey| {
            let found = known.iter().find(|n| n.key == *key);
            found.is_some_and(|n| n.region.kind == RegionKind::Parallel)
        };
        let ran = profile.regions.iter().filter(|r| r.invocations > 0);
        let mut regions: Vec<Region> = ran
            .filter(|r| parallel(&r.key))
            .map(|r| Region {
                key: r.key.clone(),
                name: r.name.clone(),
                seconds: r.inclusive_seconds,
                codelets: of_classes(&r.key, r.inclusive_seconds, codelets),
            })
            .collect();
        if regions.is_empty() {
            bail!(
                "no parallel region ran in the profiled run: is the program built with -fopenmp, by `cere instrument`?"
            );
        }
        regions.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let inside: f64 = regions.iter().map(|r| r.seconds).sum();
        Ok(Self {
            regions,
            sequential: (profile.seconds - inside).max(0.0),
            total: profile.seconds,
        })
    }

    /// All codelets.
    pub fn each(&self) -> impl Iterator<Item = &OfClass<'a>> {
        self.regions.iter().flat_map(|r| &r.codelets)
    }

    /// Has the classes' times be those of `runs` of the program, where they had the invocations of `profile`.
    pub fn refer_to(&mut self, runs: &[Times], profile: &Profile) {
        for region in &mut self.regions {
            let captured: Vec<u64> = region
                .codelets
                .iter()
                .map(|c| c.manifest.invocation)
                .collect();
            for codelet in &mut region.codelets {
                if let Some(class) = class(runs, profile, codelet.manifest, &captured) {
                    codelet.seconds = class.total;
                    codelet.reference = Some(class.middle);
                }
            }
        }
    }

    /// Their number.
    pub fn codelets(&self) -> usize {
        self.each().count()
    }

    /// Numbers of threads that they were captured with.
    pub fn captured(&self) -> Vec<u32> {
        threads(self.each().map(|c| c.manifest))
    }
}

fn captured(manifest: &Manifest) -> u32 {
    manifest.openmp.as_ref().map_or(1, |o| o.threads)
}

/// The codelets of a region that together stand for all of its invocations; none if they do not.
fn of_classes<'a>(key: &RegionKey, seconds: f64, codelets: &'a [Codelet]) -> Vec<OfClass<'a>> {
    let own: Vec<&Codelet> = codelets.iter().filter(|c| c.1.key == *key).collect();
    let of = |(file, manifest): &'a Codelet| OfClass {
        file,
        manifest,
        seconds: manifest.represents.map_or(seconds, |r| r.seconds),
        reference: manifest.in_vivo.as_ref().map(|in_vivo| in_vivo.seconds),
    };
    match counting(&own, |c| c.1.represents) {
        // Several that were chosen by number stand for nothing but themselves.
        Ok((_, all)) if all.len() > 1 && all[0].1.represents.is_none() => Vec::new(),
        Ok((_, all)) => all.into_iter().map(of).collect(),
        Err(_) => Vec::new(),
    }
}

/// A replay that ended.
pub struct Replay {
    /// Its times and its verdict.
    pub pair: Pair,
    /// Why that verdict.
    pub reason: String,
}

/// What became of the replays of a codelet with a number of threads.
pub struct Replayed {
    name: String,
    threads: u32,
    captured: u32,
    /// Round by round.
    outcome: Result<Vec<Pair>, String>,
    /// How the state that it ends in is another, if its time counts all the same.
    other: Option<String>,
}

impl Replayed {
    /// None yet.
    pub fn none(codelet: &OfClass, threads: u32) -> Self {
        Self {
            name: codelet.manifest.name.clone(),
            threads,
            captured: captured(codelet.manifest),
            outcome: Ok(Vec::new()),
            other: None,
        }
    }

    /// Whether another replay is of use: what fails once does not get better by repetition.
    pub fn goes_on(&self) -> bool {
        self.outcome.is_ok()
    }

    /// One more. A state that is not the original's is no reason against its time where there are several threads, or were at
    /// capture: a program may count its threads, or race.
    pub fn add(&mut self, replay: Result<Replay>) {
        let one = self.threads == 1 && self.captured == 1;
        match replay {
            Ok(replay) if replay.pair.verdict == Verdict::Different && one => {
                self.outcome = Err(replay.reason);
            }
            Ok(replay) => {
                if replay.pair.verdict == Verdict::Different {
                    let threads = self.threads;
                    let told = || format!("with {threads} threads: {}", replay.reason);
                    self.other.get_or_insert_with(told);
                }
                if let Ok(pairs) = &mut self.outcome {
                    pairs.push(replay.pair);
                }
            }
            Err(error) => self.outcome = Err(print::error(&error)),
        }
    }

    /// The time by a round's replay, or by all: what the fast repetitions take, as many as there are runs to be compared with.
    fn seconds(&self, round: Option<usize>) -> Result<f64, String> {
        let pairs = self.outcome.clone()?;
        let found = match round {
            Some(round) => pairs.get(round..round + 1),
            None => Some(&pairs[..]).filter(|pairs| !pairs.is_empty()),
        };
        let found = found.map(|found| in_vitro(found, pairs.len()));
        found.ok_or_else(|| "it was not replayed".to_owned())
    }
}

/// A region with a number of threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegionTime {
    /// Name.
    pub name: String,
    /// Predicted seconds.
    pub predicted_seconds: f64,
    /// Measured seconds.
    pub measured_seconds: Option<f64>,
    /// Why it counts as profiled, if it does.
    pub reason: Option<String>,
}

/// The run with a number of threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunTime {
    /// Threads.
    pub threads: u32,
    /// Predicted seconds.
    pub predicted_seconds: f64,
    /// Measured seconds.
    pub measured_seconds: Option<f64>,
    /// Measured seconds of the sequential part.
    pub measured_sequential: Option<f64>,
    /// Predicted and measured seconds, round by round.
    pub rounds: Vec<(f64, Option<f64>)>,
    /// Seconds that one run of each codelet takes.
    pub replay_seconds: f64,
    /// By region.
    pub regions: Vec<RegionTime>,
}

/// Predicted over measured, less 1.
pub fn error(predicted: f64, measured: Option<f64>) -> Option<f64> {
    let measured = measured.filter(|s| *s > 0.0)?;
    Some(predicted / measured - 1.0)
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Numbers of threads that the codelets were captured with.
    pub captured_threads: Vec<u32>,
    /// Seconds of the sequential part.
    pub sequential_seconds: f64,
    /// Seconds of the run that it was measured in.
    pub profiled_seconds: f64,
    /// Whether that is the profiled run, whose probes of serial loops count as well.
    pub as_profiled: bool,
    /// By rising number of threads.
    pub runs: Vec<RunTime>,
    /// Codelets whose result depends on the number of threads, or varies.
    pub depends: Vec<String>,
}

impl Prediction {
    /// Of what replays found.
    pub fn of(plan: &Plan, threads: &[u32], replayed: &[Replayed], as_profiled: bool) -> Self {
        let runs = threads.iter().map(|n| run(plan, *n, replayed)).collect();
        Self {
            captured_threads: plan.captured(),
            sequential_seconds: plan.sequential,
            profiled_seconds: plan.total,
            as_profiled,
            runs,
            depends: depends(replayed),
        }
    }

    /// What the sequential part is of, for people.
    pub fn sequential_of(&self) -> &'static str {
        match self.as_profiled {
            true => "the profile",
            false => "the run with as many threads as at capture",
        }
    }

    /// Whether every region counts as profiled.
    pub fn nothing(&self) -> bool {
        let regions = self.runs.iter().flat_map(|run| &run.regions);
        regions.clone().all(|r| r.reason.is_some())
    }

    /// The run that takes least: as measured where all were, else as predicted.
    pub fn best(&self) -> Option<&RunTime> {
        let measured = self.runs.iter().all(|r| r.measured_seconds.is_some());
        let seconds = |r: &&RunTime| match measured {
            true => r.measured_seconds.unwrap_or(f64::MAX),
            false => r.predicted_seconds,
        };
        let least = |a: &&RunTime, b: &&RunTime| seconds(a).total_cmp(&seconds(b));
        self.runs.iter().min_by(least)
    }

    /// Run time over the time of one run of each codelet, all numbers of threads together (thesis, 1.2).
    pub fn reduction(&self) -> Option<f64> {
        let replays: f64 = self.runs.iter().map(|r| r.replay_seconds).sum();
        let runs = self.runs.iter();
        let runs: f64 = runs
            .map(|r| r.measured_seconds.unwrap_or(r.predicted_seconds))
            .sum();
        (replays > 0.0).then_some(runs / replays)
    }

    /// What people should know.
    pub fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(first) = self.runs.first() {
            let share = |seconds: f64| seconds / self.profiled_seconds * 100.0;
            let (mut few, mut rest) = (0, 0.0);
            for region in &first.regions {
                let Some(reason) = &region.reason else {
                    continue;
                };
                let share = share(region.predicted_seconds);
                if share < TOLD {
                    few += 1;
                    rest += share;
                    continue;
                }
                found.push(format!(
                    "not predicted, counts as profiled ({share:.1} % of the run): {}: {reason}",
                    region.name
                ));
            }
            if few > 0 {
                found.push(format!(
                    "{few} regions that take {rest:.1} % of the run together are not predicted, they count as profiled"
                ));
            }
        }
        found.extend(self.depends.iter().cloned());
        for run in &self.runs {
            let (Some(sequential), Some(total)) = (run.measured_sequential, run.measured_seconds)
            else {
                continue;
            };
            if (sequential - self.sequential_seconds).abs() > CONSTANT * total {
                found.push(format!(
                    "the sequential part is not constant: {} with {} threads, {} in {}",
                    print::time(sequential),
                    run.threads,
                    print::time(self.sequential_seconds),
                    self.sequential_of()
                ));
            }
        }
        found
    }
}

/// What is to be said of codelets that end in another state, once each.
fn depends(replayed: &[Replayed]) -> Vec<String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for replay in replayed {
        let Some(why) = &replay.other else { continue };
        if found.iter().all(|(name, _)| *name != replay.name) {
            let name = &replay.name;
            found.push((
                name,
                format!("{name}: its time counts, but its result is another: {why}"),
            ));
        }
    }
    found.into_iter().map(|(_, text)| text).collect()
}

/// The run as the replays of each round predict it.
fn rounds(plan: &Plan, threads: u32, replayed: &[Replayed]) -> Vec<(f64, Option<f64>)> {
    let of = replayed.iter().filter(|r| r.threads == threads);
    let rounds = of.filter_map(|r| Some(r.outcome.as_ref().ok()?.len()));
    let round = |round: usize| {
        let regions = plan.regions.iter().map(|region| {
            let found = region_seconds(region, threads, replayed, Some(round));
            found.map_or(region.seconds, |found| found.0)
        });
        (plan.sequential + regions.sum::<f64>(), None)
    };
    (0..rounds.min().unwrap_or(0)).map(round).collect()
}

fn run(plan: &Plan, threads: u32, replayed: &[Replayed]) -> RunTime {
    let mut replay_seconds = 0.0;
    let regions: Vec<RegionTime> = plan
        .regions
        .iter()
        .map(|region| {
            let predicted = region_seconds(region, threads, replayed, None);
            if let Ok((_, cost)) = predicted {
                replay_seconds += cost;
            }
            RegionTime {
                name: region.name.clone(),
                predicted_seconds: predicted.as_ref().map_or(region.seconds, |p| p.0),
                measured_seconds: None,
                reason: predicted.err(),
            }
        })
        .collect();
    let inside: f64 = regions.iter().map(|r| r.predicted_seconds).sum();
    RunTime {
        threads,
        predicted_seconds: plan.sequential + inside,
        measured_seconds: None,
        measured_sequential: None,
        rounds: rounds(plan, threads, replayed),
        replay_seconds,
        regions,
    }
}

/// Predicted seconds of a region, and those that one run of each of its codelets takes; or why there are none. The reference of
/// a class is its representative's time in the profile (thesis, 4.2): how fast the machine was then cancels out. Where that is
/// not known, its replay with as many threads as at capture stands in.
fn region_seconds(
    region: &Region,
    threads: u32,
    replayed: &[Replayed],
    round: Option<usize>,
) -> Result<(f64, f64), String> {
    if region.codelets.is_empty() {
        return Err(
            "it has no codelets that stand for all of its invocations: `cere capture` takes them"
                .into(),
        );
    }
    let of = |codelet: &OfClass, threads: u32| {
        let same = |r: &&Replayed| r.name == codelet.manifest.name && r.threads == threads;
        let found = replayed.iter().find(same).map(|r| r.seconds(round));
        found.unwrap_or_else(|| Err("it was not replayed".into()))
    };
    let reference = |codelet: &OfClass| {
        let (name, threads) = (&codelet.manifest.name, captured(codelet.manifest));
        let mut found = replayed.iter();
        let found = found.find(|r| r.name == *name && r.threads == threads);
        found.map_or(Err("it was not replayed".into()), |r| r.seconds(None))
    };
    // One that fails with any number of threads is of no use with the others.
    for replay in replayed {
        let own = |c: &OfClass| c.manifest.name == replay.name;
        if region.codelets.iter().any(own) {
            let told = |why| format!("with {} threads: {why}", replay.threads);
            replay.seconds(None).map_err(told)?;
        }
    }
    let mut classes = Vec::new();
    let mut cost = 0.0;
    for codelet in &region.codelets {
        let target = of(codelet, threads)?;
        cost += target;
        classes.push(cere_cluster::Replayed {
            total: codelet.seconds,
            reference: match codelet.reference {
                Some(seconds) => seconds,
                None => reference(codelet)?,
            },
            target,
        });
    }
    let seconds = predict(&classes).map_err(|e| e.to_string())?;
    Ok((seconds, cost))
}

#[cfg(test)]
pub(crate) mod tests;
