//! What a machine measured of a subset: the file that `cere measure` writes.

use crate::subset::document::{Codelet, Point, SUBSET_VERSION, Subset};
use crate::subset::machine::Machine;
use crate::subset::model::Ratio;
use crate::subset::modelled::Model;
use crate::subset::rounds::fast;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes, ensure};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Times of a subset's codelets on one kind of machine, at one set of flags.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measurement {
    /// [`SUBSET_VERSION`].
    pub version: u32,
    /// Name for people: the processor and the flags, or what the user said.
    pub label: String,
    /// The machine; of several, the one with the lowest id.
    pub machine: Machine,
    /// Ids of all machines that took part, which are alike.
    pub machines: Vec<String>,
    /// Flags after those of the build.
    pub flags: Vec<String>,
    /// Whether the executables were linked on the reference machine.
    pub prebuilt: bool,
    /// The model that the times are of; none: they were measured.
    #[serde(default)]
    pub model: Option<Model>,
    /// Median distance of a round from the codelet's fastest one, as a share: the noise of the machine while it measured.
    pub noise: Option<f64>,
    /// Seconds that the replays took, with builds and starts.
    pub wall_seconds: f64,
    /// What was measured of each codelet.
    pub codelets: Vec<Measured>,
    /// Seconds of whole programs that were run there, by name: the fastest of each.
    pub programs: BTreeMap<String, f64>,
    /// The subset that was measured, without its packages.
    pub subset: Subset,
}

/// A codelet's times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its index in the subset.
    pub codelet: usize,
    /// Its rounds; empty if one of them failed.
    pub rounds: Vec<Round>,
    /// Why there are none.
    pub reason: Option<String>,
}

impl Measured {
    /// Seconds of each round.
    fn seconds(&self) -> Vec<f64> {
        self.rounds.iter().map(|r| r.seconds).collect()
    }
}

/// A replay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Seconds of one invocation: the quantile of the repetitions that a fifth of them are below.
    pub seconds: f64,
    /// Likewise of the code as built, replayed in turns with it, where flags are compared on the reference's own machine.
    pub built: Option<f64>,
}

impl Measurement {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = cere_store::state::read_record(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let found: Self = cere_format::untrusted::json(&path.display().to_string(), &text)
            .or_coded(codes::E6308, || {
                format!(
                    "{} is no measurement of a subset: `cere measure` writes one",
                    path.display()
                )
            })?;
        found
            .check()
            .with_context(|| format!("{} cannot be used", path.display()))?;
        Ok(found)
    }

    fn check(&self) -> Result<()> {
        if self.version != SUBSET_VERSION {
            bail!(
                E6308,
                "it has version {}, this cere reads {SUBSET_VERSION}",
                self.version
            );
        }
        self.subset.check()?;
        let time = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        let mut seen = BTreeSet::new();
        for measured in &self.codelets {
            ensure!(
                seen.insert(measured.codelet),
                E6308,
                "it has codelet {} twice",
                measured.codelet
            );
            let known = measured.codelet < self.subset.codelets.len();
            let rounds = measured.rounds.iter();
            let mut times = rounds.flat_map(|r| std::iter::once(r.seconds).chain(r.built));
            ensure!(
                known && times.all(time),
                E6308,
                "codelet {} of it is not in the subset or has an impossible time",
                measured.codelet
            );
        }
        ensure!(
            self.programs.values().all(|s| time(*s)),
            E6308,
            "a program has an impossible time"
        );
        let known = |name: &String| self.subset.programs.iter().any(|p| p.name == *name);
        if let Some(name) = self.programs.keys().find(|name| !known(name)) {
            bail!(
                E6308,
                "it has a time of {name}, which is no program of its subset"
            );
        }
        Ok(())
    }

    /// What its times are, for people: measured where, or modelled.
    #[must_use]
    pub fn basis(&self) -> String {
        let (there, reference) = (
            &self.machine.architecture,
            &self.subset.machine.architecture,
        );
        match &self.model {
            Some(model) => model.describe(),
            None if there == reference => format!("measured on {there}"),
            None => format!(
                "measured on {there}: code compiled for it of what was captured on {reference}"
            ),
        }
    }

    /// Whether both are of one kind of machine at the same flags.
    #[must_use]
    pub fn is_of_target(&self, other: &Self) -> bool {
        self.machine.is_alike(&other.machine) && self.flags == other.flags
    }

    /// Whether it is another copy of `other`.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.machine.id == other.machine.id
            && self.flags == other.flags
            && self.codelets == other.codelets
    }

    /// Fails if no codelet has a time.
    ///
    /// # Errors
    /// So, with the first reason.
    pub fn check_measured(&self) -> Result<()> {
        let reason = self.codelets.iter().find_map(|m| m.reason.as_deref());
        ensure!(
            self.codelets.iter().any(|m| !m.rounds.is_empty()),
            E6319,
            "{} has no time of any codelet ({}): measure again",
            self.label,
            reason.unwrap_or("no reason is given")
        );
        Ok(())
    }

    /// Ratio of each of `codelets`, which may be another choice than the measured subset's: they are found by their checksums.
    fn codelet_ratios(&self, codelets: &[Codelet]) -> Vec<Option<Ratio>> {
        let mut by_hash = BTreeMap::new();
        for measured in &self.codelets {
            let codelet = &self.subset.codelets[measured.codelet];
            // One package may be two codelets, and only one of them have times.
            let known = by_hash.entry(codelet.sha256.as_str()).or_insert(measured);
            if known.rounds.is_empty() {
                *known = measured;
            }
        }
        let ratio = |codelet: &Codelet| {
            let measured = by_hash.get(codelet.sha256.as_str())?;
            if measured.rounds.is_empty() {
                return None;
            }
            let turns = measured.rounds.iter().map(|r| Some((r.seconds, r.built?)));
            let turns: Option<Vec<(f64, f64)>> = turns.collect();
            match turns {
                Some(turns) => Ratio::in_turns(&turns),
                None => Some(Ratio::of(&measured.seconds(), &codelet.reference)),
            }
        };
        codelets.iter().map(ratio).collect()
    }

    /// Ratio of each of `points`; none of one that has a codelet without a time.
    #[must_use]
    pub fn ratios(&self, codelets: &[Codelet], points: &[Point]) -> Vec<Option<Ratio>> {
        let known = self.codelet_ratios(codelets);
        let point = |point: &Point| {
            let parts = point.members.iter();
            let parts: Option<Vec<(f64, Ratio)>> = parts
                .map(|(codelet, share)| Some((*share, known[*codelet]?)))
                .collect();
            Some(Ratio::of_point(parts?))
        };
        points.iter().map(point).collect()
    }

    /// Seconds of one invocation of each of these codelets of `subset`, together, as far as they were measured.
    #[must_use]
    pub fn seconds_of(&self, subset: &Subset, codelets: &[usize]) -> f64 {
        let wanted = |m: &&Measured| {
            let own = &self.subset.codelets[m.codelet].sha256;
            let mut all = codelets.iter();
            !m.rounds.is_empty() && all.any(|c| subset.codelets[*c].sha256 == *own)
        };
        let seconds = |m: &Measured| fast(&m.seconds());
        self.codelets.iter().filter(wanted).map(seconds).sum()
    }
}

/// Median distance of rounds from the fastest one of their codelet, as a share; none without a codelet with several rounds.
#[must_use]
pub fn noise(codelets: &[Measured]) -> Option<f64> {
    let several = codelets.iter().filter(|m| m.rounds.len() > 1);
    let each = several.flat_map(|m| {
        let mut rest = m.seconds();
        let least = fast(&rest);
        rest.sort_by(f64::total_cmp);
        rest.into_iter().skip(1).map(move |s| s / least - 1.0)
    });
    cere_timing::stats::median(&each.collect::<Vec<_>>())
}
