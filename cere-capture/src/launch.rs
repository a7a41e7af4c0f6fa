//! Runs an instrumented program under the preload library.

use crate::energy::Metered;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::capture::{CAPTURE_VERSION, ENV_RUN, RunMode, RunPlan};
use cere_format::profile_raw::TRACE_WANTED;
use cere_format::store::Store;
use cere_store::build::image::Program;
use cere_store::build::start::{Start, Started};
use cere_store::{components, state};
use cere_system::events::Events;
use cere_system::process::supervise;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
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
    /// Another build of it that runs in its place.
    pub build: Option<&'a Path>,
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
    /// Measures its energy.
    pub energy: Option<&'a Metered>,
    /// Told that it runs, if its output goes nowhere.
    pub events: &'a Events,
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
    pub fn run(mut self) -> Result<Finished> {
        let directory = self.make_directory()?;
        let mut started = self.command()?;
        let command = &mut started.command;
        command.env(ENV_RUN, self.write_plan(directory.path())?);
        let hidden = (self.output == Output::Dropped).then(|| {
            let expected = known_seconds(self.store, self.command);
            let what = format!("running {}", self.command[0]);
            self.events.run(what, expected)
        });
        let over = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            if let Some(work) = self.beside {
                scope.spawn(|| work(directory.path(), &over));
            }
            let mut run = || supervise::run(command, &self.command[0], self.timeout);
            let ended = match self.energy {
                Some(energy) => energy.around(run),
                None => run(),
            };
            over.store(true, Ordering::Relaxed);
            ended
        });
        drop(hidden);
        let ended = ended?;
        started.check(ended.status)?;
        Ok(Finished {
            status: ended.status,
            pid: ended.pid,
            directory,
            late: ended.late,
            told: ended.told,
        })
    }

    /// A directory for the results, where there is room for them.
    fn make_directory(&self) -> Result<tempfile::TempDir> {
        let runs = self.store.runs();
        state::make_directory(&runs)?;
        // The files that every run writes need this much.
        if let Some(free) = state::free_space(&runs)
            && free < ROOM
        {
            bail!(
                E2010,
                "{} has {free} bytes free, a run needs {ROOM}: make room, or name another --store",
                runs.display()
            );
        }
        let directory = tempfile::Builder::new().prefix("run").tempdir_in(&runs);
        directory.with_context(|| format!("cannot write in {}", runs.display()))
    }

    /// Writes what the preload library is to do into `directory`; the plan's file.
    fn write_plan(&self, directory: &Path) -> Result<PathBuf> {
        let file = directory.join("plan.json");
        let plan = RunPlan {
            version: CAPTURE_VERSION,
            directory: directory.to_path_buf(),
            stack_limit: stack_limit(),
            launched: !self.program.is_direct(),
            mode: self.mode.clone(),
        };
        state::write_json(&file, &plan)?;
        if !self.trace.is_empty() {
            state::write_json(&directory.join(TRACE_WANTED), &self.trace)?;
        }
        Ok(file)
    }

    /// The program's command, with the preload library.
    fn command(&mut self) -> Result<Started> {
        let mut started = Start {
            program: self.program,
            words: self.command,
            library: Some(components::find(components::PRELOAD)?),
            library_of_build: false,
            build: self.build,
            rank: None,
            apart: false,
        }
        .command(self.store)?;
        let command = &mut started.command;
        command.envs(self.environment.iter().cloned());
        // A capture needs all addresses of functions resolved. A plugin with an undefined function then fails to load, as those of
        // launchers may: the program sees to that itself there.
        if matches!(self.mode, RunMode::Capture { .. }) && self.program.is_direct() {
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
        if let Some(input) = self.input.take() {
            command.stdin(input);
        }
        prepare(command);
        Ok(started)
    }
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
