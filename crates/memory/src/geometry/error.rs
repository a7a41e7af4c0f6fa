//! A geometry, or options, that cannot be simulated.

use super::levels::{MAX_LEVELS, MAX_LINES};
use super::named::NAMES;

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
    #[error("no geometry is called {name}; built in are {}, or name a file", NAMES.join(", "))]
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
        NAMES.join(", ")
    )]
    Here,
}
