//! Whether a candidate keeps what is to be kept: it is compiled under each set of flags and runs on the captured memory.

use crate::keeps::{BUILD, End, Keeps, any_values};
use anyhow::Result;
use cere_catalogue::bail;
use cere_format::package::Manifest;
use cere_format::replay::{Repetitions, Verdict, Warmup};
use cere_replay::plain::{Plain, Source};
use cere_replay::{Options, Replay, ReplayError, Settings, run};
use std::path::Path;
use std::time::Duration;

/// Rounds in which both sides are timed.
const ROUNDS: usize = 3;
/// A candidate whose reference takes less than this part of the whole codelet's time is too short to be timed.
const PART: f64 = 0.02;
/// Cycles that are too few in any case.
const SHORT: u64 = 2000;
/// Time limit of a candidate, which may run forever: so many seconds, and so many times the codelet's own.
const LIMIT: (f64, f64) = (5.0, 50.0);

/// A codelet, and the flags under which candidates run.
pub struct Probe<'a> {
    package: &'a Path,
    manifest: &'a Manifest,
    plain: &'a Plain,
    options: Options,
    /// The unit that is reduced.
    pub unit: usize,
    accused: Vec<String>,
    references: Vec<Vec<String>>,
    keeps: Keeps,
    /// How the whole codelet ends under the accused flags.
    pub end: End,
    /// How often the whole codelet's IR names values that may be any.
    any: usize,
    /// The least time of the references that can be measured, in cycles.
    least: u64,
    /// Ratio of the whole codelet, and the least that a candidate must have.
    pub ratio: Option<(f64, f64)>,
}

/// Flags in words.
fn named(flags: &[String]) -> String {
    match flags.is_empty() {
        true => BUILD.to_owned(),
        false => flags.join(" "),
    }
}

/// A replay that ended alike each time, or how it failed.
fn end(replay: &Result<Replay, ReplayError>) -> Option<End> {
    match replay {
        Ok(replay) => replay.repeatable.then_some(End::State(replay.left)),
        Err(ReplayError::Run { .. }) => Some(End::Failed),
        Err(_) => None,
    }
}

impl<'a> Probe<'a> {
    /// Finds the unit whose code under `accused` has what is to be kept, with all others as built.
    pub fn new(
        package: &'a Path,
        manifest: &'a Manifest,
        plain: &'a Plain,
        keeps: Keeps,
        references: Vec<Vec<String>>,
        options: &Options,
    ) -> Result<Self> {
        let accused = plain.units.first().map_or(Vec::new(), |u| u.flags.clone());
        let mut options = options.clone();
        options.settings = Settings {
            flags: accused.clone(),
            repetitions: match keeps {
                Keeps::Different => Repetitions::exactly(2),
                Keeps::Slow(_) => Repetitions {
                    least: 5,
                    most: 20,
                    seconds: 0.2,
                    ..Repetitions::default()
                },
            },
            warmup: Some(Warmup::WorkingSet),
            beside: Some(0),
            compare: true,
            ..options.settings
        };
        let mut probe = Self {
            package,
            manifest,
            plain,
            options,
            unit: 0,
            accused,
            references,
            keeps,
            end: End::Failed,
            any: 0,
            least: SHORT,
            ratio: None,
        };
        probe.begin()?;
        Ok(probe)
    }

    /// Looks at the whole codelet.
    fn begin(&mut self) -> Result<()> {
        let whole = self.plain.units[0].ir.clone();
        let mut seconds: f64 = 0.0;
        for flags in &self.references {
            let replay = self.run(&whole, flags)?;
            if replay.verdict != Verdict::Exact {
                bail!(
                    E6411,
                    "under {} the whole codelet is {} ({}): a reference has to be exact. --baseline names other flags than the build's",
                    named(flags),
                    replay.verdict.name(),
                    replay.reason
                );
            }
            seconds = seconds.max(replay.seconds_median);
        }
        let limit = Duration::from_secs_f64(LIMIT.0 + LIMIT.1 * seconds);
        let given = self.options.settings.timeout;
        self.options.settings.timeout = Some(given.map_or(limit, |given| given.min(limit)));
        let mut ends = Vec::new();
        for unit in 0..self.plain.units.len() {
            self.unit = unit;
            let whole = self.plain.units[unit].ir.clone();
            if self.begin_with(&whole, &mut ends)? {
                return Ok(());
            }
        }
        bail!(
            E6410,
            "under {} {} is not to be seen in the codelet's IR for folders (variables have external names there), in any unit alone: {}",
            named(&self.accused),
            match self.keeps {
                Keeps::Different => "another result",
                Keeps::Slow(_) => "a longer time",
            },
            ends.join(", ")
        )
    }

    /// Whether the unit's own code has what is to be kept.
    fn begin_with(&mut self, whole: &Path, ends: &mut Vec<String>) -> Result<bool> {
        match self.keeps {
            Keeps::Different => {
                let replay = self.attempt(whole, &self.accused);
                ends.push(match &replay {
                    Ok(replay) => replay.verdict.name().to_owned(),
                    Err(error) => error.to_string(),
                });
                match end(&replay) {
                    Some(End::State(0)) | None => return Ok(false),
                    Some(end) => self.end = end,
                }
            }
            Keeps::Slow(wanted) => {
                let Some((accused, reference, state)) = self.times(whole) else {
                    bail!(
                        E6423,
                        "the whole codelet's time cannot be measured under both sets of flags"
                    );
                };
                let found = accused as f64 / reference.max(1) as f64;
                ends.push(format!("ratio {found:.3}"));
                let wanted = wanted.unwrap_or(1.0 + 0.7 * (found - 1.0));
                if wanted < 1.02 || found < wanted {
                    return Ok(false);
                }
                self.least = SHORT.max((reference as f64 * PART) as u64);
                self.ratio = Some((found, wanted));
                self.end = End::State(state);
            }
        }
        Ok(true)
    }

    /// How many words of the whole unit's text may be any value.
    pub fn note_text(&mut self, text: &str) {
        self.any = any_values(text);
    }

    /// The units, with `ir` for the one that is reduced: it alone is compiled under `flags`.
    pub fn sources(&self, ir: &Path, flags: &[String]) -> Vec<Source> {
        let units = self.plain.units.iter().enumerate();
        let source = |(index, unit): (usize, &Source)| match index == self.unit {
            true => Source {
                ir: ir.to_owned(),
                flags: flags.to_vec(),
            },
            false => Source {
                ir: unit.ir.clone(),
                flags: Vec::new(),
            },
        };
        units.map(source).collect()
    }

    fn attempt(&self, ir: &Path, flags: &[String]) -> Result<Replay, ReplayError> {
        let sources = self.sources(ir, flags);
        let built = self.plain.build(self.manifest, &sources, &self.options)?;
        run::run(self.package, self.manifest, &built, &self.options)
    }

    fn run(&self, ir: &Path, flags: &[String]) -> Result<Replay> {
        Ok(self.attempt(ir, flags)?)
    }

    /// How a candidate ends under flags; none if not always alike, or if it cannot be built or runs too long.
    pub fn end_under(&self, ir: &Path, flags: &[String]) -> Option<End> {
        end(&self.attempt(ir, flags))
    }

    /// The least cycles under the accused flags and under the first reference, timed in turns, and the state in which both end.
    fn times(&self, ir: &Path) -> Option<(u64, u64, u64)> {
        let reference = self.references.first()?;
        let (mut least, mut state) = ([u64::MAX; 2], None);
        for _ in 0..ROUNDS {
            for (side, flags) in [&self.accused, reference].into_iter().enumerate() {
                let replay = self.attempt(ir, flags).ok().filter(|r| r.repeatable)?;
                if *state.get_or_insert(replay.left) != replay.left {
                    return None;
                }
                least[side] = least[side].min(replay.cycles_min);
            }
        }
        Some((least[0], least[1], state?))
    }

    /// Whether a candidate, with its text, keeps what is to be kept.
    pub fn keeps(&self, ir: &Path, text: &str) -> bool {
        if any_values(text) > self.any {
            return false;
        }
        match self.keeps {
            Keeps::Different => self.differs(ir),
            Keeps::Slow(_) => {
                let wanted = self.ratio.map_or(f64::INFINITY, |(_, wanted)| wanted);
                self.times(ir).is_some_and(|(accused, reference, _)| {
                    reference >= self.least && accused as f64 >= wanted * reference as f64
                })
            }
        }
    }

    /// Whether all references end alike, and the accused flags otherwise.
    fn differs(&self, ir: &Path) -> bool {
        let Some(accused) = self.end_under(ir, &self.accused) else {
            return false;
        };
        let failed = |end: End| end == End::Failed;
        if failed(accused) != failed(self.end) {
            return false;
        }
        let mut references = self
            .references
            .iter()
            .map(|flags| self.end_under(ir, flags));
        let Some(Some(first @ End::State(_))) = references.next() else {
            return false;
        };
        first != accused && references.all(|end| end == Some(first))
    }

    /// The flags, the accused ones first, and how a candidate ends under each.
    pub fn ends(&self, ir: &Path) -> Vec<(String, Option<End>)> {
        let all = std::iter::once(&self.accused).chain(&self.references);
        all.map(|flags| (named(flags), self.end_under(ir, flags)))
            .collect()
    }
}
