//! Builds and times variants of a region's codelets.

use super::target::{Member, Target};
use crate::fast::cycles_to_seconds;
use crate::replays::record;
use crate::{Goal, Replays};
use anyhow::Result;
use cere_format::replay::{Preparation, Repetitions, Verdict};
use cere_format::store::Store;
use cere_replay::{Built, Objects, Options, ReplayError, Settings, Team};
use cere_store::results;
use cere_toolchain::Variant;
use std::time::{Duration, Instant};

/// Builds and times variants of regions: [`Lab`] by replays, tests by a model.
pub trait Measure: Sync {
    /// Compiles and links all codelets of `target`.
    fn build(&self, target: &Target, variant: &Variant) -> Result<Builds, String>;

    /// Likewise, but only compiles them if the target knows what comes of the code.
    fn build_new(&self, target: &Target, variant: &Variant) -> Result<Builds, String>;

    /// Replays `builds` of `variant`, as long as `goes_on` after the times so far. An error tells why the variant cannot be
    /// used; whether its codelets are long enough to be timed is for the caller to ask ([`Target::check_timed_weight`]). `judged`: whether code that tells its stores is asked if what differs is rounding. `team`: that of the replays, if
    /// not [`Measure::team`].
    fn time_while(
        &self,
        target: &Target,
        variant: &Variant,
        builds: &Builds,
        judged_and_team: (bool, Option<&Team>),
        goes_on: &dyn Fn(&[f64]) -> bool,
    ) -> Result<Timed, String>;

    /// The same to the end; too short a time is an error.
    fn time(
        &self,
        target: &Target,
        variant: &Variant,
        builds: &Builds,
        judged: bool,
        team: Option<&Team>,
    ) -> Result<Timed, String> {
        let timed = self.time_while(target, variant, builds, (judged, team), &|_| true)?;
        target.check_timed_weight(&timed.costs)?;
        Ok(timed)
    }

    /// Where threads run, and how many there are.
    fn team(&self) -> &Team;

    /// The same with repetitions of so many seconds a codelet, or until the median is known within the share `precision`, unless
    /// people asked for others.
    fn repeating(&self, precision: f64, seconds: f64) -> Box<dyn Measure + '_>;
}

/// Where variants are built and replayed.
#[derive(Clone)]
pub struct Lab<'a> {
    /// The store for the records.
    pub store: &'a Store,
    /// Replays of that store.
    pub replays: &'a Replays<'a>,
    /// How to replay; flags and passes come from the variant.
    pub settings: Settings,
    /// Whether variants may round differently, within the tolerance.
    pub rounds: bool,
    /// What they are compared by; `settings` have what it needs measured.
    pub goal: Goal,
}

/// Builds of all codelets of a region.
pub struct Builds {
    /// One build for each member; empty if the machine code is known already.
    pub built: Vec<Built>,
    /// Hash of the machine code.
    pub code: String,
    /// Seconds of the build.
    pub seconds: f64,
}

/// Times of all codelets of a region.
#[derive(Debug, Clone)]
pub struct Timed {
    /// Seconds of each member, or joules, or joules times seconds ([`Goal::cost`]); of the first ones alone if those were too slow. 0
    /// for a member too short to be measured.
    pub costs: Vec<f64>,
    /// Seconds that the replays took, with start and restoring.
    pub wall: f64,
    /// Of those, seconds in timed repetitions.
    pub timed: f64,
    /// Of those, seconds of restoring and warming up.
    pub preparation: Preparation,
}

impl Lab<'_> {
    fn settings(&self, target: &Target, variant: &Variant, team: Option<&Team>) -> Settings {
        let mut settings = self.settings.clone();
        if let Some(limit) = target.limit.get() {
            let limit = Duration::from_secs_f64(*limit);
            settings.timeout = Some(settings.timeout.map_or(limit, |most| most.min(limit)));
        }
        settings.flags.clone_from(&variant.flags);
        settings.passes.clone_from(&variant.passes);
        if let Some(team) = team {
            settings.team = team.clone();
        }
        settings
    }

    fn options(&self, settings: &Settings) -> Result<Options, String> {
        let options = self.replays.options_to_repeat(settings);
        options.map_err(|error| cere_system::console::print::error(&error))
    }

    fn build_unless_known(
        &self,
        target: &Target,
        variant: &Variant,
        new: bool,
    ) -> Result<Builds, String> {
        let start = Instant::now();
        let options = self.options(&self.settings(target, variant, None))?;
        let compile = |m: &Member| cere_replay::compile(&m.package, &m.manifest, &options);
        let made = || -> Result<_, ReplayError> {
            let objects: Vec<Objects> = target
                .members
                .iter()
                .map(compile)
                .collect::<Result<_, _>>()?;
            let codes: Vec<String> = objects
                .iter()
                .map(Objects::code)
                .collect::<Result<_, _>>()?;
            let code = codes.concat();
            if new && target.known(&code).is_some() {
                return Ok((code, Vec::new()));
            }
            let each = target.members.iter().zip(&objects);
            let built: Result<Vec<Built>, _> = each
                .map(|(m, objects)| objects.link(&m.package, &m.manifest, &options))
                .collect();
            Ok((code, built?))
        };
        let (code, built) = made().map_err(|error| error.to_string())?;
        Ok(Builds {
            built,
            code,
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}

impl Measure for Lab<'_> {
    fn build(&self, target: &Target, variant: &Variant) -> Result<Builds, String> {
        self.build_unless_known(target, variant, false)
    }

    fn build_new(&self, target: &Target, variant: &Variant) -> Result<Builds, String> {
        self.build_unless_known(target, variant, true)
    }

    fn team(&self) -> &Team {
        &self.settings.team
    }

    fn repeating(&self, precision: f64, seconds: f64) -> Box<dyn Measure + '_> {
        let mut lab = self.clone();
        let repetitions = &mut lab.settings.repetitions;
        if *repetitions == Repetitions::default() {
            repetitions.precision = precision;
            repetitions.seconds = seconds;
        }
        Box::new(lab)
    }

    fn time_while(
        &self,
        target: &Target,
        variant: &Variant,
        builds: &Builds,
        (judged, team): (bool, Option<&Team>),
        goes_on: &dyn Fn(&[f64]) -> bool,
    ) -> Result<Timed, String> {
        let start = Instant::now();
        let settings = self.settings(target, variant, team);
        let options = self.options(&settings)?;
        let mut timed = Timed {
            costs: Vec::new(),
            wall: 0.0,
            timed: 0.0,
            preparation: Preparation::default(),
        };
        for (member, built) in target.members.iter().zip(&builds.built) {
            let mut replay =
                cere_replay::run::run(&member.package, &member.manifest, built, &options);
            if let (Ok(replay), true) = (&mut replay, judged) {
                let told =
                    cere_replay::judge(&member.package, &member.manifest, built, replay, &options);
                told.map_err(|error| error.to_string())?;
            }
            let record = record(&settings, &member.manifest, &member.sha256, replay.as_ref());
            results::keep_or_warn(self.store, &record, self.replays.events());
            let replay = replay.map_err(|error| error.to_string())?;
            let several = team.is_some_and(|t| t.threads.is_some());
            // Threads may add in another order each time.
            let threads =
                cere_replay::plan::threads(&member.manifest, options.settings.team.threads);
            let rounds = self.rounds || threads.is_some_and(|n| n > 1);
            match replay.verdict {
                Verdict::Exact => {}
                Verdict::Tolerance if rounds => {}
                // The winner is judged before it is accepted.
                _ if rounds && !judged && cere_replay::may_be_rounding(&replay, &options) => {}
                // The result may depend on the number of threads.
                Verdict::Different if several => {}
                verdict => {
                    let what = match verdict {
                        Verdict::Partly => "not all of its result was compared",
                        _ => "another result",
                    };
                    let (name, reason) = (&member.manifest.name, replay.reason);
                    return Err(format!("{name}: {what}: {reason}"));
                }
            }
            timed.preparation.restoring += replay.preparation.restoring;
            timed.preparation.warming += replay.preparation.warming;
            timed.timed += replay.energy.as_ref().map_or(0.0, |energy| energy.took);
            timed.timed += cycles_to_seconds(&replay, replay.cycles.iter().sum::<u64>() as f64);
            timed.costs.push(self.goal.cost(&replay));
            if !goes_on(&timed.costs) {
                break;
            }
        }
        timed.wall = start.elapsed().as_secs_f64();
        Ok(timed)
    }
}
