//! Why a kernel could not be timed.

use std::io;

/// What was wrong, with which value, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimerError {
    /// An operand without bytes.
    #[error("an operand of 0 bytes: give its size in bytes")]
    ZeroBytes,
    /// An alignment that is not a power of two.
    #[error("an alignment of {0} bytes: it must be a power of two, 1 or more")]
    Align(usize),
    /// A forbidden alignment that is not above the wanted one.
    #[error(
        "memory aligned to {align} bytes but not to {misalign}: the second must be 0 (any), or a power of two above the first"
    )]
    Misalign {
        /// Bytes wanted.
        align: usize,
        /// Bytes forbidden.
        misalign: usize,
    },
    /// More memory than the machine, or the control group, has left.
    #[error(
        "{wanted} bytes are needed, {available} are available: take smaller operands, or free memory"
    )]
    Memory {
        /// Bytes that this allocation needs.
        wanted: usize,
        /// Bytes that are left.
        available: usize,
    },
    /// The system refused memory.
    #[error(
        "the system refused {bytes} bytes of memory: raise its limit (ulimit -v), or take smaller operands"
    )]
    Map {
        /// Bytes asked for.
        bytes: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// A cache level that this machine does not have.
    #[error(
        "operand {operand}: there is no cache of level {level}, the levels here are 1 to {levels}: choose one of them, \
         or give the sizes of the caches"
    )]
    Level {
        /// Index of the operand.
        operand: usize,
        /// The level asked for.
        level: u32,
        /// How many levels are known.
        levels: usize,
    },
    /// A cache too small to be one.
    #[error(
        "a cache of {bytes} bytes at level {level}: give bytes, 1024 or more, the nearest cache first"
    )]
    Cache {
        /// The level, from 1.
        level: usize,
        /// Its size as given.
        bytes: usize,
    },
    /// An operand that the wanted cache cannot hold.
    #[error(
        "operands of {bytes} bytes in the cache of level {level}: it holds {room} beside what flushes the nearer one: \
         take smaller operands, or a farther level"
    )]
    DoesNotFit {
        /// Bytes of all operands in that state.
        bytes: usize,
        /// The level.
        level: u32,
        /// Bytes that it has room for.
        room: usize,
    },
    /// No samples, or too many.
    #[error("{0} samples: take 1 to 1000000")]
    Samples(usize),
    /// Address flush on a processor without the instruction.
    #[error("this processor has no instruction that flushes an address: choose the walk")]
    NoAddressFlush,
    /// The processors that may be used are not known, or a thread could not be put on one.
    #[error("threads that flush could not be put on processors: time without `parallel`")]
    Pin(#[source] io::Error),
}
