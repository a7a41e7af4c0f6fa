//! Why there is no replay: what `start` prints before it ends the process.

use cere_format::PAGE;
use cere_format::error::FormatError;
use cere_format::replay::{CacheLevel, ENV_PLAN};
use cere_inside::clibrary::Unsound;
use cere_timing::energy::EnergyError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What stands in a replay's way.
#[derive(Debug)]
pub enum Error {
    /// Nobody said what to do.
    NoPlan,
    /// `action` says what could not be done with a file.
    File {
        action: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    /// What is not the JSON that it has to be.
    Json {
        what: String,
        cause: serde_json::Error,
    },
    /// The package holds what no capture writes.
    Package(Damage),
    /// The system refused `what`.
    System { what: String, cause: io::Error },
    /// Something of this process lies at captured addresses, `times` in a row.
    Taken { start: u64, end: u64, times: u32 },
    /// The kernel is too old to tell so.
    NoReplace,
    /// A cache that is to be emptied for `wanted`; `others` needs none.
    NoCache {
        level: CacheLevel,
        wanted: &'static str,
        others: &'static str,
    },
    /// The kernel does not hand over the region's system calls.
    Unsealed,
    /// The processor cannot flush operands.
    NoFlush,
    /// Pages cannot share frames.
    Compact(&'static str),
    /// The OpenMP runtime is another one.
    NoOpenMp,
    /// It does not start all threads.
    Threads { started: usize, threads: u32 },
    /// No memory for buffers of counts.
    NoBuffers,
    /// The kernel refuses to set GS.
    NoGs,
    /// The kernel refuses to switch counters.
    NoCounters,
    /// The counters of energy do not tell.
    Energy(EnergyError),
    /// An executable that cannot take this one's place.
    Executable { path: PathBuf, why: &'static str },
    /// A zero inside what the system ends with one.
    Zero {
        what: &'static str,
        cause: std::ffi::NulError,
    },
}

/// What is wrong with a package.
#[derive(Debug)]
pub enum Damage {
    PageSize(u64),
    Addresses {
        what: &'static str,
        start: u64,
        end: u64,
    },
    Entry {
        stack: u64,
        arguments: u64,
    },
    Calls {
        told: u64,
        found: usize,
    },
    TableCut {
        bytes: usize,
    },
    TablePage(u64),
    PageFile {
        name: &'static str,
        bytes: usize,
        needed: usize,
    },
    Block {
        bytes: usize,
        file: usize,
    },
    Blocks {
        threads: usize,
        bytes: usize,
        file: usize,
    },
    Trace(TraceDamage),
    Answers(FormatError),
    CLibrary(Unsound),
}

/// What is wrong with a page trace.
#[derive(Debug)]
pub enum TraceDamage {
    Thread { page: u64 },
    Pages { found: usize, announced: u64 },
    Bytes(usize),
    Twice { page: u64 },
}

impl Error {
    /// With what the system said last.
    pub fn system(what: impl Into<String>) -> Self {
        Self::of_system(what)(io::Error::last_os_error())
    }

    /// With what the system will say.
    pub fn of_system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |cause| Self::System {
            what: what.into(),
            cause,
        }
    }

    /// Of a file.
    pub fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::File {
            action,
            path: path.clone(),
            cause,
        }
    }

    /// Of JSON.
    pub fn json(what: impl Into<String>) -> impl FnOnce(serde_json::Error) -> Self {
        |cause| Self::Json {
            what: what.into(),
            cause,
        }
    }
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::Package(damage)
    }
}

impl From<TraceDamage> for Error {
    fn from(damage: TraceDamage) -> Self {
        Self::Package(Damage::Trace(damage))
    }
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        Self::Package(Damage::Answers(error))
    }
}

impl From<Unsound> for Error {
    fn from(error: Unsound) -> Self {
        Self::Package(Damage::CLibrary(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsealed => write!(
                to,
                "this kernel has no Syscall User Dispatch (Linux 5.11 and later have it): code that nobody has read \
                 (--untrusted) cannot be kept from system calls"
            ),
            Self::NoPlan => write!(
                to,
                "this is a replay of CERE: start it with cere replay ({ENV_PLAN} is not set)"
            ),
            Self::File {
                action,
                path,
                cause,
            } => write!(to, "cannot {action} {}: {cause}", path.display()),
            Self::Json { what, cause } => write!(to, "{what} is not valid: {cause}"),
            Self::Package(damage) => damage.fmt(to),
            Self::System { what, cause } => write!(to, "{what}: {cause}"),
            Self::Taken { start, end, times } => write!(
                to,
                "the captured addresses {start:#x}-{end:#x} are taken in this process, {times} times in a row: is \
                 address space randomisation off (setarch -R, kernel.randomize_va_space)?"
            ),
            Self::NoReplace => {
                to.write_str("this kernel does not know MAP_FIXED_NOREPLACE (Linux 4.17 does)")
            }
            Self::NoCache {
                level,
                wanted,
                others,
            } => {
                let name = match level {
                    CacheLevel::L2 => "l2",
                    CacheLevel::Llc => "llc",
                };
                write!(
                    to,
                    "this machine does not tell its caches' sizes (/sys/devices/system/cpu/cpu*/cache), or has no such \
                     cache: {wanted} {name} is not possible here; {others} are"
                )
            }
            Self::NoFlush => to.write_str(
                "this processor flushes no lines by address (clflush), so that an operand can only be warm: for a replay in \
                 which all is cold take --warmup cold",
            ),
            Self::Compact(why) => {
                write!(to, "the captured data cannot share a few pages: {why}")
            }
            Self::NoOpenMp => to.write_str(
                "the library that stands for the OpenMP runtime has no __kmpc_fork_call: is it LLVM's (libomp)?",
            ),
            Self::Threads { started, threads } => write!(
                to,
                "the OpenMP runtime started {started} of {threads} threads: a limit of the system or of its environment \
                 (OMP_THREAD_LIMIT, KMP_ALL_THREADS)"
            ),
            Self::NoBuffers => to.write_str("there is no memory for the counting code's buffers"),
            Self::NoGs => to.write_str("the kernel refuses to set GS, which counted code needs"),
            Self::NoCounters => to.write_str(
                "the kernel refuses to switch the hardware counters: does the region close descriptors that it did not open?",
            ),
            Self::Energy(error) => write!(to, "{error}"),
            Self::Executable { path, why } => write!(to, "{}: {why}", path.display()),
            Self::Zero { what, cause } => write!(to, "{what}: {cause}"),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PageSize(bytes) => write!(
                to,
                "the codelet has pages of {bytes} bytes, this machine of {PAGE}"
            ),
            Self::Addresses { what, start, end } => write!(
                to,
                "the manifest gives {what} the addresses {start:#x}-{end:#x}, which no process has"
            ),
            Self::Entry { stack, arguments } => write!(
                to,
                "the manifest gives the stack pointer {stack:#x} and the argument block {arguments:#x}: not possible"
            ),
            Self::Calls { told, found } => write!(
                to,
                "the manifest has {told} calls of MPI, and their list has {found}"
            ),
            Self::TableCut { bytes } => write!(to, "the page table is cut short: {bytes} bytes"),
            Self::TablePage(address) => write!(
                to,
                "the page table holds {address:#x}: not a page, or out of order"
            ),
            Self::PageFile {
                name,
                bytes,
                needed,
            } => write!(
                to,
                "the file of {name} pages has {bytes} bytes, the table needs {needed}"
            ),
            Self::Block { bytes, file } => {
                write!(
                    to,
                    "the thread-local block has {bytes} bytes, its file {file}"
                )
            }
            Self::Blocks {
                threads,
                bytes,
                file,
            } => write!(
                to,
                "the thread-local blocks of {threads} threads have {bytes} bytes each, their file {file}"
            ),
            Self::Trace(damage) => write!(to, "the page trace {damage}; capture the codelet again"),
            Self::Answers(error) => error.fmt(to),
            Self::CLibrary(error) => error.fmt(to),
        }
    }
}

impl fmt::Display for TraceDamage {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread { page } => write!(
                to,
                "names a thread at {page:#x}, which is no page of a region with one"
            ),
            Self::Pages { found, announced } => {
                write!(to, "is cut short: it has {found} of {announced} pages")
            }
            Self::Bytes(bytes) => write!(
                to,
                "is cut short: {bytes} bytes are no whole number of entries"
            ),
            Self::Twice { page } => write!(
                to,
                "holds the page {page:#x} twice, so it is not in the order of last touches"
            ),
        }
    }
}
