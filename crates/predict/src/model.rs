//! The model of a prediction: the sequential part, and regions by their classes.

use super::outcome::{Outcome, error};
use super::ranks::{self, Changed, OverRanks, Rank};
use anyhow::Result;
use cere_catalogue::bail;
use cere_cluster::predict;
use cere_format::build::RegionKind;
use cere_format::package::Manifest;
use cere_format::profile::{Profile, RegionKey};
use cere_format::replay::Verdict;
use cere_measure::matching::{Pair, counting, in_vitro};
use cere_measure::{Times, class, threads};
use cere_store::current::Codelet;
use cere_store::names::Named;
use cere_system::console::print;
use cere_timing::stats::around_rounds;
use serde::Serialize;
use std::path::Path;

/// Minimum share of the run, in per cent, of an unpredicted region that a warning names.
const TOLD: f64 = 1.0;
/// Change of the sequential part with the number of threads, as a share of the run, above which a warning is given.
const CONSTANT: f64 = 0.05;

/// A codelet of a parallel region.
#[derive(Debug, Clone, Copy)]
pub struct OfClass<'a> {
    /// Its package.
    pub file: &'a Path,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Seconds of its class in the runs that the replays are compared with; at first those of the profile.
    pub seconds: f64,
    /// Seconds of one invocation of the class there, if known.
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

/// The input of a prediction.
pub struct Plan<'a> {
    /// Parallel regions by falling time.
    pub regions: Vec<Region<'a>>,
    /// Seconds outside of them.
    pub sequential: f64,
    /// Seconds of that run.
    pub total: f64,
    /// What each rank does there; empty if the program has none.
    pub ranks: Vec<Rank>,
}

impl<'a> Plan<'a> {
    /// Collects the parallel regions of the profile with their codelets.
    pub fn of(profile: &Profile, known: &[Named], codelets: &'a [Codelet]) -> Result<Self> {
        let ran = profile.regions.iter().filter(|r| r.invocations > 0);
        let mut regions: Vec<Region> = ran
            .filter(|r| is_parallel(known, &r.key))
            .map(|r| Region {
                key: r.key.clone(),
                name: r.name.clone(),
                seconds: r.inclusive_seconds,
                codelets: of_classes(&r.key, r.inclusive_seconds, codelets),
            })
            .collect();
        if regions.is_empty() {
            bail!(
                E6021,
                "no parallel region ran in the profiled run: is the program built with -fopenmp, by `cere instrument`?"
            );
        }
        regions.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let inside: f64 = regions.iter().map(|r| r.seconds).sum();
        let mut plan = Self {
            regions,
            sequential: (profile.seconds - inside).max(0.0),
            total: profile.seconds,
            ranks: Vec::new(),
        };
        plan.take_ranks(std::slice::from_ref(profile), profile);
        Ok(plan)
    }

    /// The regions' identities.
    pub fn keys(&self) -> Vec<RegionKey> {
        self.regions.iter().map(|r| r.key.clone()).collect()
    }

    /// Takes what each rank does from `runs`; the codelets are of the process of `profile`.
    pub fn take_ranks(&mut self, runs: &[Profile], profile: &Profile) {
        self.ranks = ranks::of(runs, &self.keys(), profile.process.rank.as_deref());
    }

    /// All codelets.
    pub fn each(&self) -> impl Iterator<Item = &OfClass<'a>> {
        self.regions.iter().flat_map(|r| &r.codelets)
    }

    /// Takes the classes' times from `runs` of the program, for regions whose invocations are those of `profile`.
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

    /// Numbers of threads at their capture.
    pub fn captured(&self) -> Vec<u32> {
        threads(self.each().map(|c| c.manifest))
    }
}

/// Whether the region is a parallel one.
pub fn is_parallel(known: &[Named], key: &RegionKey) -> bool {
    let found = known.iter().find(|n| n.key == *key);
    found.is_some_and(|n| n.region.kind == RegionKind::Parallel)
}

fn captured(manifest: &Manifest) -> u32 {
    manifest.openmp.as_ref().map_or(1, |o| o.threads)
}

/// The codelets of a region that together represent all of its invocations; empty if they do not.
fn of_classes<'a>(key: &RegionKey, seconds: f64, codelets: &'a [Codelet]) -> Vec<OfClass<'a>> {
    let own: Vec<&Codelet> = codelets.iter().filter(|c| c.1.key == *key).collect();
    let of = |(file, manifest): &'a Codelet| OfClass {
        file,
        manifest,
        seconds: manifest.represents.map_or(seconds, |r| r.seconds),
        reference: manifest.in_vivo.as_ref().map(|in_vivo| in_vivo.seconds),
    };
    match counting(&own, |c| c.1.represents) {
        // Several codelets chosen by number represent only their own invocations.
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

/// Why a region counts as profiled.
#[derive(Debug, Clone, thiserror::Error)]
enum Unpredicted {
    /// Nothing stands for all of it.
    #[error("it has no codelets that stand for all of its invocations: `cere capture` takes them")]
    NoCodelets,
    /// A codelet has no time.
    #[error("it was not replayed")]
    NotReplayed,
    /// A replay failed, or had another result.
    #[error("{0}")]
    Failed(String),
    /// So with a number of threads.
    #[error("with {0} threads: {1}")]
    Threads(u32, Box<Self>),
    /// Its classes have no time together.
    #[error(transparent)]
    Classes(#[from] cere_cluster::PredictError),
}

/// The replays of a codelet with a number of threads.
pub struct Replayed {
    name: String,
    threads: u32,
    captured: u32,
    /// Round by round.
    outcome: Result<Vec<Pair>, Unpredicted>,
    /// How its exit state differs, if its time counts nevertheless.
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

    /// Whether to replay again: a replay that failed once would fail again.
    pub fn goes_on(&self) -> bool {
        self.outcome.is_ok()
    }

    /// Adds a replay. With several threads, now or at capture, a different exit state does not exclude the time: a program may
    /// count its threads, or race.
    pub fn add(&mut self, replay: Result<Replay>) {
        let one = self.threads == 1 && self.captured == 1;
        match replay {
            Ok(replay) if replay.pair.verdict == Verdict::Different && one => {
                self.outcome = Err(Unpredicted::Failed(replay.reason));
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
            Err(error) => self.outcome = Err(Unpredicted::Failed(print::error(&error))),
        }
    }

    /// The time from the replay of one round, or from all: a low quantile of the repetitions that corresponds to the number of
    /// runs.
    fn seconds(&self, round: Option<usize>) -> Result<f64, Unpredicted> {
        let pairs = self.outcome.clone()?;
        let found = match round {
            Some(round) => pairs.get(round..round + 1),
            None => Some(&pairs[..]).filter(|pairs| !pairs.is_empty()),
        };
        let found = found.map(|found| in_vitro(found, pairs.len()));
        found.ok_or(Unpredicted::NotReplayed)
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
    /// Why its profiled time is used, if so.
    pub reason: Option<String>,
}

/// The run with a number of threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunTime {
    /// Threads.
    pub threads: u32,
    /// Predicted seconds.
    pub predicted_seconds: f64,
    /// Lower end of the 95 % interval, by the rounds' noise; none of a single round.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Share of the run in parallel regions that were predicted, 0 to 1.
    pub covered: f64,
    /// Measured seconds.
    pub measured_seconds: Option<f64>,
    /// Lower and upper end of the 95 % interval of the error: predicted over measured, less 1. By the noise of the rounds;
    /// none of a single round, or without measurements.
    pub error_range: Option<(f64, f64)>,
    /// Measured seconds of the sequential part.
    pub measured_sequential: Option<f64>,
    /// Predicted and measured seconds, round by round.
    pub rounds: Vec<(f64, Option<f64>)>,
    /// Seconds that one run of each codelet takes.
    pub replay_seconds: f64,
    /// How the predicted time is composed over ranks; none if the program has none.
    pub ranks: Option<OverRanks>,
    /// By region, of the rank that the codelets are of.
    pub regions: Vec<RegionTime>,
}

impl RunTime {
    /// The interval of the error, from what each round has predicted over what it has measured: neighbours in time compare.
    pub fn error_around(&self) -> Option<(f64, f64)> {
        let whole = 1.0 + self.outcome().error()?;
        let ratio = |round: &(f64, Option<f64>)| Some(1.0 + error(round.0, round.1)?);
        let rounds: Vec<f64> = self.rounds.iter().filter_map(ratio).collect();
        let (low, high) = around_rounds(whole, &rounds)?;
        Some((low - 1.0, high - 1.0))
    }

    /// As other predictions are shown.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            predicted_seconds: Some(self.predicted_seconds),
            low: self.low,
            high: self.high,
            measured_seconds: self.measured_seconds,
            covered: self.covered,
            reason: None,
        }
    }
}

/// A whole prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The rank that the codelets are of; none if the program has none.
    pub rank: Option<String>,
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
    /// What its user should know.
    pub notes: Vec<String>,
}

impl Prediction {
    /// Computes the prediction from the replays.
    pub fn of(plan: &Plan, threads: &[u32], replayed: &[Replayed], as_profiled: bool) -> Self {
        let runs = threads.iter().map(|n| run(plan, *n, replayed)).collect();
        Self {
            rank: ranks::own(&plan.ranks),
            captured_threads: plan.captured(),
            sequential_seconds: plan.sequential,
            profiled_seconds: plan.total,
            as_profiled,
            runs,
            depends: depends(replayed),
            notes: Vec::new(),
        }
    }

    /// Where the sequential part was measured, in words.
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

    /// The fastest run: as measured if all were measured, else as predicted.
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

    /// Warnings for the user.
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

/// The messages about codelets that end in another state, each once.
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

/// The run whose regions have `changed`: its seconds, and how they are composed over ranks.
fn composed(plan: &Plan, changed: &[Changed]) -> (f64, Option<OverRanks>) {
    let ranks = ranks::compose(&plan.ranks, changed);
    let inside = || changed.iter().map(|c| c.seconds).sum::<f64>();
    let seconds = ranks.as_ref().map(OverRanks::seconds);
    (seconds.unwrap_or_else(|| plan.sequential + inside()), ranks)
}

/// A region whose predicted seconds are `predicted`, or that counts as profiled.
fn changed(region: &Region, predicted: Option<f64>) -> Changed {
    let measured: f64 = region.codelets.iter().map(|c| c.seconds).sum();
    match predicted {
        Some(seconds) => Changed {
            seconds,
            ratio: seconds / measured.max(f64::MIN_POSITIVE),
        },
        None => Changed {
            seconds: region.seconds,
            ratio: 1.0,
        },
    }
}

/// The run as the replays of each round predict it.
fn rounds(plan: &Plan, threads: u32, replayed: &[Replayed]) -> Vec<(f64, Option<f64>)> {
    let of = replayed.iter().filter(|r| r.threads == threads);
    let rounds = of.filter_map(|r| Some(r.outcome.as_ref().ok()?.len()));
    let round = |round: usize| {
        let regions = plan.regions.iter().map(|region| {
            let found = region_seconds(region, threads, replayed, Some(round));
            changed(region, found.ok().map(|found| found.0))
        });
        (composed(plan, &regions.collect::<Vec<_>>()).0, None)
    };
    (0..rounds.min().unwrap_or(0)).map(round).collect()
}

fn run(plan: &Plan, threads: u32, replayed: &[Replayed]) -> RunTime {
    let mut replay_seconds = 0.0;
    let mut all = Vec::new();
    let regions: Vec<RegionTime> = plan
        .regions
        .iter()
        .map(|region| {
            let predicted = region_seconds(region, threads, replayed, None);
            if let Ok((_, cost)) = predicted {
                replay_seconds += cost;
            }
            let now = changed(region, predicted.as_ref().ok().map(|p| p.0));
            all.push(now);
            RegionTime {
                name: region.name.clone(),
                predicted_seconds: now.seconds,
                measured_seconds: None,
                reason: predicted.err().map(|why| why.to_string()),
            }
        })
        .collect();
    let each = plan.regions.iter().zip(&regions);
    let covered = each.filter(|(_, r)| r.reason.is_none());
    let covered: f64 = covered.map(|(region, _)| region.seconds).sum();
    let (predicted_seconds, ranks) = composed(plan, &all);
    let rounds = rounds(plan, threads, replayed);
    let each: Vec<f64> = rounds.iter().map(|r| r.0).collect();
    let interval = around_rounds(predicted_seconds, &each);
    RunTime {
        threads,
        predicted_seconds,
        low: interval.map(|i| i.0),
        high: interval.map(|i| i.1),
        covered: covered / plan.total.max(f64::MIN_POSITIVE),
        measured_seconds: None,
        error_range: None,
        measured_sequential: None,
        rounds,
        replay_seconds,
        ranks,
        regions,
    }
}

/// Predicted seconds of a region, and seconds of one run of each of its codelets; or why it is not predicted. The reference
/// of a class is its representative's time in the profile (thesis, 4.2), so the speed of the machine at that time cancels
/// out. If that is unknown, the reference is its replay with as many threads as at capture.
fn region_seconds(
    region: &Region,
    threads: u32,
    replayed: &[Replayed],
    round: Option<usize>,
) -> Result<(f64, f64), Unpredicted> {
    if region.codelets.is_empty() {
        return Err(Unpredicted::NoCodelets);
    }
    let of = |codelet: &OfClass, threads: u32, round: Option<usize>| {
        let same = |r: &&Replayed| r.name == codelet.manifest.name && r.threads == threads;
        let found = replayed.iter().find(same);
        found.map_or(Err(Unpredicted::NotReplayed), |r| r.seconds(round))
    };
    // A codelet that fails with one number of threads is not used with the others.
    for replay in replayed {
        let own = |c: &OfClass| c.manifest.name == replay.name;
        if region.codelets.iter().any(own) {
            let failed = |why| Unpredicted::Threads(replay.threads, Box::new(why));
            replay.seconds(None).map_err(failed)?;
        }
    }
    let mut classes = Vec::new();
    let mut cost = 0.0;
    for codelet in &region.codelets {
        let target = of(codelet, threads, round)?;
        cost += target;
        classes.push(cere_cluster::Replayed {
            total: codelet.seconds,
            reference: match codelet.reference {
                Some(seconds) => seconds,
                None => of(codelet, captured(codelet.manifest), None)?,
            },
            target,
        });
    }
    Ok((predict(&classes)?, cost))
}

#[cfg(test)]
pub(crate) mod tests;
