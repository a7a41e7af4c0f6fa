//! Levels of caches and TLBs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Levels at most.
pub const MAX_LEVELS: usize = 8;
/// Lines of all levels and cores together, and entries of all TLBs: 2^26 lines are half a GiB for the simulator.
pub const MAX_LINES: u64 = 1 << 26;

/// What is simulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Name for reports.
    pub name: String,
    /// Levels of caches, nearest to the core first. May be empty.
    pub levels: Vec<Level>,
    /// Levels of data TLBs, nearest first: none, one or two.
    #[serde(default)]
    pub tlbs: Vec<Tlb>,
}

/// A level of caches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Name for reports.
    pub name: String,
    /// Bytes: a multiple of `line * ways`. Of all slices together, where a level has several.
    pub size: u64,
    /// Bytes of a line: a power of two, 32 to 4096, and not less than that of nearer levels.
    pub line: u32,
    /// Lines of a set. `size / line` makes the level fully associative. A lookup takes time in proportion to the ways.
    pub ways: u32,
    /// Which line of a full set leaves.
    #[serde(default)]
    pub replacement: Replacement,
    /// What holds between this level and those nearer to the core.
    #[serde(default)]
    pub inclusion: Inclusion,
    /// Whether all cores have this level together. Levels behind it must be shared too.
    #[serde(default)]
    pub shared: bool,
}

/// Which line of a full set leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The least recently used one.
    #[default]
    Lru,
    /// The one that a binary tree of bits points to, each of which points away from the half used last. The ways must
    /// be a power of two, 64 at most.
    TreePlru,
    /// One drawn by the seed.
    Random,
}

/// What holds between a level and those nearer to the core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inclusion {
    /// Nothing: lines are put in by misses, and an eviction leaves nearer levels alone.
    #[default]
    None,
    /// Nearer levels hold nothing that this level does not: what it evicts is invalidated there.
    Inclusive,
    /// It is filled by what the level before it evicts, and a hit moves the line there.
    Victim,
}

/// A level of data TLBs, with least recently used replacement. Pages of both sizes share its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tlb {
    /// Pages that it holds: a multiple of `ways`.
    pub entries: u32,
    /// Entries of a set; `entries` makes it fully associative.
    pub ways: u32,
}

impl Level {
    /// A private level of 64-byte lines with least recently used replacement, neither inclusive nor a victim level.
    pub fn new(name: &str, size: u64, ways: u32) -> Self {
        Self {
            name: name.to_owned(),
            size,
            line: 64,
            ways,
            replacement: Replacement::Lru,
            inclusion: Inclusion::None,
            shared: false,
        }
    }

    /// Sets.
    pub fn sets(&self) -> u64 {
        self.size / (u64::from(self.line) * u64::from(self.ways))
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        for level in &self.levels {
            let (size, unit) = match level.size {
                s if s.is_multiple_of(1 << 20) => (s >> 20, "MiB"),
                s if s.is_multiple_of(1 << 10) => (s >> 10, "KiB"),
                s => (s, "bytes"),
            };
            write!(f, "\n{}: {size} {unit}, ", level.name)?;
            match level.sets() {
                1 => write!(f, "fully associative")?,
                _ => write!(f, "{} ways", level.ways)?,
            }
            let policy = match level.replacement {
                Replacement::Lru => "LRU",
                Replacement::TreePlru => "tree-PLRU",
                Replacement::Random => "random replacement",
            };
            write!(f, ", lines of {} bytes, {policy}", level.line)?;
            match level.inclusion {
                Inclusion::None => {}
                Inclusion::Inclusive => write!(f, ", inclusive")?,
                Inclusion::Victim => write!(f, ", victim")?,
            }
            if level.shared {
                write!(f, ", shared")?;
            }
        }
        for (index, tlb) in self.tlbs.iter().enumerate() {
            write!(f, "\nTLB {}: {} entries, ", index + 1, tlb.entries)?;
            match tlb.entries == tlb.ways {
                true => write!(f, "fully associative")?,
                false => write!(f, "{} ways", tlb.ways)?,
            }
        }
        Ok(())
    }
}
