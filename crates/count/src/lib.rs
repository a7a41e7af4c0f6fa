//! Exact counts of codelets: instructions, floating-point work, memory accesses, and the traffic that simulated caches make
//! of them. No clock and no hardware counter is involved, so the numbers are the same on every machine; what the hardware
//! counts can be read beside them ([`hardware`]).
//!
//! | module | what |
//! |---|---|
//! | [`class`] | what an instruction does, from LLVM's name of it |
//! | [`image`] | the descriptions in an executable |
//! | [`stream`] | what counted code writes when it runs |
//! | [`tally`] | how often each piece of code ran |
//! | [`accesses`] | the memory that it reached |
//! | [`counts`] | the results |
//! | [`codelet`] | counts a codelet |
//! | [`hardware`] | the processor's own counters beside them |
//! | [`vivo`] | counts invocations inside the program |
//! | [`fidelity`] | compares the two |
//! | [`metrics`] | vectors of metrics, for clustering |

pub mod accesses;
pub mod class;
pub mod codelet;
pub mod counts;
pub mod fidelity;
pub mod hardware;
pub mod image;
pub mod metrics;
pub mod stream;
pub mod tally;
pub mod vivo;

pub use codelet::{Settings, count};
pub use counts::Counts;

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
