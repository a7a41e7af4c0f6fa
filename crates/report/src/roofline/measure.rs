//! Work, traffic and time of a codelet. They are kept by content: what was measured once with the same binaries is not
//! measured again.

use crate::roofline::State;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_count::codelet::Counted;
use cere_count::counts::Counts;
use cere_format::abi::PROBED_SYMBOL_PREFIX;
use cere_format::replay::Verdict;
use cere_machine::roofs::{MEMORY, level_name};
use cere_measure::{Replays, Settings};
use cere_memory::Counters;
use cere_store::{components, results, state};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Work and traffic of a codelet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    /// Verdict on the counted run.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Threads that ran counted code.
    pub threads: u32,
    /// Floating-point operations, of all types; an FMA is two.
    pub flops: u64,
    /// `f32` if most of them are of that type, else `f64`.
    pub element: String,
    /// Bytes that came from each level and went to it, with caches that are empty at first.
    pub cold: BTreeMap<String, u64>,
    /// The same after a run over itself.
    pub warm: BTreeMap<String, u64>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// Times of a codelet in a state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Times {
    /// Verdict of the replay.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Each repetition.
    pub seconds: Vec<f64>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// What measures codelets.
pub struct Meter<'a> {
    /// Replays of the store.
    pub replays: &'a Replays<'a>,
    /// How traffic is counted; the geometry has to be there.
    pub counting: cere_count::Settings,
    /// Whether what is kept counts.
    pub fresh: bool,
    /// Where results are kept.
    pub cache: PathBuf,
    tools: String,
}

/// What `verdict` says against a point; none if it is the original's result.
#[must_use]
pub fn refusal(verdict: Verdict, reason: &str) -> Option<String> {
    let refused = || format!("its result is {}: {reason}", verdict.name());
    (!verdict.is_right()).then(refused)
}

/// Bytes by the level that they come from: those of the program from the first level, of the first level from the second.
fn traffic(program: u64, found: &Counters) -> BTreeMap<String, u64> {
    let behind = found.levels.len();
    let between = found.levels.iter().take(behind.saturating_sub(1));
    let between = std::iter::once(program).chain(between.map(|l| l.traffic()));
    let mut bytes: BTreeMap<String, u64> =
        (1..).map(level_name).zip(between).take(behind).collect();
    bytes.insert(MEMORY.to_owned(), found.memory.traffic());
    bytes
}

impl<'a> Meter<'a> {
    /// A meter whose results lie in the cache of `replays`.
    ///
    /// # Errors
    /// A part of CERE cannot be read.
    pub fn new(
        replays: &'a Replays<'a>,
        counting: cere_count::Settings,
        fresh: bool,
    ) -> Result<Self> {
        let builds = replays.builds();
        let cache = builds.parent().unwrap_or(&builds).join("roofline");
        let own = std::env::current_exe().context("cannot find this command's own file")?;
        let parts = [
            own,
            components::find(components::PLUGIN)?,
            components::find(components::RUNTIME)?,
        ];
        let hashes: Result<Vec<String>> = parts.iter().map(|file| state::hash_file(file)).collect();
        Ok(Self {
            replays,
            counting,
            fresh,
            cache,
            tools: state::hash(&hashes?.join("\0")),
        })
    }

    /// What is kept of `key`, or what `make` makes, which is then kept.
    fn kept<T: Serialize + serde::de::DeserializeOwned>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let name = state::hash(&format!(
            "{}\0{}\0{key}",
            env!("CARGO_PKG_VERSION"),
            self.tools
        ));
        let path = self.cache.join(format!("{name}.json"));
        match state::read_json(&path) {
            Ok(known) if !self.fresh => return Ok(known),
            _ => {}
        }
        let made = make()?;
        state::write_json(&path, &made).context("the measurement cannot be kept")?;
        Ok(made)
    }

    /// Work and traffic of the codelet in `file`.
    ///
    /// # Errors
    /// It cannot be counted.
    pub fn work(&self, settings: &Settings, file: &Path) -> Result<Work> {
        let (package, _, sha256) = self.replays.unpack(file)?;
        let counting = &self.counting;
        let key = format!(
            "work\0{sha256}\0{:?}\0{:?}\0{:?}\0{}\0{}",
            settings.flags, settings.team, counting.geometry, counting.seed, counting.budget
        );
        self.kept(&key, || self.count(settings, &package))
    }

    fn count(&self, settings: &Settings, package: &Path) -> Result<Work> {
        let options = self.replays.options(settings, None)?;
        let counted = Counted::new(package, &options)?;
        let counts = &counted.counts;
        let mut work = Work {
            verdict: counts.verdict,
            reason: counts.reason.clone(),
            threads: counts.threads,
            flops: counts.flops.total,
            element: match counts.flops.f32 > counts.flops.f64 {
                true => "f32".to_owned(),
                false => "f64".to_owned(),
            },
            cold: BTreeMap::new(),
            warm: BTreeMap::new(),
            notes: notes(counts),
        };
        if work.flops == 0 || refusal(work.verdict, "").is_some() {
            return Ok(work);
        }
        let geometry = self
            .counting
            .geometry
            .as_ref()
            .context("without caches there is no traffic")?;
        let program =
            [counts.memory, counts.library].map(|m| m.load_bytes.saturating_add(m.store_bytes));
        let program = program[0].saturating_add(program[1]);
        let [cold, warm] = counted.cold_and_warm(geometry, &self.counting)?;
        if let Some(sampled) = &cold.sampling {
            work.notes.push(format!(
                "traffic of {} in {} groups of cache lines",
                sampled.simulated, sampled.of
            ));
        }
        work.cold = traffic(program, &cold);
        work.warm = traffic(program, &warm);
        Ok(work)
    }

    /// Times of the codelet in `file` in `state`, which the warm-up of `settings` comes before.
    ///
    /// # Errors
    /// It cannot be replayed.
    pub fn times(&self, settings: &Settings, state: State, file: &Path) -> Result<Times> {
        let (_, _, sha256) = self.replays.unpack(file)?;
        let settings = Settings {
            operands: state.operands(),
            ..settings.clone()
        };
        let key = format!(
            "times\0{sha256}\0{:?}\0{:?}\0{:?}\0{}\0{:?}\0{}",
            settings.flags,
            settings.warmup,
            settings.team,
            state.name(),
            settings.repetitions,
            results::this_machine().id
        );
        self.kept(&key, || {
            let replay = self.replays.replay(&settings, file, None)?;
            if replay.cycles_median == 0 || replay.seconds_median <= 0.0 {
                bail!(E6403, "its invocation is too short to be timed alone");
            }
            let second = replay.seconds_median / replay.cycles_median as f64;
            Ok(Times {
                verdict: replay.verdict,
                reason: replay.reason,
                seconds: replay.cycles.iter().map(|c| *c as f64 * second).collect(),
                notes: replay.notes,
            })
        })
    }
}

/// What names of functions begin with that do no work of the program: CERE's and the OpenMP runtime's.
const OWN: [&str; 2] = [PROBED_SYMBOL_PREFIX, "__kmpc_"];

/// What counts leave out.
fn notes(counts: &Counts) -> Vec<String> {
    let mut notes = counts.notes.clone();
    let names: Vec<&str> = counts
        .calls
        .iter()
        .filter(|c| !OWN.iter().any(|own| c.name.starts_with(own)))
        .take(3)
        .map(|c| c.name.as_str())
        .collect();
    notes.extend(
        (!names.is_empty())
            .then(|| format!("not counted: what {} and the like do", names.join(", "))),
    );
    let other = counts.flops.f16.saturating_add(counts.flops.f80);
    notes.extend(
        (other > 0).then(|| {
            format!("{other} operations are of 16 or 80 bits, for which there is no roof")
        }),
    );
    notes
}
