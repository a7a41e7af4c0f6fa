//! Replays of all codelets, several times over, each round between two runs of the program.

use crate::matching::{Measured, Pair};
use crate::vivo::{self, InVivo, Times};
use crate::{Bench, Replays, Settings, Turns};
use anyhow::Result;
use cere_format::package::Manifest;
use cere_format::profile::Profile;
use cere_format::store::Store;
use cere_store::current::Codelet;
use cere_store::results;
use cere_store::results::Record;
use cere_system::console::print;
use cere_system::events::{Events, Progress};
use std::collections::BTreeSet;
use std::path::Path;

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
    /// Number of rounds; 0 means one round without runs of the program.
    pub rounds: u32,
    /// What is done.
    pub events: &'a Events,
}

impl Plan<'_> {
    /// Measures all codelets, or returns their earlier records if all have usable ones.
    pub fn measure(mut self) -> Result<Vec<Measured>> {
        let replays = Replays::open(self.store, self.events)?;
        let known = self.known_records(&replays)?;
        let all = |known: &Vec<Record>| !known.is_empty();
        if known.iter().all(all) {
            return Ok(self.pair_with_codelets(known.into_iter().map(Ok).collect()));
        }
        if self.rounds > 0 {
            let manifests: Vec<_> = self.codelets.iter().map(|c| &c.1).collect();
            match InVivo::open(self.store, self.profile, &manifests, self.events) {
                Ok(mut program) => {
                    let seconds = &mut self.settings.repetitions.seconds;
                    *seconds = (*seconds / f64::from(self.rounds)).max(MIN_SECONDS);
                    let found = self.rounds(&replays, &mut program)?;
                    return Ok(self.pair_with_codelets(found));
                }
                Err(error) => self.events.note(format!(
                    "the program is not run again, so replays are compared with the times of its profile: {}",
                    print::error(&error)
                )),
            }
        }
        let found = self.replay_once(&replays, known)?;
        Ok(self.pair_with_codelets(found))
    }

    /// The usable records of each codelet. Records of rounds are usable only if there are enough rounds.
    fn known_records(&self, replays: &Replays) -> Result<Vec<Vec<Record>>> {
        let known = self.codelets.iter().map(|(file, _)| {
            if self.again {
                return Ok(Vec::new());
            }
            let known = replays.known_records(&self.settings, file)?;
            let enough = self.rounds == 0
                || known.len() >= self.rounds as usize
                    && known.iter().all(|record| record.session.is_some());
            Ok(if enough { known } else { Vec::new() })
        });
        known.collect()
    }

    /// Replays each codelet without records once.
    fn replay_once(&self, replays: &Replays, known: Vec<Vec<Record>>) -> Result<Vec<Found>> {
        let progress = self.events.steps("replaying", self.codelets.len() as u64);
        let found = self
            .codelets
            .iter()
            .zip(known)
            .map(|((file, manifest), known)| {
                progress.at(&manifest.name);
                let found = match known.is_empty() {
                    true => self
                        .replay(replays, file)
                        .inspect(|all| self.store_records(all)),
                    false => Ok(known),
                };
                progress.step();
                found
            });
        Ok(found.collect())
    }

    fn rounds(&self, replays: &Replays, program: &mut InVivo) -> Result<Vec<Found>> {
        let count = self.codelets.len();
        let rounds = Rounds {
            plan: self,
            replays,
            program,
            runs: Vec::new(),
            records: vec![Vec::new(); count],
            progress: self
                .events
                .steps("replaying", u64::from(self.rounds) * count as u64),
        };
        let all: Vec<usize> = (1..=count).collect();
        let mut turns = Turns::new(rounds, count);
        for _ in 0..self.rounds {
            turns.round(&all)?;
        }
        let failures: Vec<Option<String>> = all
            .iter()
            .map(|codelet| turns.failure(*codelet).map(str::to_owned))
            .collect();
        let Rounds { runs, records, .. } = turns.bench;
        let each = records.into_iter().zip(failures);
        let mut found: Vec<Found> = each
            .map(|(records, failure)| failure.map_or(Ok(records), Err))
            .collect();
        self.finish_records(&runs, &mut found);
        Ok(found)
    }

    /// Sets the times in vivo of the rounds' records, and stores the records.
    fn finish_records(&self, runs: &[Times], found: &mut [Found]) {
        let session = session_name();
        let mut differ = BTreeSet::new();
        for ((_, manifest), found) in self.codelets.iter().zip(found) {
            let Ok(records) = found else { continue };
            let in_vivo = self.in_vivo(runs, manifest);
            if in_vivo.is_none() {
                differ.insert(&manifest.region_name);
            }
            for record in records.iter_mut() {
                record.in_vivo_seconds = in_vivo.or(record.in_vivo_seconds);
                record.session = Some(session.clone());
            }
            self.store_records(records);
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
                self.store_records(&[record]);
                Err(print::error(&error))
            }
        }
    }

    fn store_records(&self, records: &[Record]) {
        for record in records {
            results::keep_or_warn(self.store, record, self.events);
        }
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
        let (file, manifest) = &self.plan.codelets[place];
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
