//! What is chosen for one simulation of a geometry.

use crate::geometry::{Inclusion, Replacement};
use crate::{Geometry, GeometryError};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The choices of a simulation. The default is one core, the geometry's own replacement, physical addresses equal to
/// virtual ones, no prefetcher, every line simulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Cores, 1 to 1024. Each has its own TLBs, its own copy of the levels that are not shared, its own prefetcher and
    /// write-combining buffers.
    pub cores: usize,
    /// Seeds random replacement and the map of frames.
    pub seed: u64,
    /// Replaces the policy of every level. [`Replacement::Random`] with several seeds, against
    /// [`Replacement::Lru`], shows how much the unknown policy of a processor matters.
    pub replacement: Option<Replacement>,
    /// Where pages lie in physical memory.
    pub frames: Frames,
    /// Virtual address ranges in pages of 2 MiB. A page is huge if one of them covers all of it. At most 1024.
    pub huge: Vec<Range<u64>>,
    /// Simulate 1 in `k` sets and scale the counts up. See [`crate::counters::Sampling`] for what that costs.
    pub sampling: Option<u32>,
    /// The stream prefetcher of each core, if any.
    pub prefetcher: Option<Prefetcher>,
    /// Write-combining buffers of 64 bytes for each core, 1 to 64.
    pub combining: usize,
    /// Pages that the footprint has room for, up to 2^28. A page takes 32 bytes or less with lines of 64 bytes; what
    /// is never touched is never resident. See [`Hierarchy::reserve`](crate::Hierarchy::reserve).
    pub footprint_pages: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cores: 1,
            seed: 0,
            replacement: None,
            frames: Frames::Identity,
            huge: Vec::new(),
            sampling: None,
            prefetcher: None,
            combining: 10,
            footprint_pages: 1 << 18,
        }
    }
}

impl Options {
    /// Whether they are in range and fit a geometry that was checked.
    pub(crate) fn check(&self, geometry: &Geometry) -> Result<(), GeometryError> {
        if !(1..=1024).contains(&self.cores) {
            return Err(GeometryError::Cores(self.cores));
        }
        geometry.check_total(self.cores)?;
        if let Some(policy) = self.replacement {
            let mut levels = geometry.levels.iter();
            levels.try_for_each(|l| l.check_replacement(policy))?;
        }
        if !(1..=64).contains(&self.combining) {
            return Err(GeometryError::Combining(self.combining));
        }
        if !(1..=1 << 28).contains(&self.footprint_pages) {
            return Err(GeometryError::Footprint(self.footprint_pages));
        }
        if self.huge.len() > 1024 {
            let count = self.huge.len();
            return Err(GeometryError::Huge(format!("{count} ranges; at most 1024")));
        }
        if let Some(range) = self.huge.iter().find(|r| r.start > r.end) {
            let why = format!(
                "the range {:#x} to {:#x} is reversed",
                range.start, range.end
            );
            return Err(GeometryError::Huge(why));
        }
        match (self.prefetcher, self.sampling) {
            (Some(_), Some(of)) => Err(GeometryError::Sampling {
                of,
                why: "a prefetcher has to see every line".into(),
            }),
            (Some(prefetcher), None) => prefetcher.check(geometry),
            (None, _) => Ok(()),
        }
    }
}

/// Where pages lie in physical memory, which decides the sets of the levels whose index is wider than a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frames {
    /// Physical addresses are the virtual ones.
    #[default]
    Identity,
    /// Every page has a frame of its own, drawn at random by the seed. Huge pages lie together.
    Random,
}

/// A stream prefetcher: it follows up to `streams` pages of 4 KiB, upwards or downwards, and fetches lines of that
/// page ahead of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefetcher {
    /// Index of the level that it fills and that trains it (0 is nearest): demand misses there, and first hits of lines
    /// that were prefetched. Not a victim level.
    pub level: usize,
    /// Streams followed at once, 1 to 64; the least recently used one is replaced.
    pub streams: usize,
    /// Lines that it may be ahead of the program, 1 or more.
    pub distance: u32,
    /// Lines fetched at most per step, 1 or more.
    pub degree: u32,
}

impl Prefetcher {
    fn check(&self, geometry: &Geometry) -> Result<(), GeometryError> {
        let refuse = |why| Err(GeometryError::Prefetcher(why));
        match geometry.levels.get(self.level) {
            None => return refuse("there is no such level"),
            Some(l) if l.inclusion == Inclusion::Victim => {
                return refuse("it cannot fill a victim level");
            }
            Some(_) => {}
        }
        if !(1..=64).contains(&self.streams) {
            return refuse("1 to 64 streams are simulated");
        }
        if self.distance == 0 || self.degree == 0 {
            return refuse("distance and degree must be 1 or more");
        }
        Ok(())
    }
}
