//! Runs a command in a process group of its own: to its end, to a time limit, or until this command is told to end. Who
//! stops it at the terminal stops this command as well.

use anyhow::{Context, Result};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// The status that a shell would report.
pub fn shell_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128 + signal.unwrap_or(0) as u8,
    }
}

static CHILD: AtomicI32 = AtomicI32::new(0);
/// The last signal to end that was passed on.
static TOLD: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: i32) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        send(child, signal);
    }
    if signal != libc::SIGTSTP {
        TOLD.store(signal, Ordering::Relaxed);
    }
}

/// Sends `signal` to a process group that was started here and not waited for yet.
fn send(group: i32, signal: i32) {
    // SAFETY: kill is async-signal-safe and takes no pointers.
    unsafe { libc::kill(-group, signal) };
}

/// How a supervised command ended.
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// The process id that it had.
    pub pid: u32,
    /// Why it was killed, if its time was up.
    pub late: Option<String>,
    /// Why what it did is not all that it would have done, if this command was told to end meanwhile.
    pub told: Option<String>,
}

/// Runs `command`. `shown` names it in errors; `timeout` is in seconds, in which it is not stopped.
pub fn run(command: &mut Command, shown: &str, timeout: Option<f64>) -> Result<Ended> {
    // SAFETY: between fork and exec one system call without pointers.
    unsafe {
        // A command that is killed takes what it started with it.
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {shown}"))?;
    let group = child.id() as i32;
    TOLD.store(0, Ordering::Relaxed);
    CHILD.store(group, Ordering::Relaxed);
    let handler = pass_on as extern "C" fn(i32) as libc::sighandler_t;
    let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGTSTP];
    // SAFETY: the handler makes one async-signal-safe call.
    let before = signals.map(|signal| unsafe { libc::signal(signal, handler) });
    let mut terminal = Terminal::lend(group);
    let mut started = Instant::now();
    let mut late = None;
    let status = loop {
        let limit = timeout.filter(|_| late.is_none());
        match wait(group)? {
            Some(status) if status.stopped_signal().is_none() => break status,
            Some(status) => {
                let stopped = Instant::now();
                if status.stopped_signal() != Some(libc::SIGSTOP) {
                    drop(terminal);
                    stop();
                    terminal = Terminal::lend(group);
                    send(group, libc::SIGCONT);
                }
                started += stopped.elapsed();
            }
            None => {
                if let Some(limit) = limit
                    && started.elapsed().as_secs_f64() > limit
                {
                    send(group, libc::SIGKILL);
                    late = Some(format!(
                        "{shown} did not end within the --timeout of {limit} s and was killed"
                    ));
                }
                let young = started.elapsed() < Duration::from_millis(100);
                std::thread::sleep(Duration::from_millis(if young { 1 } else { 10 }));
            }
        }
    };
    CHILD.store(0, Ordering::Relaxed);
    drop(terminal);
    for (signal, before) in signals.into_iter().zip(before) {
        // SAFETY: what was in force before.
        unsafe { libc::signal(signal, before) };
    }
    Ok(Ended {
        status,
        pid: group as u32,
        late,
        told: match TOLD.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(format!(
                "ended by signal {signal}, which came while {shown} ran"
            )),
        },
    })
}

/// What became of the child since the last time, if anything: it ended, or it was stopped.
fn wait(child: i32) -> std::io::Result<Option<ExitStatus>> {
    let mut status = 0;
    // SAFETY: the status is written to a word of this frame.
    match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG | libc::WUNTRACED) } {
        0 => Ok(None),
        found if found == child => Ok(Some(ExitStatus::from_raw(status))),
        _ => match std::io::Error::last_os_error() {
            error if error.kind() == std::io::ErrorKind::Interrupted => Ok(None),
            error => Err(error),
        },
    }
}

/// Stops this command, with what stands beside it in a pipeline, until the shell has it go on. Does nothing where no
/// shell would.
fn stop() {
    // SAFETY: these calls take no pointers. No other thread takes the signal, so it has been taken on return.
    unsafe {
        let passed_on = libc::signal(libc::SIGTSTP, libc::SIG_DFL);
        libc::kill(0, libc::SIGTSTP);
        libc::signal(libc::SIGTSTP, passed_on);
    }
}

/// The controlling terminal, lent to the command's group so that it may read; taken back when dropped.
struct Terminal(Option<i32>);

impl Terminal {
    fn lend(group: i32) -> Self {
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
