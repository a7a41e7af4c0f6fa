//! Shares of regions in the run time, and the regions whose codelets show what flags do.

use anyhow::Result;
use cere_capture::selection::Selection;
use cere_format::profile::{Profile, RegionKey};
use cere_store::names::Named;

/// Minimum of self time over inclusive time of a region that is tuned: below, its codelet measures the regions inside.
const OWN: f64 = 0.3;

/// The regions of a profile with their times.
pub struct Shares<'a> {
    profile: &'a Profile,
    selection: Selection,
}

impl<'a> Shares<'a> {
    /// Reads the shares from `profile`.
    pub fn of(profile: &'a Profile) -> Result<Self> {
        Ok(Self {
            profile,
            selection: Selection::of(profile)?,
        })
    }

    /// Share of the run inside the region and outside all other regions that matter. For a region that does not matter, the
    /// share of its self time.
    pub fn of_region(&self, key: &RegionKey) -> f64 {
        match self.counted_seconds(key) {
            Some(seconds) => seconds / self.profile.seconds,
            None => self.profile.region(key).map_or(0.0, |r| r.share),
        }
    }

    /// Those of `known` that matter and whose own time is at least [`OWN`] of their inclusive time.
    pub fn mostly_own<'k>(&self, known: &'k [Named]) -> impl Iterator<Item = &'k Named> {
        known
            .iter()
            .filter(|n| self.is_mostly_own(&n.key) == Some(true))
    }

    /// The others of `known` that matter.
    pub fn mostly_others<'k>(&self, known: &'k [Named]) -> impl Iterator<Item = &'k Named> {
        known
            .iter()
            .filter(|n| self.is_mostly_own(&n.key) == Some(false))
    }

    /// Whether the region's own time is at least [`OWN`] of its inclusive time; `None` if it does not matter.
    fn is_mostly_own(&self, key: &RegionKey) -> Option<bool> {
        let whole = self
            .profile
            .region(key)
            .map_or(0.0, |r| r.inclusive_seconds);
        Some(self.counted_seconds(key)? >= OWN * whole)
    }

    /// Seconds that count for the region; `None` if it does not matter.
    fn counted_seconds(&self, key: &RegionKey) -> Option<f64> {
        let mut kept = self.selection.large(self.profile);
        let found = kept.find(|k| self.profile.regions[k.region].key == *key)?;
        Some(found.seconds)
    }
}
