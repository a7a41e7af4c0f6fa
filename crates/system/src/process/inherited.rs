//! Signals as this command found them: those that its parent left ignored or blocked. Rust's runtime ignores SIGPIPE, and its
//! children get it back as the default, with no signal blocked. A program that is studied gets what it would get without this
//! command: SIGINT ignored behind a shell's `&`, SIGHUP by `nohup`, SIGPIPE and SIGXFSZ by Python.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

const SIGNALS: i32 = 64;

/// Signals that were ignored, and those that were blocked, when this process began.
static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// Before Rust's runtime begins.
#[used]
#[unsafe(link_section = ".init_array")]
static RECORD: extern "C" fn() = record;

/// A disposition as the kernel has it.
#[repr(C)]
#[derive(Default)]
struct Action {
    handler: usize,
    rest: [usize; 3],
}

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

extern "C" fn record() {
    let (mut ignored, mut blocked) = (0u64, 0u64);
    // SAFETY: the kernel's structures, a set of signals being eight bytes. libc's functions leave out the
    // two signals that it uses itself.
    unsafe {
        for signal in 1..=SIGNALS {
            let mut action = Action::default();
            let failed = libc::syscall(libc::SYS_rt_sigaction, signal, 0, &raw mut action, 8) != 0;
            if !failed && action.handler == libc::SIG_IGN {
                ignored |= bit(signal);
            }
        }
        libc::syscall(libc::SYS_rt_sigprocmask, 0, 0, &raw mut blocked, 8);
        // Nobody can wait for children while it is ignored.
        if ignored & bit(libc::SIGCHLD) != 0 {
            let default = Action::default();
            libc::syscall(
                libc::SYS_rt_sigaction,
                libc::SIGCHLD,
                &raw const default,
                0,
                8,
            );
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
    BLOCKED.store(blocked, Ordering::Relaxed);
}

/// Whether the parent of this process left `signal` ignored.
pub fn is_ignored(signal: i32) -> bool {
    IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

/// Has `command` started with the signals that this process was started with.
pub fn pass_on(command: &mut Command) {
    let [ignored, blocked] = [&IGNORED, &BLOCKED].map(|set| set.load(Ordering::Relaxed));
    // SAFETY: system calls alone between fork and exec, on structures of this frame.
    unsafe {
        command.pre_exec(move || {
            for signal in 1..=SIGNALS {
                let mut action = Action::default();
                if ignored & bit(signal) != 0 {
                    action.handler = libc::SIG_IGN;
                }
                // Two signals cannot be set: they are as they always are.
                libc::syscall(libc::SYS_rt_sigaction, signal, &raw const action, 0, 8);
            }
            let set = libc::SIG_SETMASK;
            libc::syscall(libc::SYS_rt_sigprocmask, set, &raw const blocked, 0, 8);
            Ok(())
        });
    }
}
