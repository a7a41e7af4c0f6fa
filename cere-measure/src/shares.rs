//! What regions take of the run, and which of them flags can be judged by.

use anyhow::Result;
use cere_format::profile::{Profile, RegionKey};
use cere_run::selection::Selection;
use cere_store::names::Named;

/// Share of a region's time that has to be its own for its codelet to tell of it: else it tells of the regions inside.
const OWN: f64 = 0.3;

/// The regions of a profile by what they take.
pub struct Shares<'a> {
    profile: &'a Profile,
    selection: Selection,
}

impl<'a> Shares<'a> {
    /// Those of `profile`.
    pub fn of(profile: &'a Profile) -> Result<Self> {
        Ok(Self {
            profile,
            selection: Selection::of(profile)?,
        })
    }

    /// Share of the run that is in the region and in no other that matters; of one that does not matter, its self time's.
    pub fn of_region(&self, key: &RegionKey) -> f64 {
        match self.kept(key) {
            Some(seconds) => seconds / self.profile.seconds,
            None => self.profile.region(key).map_or(0.0, |r| r.share),
        }
    }

    /// Those of `known` that matter and whose time is mostly their own, not that of regions inside.
    pub fn own<'k>(&self, known: &'k [Named]) -> impl Iterator<Item = &'k Named> {
        known.iter().filter(|named| {
            let region = self.profile.region(&named.key);
            let whole = region.map_or(0.0, |r| r.inclusive_seconds);
            self.kept(&named.key)
                .is_some_and(|seconds| seconds >= OWN * whole)
        })
    }

    /// Seconds that are the region's, if it matters.
    fn kept(&self, key: &RegionKey) -> Option<f64> {
        let mut kept = self.selection.kept.iter();
        let found = kept.find(|k| self.profile.regions[k.region].key == *key)?;
        Some(found.seconds)
    }
}
