//! What code of a stranger's package may do on this machine: replays, and the compilers that read the package's IR.
//!
//! | layer | what it keeps from the confined process |
//! |---|---|
//! | no new privileges | programs that run as another user; all capabilities are dropped as well |
//! | namespaces (user, network, IPC) | the network, other processes' shared memory and message queues |
//! | landlock ([`files`]) | all files but the system's libraries, the toolchain and what the [`Task`] names |
//! | limits | files above a size, more processes or processor time than the task needs, core dumps |
//! | seccomp ([`calls`]) | sockets, `ptrace`, `bpf`, `keyctl`, mounts and the like; in replays also new processes |
//!
//! A layer that this system refuses is left out, and [`Sandbox::warnings`] says what that means. The others are
//! installed or the process does not start. All is prepared before the fork: the child makes plain system calls only
//! ([`child`]).
//!
//! Not kept from a confined process: reading the system's own files (`/usr`, `/lib`, `/proc`, `/sys`), memory, and the
//! time until the task's limit.
//!
//! The filter of system calls costs nothing where the kernel remembers which calls it always allows (Linux 5.11), and
//! does not change how the processor speculates (`SECCOMP_FILTER_FLAG_SPEC_ALLOW`): replays are timed.

pub mod calls;
mod child;
pub mod files;
mod layers;
mod task;

pub use task::{Kind, Task};

use cere_format::replay::{Guard, Statement};
use child::Steps;
use layers::Layers;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Whether processes are confined, and what they may read besides what their tasks name.
#[derive(Debug, Clone, Default)]
pub struct Sandbox {
    on: bool,
    sealed: bool,
    read: Vec<PathBuf>,
    libraries: Vec<PathBuf>,
}

impl Sandbox {
    /// Everything that this system can keep from a process is kept from it.
    pub fn new() -> Self {
        Self {
            on: true,
            ..Self::default()
        }
    }
    /// Nothing is.
    pub fn none() -> Self {
        Self::default()
    }
    /// The same, for code that nobody has read: what runs in it makes no system call that was not captured, and compilers read what
    /// they are given alone.
    pub fn sealed(self) -> Self {
        Self {
            sealed: true,
            ..self
        }
    }
    /// Whether nobody has read the code.
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }
    /// Whether processes are confined.
    pub fn is_on(&self) -> bool {
        self.on
    }
    /// The same, with more to read in each task.
    pub fn reading(mut self, read: impl IntoIterator<Item = PathBuf>) -> Self {
        self.read.extend(read);
        self
    }
    /// The same, with more directories of shared libraries in each task.
    pub fn loading(mut self, libraries: impl IntoIterator<Item = PathBuf>) -> Self {
        self.libraries.extend(libraries);
        self
    }

    /// What this system refuses of it: a sentence for each layer, for people.
    pub fn warnings(&self) -> Vec<String> {
        match self.on {
            true => Layers::here().warnings(),
            false => Vec::new(),
        }
    }

    /// The filter that has a replay's runtime name what its region is refused; none without a sandbox.
    pub fn guard(&self) -> Option<Guard> {
        (self.on && Layers::here().calls.is_ok()).then(calls::guard)
    }

    /// What makes a fork of a [`Kind::Keeper`] a [`Kind::Replay`]: filters of system calls, and what stands in them for the
    /// fork's process number. None without a sandbox.
    pub fn of_forks(&self) -> (Vec<Vec<Statement>>, u32) {
        let filters = match self.on && Layers::here().calls.is_ok() {
            true => calls::filters(Kind::Replay),
            false => Vec::new(),
        };
        let statements = |filter: Vec<libc::sock_filter>| {
            let each = filter.into_iter().map(|s| (s.code, s.jt, s.jf, s.k));
            each.collect()
        };
        (filters.into_iter().map(statements).collect(), calls::OWN_ID)
    }

    /// Has `command`, when it is started, run as `task` says.
    ///
    /// # Errors
    /// The kernel's, where it has a layer and refuses this one.
    pub fn confine(&self, command: &mut Command, task: &Task) -> io::Result<()> {
        let Some(rest) = self.rest(task)? else {
            return Ok(());
        };
        if let Some(directory) = rest.scratch {
            command.env("TMPDIR", directory);
        }
        enter(command, task.kind, rest.ruleset, rest.seconds);
        Ok(())
    }

    /// Has `command`, when it is started, be confined as its tasks are, but for what [`Sandbox::rest`] gives each of them.
    pub fn confine_server(&self, command: &mut Command, kind: Kind) {
        if self.on {
            enter(command, kind, None, libc::RLIM_INFINITY);
        }
    }

    /// What a task has of its own; none without a sandbox.
    ///
    /// # Errors
    /// The kernel's, where it has landlock and refuses this.
    pub fn rest(&self, task: &Task) -> io::Result<Option<Rest>> {
        if !self.on {
            return Ok(None);
        }
        let mut task = task.clone();
        task.read.extend(self.read.iter().cloned());
        task.libraries.extend(self.libraries.iter().cloned());
        let ruleset = match Layers::here().files {
            Ok(()) => files::ruleset(&task)?,
            Err(_) => None,
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let seconds = task.seconds.saturating_mul(processors);
        Ok(Some(Rest {
            ruleset,
            seconds: seconds.saturating_add(60),
            scratch: task.write.into_iter().find(|path| path.is_dir()),
        }))
    }
}

/// What each task of a kind has of its own: see [`Sandbox::rest`].
#[derive(Debug)]
pub struct Rest {
    /// The ruleset of landlock, where there is one.
    pub ruleset: Option<OwnedFd>,
    /// Seconds of processor time.
    pub seconds: u64,
    /// Where its temporary files are (`TMPDIR`).
    pub scratch: Option<PathBuf>,
}

/// Enters the rest, in a process that was forked by a server: see [`Sandbox::confine_server`].
///
/// # Errors
/// The kernel's.
pub fn enter_rest(ruleset: Option<BorrowedFd>, seconds: Option<u64>) -> io::Result<()> {
    child::enter_rest(ruleset, seconds)
}

/// Has `command` confined when it is started.
fn enter(command: &mut Command, kind: Kind, ruleset: Option<OwnedFd>, seconds: u64) {
    let layers = Layers::here();
    let filters = match layers.calls {
        Ok(()) => calls::filters(kind),
        Err(_) => Vec::new(),
    };
    let limits = limits(kind, seconds);
    let mut steps = Steps::new(layers.namespaces.is_ok(), ruleset, filters, limits);
    // SAFETY: `enter` makes system calls only: it neither allocates nor locks.
    unsafe { command.pre_exec(move || steps.enter()) };
}

/// Limits of resources: those that hold anywhere, and at last that of processes, which counts the user's own where there is no
/// user namespace.
fn limits(kind: Kind, seconds: u64) -> child::Limits {
    child::Limits {
        anywhere: [
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_FSIZE, kind.file_size()),
            (libc::RLIMIT_CPU, seconds),
        ],
        processes: kind.processes(),
    }
}

/// What a confined process was ended for, if `signal` tells.
pub fn ended_by(signal: i32, kind: Kind) -> Option<String> {
    match signal {
        libc::SIGSYS => Some("it made a system call that the sandbox refuses".to_owned()),
        libc::SIGXFSZ => Some(format!(
            "it wrote more than the {} MiB that the sandbox allows",
            kind.file_size() >> 20
        )),
        libc::SIGXCPU => Some("it took more processor time than the sandbox allows".to_owned()),
        _ => None,
    }
}
