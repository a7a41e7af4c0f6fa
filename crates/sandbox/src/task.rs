//! What is confined, and what it needs.

use std::path::PathBuf;

/// What kind of process is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A compiler or another tool that reads what a package holds.
    Tool,
    /// A replay: it starts threads, and no processes.
    Replay,
    /// A process that keeps a captured state: replays are forks of it, which [`Sandbox::of_forks`](crate::Sandbox::of_forks) confines further.
    Keeper,
}

impl Kind {
    /// Bytes of the largest file that it may write.
    pub const fn file_size(self) -> u64 {
        match self {
            Kind::Tool => 2 << 30,
            Kind::Replay | Kind::Keeper => 64 << 20,
        }
    }
    /// Processes and threads that it may have, where it has a user namespace.
    pub(crate) const fn processes(self) -> u64 {
        match self {
            Kind::Tool => 512,
            Kind::Replay | Kind::Keeper => 8192,
        }
    }
}

/// What a process needs.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its kind.
    pub kind: Kind,
    /// Files, and directories with all that is below, that it reads.
    pub read: Vec<PathBuf>,
    /// Directories whose shared libraries it loads: see [`shared_libraries`](crate::files::shared_libraries).
    pub libraries: Vec<PathBuf>,
    /// The file that it executes, if that is not one of the system's or the toolchain's.
    pub execute: Option<PathBuf>,
    /// Existing files that it writes, and directories that it may change in every way.
    pub write: Vec<PathBuf>,
    /// Seconds after which it is ended anyway.
    pub seconds: u64,
}
