//! One replay of one package file, for every command that replays.

use anyhow::{Context, Result, bail};
use cere_console::note;
use cere_format::package::Manifest;
use cere_format::replay::{Repetitions, Verdict, Warmup};
use cere_format::store::Store;
use cere_package::io::read_manifest;
use cere_replay::{Replay, Team, Tolerance};
use cere_sandbox::Sandbox;
use cere_store::cache::Cache;
use cere_store::codelets::LastReplay;
use cere_store::results::{Database, Record, Setting};
use cere_store::{codelets, components, results, state};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How to replay.
#[derive(Debug, Clone)]
pub struct Request {
    /// Compiler flags after those of the build.
    pub flags: Vec<String>,
    /// An `opt` pipeline instead of the compiler's own.
    pub passes: Option<String>,
    /// Timed repetitions.
    pub repetitions: Repetitions,
    /// State of the caches before each; none: as the package allows, see [`cere_replay::plan::warmup`].
    pub warmup: Option<Warmup>,
    /// Whether to compare the result.
    pub compare: bool,
    /// Largest relative error of a floating-point word that is still accepted.
    pub tolerance: Tolerance,
    /// Longest run in seconds.
    pub timeout: f64,
    /// How the teams of OpenMP regions are made.
    pub team: Team,
    /// What the compilers and the replay run in.
    pub sandbox: Sandbox,
}

impl Request {
    /// What a record of the replay of this package is found by.
    pub fn setting(&self, manifest: &Manifest) -> Setting {
        Setting {
            flags: self.flags.clone(),
            passes: self.passes.clone(),
            warmup: cere_replay::plan::warmup(manifest, self.warmup, self.team.threads)
                .map_or(Warmup::PageTrace, |found| found.0),
            threads: cere_replay::plan::threads(manifest, self.team.threads),
            placement: manifest
                .openmp
                .as_ref()
                .map(|_| self.team.placement())
                .unwrap_or_default(),
        }
    }
}

/// A store's replays.
pub struct Replays<'a> {
    pub(crate) store: &'a Store,
    cache: Cache,
}

impl<'a> Replays<'a> {
    /// Finds a place for what replays are made of.
    pub fn open(store: &'a Store) -> Result<Self> {
        Ok(Self {
            store,
            cache: Cache::open(store)?,
        })
    }

    /// Replays the codelet in `file`; `keep` is where all of it is left, if that is wanted. A record is kept.
    pub fn replay(&self, request: &Request, file: &Path, keep: Option<PathBuf>) -> Result<Replay> {
        let (replay, record) = self.replay_unrecorded(request, file, keep)?;
        results::keep_or_warn(self.store, &record);
        replay
    }

    /// Replays the codelet in `file`. The record is for the caller to keep; the replay may have failed.
    pub fn replay_unrecorded(
        &self,
        request: &Request,
        file: &Path,
        keep: Option<PathBuf>,
    ) -> Result<(Result<Replay>, Record)> {
        self.cache.trim_between();
        let (package, manifest, sha256) = self.unpacked(file)?;
        let replay = cere_replay::replay(&package, &self.options(request, keep)?);
        let record = Record::of(
            &manifest,
            &sha256,
            request.setting(&manifest),
            replay.as_ref(),
        );
        let replay = replay.map_err(anyhow::Error::from).and_then(|replay| {
            cere_store::touch(&replay.executable);
            if replay.cycles.is_empty() {
                bail!("the replay of {} measured nothing", replay.codelet);
            }
            self.note(request, file, &replay);
            Ok(replay)
        });
        Ok((replay, record))
    }

    /// The records of earlier replays of the codelet in `file` under `request` on this machine that count: see
    /// [`results::counting`]. None if one of them failed.
    pub fn known(&self, request: &Request, file: &Path) -> Result<Vec<Record>> {
        let Some(database) = Database::existing(self.store)? else {
            return Ok(Vec::new());
        };
        let machine = results::this_machine();
        let setting = request.setting(&read_manifest(file)?);
        let found = database.of(&self.cache.hash(file)?, &setting, &machine.id)?;
        let counting = results::counting(&found.iter().collect::<Vec<_>>());
        let usable = |r: &&Record| r.times.is_some() && r.verdict != Verdict::Unchecked;
        Ok(match counting.iter().all(usable) {
            true => counting.into_iter().cloned().collect(),
            false => Vec::new(),
        })
    }

    /// The package in `file`, unpacked, its manifest and SHA-256. It must be of this machine's kind.
    pub fn unpacked(&self, file: &Path) -> Result<(PathBuf, Manifest, String)> {
        let found = self
            .cache
            .unpack(file)
            .with_context(|| format!("the codelet {} cannot be used", file.display()))?;
        // SAFETY: sysconf takes no pointers.
        let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        cere_package::fits(&found.1, &cere_package::machine(), page_size)?;
        Ok(found)
    }

    /// Where objects and executables are kept by content, as long as this is there.
    pub fn builds(&self) -> PathBuf {
        self.cache.builds()
    }

    /// What the replay generator is told for `request`.
    pub fn options(
        &self,
        request: &Request,
        keep: Option<PathBuf>,
    ) -> Result<cere_replay::Options> {
        Ok(cere_replay::Options {
            flags: request.flags.clone(),
            passes: request.passes.clone(),
            repetitions: request.repetitions,
            warmup: request.warmup,
            compare: request.compare,
            tolerance: request.tolerance,
            keep,
            cache: self.cache.builds(),
            plugin: components::find(components::PLUGIN)?,
            runtime: components::find(components::RUNTIME)?,
            timeout: Duration::from_secs_f64(request.timeout),
            announce: Some(|what| note!("{what}")),
            team: request.team.clone(),
            sandbox: request.sandbox.clone(),
        })
    }

    /// Keeps with the store what was found of the codelet as it was captured. One that cannot be written still replays; its list then shows no verdict.
    fn note(&self, request: &Request, file: &Path, replay: &Replay) {
        let as_captured = request.flags.is_empty() && request.passes.is_none();
        let compared = replay.verdict != Verdict::Unchecked;
        if as_captured && compared && file.starts_with(self.store.codelets()) {
            let last = LastReplay {
                verdict: replay.verdict,
            };
            let _ = state::write_json(&codelets::verdict_of(file), &last);
        }
    }
}

impl Drop for Replays<'_> {
    fn drop(&mut self) {
        self.cache.trim();
    }
}
