//! A region to tune: the codelets that stand for it.

use crate::check::Codelet;
use crate::matching::counting;
use crate::replay::Replays;
use anyhow::{Result, bail};
use cere_format::build::RegionKind;
use cere_format::package::Manifest;
use cere_format::profile::RegionKey;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{OnceLock, PoisonError, RwLock};

/// A codelet of a region.
pub struct Member {
    /// Unpacked.
    pub package: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// SHA-256 of the package file.
    pub sha256: String,
    /// Seconds in vivo of the class of invocations that it stands for.
    pub weight: f64,
}

/// A region to tune.
pub struct Target {
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: RegionKind,
    /// Share of the run's time.
    pub share: f64,
    /// One codelet a class, that of the class with most of the time first.
    pub members: Vec<Member>,
    /// Seconds that a compile or a replay of a variant may take, once it is known what those of the code as built take.
    pub limit: OnceLock<f64>,
    codes: RwLock<HashMap<String, Option<f64>>>,
}

impl Target {
    /// The region `key` by its `codelets`.
    pub fn of(
        replays: &Replays,
        name: &str,
        key: &RegionKey,
        kind: RegionKind,
        share: f64,
        codelets: &[Codelet],
    ) -> Result<Self> {
        let own: Vec<&Codelet> = codelets.iter().filter(|c| c.1.key == *key).collect();
        if own.is_empty() {
            bail!("{name} has no codelet: `cere capture '{name}' -- PROGRAM ARGUMENTS` takes one");
        }
        let (_, chosen) = counting(&own, |c| c.1.represents)
            .map_err(|why| anyhow::anyhow!("{name} cannot be tuned: {why}"))?;
        let mut members = Vec::new();
        for (file, _) in chosen {
            let (package, manifest, sha256) = replays.unpacked(file)?;
            let in_vivo = manifest.in_vivo.as_ref().map_or(1.0, |v| v.seconds);
            members.push(Member {
                package,
                sha256,
                weight: manifest.represents.map_or(in_vivo, |r| r.seconds),
                manifest,
            });
        }
        members.sort_by(|a: &Member, b| b.weight.total_cmp(&a.weight));
        Ok(Self {
            name: name.to_owned(),
            kind,
            share,
            members,
            limit: OnceLock::new(),
            codes: RwLock::default(),
        })
    }

    /// What came of variants with this machine code, if one was evaluated: the time over that of the code as built, or none
    /// if it failed.
    pub fn known(&self, code: &str) -> Option<Option<f64>> {
        let codes = self.codes.read().unwrap_or_else(PoisonError::into_inner);
        codes.get(code).copied()
    }

    /// Keeps what came of machine code.
    pub fn learn(&self, code: String, ratio: Option<f64>) {
        let mut codes = self.codes.write().unwrap_or_else(PoisonError::into_inner);
        codes.insert(code, ratio);
    }

    /// The time of the codelets over that of `before`, class by class; `now` may have the first ones alone.
    pub fn ratio(&self, before: &[f64], now: &[f64]) -> f64 {
        let timed = self.members.iter().zip(now);
        let total: f64 = timed.map(|(m, _)| m.weight).sum();
        let each = self.members.iter().zip(before.iter().zip(now));
        each.map(|(m, (before, now))| m.weight * now / before)
            .sum::<f64>()
            / total
    }
}
