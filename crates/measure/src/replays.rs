//! One replay of one package file, for every command that replays.

use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::package::Manifest;
use cere_format::replay::{CONFIDENCE, Operand, Verdict, Warmup};
use cere_format::store::Store;
use cere_package::io::read_manifest;
use cere_replay::cross::Cross;
use cere_replay::{Built, Keepers, Replay, ReplayError, Settings};
use cere_store::cache::Cache;
use cere_store::current::Codelet;
use cere_store::notes::Notes;
use cere_store::results::{Database, QUANTILES, Record, Setting, Times};
use cere_store::{components, results};
use cere_system::events::Events;
use cere_toolchain::several::several;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The setting by which records of this package's replays are found.
fn setting(settings: &Settings, manifest: &Manifest) -> Setting {
    Setting {
        flags: settings.flags.clone(),
        passes: settings.passes.clone(),
        warmup: cere_replay::plan::warmup(manifest, settings.warmup, settings.team.threads)
            .map_or(Warmup::PageTrace, |found| found.0),
        threads: cere_replay::plan::threads(manifest, settings.team.threads),
        placement: manifest
            .openmp
            .as_ref()
            .map(|_| settings.team.placement())
            .unwrap_or_default(),
        operands: Operand::line(&settings.operands),
    }
}

/// The record of a replay that has just ended.
pub fn record(
    settings: &Settings,
    manifest: &Manifest,
    sha256: &str,
    outcome: Result<&Replay, &ReplayError>,
) -> Record {
    let measured = match outcome {
        Ok(replay) => results::Measured {
            times: times(replay),
            energy: replay.energy.as_ref().map(energy),
            verdict: replay.of_timed().0,
            reason: replay.of_timed().1.to_owned(),
            same_code: replay.same_code.known(),
        },
        Err(error) => results::Measured {
            times: None,
            energy: None,
            verdict: Verdict::Unchecked,
            reason: error.to_string(),
            same_code: None,
        },
    };
    Record::of(manifest, sha256, setting(settings, manifest), measured)
}

/// What a replay took; none if it measured nothing.
fn times(replay: &Replay) -> Option<Times> {
    let known = replay.confidence >= CONFIDENCE;
    (!replay.cycles.is_empty()).then(|| Times {
        cycles_min: replay.cycles_min,
        cycles_median: replay.cycles_median,
        seconds_min: replay.seconds_min,
        seconds_median: replay.seconds_median,
        quantiles: quantiles(replay),
        interval: known.then_some((replay.seconds_low, replay.seconds_high)),
        samples: replay.cycles.len() as u64,
        set_aside: replay.set_aside,
        disturbed: replay.disturbed,
        batch: replay.batch,
    })
}

fn energy(energy: &cere_replay::Energy) -> results::Energy {
    let known = energy.confidence >= CONFIDENCE;
    results::Energy {
        joules: energy.joules,
        interval: known.then_some((energy.low, energy.high)),
        seconds: energy.seconds,
    }
}

/// [`QUANTILES`] of a replay's repetitions, in seconds.
fn quantiles(replay: &Replay) -> Vec<f64> {
    let mut sorted = replay.cycles.clone();
    sorted.sort_unstable();
    let second = match replay.cycles_median {
        0 => 0.0,
        cycles => replay.seconds_median / cycles as f64,
    };
    let last = sorted.len().saturating_sub(1);
    let places = (0..QUANTILES).map(|i| (i * last + (QUANTILES - 1) / 2) / (QUANTILES - 1));
    let values = places.filter_map(|place| sorted.get(place));
    values.map(|cycles| *cycles as f64 * second).collect()
}

/// A store's replays.
pub struct Replays<'a> {
    pub(crate) store: &'a Store,
    cache: Cache,
    keepers: Arc<Keepers>,
    notes: OnceLock<Option<Notes>>,
    events: Events,
}

impl<'a> Replays<'a> {
    /// Finds a writable directory for builds and unpacked packages.
    pub fn open(store: &'a Store, events: &Events) -> Result<Self> {
        Ok(Self {
            store,
            cache: Cache::open(store, events)?,
            keepers: Arc::default(),
            notes: OnceLock::new(),
            events: events.clone(),
        })
    }

    /// What is done.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// What a user should know of a codelet: see [`Notes`].
    pub fn notes(&self, codelet: &Manifest) -> Vec<String> {
        let notes = self.notes.get_or_init(|| Notes::of(self.store).ok());
        notes.as_ref().map_or(Vec::new(), |notes| notes.on(codelet))
    }

    /// Replays the codelet in `file` and stores a record. The files of the build go to `keep`, if given.
    pub fn replay(
        &self,
        settings: &Settings,
        file: &Path,
        keep: Option<PathBuf>,
    ) -> Result<Replay> {
        let (replay, record) = self.replay_unrecorded(settings, file, keep)?;
        let mut replay = replay.inspect_err(|_| {
            if settings.cross.is_none() {
                results::keep_or_warn(self.store, &record, &self.events);
            }
        })?;
        // Records are of times.
        if !replay.is_emulated() {
            results::keep_or_warn(self.store, &record, &self.events);
        }
        replay.notes.extend(self.notes(&read_manifest(file)?));
        Ok(replay)
    }

    /// Replays the codelet in `file`. The caller stores the record; the replay may have failed.
    pub fn replay_unrecorded(
        &self,
        settings: &Settings,
        file: &Path,
        keep: Option<PathBuf>,
    ) -> Result<(Result<Replay>, Record)> {
        self.cache.trim_between();
        let (package, manifest, sha256) = self.unpacked(file, settings.cross.is_some())?;
        let mut settings = settings.clone();
        // On another architecture than that of the capture.
        if settings.cross.is_none() && manifest.machine.target() != Some(cere_arch::HERE) {
            settings.cross = Some(Cross::here());
        }
        let settings = &settings;
        let replay = cere_replay::replay(&package, &self.options(settings, keep)?);
        let record = record(settings, &manifest, &sha256, replay.as_ref());
        let replay = replay.map_err(anyhow::Error::from).and_then(|replay| {
            cere_store::touch(&replay.executable);
            if replay.cycles.is_empty() && !replay.is_emulated() {
                bail!(E5039, "the replay of {} measured nothing", replay.codelet);
            }
            Ok(replay)
        });
        Ok((replay, record))
    }

    /// Compiles and links `codelets` beside one another, for replays that follow: those then take what is there. A codelet that cannot be
    /// built says why when it is replayed.
    pub fn build_ahead(&self, settings: &Settings, codelets: &[&Codelet]) -> Result<()> {
        let options = self.options(settings, None)?;
        let build = |(file, _): &Codelet| {
            if let Ok((package, manifest, _)) = self.unpack(file) {
                let _ = cere_replay::build(&package, &manifest, &options);
            }
        };
        // Codelets of the same unit wait for its first one, of whose compile they take what they share.
        let mut units = BTreeSet::new();
        let (first, others): (Vec<&Codelet>, Vec<&Codelet>) = codelets
            .iter()
            .partition(|codelet| units.insert(&codelet.1.key.unit));
        for some in [first, others] {
            several(some.len(), |place| build(some[place]));
        }
        Ok(())
    }

    /// Replays the codelet in `file` with code that was linked before, which needs no compiler unless what differs may be rounding.
    pub fn replay_built(&self, settings: &Settings, file: &Path, built: &Built) -> Result<Replay> {
        self.cache.trim_between();
        let (package, manifest, _) = self.unpack(file)?;
        let options = self.options(settings, None)?;
        std::fs::create_dir_all(&options.cache)
            .with_context(|| format!("cannot create {}", options.cache.display()))?;
        let mut replay = cere_replay::run::run(&package, &manifest, built, &options)?;
        cere_replay::judge(&package, &manifest, built, &mut replay, &options)?;
        Ok(replay)
    }

    /// The records of earlier replays of the codelet in `file` with `settings` on this machine that count: see
    /// [`results::counting`]. None if one of them failed.
    pub fn known_records(&self, settings: &Settings, file: &Path) -> Result<Vec<Record>> {
        let found = self.records(settings, file)?;
        let counting = results::counting(&found.iter().collect::<Vec<_>>());
        let usable = |r: &&Record| r.times.is_some() && r.verdict != Verdict::Unchecked;
        Ok(match counting.iter().all(usable) {
            true => counting.into_iter().cloned().collect(),
            false => Vec::new(),
        })
    }

    /// The energy that the newest replay with `settings` on this machine measured of the codelet in `file`, if one did and its result
    /// was right: one of enough rounds for an interval, if there is one.
    pub fn known_energy(
        &self,
        settings: &Settings,
        file: &Path,
    ) -> Result<Option<results::Energy>> {
        let right = |r: &&Record| !matches!(r.verdict, Verdict::Unchecked | Verdict::Different);
        let records = self.records(settings, file)?;
        let newest = records.iter().rev().filter(right);
        let all: Vec<results::Energy> = newest.filter_map(|record| record.energy).collect();
        let known = all.iter().find(|energy| energy.interval.is_some());
        Ok(known.or(all.first()).copied())
    }

    /// All records of replays of the codelet in `file` with `settings` on this machine, the oldest first.
    fn records(&self, settings: &Settings, file: &Path) -> Result<Vec<Record>> {
        let Some(database) = Database::existing(self.store)? else {
            return Ok(Vec::new());
        };
        let machine = results::this_machine();
        let setting = setting(settings, &read_manifest(file)?);
        database.of(&self.cache.hash(file)?, &setting, &machine.id)
    }

    /// Unpacks the package in `file`: directory, manifest and SHA-256. Fails if it is for another kind of machine.
    pub fn unpack(&self, file: &Path) -> Result<(PathBuf, Manifest, String)> {
        self.unpacked(file, false)
    }

    /// The same; `cross`: it need not run on this machine.
    pub fn unpacked(&self, file: &Path, cross: bool) -> Result<(PathBuf, Manifest, String)> {
        let found = self
            .cache
            .unpack(file)
            .with_context(|| format!("the codelet {} cannot be used", file.display()))?;
        match cross {
            true => cere_package::can_cross(&found.1)?,
            false => {
                cere_package::fits(&found.1, &cere_package::machine(), cere_arch::page())?;
            }
        }
        Ok(found)
    }

    /// Directory of objects and executables, named by content. It lasts as long as `self`.
    pub fn builds(&self) -> PathBuf {
        self.cache.builds()
    }

    /// The options for replays that follow one another: the captured states are kept in between.
    pub fn options_to_repeat(&self, settings: &Settings) -> Result<cere_replay::Options> {
        Ok(cere_replay::Options {
            keepers: Some(self.keepers.clone()),
            elsewhere: false,
            ablation: None,
            memory: Default::default(),
            ..self.options(settings, None)?
        })
    }

    /// The options of the replay generator for `settings`.
    pub fn options(
        &self,
        settings: &Settings,
        keep: Option<PathBuf>,
    ) -> Result<cere_replay::Options> {
        cere_toolchain::stay::allow(components::find(components::STAY)?, &self.events);
        Ok(cere_replay::Options {
            settings: settings.clone(),
            keep,
            cache: self.cache.builds(),
            plugin: components::find(components::PLUGIN)?,
            runtime: components::runtime(
                settings
                    .cross
                    .as_ref()
                    .map_or(cere_arch::HERE, |cross| cross.target),
            )?,
            edited: Vec::new(),
            keepers: None,
            elsewhere: false,
            ablation: None,
            memory: Default::default(),
            events: self.events.clone(),
        })
    }
}

impl Drop for Replays<'_> {
    fn drop(&mut self) {
        self.cache.trim();
    }
}
