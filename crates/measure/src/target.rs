//! A region to tune: the codelets that stand for it.

use crate::Replays;
use crate::matching::counting;
use anyhow::Result;
use cere_format::build::RegionKind;
use cere_format::package::Manifest;
use cere_store::current::Codelet;
use cere_store::missing;
use cere_store::names::Named;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, PoisonError, RwLock};

/// A codelet of a region to tune.
pub struct Member {
    /// Unpacked.
    pub package: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// The package file.
    pub file: PathBuf,
    /// Its SHA-256.
    pub sha256: String,
    /// Seconds in vivo of the class of invocations that it stands for.
    pub weight: f64,
}

impl Member {
    /// The codelet in `file`, unpacked.
    pub fn open(replays: &Replays, file: &Path) -> Result<Self> {
        let (package, manifest, sha256) = replays.unpack(file)?;
        let in_vivo = manifest.in_vivo.as_ref().map_or(1.0, |v| v.seconds);
        Ok(Self {
            package,
            file: file.to_owned(),
            sha256,
            weight: manifest.represents.map_or(in_vivo, |r| r.seconds),
            manifest,
        })
    }
}

/// A region to tune.
pub struct Target {
    /// Name.
    pub name: String,
    /// Its identity.
    pub kind: RegionKind,
    /// Share of the run's time.
    pub share: f64,
    /// One codelet a class, that of the class with most of the time first.
    pub members: Vec<Member>,
    /// Limit in seconds for a compile or a replay of a variant; set once those of the code as built are known.
    pub limit: OnceLock<f64>,
    codes: RwLock<HashMap<String, Option<f64>>>,
}

impl Target {
    /// The region by its `codelets`; it takes `share` of the run.
    pub fn of(replays: &Replays, region: &Named, share: f64, codelets: &[Codelet]) -> Result<Self> {
        let name = &region.name;
        let own = codelets.iter().filter(|c| c.1.key == region.key);
        let own: Vec<&Codelet> = own.collect();
        if own.is_empty() {
            return Err(missing::codelets(
                replays.store,
                cere_catalogue::codes::E5001,
                &[name],
                |line| format!("{name} has no codelet: `{line}` takes one"),
            ));
        }
        let (_, chosen) = counting(&own, |c| c.1.represents)
            .map_err(|why| cere_catalogue::anyhow!(E6402, "{name} cannot be tuned: {why}"))?;
        let members = chosen
            .into_iter()
            .map(|(file, _)| Member::open(replays, file));
        let members = members.collect::<Result<_>>()?;
        Ok(Self::new(name, region.region.kind, share, members))
    }

    /// The region `name` by the codelets that stand for it, in any order.
    pub fn new(name: &str, kind: RegionKind, share: f64, mut members: Vec<Member>) -> Self {
        members.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        Self {
            name: name.to_owned(),
            kind,
            share,
            members,
            limit: OnceLock::new(),
            codes: RwLock::default(),
        }
    }

    /// The outcome of a variant with this machine code, if one was evaluated: its time over that of the code as built, or
    /// `None` if it failed.
    pub fn known(&self, code: &str) -> Option<Option<f64>> {
        let codes = self.codes.read().unwrap_or_else(PoisonError::into_inner);
        codes.get(code).copied()
    }

    /// Remembers the outcome of machine code.
    pub fn learn(&self, code: String, ratio: Option<f64>) {
        let mut codes = self.codes.write().unwrap_or_else(PoisonError::into_inner);
        codes.insert(code, ratio);
    }

    /// All machine code with a known outcome, in the order of the code.
    pub fn codes(&self) -> BTreeMap<String, Option<f64>> {
        let codes = self.codes.read().unwrap_or_else(PoisonError::into_inner);
        codes.clone().into_iter().collect()
    }

    /// Checks that the codelets with a time represent most of what the first codelets stand for. `seconds` holds 0 for a
    /// codelet too short to be timed.
    pub fn check_timed_weight(&self, seconds: &[f64]) -> Result<(), String> {
        let weights = self.weights();
        let all: f64 = weights.iter().take(seconds.len()).sum();
        if timed_weight(&weights, seconds) * 2.0 > all {
            return Ok(());
        }
        Err("its invocations are too short to be timed one by one".into())
    }

    /// The weighted mean over the classes of `now` over `before`. `now` may hold the first codelets alone. Classes too short to
    /// be timed, before or now, are excluded; 1 if none is left.
    pub fn ratio(&self, before: &[f64], now: &[f64]) -> f64 {
        ratio(&self.weights(), before, now)
    }

    fn weights(&self) -> Vec<f64> {
        self.members.iter().map(|m| m.weight).collect()
    }
}

/// Summed weight of the codelets that were timed.
fn timed_weight(weights: &[f64], seconds: &[f64]) -> f64 {
    let each = weights.iter().zip(seconds);
    each.filter(|(_, s)| **s > 0.0).map(|(w, _)| w).sum()
}

fn ratio(weights: &[f64], before: &[f64], now: &[f64]) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    for (weight, (before, now)) in weights.iter().zip(before.iter().zip(now)) {
        if *before > 0.0 && *now > 0.0 {
            sum += weight * now / before;
            all += weight;
        }
    }
    if all > 0.0 { sum / all } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_short_is_left_out() {
        let weights = [3.0, 1.0];
        assert_eq!(ratio(&weights, &[2.0, 4.0], &[1.0, 8.0]), 0.875);
        assert_eq!(ratio(&weights, &[2.0, 0.0], &[1.0, 8.0]), 0.5);
        assert_eq!(ratio(&weights, &[2.0, 4.0], &[1.0]), 0.5);
        assert_eq!(ratio(&weights, &[2.0, 4.0], &[0.0]), 1.0);
        assert_eq!(timed_weight(&weights, &[1.0, 0.0]), 3.0);
        assert_eq!(timed_weight(&weights, &[0.0, 1.0]), 1.0);
        assert_eq!(timed_weight(&weights, &[0.0]), 0.0);
    }
}
