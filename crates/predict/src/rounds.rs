//! Replays with each number of threads, in turns with runs of the program if requested: the speed of a shared machine varies.

use super::model::{Plan, Prediction, Replay, Replayed};
use super::ranks;
use anyhow::{Context, Result};
use cere_format::package::Manifest;
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_measure::matching::Pair;
use cere_measure::vivo::TOLERATED;
use cere_measure::{InVivo, Replays, Settings, Times, minimum, region_seconds};
use cere_replay::Team;
use cere_store::results;
use cere_system::console::print;
use cere_system::events::Events;
use std::path::Path;

/// Minimum seconds that a codelet is repeated in a round while the interval of its median is still too wide.
const LEAST: f64 = 0.4;

/// What to replay and run, and how.
pub struct Rounds<'a> {
    /// The store with codelets and records.
    pub store: &'a Store,
    /// The profile that they were chosen from.
    pub profile: &'a Profile,
    /// The codelets.
    pub plan: Plan<'a>,
    /// Numbers of threads.
    pub threads: &'a [u32],
    /// How to replay; its team says where threads run, not how many.
    pub settings: Settings,
    /// Rounds, at least 1.
    pub rounds: u32,
    /// Whether the program runs with each number of threads.
    pub measure: bool,
    /// Whether it runs with as many threads as at capture, for the sequential part.
    pub sequential: bool,
    /// What is said meanwhile.
    pub events: &'a Events,
}

/// The runs of the program, by index of the number of threads.
type Runs = Vec<Vec<Profile>>;

/// What they find.
struct Found {
    /// Numbers of threads: those asked for, then those at capture.
    counts: Vec<u32>,
    /// For each of them, every codelet.
    replayed: Vec<Replayed>,
    /// For each of them.
    runs: Runs,
}

/// What rounds take times from: the program and its codelets, in tests a model of them.
pub trait Source {
    /// Whether the program can be run.
    fn runs(&self) -> bool;

    /// A run of the program with `threads` threads, in which `regions` are timed.
    fn run(&mut self, regions: &[RegionKey], threads: u32) -> Result<Profile>;

    /// A replay of the codelet in `file`.
    fn replay(&mut self, settings: &Settings, file: &Path) -> Result<Replay>;
}

/// The program and its codelets.
struct Program<'a> {
    store: &'a Store,
    program: Option<InVivo<'a>>,
    replays: Replays<'a>,
    environment: Vec<(String, String)>,
}

impl Source for Program<'_> {
    fn runs(&self) -> bool {
        self.program.is_some()
    }

    fn run(&mut self, regions: &[RegionKey], threads: u32) -> Result<Profile> {
        let program = self.program.as_mut().context("the program is not run")?;
        let mut environment = self.environment.clone();
        environment.push(("OMP_NUM_THREADS".into(), threads.to_string()));
        program.run_with(regions, &environment)
    }

    fn replay(&mut self, settings: &Settings, file: &Path) -> Result<Replay> {
        let (replay, record) = self.replays.replay_unrecorded(settings, file, None)?;
        results::keep_or_warn(self.store, &record, self.replays.events());
        let reason = replay?.reason;
        let pair = Pair::in_round(&record).context("the replay measured nothing")?;
        Ok(Replay { pair, reason })
    }
}

impl<'a> Rounds<'a> {
    /// Replays, and runs.
    pub fn predict(self) -> Result<Prediction> {
        let mut program = Program {
            store: self.store,
            program: self.program()?,
            replays: Replays::open(self.store, self.events)?,
            environment: self.settings.team.environment.clone(),
        };
        self.predict_from(&mut program)
    }

    /// The same by the times of `source`.
    fn predict_from(mut self, source: &mut dyn Source) -> Result<Prediction> {
        let keys = self.plan.keys();
        let Found {
            counts,
            replayed,
            runs,
        } = self.all(source, &keys)?;
        let own = self.plan.captured().first().copied();
        let own = counts.iter().zip(&runs).find(|(n, _)| Some(**n) == own);
        let own = own
            .map(|(_, runs)| &runs[..])
            .filter(|runs| self.sequential && !runs.is_empty());
        if let Some(runs) = own {
            let times: Vec<Times> = runs.iter().map(Times::from).collect();
            self.plan.refer_to(&times, self.profile);
            self.plan.take_ranks(runs, self.profile);
            self.plan.sequential = minimum(runs.iter().map(seconds_outside)).unwrap_or_default();
            self.plan.total = minimum(runs.iter().map(|p| p.seconds)).unwrap_or_default();
        }
        let as_profiled = own.is_none();
        let mut prediction = Prediction::of(&self.plan, self.threads, &replayed, as_profiled);
        if self.measure {
            add(&mut prediction, &keys, &runs);
        }
        Ok(prediction)
    }

    fn all(&self, source: &mut dyn Source, keys: &[RegionKey]) -> Result<Found> {
        let mut replayed: Vec<Replayed> = Vec::new();
        // Replays with the number of threads at capture only check the result: one is enough.
        let mut counts = self.threads.to_vec();
        let captured = self.plan.captured();
        counts.extend(captured.iter().filter(|n| !self.threads.contains(n)));
        let mut runs: Runs = vec![Vec::new(); counts.len()];
        let steps = u64::from(self.rounds) * counts.len() as u64;
        let bar = self.events.steps("replaying", steps);
        for round in 0..self.rounds {
            for (place, &n) in counts.iter().enumerate() {
                let asked = place < self.threads.len();
                let runs_now =
                    self.measure && asked || self.sequential && captured.first() == Some(&n);
                if runs_now && source.runs() {
                    bar.at(format!("the program with {n} threads"));
                    let run = source.run(keys, n)?;
                    ranks::check(self.profile, &run)?;
                    runs[place].push(run);
                }
                let mut settings = Settings {
                    team: Team {
                        threads: Some(n),
                        ..self.settings.team.clone()
                    },
                    ..self.settings.clone()
                };
                let seconds = &mut settings.repetitions.seconds;
                *seconds = (*seconds / f64::from(self.rounds)).max(LEAST);
                for (at, codelet) in self.plan.each().enumerate() {
                    bar.at(format!("{} with {n}", codelet.manifest.name));
                    let place = place * self.plan.codelets() + at;
                    if round == 0 {
                        replayed.push(Replayed::none(codelet, n));
                    }
                    if replayed[place].goes_on() && (asked || round == 0) {
                        replayed[place].add(source.replay(&settings, codelet.file));
                    }
                }
                bar.step();
            }
        }
        Ok(Found {
            counts,
            replayed,
            runs,
        })
    }

    /// The program, if it is to run.
    fn program(&self) -> Result<Option<InVivo<'a>>> {
        if !self.measure && !self.sequential {
            return Ok(None);
        }
        let manifests: Vec<&Manifest> = self.plan.each().map(|c| c.manifest).collect();
        match InVivo::open(self.store, self.profile, &manifests, TOLERATED, self.events) {
            Ok(program) => Ok(Some(program)),
            Err(error) if self.measure => Err(error.context("the program cannot be measured")),
            Err(error) => {
                self.events.note(format!(
                    "the program is not run, so its sequential part counts as profiled: {}",
                    print::error(&error)
                ));
                Ok(None)
            }
        }
    }
}

/// Seconds outside the timed regions; none of them is inside another.
fn seconds_outside(profile: &Profile) -> f64 {
    let inside: f64 = profile.regions.iter().map(|r| r.inclusive_seconds).sum();
    (profile.seconds - inside).max(0.0)
}

/// Adds the measured times. As for replays, a low quantile counts.
fn add(prediction: &mut Prediction, keys: &[RegionKey], runs: &Runs) {
    for (run, found) in prediction.runs.iter_mut().zip(runs) {
        for (round, profile) in run.rounds.iter_mut().zip(found) {
            round.1 = Some(profile.seconds);
        }
        run.measured_sequential = minimum(found.iter().map(seconds_outside));
        for (region, key) in run.regions.iter_mut().zip(keys) {
            region.measured_seconds = region_seconds(found, key);
        }
        let inside: f64 = run.regions.iter().filter_map(|r| r.measured_seconds).sum();
        run.measured_seconds = run
            .measured_sequential
            .map(|sequential| sequential + inside);
        run.error_range = run.error_around();
        if let Some(ranks) = &mut run.ranks {
            ranks.add(&ranks::of(found, keys, None));
        }
    }
}

#[cfg(test)]
mod tests;
