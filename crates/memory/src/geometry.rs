//! Levels of caches and TLBs: built in, of this machine, from a file; and what is refused.

mod here;
mod named;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

pub use cere_format::PAGE;
/// Bytes of a huge page.
pub const HUGE_PAGE: u64 = 2 << 20;
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

/// A geometry, or options, that cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum GeometryError {
    /// Too many levels.
    #[error("{0} levels of caches; at most {MAX_LEVELS} are simulated")]
    Levels(usize),
    /// Too many TLBs.
    #[error("{0} levels of TLBs; at most 2 are simulated")]
    Tlbs(usize),
    /// A size of zero.
    #[error("level {level}: {what} is 0")]
    Zero {
        /// Its name.
        level: String,
        /// The field.
        what: &'static str,
    },
    /// A line that is no power of two, too short or too long.
    #[error("level {level}: a line of {line} bytes; it must be a power of two from 32 to 4096")]
    Line {
        /// Its name.
        level: String,
        /// Bytes.
        line: u32,
    },
    /// A size that is not a whole number of sets.
    #[error(
        "level {level}: {size} bytes are not a multiple of line times ways, {line} * {ways} bytes"
    )]
    Sets {
        /// Its name.
        level: String,
        /// Bytes.
        size: u64,
        /// Bytes of a line.
        line: u32,
        /// Lines of a set.
        ways: u32,
    },
    /// A level smaller than the one before it (victim levels may be).
    #[error(
        "level {level}: its {what}, {value} bytes, is less than the {before} of the level before it"
    )]
    Shrinks {
        /// Its name.
        level: String,
        /// The field.
        what: &'static str,
        /// Its value in bytes.
        value: u64,
        /// That of the level before.
        before: u64,
    },
    /// A victim level without a level before it, or with another line.
    #[error("level {level}: a victim level needs a level before it, with the same line")]
    Victim {
        /// Its name.
        level: String,
    },
    /// A private level behind a shared one.
    #[error("level {level}: it is private, and a level nearer to the core is shared")]
    Private {
        /// Its name.
        level: String,
    },
    /// Tree-PLRU with ways that are no power of two, or more than 64.
    #[error("level {level}: tree-plru needs a power of two of ways, 64 at most, not {ways}")]
    Plru {
        /// Its name.
        level: String,
        /// Lines of a set.
        ways: u32,
    },
    /// A TLB without entries, or with entries that are not a whole number of sets.
    #[error("TLB level {level}: {entries} entries are not a positive multiple of {ways} ways")]
    Tlb {
        /// 1 for the nearest.
        level: usize,
        /// Its entries.
        entries: u32,
        /// Entries of a set.
        ways: u32,
    },
    /// A TLB smaller than the one before it.
    #[error("TLB level {level}: its {entries} entries are fewer than those of the TLB before it")]
    TlbShrinks {
        /// 2.
        level: usize,
        /// Its entries.
        entries: u32,
    },
    /// More lines than are simulated.
    #[error("{0} lines and TLB entries, over all cores; at most {MAX_LINES} are simulated")]
    TooLarge(u64),
    /// A number of cores out of range.
    #[error("{0} cores; 1 to 1024 are simulated")]
    Cores(usize),
    /// Prefetcher options out of range.
    #[error("prefetcher: {0}")]
    Prefetcher(&'static str),
    /// Sampling that the geometry does not allow.
    #[error("sampling 1 in {of} sets: {why}")]
    Sampling {
        /// The rate asked for.
        of: u32,
        /// The reason.
        why: String,
    },
    /// A number of write-combining buffers out of range.
    #[error("{0} write-combining buffers; 1 to 64 are simulated")]
    Combining(usize),
    /// Huge ranges out of range.
    #[error("huge pages: {0}")]
    Huge(String),
    /// A footprint out of range.
    #[error("a footprint of {0} pages; 1 to 2^28 are possible")]
    Footprint(usize),
    /// A geometry that is not built in.
    #[error("no geometry is called {name}; built in are {}, or name a file", Geometry::names().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// A file that cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// A file that is no geometry: not JSON, a field too many or too few, a value out of range.
    #[error("{path}: {error}")]
    Json {
        /// The file.
        path: String,
        /// What is wrong, and where.
        error: serde_json::Error,
    },
    /// A machine that does not describe its caches.
    #[error(
        "this machine does not describe its caches (/sys/devices/system/cpu/cpu0/cache): name a geometry: {}",
        Geometry::names().join(", ")
    )]
    Here,
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

    fn check(&self) -> Result<(), GeometryError> {
        let level = || self.name.clone();
        for (what, value) in [
            ("size", self.size),
            ("line", self.line.into()),
            ("ways", self.ways.into()),
        ] {
            if value == 0 {
                return Err(GeometryError::Zero {
                    level: level(),
                    what,
                });
            }
        }
        if !self.line.is_power_of_two() || !(32..=4096).contains(&self.line) {
            return Err(GeometryError::Line {
                level: level(),
                line: self.line,
            });
        }
        if !self
            .size
            .is_multiple_of(u64::from(self.line) * u64::from(self.ways))
        {
            return Err(GeometryError::Sets {
                level: level(),
                size: self.size,
                line: self.line,
                ways: self.ways,
            });
        }
        self.check_replacement(self.replacement)
    }

    /// Whether the level can have this policy.
    pub(crate) fn check_replacement(&self, policy: Replacement) -> Result<(), GeometryError> {
        let odd = !self.ways.is_power_of_two() || self.ways > 64;
        match policy {
            Replacement::TreePlru if odd => Err(GeometryError::Plru {
                level: self.name.clone(),
                ways: self.ways,
            }),
            _ => Ok(()),
        }
    }
}

impl Geometry {
    /// A built-in geometry: see [`Geometry::names`].
    ///
    /// # Errors
    /// [`GeometryError::Unknown`].
    pub fn named(name: &str) -> Result<Self, GeometryError> {
        named::of(name).ok_or_else(|| GeometryError::Unknown {
            name: name.to_owned(),
        })
    }

    /// The names of the built-in geometries. They are the same on every machine, so their counts compare.
    pub fn names() -> Vec<&'static str> {
        named::NAMES.to_vec()
    }

    /// This machine's: caches as sysfs describes them, TLBs as CPUID does. Where CPUID says nothing of TLBs (under a
    /// hypervisor, for example), a TLB of 64 entries and 4 ways and one of 1536 entries and 12 ways are taken.
    ///
    /// # Errors
    /// [`GeometryError::Here`] if the machine does not describe its caches; what [`check`](Self::check) refuses.
    pub fn here() -> Result<Self, GeometryError> {
        here::geometry()
    }

    /// From a JSON file: see `docs/formats.md`.
    ///
    /// # Errors
    /// [`GeometryError::File`], [`GeometryError::Json`], and what [`check`](Self::check) refuses.
    pub fn read(path: &Path) -> Result<Self, GeometryError> {
        let at = || path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| GeometryError::File { path: at(), error })?;
        let read: Self = serde_json::from_str(&text)
            .map_err(|error| GeometryError::Json { path: at(), error })?;
        read.check()?;
        Ok(read)
    }

    /// What [`read`](Self::read) reads.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and numbers")
    }

    /// Whether it can be simulated with one core.
    ///
    /// # Errors
    /// The first of what is refused.
    pub fn check(&self) -> Result<(), GeometryError> {
        if self.levels.len() > MAX_LEVELS {
            return Err(GeometryError::Levels(self.levels.len()));
        }
        self.levels.iter().try_for_each(Level::check)?;
        for pair in self.levels.windows(2) {
            let (before, level) = (&pair[0], &pair[1]);
            let victim = level.inclusion == Inclusion::Victim;
            let name = || level.name.clone();
            if level.line < before.line {
                return Err(GeometryError::Shrinks {
                    level: name(),
                    what: "line",
                    value: level.line.into(),
                    before: before.line.into(),
                });
            }
            if level.size < before.size && !victim {
                return Err(GeometryError::Shrinks {
                    level: name(),
                    what: "size",
                    value: level.size,
                    before: before.size,
                });
            }
            if victim && level.line != before.line {
                return Err(GeometryError::Victim { level: name() });
            }
            if before.shared && !level.shared {
                return Err(GeometryError::Private { level: name() });
            }
        }
        if let Some(first) = self.levels.first()
            && first.inclusion == Inclusion::Victim
        {
            return Err(GeometryError::Victim {
                level: first.name.clone(),
            });
        }
        self.check_tlbs()?;
        self.check_total(1)
    }

    fn check_tlbs(&self) -> Result<(), GeometryError> {
        if self.tlbs.len() > 2 {
            return Err(GeometryError::Tlbs(self.tlbs.len()));
        }
        for (index, &Tlb { entries, ways }) in self.tlbs.iter().enumerate() {
            let level = index + 1;
            if entries == 0 || ways == 0 || !entries.is_multiple_of(ways) {
                return Err(GeometryError::Tlb {
                    level,
                    entries,
                    ways,
                });
            }
            if index > 0 && entries < self.tlbs[index - 1].entries {
                return Err(GeometryError::TlbShrinks { level, entries });
            }
        }
        Ok(())
    }

    /// Whether so many cores stay within [`MAX_LINES`].
    pub(crate) fn check_total(&self, cores: usize) -> Result<(), GeometryError> {
        let cores = cores as u64;
        let lines = self.levels.iter().map(|l| {
            let copies = if l.shared { 1 } else { cores };
            (l.size / u64::from(l.line)).saturating_mul(copies)
        });
        let entries = self.tlbs.iter().map(|t| u64::from(t.entries) * cores);
        let total = lines.chain(entries).fold(0u64, u64::saturating_add);
        if total > MAX_LINES {
            return Err(GeometryError::TooLarge(total));
        }
        Ok(())
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
