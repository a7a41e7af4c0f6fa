//! Runs a command in a process group of its own: to its end, to a time limit, or until this command is told to end.

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

extern "C" fn pass_on(signal: i32) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: kill is async-signal-safe and takes no pointers; the group is the one started here.
        unsafe { libc::kill(-child, signal) };
    }
}

/// How a supervised command ended.
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// The process id that it had.
    pub pid: u32,
    /// Why it was killed, if its time was up.
    pub late: Option<String>,
}

/// Runs `command`. `shown` names it in errors; `timeout` is in seconds.
pub fn run(command: &mut Command, shown: &str, timeout: Option<f64>) -> Result<Ended> {
    // SAFETY: between fork and exec one system call without pointers.
    unsafe {
        // A command that is killed takes what it started with it.
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let mut child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {shown}"))?;
    let group = child.id() as i32;
    CHILD.store(group, Ordering::Relaxed);
    let handler = pass_on as extern "C" fn(i32) as libc::sighandler_t;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler makes one async-signal-safe call.
        unsafe { libc::signal(signal, handler) };
    }
    let terminal = Terminal::give(group);
    let started = Instant::now();
    let mut late = None;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if let Some(limit) = timeout
            && started.elapsed().as_secs_f64() > limit
        {
            // SAFETY: no pointers; the group is the child's own, which was not waited for yet.
            unsafe { libc::kill(-group, libc::SIGKILL) };
            late = Some(format!(
                "{shown} did not end within the --timeout of {limit} s and was killed"
            ));
            break child.wait()?;
        }
        let young = started.elapsed() < Duration::from_millis(100);
        std::thread::sleep(Duration::from_millis(if young { 1 } else { 10 }));
    };
    drop(terminal);
    CHILD.store(0, Ordering::Relaxed);
    Ok(Ended {
        status,
        pid: group as u32,
        late,
    })
}

/// The controlling terminal, lent to the command's group so that it may read; taken back when dropped.
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
