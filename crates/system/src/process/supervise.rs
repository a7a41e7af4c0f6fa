//! Runs a command in a process group of its own: to its end, to a time limit, or until this command is told to end. Who
//! stops it at the terminal stops this command as well.

use crate::console::detail;
use crate::process::inherited;
use crate::process::wait::End;
use anyhow::{Context, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The status that a shell would report.
pub fn shell_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128 + signal.unwrap_or(0) as u8,
    }
}

/// A status of [`shell_code`] in words: `3`, or `139 (signal: 11 (SIGSEGV))`.
pub fn described(code: u8) -> String {
    match code.checked_sub(128) {
        Some(signal @ 1..=64) => format!("{code} ({})", ExitStatus::from_raw(signal.into())),
        _ => code.to_string(),
    }
}

/// Held by the thread that supervises: signals, and what their handler needs, are the process's.
static ONE: Mutex<()> = Mutex::new(());
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

/// Signals to end or stop this command go to a group of processes as well, as long as this lives.
struct Passing {
    /// What was in force before, by signal.
    before: Vec<(i32, libc::sighandler_t)>,
    _one: MutexGuard<'static, ()>,
}

impl Passing {
    fn to(group: i32, one: MutexGuard<'static, ()>) -> Self {
        TOLD.store(0, Ordering::Relaxed);
        CHILD.store(group, Ordering::Relaxed);
        let handler = pass_on as extern "C" fn(i32) as libc::sighandler_t;
        let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGTSTP].into_iter();
        // What this command's parent had ignored stays ignored.
        let signals = signals.filter(|signal| !inherited::is_ignored(*signal));
        // SAFETY: the handler makes one async-signal-safe call.
        let before = signals.map(|signal| (signal, unsafe { libc::signal(signal, handler) }));
        Self {
            before: before.collect(),
            _one: one,
        }
    }

    /// The group has ended: its number may be another's.
    fn gone(&self) {
        CHILD.store(0, Ordering::Relaxed);
    }

    /// The last signal to end.
    fn told(&self) -> Option<i32> {
        Some(TOLD.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.gone();
        for (signal, before) in &self.before {
            // SAFETY: what was in force before.
            unsafe { libc::signal(*signal, *before) };
        }
    }
}

/// How a supervised command ended.
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// The process id that it had.
    pub pid: u32,
    /// From just before it was started to its end, without the time for which the terminal had it stopped.
    pub seconds: f64,
    /// Why it was killed, if its time was up.
    pub late: Option<String>,
    /// Why what it did is not all that it would have done, if this command was told to end meanwhile.
    pub told: Option<String>,
}

/// Runs `command`. `shown` names it in errors; `timeout` is in seconds, in which the terminal does not have it stopped.
pub fn run(command: &mut Command, shown: &str, timeout: Option<f64>) -> Result<Ended> {
    // SAFETY: between fork and exec one system call without pointers.
    unsafe {
        // A command that is killed takes what it started with it.
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    inherited::pass_on(command);
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    detail!("runs {}", line(command));
    let changes = Changes::watch().with_context(|| format!("cannot watch {shown}"))?;
    let mut started = Instant::now();
    let child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {shown}"))?;
    let end = End::of(&child).with_context(|| format!("cannot watch {shown}"))?;
    let group = child.id() as i32;
    let passing = Passing::to(group, one);
    let mut terminal = Terminal::lend(group);
    let mut late = None;
    let (status, seconds) = loop {
        let left = timeout
            .filter(|_| late.is_none())
            .map(|limit| Duration::try_from_secs_f64(limit).unwrap_or(Duration::MAX))
            .map(|limit| limit.saturating_sub(started.elapsed()));
        end.wait(Some(changes.file()), left)
            .with_context(|| format!("cannot wait for {shown}"))?;
        let woken = Instant::now();
        changes.seen();
        match wait(group)? {
            Some(status) if status.stopped_signal().is_none() => {
                break (status, (woken - started).as_secs_f64());
            }
            // Who sent SIGSTOP wants to have it go on by itself.
            Some(status) if status.stopped_signal() != Some(libc::SIGSTOP) => {
                drop(terminal);
                stop();
                terminal = Terminal::lend(group);
                send(group, libc::SIGCONT);
                started += woken.elapsed();
            }
            Some(_) | None => {}
        }
        if let (Some(limit), Some(left)) = (timeout, left)
            && left.is_zero()
        {
            send(group, libc::SIGKILL);
            late = Some(format!(
                "{shown} did not end within the --timeout of {limit} s and was killed"
            ));
        }
    };
    passing.gone();
    drop(terminal);
    detail!("{shown} ended after {seconds:.3} s: {status}");
    Ok(Ended {
        status,
        pid: group as u32,
        seconds,
        late,
        told: passing
            .told()
            .map(|signal| format!("ended by signal {signal}, which came while {shown} ran")),
    })
}

/// The program and its arguments, for people.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
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

/// Tells when a child of this command ended, stopped or went on: by SIGCHLD, which the handler counts in a file that can be
/// waited for. An end alone has one already (`End`), a stop has none.
struct Changes {
    file: OwnedFd,
    before: libc::sighandler_t,
}

/// The file of the one [`Changes`] that there is; -1: none.
static CHANGES: AtomicI32 = AtomicI32::new(-1);

extern "C" fn count_change(_: i32) {
    let one = 1u64;
    // SAFETY: write is async-signal-safe and reads one word of this frame; errno is what it was for whoever was interrupted.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(CHANGES.load(Ordering::Relaxed), (&raw const one).cast(), 8);
        *errno = before;
    }
}

impl Changes {
    fn watch() -> std::io::Result<Self> {
        // SAFETY: takes no pointers.
        let file = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if file < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: it was opened just now, and nobody else has it.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        CHANGES.store(file.as_raw_fd(), Ordering::Relaxed);
        let handler = count_change as extern "C" fn(i32) as libc::sighandler_t;
        // SAFETY: the handler makes async-signal-safe calls alone.
        let before = unsafe { libc::signal(libc::SIGCHLD, handler) };
        Ok(Self { file, before })
    }

    /// Can be read when something changed since it was [`seen`](Self::seen).
    fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn seen(&self) {
        let mut count = 0u64;
        // SAFETY: writes to one word of this frame; there may be nothing to read.
        unsafe { libc::read(self.file.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        // SAFETY: what was in force before.
        unsafe { libc::signal(libc::SIGCHLD, self.before) };
        CHANGES.store(-1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// One command is supervised at a time.
    static ONE: Mutex<()> = Mutex::new(());

    fn shell(script: &str, timeout: Option<f64>) -> (Ended, u64) {
        let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let before = cere_timing::clock::usage();
        let ended = run(Command::new("sh").args(["-c", script]), "sh", timeout).expect("it runs");
        (ended, cere_timing::clock::usage().since(before).switches)
    }

    /// Who looks every 10 ms whether a command of a second has ended leaves the processor a hundred times.
    #[test]
    fn the_end_is_waited_for_and_not_looked_for() {
        for timeout in [None, Some(600.0)] {
            let (ended, switches) = shell("sleep 1; exit 3", timeout);
            assert_eq!(ended.status.code(), Some(3));
            assert!(ended.seconds >= 1.0, "{}", ended.seconds);
            assert!(switches < 50, "left the processor {switches} times");
        }
    }

    /// Runs itself under a shell that ignores three signals, Rust's own SIGPIPE among them.
    #[test]
    fn ignored_signals_are_passed_on() {
        const INNER: &str = "CERE_TEST_IGNORED";
        let name = "supervise::tests::ignored_signals_are_passed_on";
        if std::env::var_os(INNER).is_none() {
            let own = std::env::current_exe().expect("a path");
            let script = "trap '' HUP PIPE XFSZ; exec \"$0\" --exact \"$1\"";
            let mut outer = Command::new("sh");
            outer
                .args(["-c", script])
                .arg(own)
                .arg(name)
                .env(INNER, "1");
            let output = outer.output().expect("it runs");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stdout)
            );
            return;
        }
        let script = "set -- $(grep SigIgn: /proc/self/status); test $((0x$2 & 0x1001001)) = $((0x1001001)) && \
                      kill -HUP $PPID && exit 7; echo $2; exit 1";
        let (ended, _) = shell(script, None);
        assert_eq!((ended.status.code(), ended.told), (Some(7), None));
    }

    #[test]
    fn a_command_that_others_stop_goes_on_when_they_say() {
        let (ended, _) = shell("(sleep 0.2; kill -CONT $$) & kill -STOP $$; exit 4", None);
        assert_eq!((ended.status.code(), ended.late), (Some(4), None));
    }

    #[test]
    fn a_command_whose_time_is_up_is_killed_while_it_is_stopped_too() {
        for script in ["sleep 600", "kill -STOP $$"] {
            let (ended, _) = shell(script, Some(0.2));
            assert_eq!(ended.status.signal(), Some(libc::SIGKILL), "{script}");
            assert!(
                ended
                    .late
                    .is_some_and(|why| why.contains("--timeout of 0.2 s"))
            );
        }
    }
}
