//! Why something could not be counted.

use cere_format::FormatError;
use cere_memory::GeometryError;
use cere_replay::ReplayError;
use std::path::PathBuf;

/// Why something could not be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountError {
    /// The replay could not be made or failed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// This architecture has no code that counts.
    #[error(
        "this machine is {}: CERE counts on x86-64; replay, measure, results work here",
        cere_arch::HERE.processor()
    )]
    Architecture,
    /// The geometry is not possible.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The descriptions in an executable do not parse.
    #[error("the counted code of {path} cannot be read: {source}", path = path.display())]
    Code {
        /// The executable.
        path: PathBuf,
        /// Why.
        source: FormatError,
    },
    /// An executable is no ELF file, or has no counted code.
    #[error("{path} has no counted code: {reason}", path = path.display())]
    Image {
        /// The executable.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The stream is not one of this code.
    #[error(
        "the stream of the counted code is wrong at byte {position}: {what}; did the region write over its own buffer, or use GS?"
    )]
    Stream {
        /// Byte.
        position: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The stream could not be read.
    #[error("the stream of the counted code cannot be read: {0}")]
    Read(std::io::Error),
    /// The stream ended before the region did.
    #[error(
        "the counted code of {0} stopped writing before the region ended: does the region close descriptors that it did not open?"
    )]
    Unfinished(String),
    /// Two runs of the same code differ.
    #[error(
        "two counted runs of {codelet} differ: {first} and {second} instructions; its work depends on more than captured memory"
    )]
    Varies {
        /// The codelet.
        codelet: String,
        /// Instructions of the first run.
        first: u64,
        /// And of the second.
        second: u64,
    },
    /// A count exceeds 64 bits.
    #[error("{codelet}: {what} exceed 64 bits")]
    Overflow {
        /// The codelet.
        codelet: String,
        /// What.
        what: &'static str,
    },
    /// The processor's counters cannot be used.
    #[error("no hardware counter works on this machine: {0}")]
    NoHardware(String),
    /// A pipe could not be made.
    #[error("cannot make a pipe: {0}")]
    Pipe(std::io::Error),
    /// The package cannot be read.
    #[error(transparent)]
    Package(#[from] FormatError),
}
