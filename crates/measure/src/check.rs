//! Replays of all codelets, several times over, each round between two runs of the program.

use crate::decide::rounds;
use crate::matching::{Measured, Pair};
use crate::vivo::{self, InVivo, Times};
use crate::{Bench, Extent, Fitting, Replays, Settings, Turns};
use anyhow::Result;
use cere_format::package::Manifest;
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_store::current::Codelet;
use cere_store::results;
use cere_store::results::Record;
use cere_system::console::print;
use cere_system::events::{Events, Progress};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Minimum seconds that a codelet is repeated in a round while the interval of its median is still too wide.
const MIN_SECONDS: f64 = 0.4;

/// What is to be measured, and how.
pub struct Plan<'a> {
    /// Where records go.
    pub store: &'a Store,
    /// The profile that the codelets' classes come from.
    pub profile: &'a Profile,
    /// The codelets.
    pub codelets: &'a [Codelet],
    /// How to replay them.
    pub settings: Settings,
    /// Whether to ignore earlier records.
    pub again: bool,
    /// How much is measured.
    pub extent: Extent,
    /// What is done.
    pub events: &'a Events,
}

/// Age up to which a profile's run stands for one of now.
const NEW: Duration = Duration::from_secs(600);
/// Share of a region's time that probes inside it may add where time is short.
const TOLERATED_IN_SECONDS: f64 = 0.01;

impl Plan<'_> {
    /// Measures all codelets, or takes their earlier records where those are usable.
    pub fn measure(mut self) -> Result<Vec<Measured>> {
        let began = Instant::now();
        let replays = Replays::open(self.store, self.events)?;
        let mut found = self.known_records(&replays)?;
        let new: Vec<usize> = (0..found.len()).filter(|i| found[*i].is_none()).collect();
        if !new.is_empty() {
            let codelets: Vec<&Codelet> = new.iter().map(|i| &self.codelets[*i]).collect();
            let work = self.events.work("compiling codelets");
            replays.build_ahead(&self.settings, &codelets)?;
            drop(work);
            let measured = self.measure_new(&replays, &new, began)?;
            for (place, records) in new.into_iter().zip(measured) {
                found[place] = Some(records);
            }
        }
        let none = || Err("it was not replayed".to_owned());
        let found = found.into_iter().map(|f| f.unwrap_or_else(none)).collect();
        Ok(self.pair_with_codelets(found))
    }

    /// Replays the codelets with the numbers `new`.
    fn measure_new(
        &mut self,
        replays: &Replays,
        new: &[usize],
        began: Instant,
    ) -> Result<Vec<Found>> {
        if self.extent == Extent::Rounds(0) {
            return Ok(self.replay_once(replays, new));
        }
        let tolerated = match self.extent {
            Extent::Rounds(_) => vivo::TOLERATED,
            Extent::Seconds(_) => TOLERATED_IN_SECONDS,
        };
        let manifests: Vec<_> = new.iter().map(|i| &self.codelets[*i].1).collect();
        match InVivo::open(self.store, self.profile, &manifests, tolerated, self.events) {
            Ok(mut program) => {
                let fitting = self.fitting(&mut program, new.len(), began);
                let seconds = &mut self.settings.repetitions.seconds;
                *seconds = seconds.min(fitting.each);
                let until = match self.extent {
                    Extent::Rounds(_) => None,
                    Extent::Seconds(seconds) => Some(began + Duration::from_secs_f64(seconds)),
                };
                self.rounds(replays, new, &mut program, (fitting, until))
            }
            Err(error) => {
                self.events.note(format!(
                    "the program is not run again, so replays are compared with the times of its profile: {}",
                    print::error(&error)
                ));
                Ok(self.replay_once(replays, new))
            }
        }
    }

    /// What fits, and has `program` time the regions for which there is time.
    fn fitting(&self, program: &mut InVivo, codelets: usize, began: Instant) -> Fitting {
        let seconds = match self.extent {
            Extent::Rounds(rounds) => {
                return Fitting {
                    rounds,
                    runs: rounds + 1,
                    each: (self.settings.repetitions.seconds / f64::from(rounds)).max(MIN_SECONDS),
                };
            }
            Extent::Seconds(seconds) => seconds - began.elapsed().as_secs_f64(),
        };
        let run = self.profile.seconds;
        let most = (rounds(run), MIN_SECONDS);
        let of = |groups: usize| Fitting::into(seconds, groups as f64 * run, codelets, most);
        let groups = (1..=program.groups())
            .rev()
            .find(|groups| of(*groups).runs > 0);
        let groups = groups.unwrap_or(program.groups());
        program.keep_groups(groups);
        of(groups)
    }

    /// The usable records of each codelet. Records of rounds are usable only if there are enough rounds.
    fn known_records(&self, replays: &Replays) -> Result<Vec<Option<Found>>> {
        let known = self.codelets.iter().map(|(file, _)| {
            if self.again {
                return Ok(None);
            }
            let known = replays.known_records(&self.settings, file)?;
            let enough = match self.extent {
                Extent::Rounds(0) | Extent::Seconds(_) => !known.is_empty(),
                Extent::Rounds(rounds) => {
                    known.len() >= rounds as usize && known.iter().all(|r| r.session.is_some())
                }
            };
            Ok(enough.then_some(Ok(known)))
        });
        known.collect()
    }

    /// Replays each of the codelets `new` once.
    fn replay_once(&self, replays: &Replays, new: &[usize]) -> Vec<Found> {
        let progress = self.events.steps("replaying", new.len() as u64);
        let found = new.iter().map(|place| {
            let (file, manifest) = &self.codelets[*place];
            progress.at(&manifest.name);
            let found = self.replay(replays, file);
            progress.step();
            found
        });
        let found: Vec<Found> = found.collect();
        self.store_all(&found);
        found
    }

    fn rounds(
        &self,
        replays: &Replays,
        new: &[usize],
        program: &mut InVivo,
        (fitting, until): (Fitting, Option<Instant>),
    ) -> Result<Vec<Found>> {
        let steps = u64::from(fitting.rounds) * new.len() as u64;
        // A profile of another day is of another speed of the machine.
        let based = fitting.runs == fitting.rounds && self.is_profile_new();
        let rounds = Rounds {
            plan: self,
            replays,
            new,
            program,
            runs: match based {
                true => vec![Times::from(self.profile)],
                false => Vec::new(),
            },
            records: vec![Vec::new(); new.len()],
            progress: self.events.steps("replaying", steps),
        };
        let all: Vec<usize> = (1..=new.len()).collect();
        let mut turns = Turns::new(rounds, new.len());
        if based {
            turns = turns.based();
        }
        for _ in 0..fitting.rounds {
            let begin = Instant::now();
            turns.round(&all)?;
            // Codelets with much memory take longer than was thought.
            if until.is_some_and(|until| Instant::now() + begin.elapsed() > until) {
                break;
            }
        }
        let failures: Vec<Option<String>> = all
            .iter()
            .map(|codelet| turns.failure(*codelet).map(str::to_owned))
            .collect();
        let Rounds {
            runs,
            records,
            program,
            ..
        } = turns.bench;
        let timed = |key: &RegionKey| program.times(key);
        let each = records.into_iter().zip(failures);
        let mut found: Vec<Found> = each
            .map(|(records, failure)| failure.map_or(Ok(records), Err))
            .collect();
        self.finish_records(&runs, new, &mut found, &timed);
        Ok(found)
    }

    /// Whether the profile was made so lately that its run stands for one of now.
    fn is_profile_new(&self) -> bool {
        let made = std::fs::metadata(self.store.profile()).and_then(|file| file.modified());
        made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < NEW))
    }

    /// Sets the times in vivo of the rounds' records, and stores the records. Those of regions that no run `timed` are compared with the
    /// profile's times, and belong to no session.
    fn finish_records(
        &self,
        runs: &[Times],
        new: &[usize],
        found: &mut [Found],
        timed: &dyn Fn(&RegionKey) -> bool,
    ) {
        let session = session_name();
        let (mut differ, mut untimed) = (BTreeSet::new(), BTreeSet::new());
        for (place, found) in new.iter().zip(found.iter_mut()) {
            let manifest = &self.codelets[*place].1;
            let Ok(records) = found else { continue };
            if !timed(&manifest.key) {
                untimed.insert(&manifest.region_name);
                continue;
            }
            let in_vivo = self.in_vivo(runs, manifest);
            if in_vivo.is_none() {
                differ.insert(&manifest.region_name);
            }
            for record in records.iter_mut() {
                record.in_vivo_seconds = in_vivo.or(record.in_vivo_seconds);
                record.session = Some(session.clone());
            }
        }
        self.store_all(found);
        if !untimed.is_empty() {
            self.events.note(format!(
                "there was no time to run the program for these regions, which are compared with the times of its profile: {}",
                untimed.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            ));
        }
        for region in differ {
            self.events.note(format!(
                "{region}: other invocations than in the profile's run, so its replays are compared with that: does the \
                 program do the same each time?"
            ));
        }
    }

    /// Replays a codelet. The record of a success is returned for storing; that of a failure is stored here.
    fn replay(&self, replays: &Replays, file: &Path) -> Found {
        let done = replays.replay_unrecorded(&self.settings, file, None);
        let (replay, record) = done.map_err(|error| print::error(&error))?;
        match replay {
            Ok(_) => Ok(vec![record]),
            Err(error) => {
                results::keep_or_warn(self.store, &record, self.events);
                Err(print::error(&error))
            }
        }
    }

    fn store_all(&self, found: &[Found]) {
        let records: Vec<Record> = found.iter().flatten().flatten().cloned().collect();
        results::keep_all_or_warn(self.store, &records, self.events);
    }

    fn in_vivo(&self, runs: &[Times], manifest: &Manifest) -> Option<f64> {
        let of_region = self.codelets.iter().map(|(_, other)| other);
        let captured: Vec<u64> = of_region
            .filter(|other| other.key == manifest.key && other.represents.is_some())
            .map(|other| other.invocation)
            .collect();
        vivo::seconds(runs, self.profile, manifest, &captured)
    }

    fn pair_with_codelets(&self, found: Vec<Found>) -> Vec<Measured> {
        let of = |((_, manifest), found): (&Codelet, Found)| Measured {
            key: manifest.key.clone(),
            represents: manifest.represents,
            replays: found.map(|records| records.iter().filter_map(Pair::of).collect()),
        };
        self.codelets.iter().zip(found).map(of).collect()
    }
}

/// A codelet's records, or why there are none.
type Found = Result<Vec<Record>, String>;

/// The session name of this check's records.
fn session_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    format!(
        "{:x}.{}",
        now.map_or(0, |now| now.as_nanos()),
        std::process::id()
    )
}

/// Codelets that are replayed between runs of the program, which is the baseline.
struct Rounds<'r, 'p, 'v> {
    plan: &'r Plan<'p>,
    replays: &'r Replays<'r>,
    /// The codelets, by their numbers in the plan.
    new: &'r [usize],
    program: &'r mut InVivo<'v>,
    /// The runs so far.
    runs: Vec<Times>,
    /// The records of each codelet.
    records: Vec<Vec<Record>>,
    progress: Progress,
}

impl Bench for Rounds<'_, '_, '_> {
    type Error = anyhow::Error;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>> {
        let Some(place) = subject.checked_sub(1) else {
            self.progress.at("the program");
            self.runs.push(self.program.run()?);
            return Ok(Ok(Vec::new()));
        };
        let (file, manifest) = &self.plan.codelets[self.new[place]];
        self.progress.at(&manifest.name);
        let made = self.plan.replay(self.replays, file);
        self.progress.step();
        Ok(made.map(|records| {
            let times = records.iter().filter_map(|r| r.times.as_ref());
            let seconds = times.map(|t| t.seconds_median).collect();
            self.records[place].extend(records);
            seconds
        }))
    }
}
