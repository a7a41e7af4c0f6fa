//! Runs an instrumented program under the preload library.

use anyhow::{Context, Result, bail};
use cere_format::capture::{CAPTURE_VERSION, ENV_RUN, RunMode, RunPlan};
use cere_format::profile_raw::TRACE_WANTED;
use cere_format::store::Store;
use cere_store::build::image::Program;
use cere_store::{components, state};
use cere_system::console::print::{self, Verbosity};
use cere_system::console::progress::{self, ProgressBar};
use cere_system::process::supervise;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the program's stdout goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Where this command's stdout goes.
    Kept,
    /// To stderr: stdout is for the report.
    ToStderr,
    /// Nowhere, like its stderr: the output was shown by an earlier run.
    Dropped,
}

/// Minimum free bytes for the results of a run.
const ROOM: u64 = 4 << 20;

/// How to run a program.
pub struct Launch<'a> {
    /// The store for the results.
    pub store: &'a Store,
    /// The program.
    pub program: &'a Program,
    /// Program and arguments as given.
    pub command: &'a [String],
    /// Profile or capture.
    pub mode: RunMode,
    /// Further invocations, rising, whose times a profile keeps for every region.
    pub trace: &'a [u64],
    /// End it after this many seconds.
    pub timeout: Option<f64>,
    /// Where its output goes.
    pub output: Output,
    /// Environment variables in addition to this command's.
    pub environment: &'a [(String, String)],
    /// Its standard input, if not this command's.
    pub input: Option<Stdio>,
    /// Work beside the run, on the directory with its results so far, until the run has ended.
    pub beside: Option<&'a Beside<'a>>,
}

/// Work beside a run: gets the directory with its results, and whether the run has ended.
pub type Beside<'a> = dyn Fn(&Path, &AtomicBool) + Sync + 'a;

/// How a run ended, and the directory with its results, which is removed when this is dropped.
pub struct Finished {
    /// The program's exit status.
    pub status: ExitStatus,
    /// Process id that the program had.
    pub pid: u32,
    /// Directory with the results of the preload library.
    pub directory: tempfile::TempDir,
    /// Why it was killed, if its time was up.
    pub late: Option<String>,
    /// Why it was cut short, if this command received a signal to end.
    pub told: Option<String>,
}

impl Launch<'_> {
    /// Runs the program to its end.
    pub fn run(self) -> Result<Finished> {
        let preload = components::find(components::PRELOAD)?;
        state::make_directory(&self.store.runs())?;
        // The files that every run writes need this much.
        if let Some(free) = state::free_space(&self.store.runs())
            && free < ROOM
        {
            bail!(
                "{} has {free} bytes free, a run needs {ROOM}: make room, or name another --store",
                self.store.runs().display()
            );
        }
        let directory = tempfile::Builder::new()
            .prefix("run")
            .tempdir_in(self.store.runs())
            .with_context(|| format!("cannot write in {}", self.store.runs().display()))?;
        let captures = matches!(self.mode, RunMode::Capture { .. });
        let plan = directory.path().join("plan.json");
        state::write_json(
            &plan,
            &RunPlan {
                version: CAPTURE_VERSION,
                directory: directory.path().to_path_buf(),
                stack_limit: stack_limit(),
                mode: self.mode,
            },
        )?;
        if !self.trace.is_empty() {
            state::write_json(&directory.path().join(TRACE_WANTED), &self.trace)?;
        }
        let mut preloads = preload.into_os_string();
        if let Some(earlier) = std::env::var_os("LD_PRELOAD").filter(|e| !e.is_empty()) {
            preloads.push(":");
            preloads.push(earlier);
        }
        let mut command = Command::new(&self.program.path);
        command
            .arg0(&self.command[0])
            .args(&self.command[1..])
            .env("LD_PRELOAD", preloads)
            .env(ENV_RUN, &plan)
            .envs(self.environment.iter().cloned());
        // A capture needs all addresses of functions resolved. A plugin with an undefined function then fails to load.
        if captures {
            command.env("LD_BIND_NOW", "1");
        }
        match self.output {
            Output::Kept => {}
            Output::ToStderr => {
                command.stdout(std::io::stderr());
            }
            Output::Dropped => {
                command.stdout(Stdio::null()).stderr(Stdio::null());
            }
        }
        if let Some(input) = self.input {
            command.stdin(input);
        }
        prepare(&mut command);
        let hidden = (self.output == Output::Dropped).then(|| running(self.store, self.command));
        let over = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            if let Some(work) = self.beside {
                scope.spawn(|| work(directory.path(), &over));
            }
            let ended = supervise::run(&mut command, &self.command[0], self.timeout);
            over.store(true, Ordering::Relaxed);
            ended
        });
        if let Some(spinner) = hidden {
            spinner.finish_and_clear();
        }
        let ended = ended?;
        Ok(Finished {
            status: ended.status,
            pid: ended.pid,
            directory,
            late: ended.late,
            told: ended.told,
        })
    }
}

/// The progress that is shown while `command` runs without output.
fn running(store: &Store, command: &[String]) -> ProgressBar {
    let shown = print::verbosity() != Verbosity::Quiet && std::io::stderr().is_terminal();
    let expected = shown.then(|| known_seconds(store, command)).flatten();
    progress::run(format!("running {}", command[0]), expected)
}

/// The run time in the store's profile, if it belongs to this command.
fn known_seconds(store: &Store, command: &[String]) -> Option<f64> {
    let profile = state::profile(store).ok()?;
    let here = std::env::current_dir().ok()?;
    (profile.command == command && profile.directory == here).then_some(profile.seconds)
}

/// The stack limit of programs in bytes.
fn stack_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a structure of our own.
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) } != 0;
    (!failed).then_some(limit.rlim_cur)
}

/// Sets fixed addresses and an unlimited stack. If a container refuses either, the run continues without.
pub fn prepare(command: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe system calls are made, on values of this frame.
    unsafe {
        command.pre_exec(|| {
            let now = libc::personality(0xffff_ffff);
            if now >= 0 {
                libc::personality(
                    (now as libc::c_ulong) | libc::ADDR_NO_RANDOMIZE as libc::c_ulong,
                );
            }
            let mut limit = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            if libc::getrlimit(libc::RLIMIT_STACK, &mut limit) == 0 {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(libc::RLIMIT_STACK, &limit);
            }
            Ok(())
        });
    }
}
