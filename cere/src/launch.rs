//! Runs an instrumented program under the preload library.

use crate::image::Program;
use crate::{components, state};
use anyhow::{Context, Result, bail};
use cere_format::capture::{CAPTURE_VERSION, ENV_RUN, RunMode, RunPlan};
use cere_format::store::Store;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Where the program's stdout goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Where this command's stdout goes.
    Kept,
    /// To stderr: stdout is for the report.
    ToStderr,
    /// Nowhere, stderr neither: the program runs a second time for its output.
    Dropped,
}

/// What a run is to do.
pub struct Launch<'a> {
    /// Store that the results are for.
    pub store: &'a Store,
    /// The program.
    pub program: &'a Program,
    /// Program and arguments as given.
    pub command: &'a [String],
    /// Profile or capture.
    pub mode: RunMode,
    /// End it after this many seconds.
    pub timeout: Option<f64>,
    /// Where its output goes.
    pub output: Output,
    /// What it reads instead of this command's stdin.
    pub input: Option<File>,
}

/// How a run ended, and the directory with its results, which goes when this is dropped.
pub struct Finished {
    /// The program's exit status.
    pub status: ExitStatus,
    /// Process id that the program had.
    pub pid: u32,
    /// Results of the preload library.
    pub directory: tempfile::TempDir,
}

/// The status that a shell would report.
pub fn shell_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128 + signal.unwrap_or(0) as u8,
    }
}

static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: i32) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: kill is async-signal-safe and takes no pointers; the group is the one started here.
        unsafe { libc::kill(-child, signal) };
    }
}

impl Launch<'_> {
    /// Runs it to its end.
    pub fn run(self) -> Result<Finished> {
        let preload = components::find(components::PRELOAD)?;
        state::make_directory(&self.store.runs())?;
        let directory = tempfile::Builder::new()
            .prefix("run")
            .tempdir_in(self.store.runs())
            .with_context(|| format!("cannot write in {}", self.store.runs().display()))?;
        let plan = directory.path().join("plan.json");
        state::write_json(
            &plan,
            &RunPlan {
                version: CAPTURE_VERSION,
                directory: directory.path().to_path_buf(),
                mode: self.mode,
            },
        )?;
        let preloads = match std::env::var("LD_PRELOAD") {
            Ok(earlier) if !earlier.is_empty() => format!("{}:{earlier}", preload.display()),
            _ => preload.display().to_string(),
        };
        let mut command = Command::new(&self.program.path);
        command
            .arg0(&self.command[0])
            .args(&self.command[1..])
            .env("LD_PRELOAD", preloads)
            .env("LD_BIND_NOW", "1")
            .env(ENV_RUN, &plan);
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
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.path.display()))?;
        let group = child.id() as i32;
        CHILD.store(group, Ordering::Relaxed);
        let handler = pass_on as extern "C" fn(i32) as libc::sighandler_t;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: the handler makes one async-signal-safe call.
            unsafe { libc::signal(signal, handler) };
        }
        let terminal = Terminal::give(group);
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if let Some(limit) = self.timeout
                && started.elapsed().as_secs_f64() > limit
            {
                // SAFETY: no pointers; the group is the child's own, which was not waited for yet.
                unsafe { libc::kill(-group, libc::SIGKILL) };
                child.wait()?;
                CHILD.store(0, Ordering::Relaxed);
                drop(terminal);
                bail!(
                    "{} did not end within the --timeout of {limit} s and was killed",
                    self.command[0]
                );
            }
            let young = started.elapsed() < Duration::from_millis(100);
            std::thread::sleep(Duration::from_millis(if young { 1 } else { 10 }));
        };
        drop(terminal);
        CHILD.store(0, Ordering::Relaxed);
        Ok(Finished {
            status,
            pid: group as u32,
            directory,
        })
    }
}

/// A process group of its own, fixed addresses, all the stack there may be. A container may refuse any of
/// these; the run then goes on with what it gets.
fn prepare(command: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe system calls are made, on values of this frame.
    unsafe {
        command.pre_exec(|| {
            libc::setpgid(0, 0);
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

/// The controlling terminal, lent to the program's group so that it may read; taken back when dropped.
struct Terminal(Option<i32>);

impl Terminal {
    fn give(group: i32) -> Self {
        // SAFETY: these calls take no pointers; SIGTTOU is ignored so that the terminal can be taken back.
        unsafe {
            let before = libc::tcgetpgrp(0);
            if before < 0 || before != libc::getpgrp() {
                return Self(None);
            }
            libc::signal(libc::SIGTTOU, libc::SIG_IGN);
            libc::tcsetpgrp(0, group);
            Self(Some(before))
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // SAFETY: takes no pointers.
            unsafe { libc::tcsetpgrp(0, group) };
        }
    }
}
