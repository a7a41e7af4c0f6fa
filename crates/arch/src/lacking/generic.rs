//! System calls where the kernel has its generic table: no `open`, no `fork`.

use crate::numbers;

/// Calls that start a process or a thread.
pub const STARTS: [i64; 2] = [libc::SYS_clone, libc::SYS_clone3];

/// The number of a call that not every architecture has: this one has none of them.
#[must_use]
pub fn own(_name: &str) -> Option<i64> {
    None
}

/// Numbers in packages and on this machine.
const NUMBERS: [(i64, i64); 22] = [
    (numbers::WRITE, libc::SYS_write),
    (numbers::WRITEV, libc::SYS_writev),
    (numbers::SCHED_YIELD, libc::SYS_sched_yield),
    (numbers::MADVISE, libc::SYS_madvise),
    (numbers::RT_SIGPROCMASK, libc::SYS_rt_sigprocmask),
    (numbers::GETPID, libc::SYS_getpid),
    (numbers::UNAME, libc::SYS_uname),
    (numbers::GETTIMEOFDAY, libc::SYS_gettimeofday),
    (numbers::GETRUSAGE, libc::SYS_getrusage),
    (numbers::SYSINFO, libc::SYS_sysinfo),
    (numbers::TIMES, libc::SYS_times),
    (numbers::GETUID, libc::SYS_getuid),
    (numbers::GETGID, libc::SYS_getgid),
    (numbers::GETEUID, libc::SYS_geteuid),
    (numbers::GETEGID, libc::SYS_getegid),
    (numbers::GETPPID, libc::SYS_getppid),
    (numbers::GETTID, libc::SYS_gettid),
    (numbers::FUTEX, libc::SYS_futex),
    (numbers::CLOCK_GETTIME, libc::SYS_clock_gettime),
    (numbers::CLOCK_GETRES, libc::SYS_clock_getres),
    (numbers::GETCPU, libc::SYS_getcpu),
    (numbers::GETRANDOM, libc::SYS_getrandom),
];

/// The number on this machine of the call that packages have under `number`; none if it is not one of [`numbers`], or not here.
#[must_use]
pub fn native(number: i64) -> Option<i64> {
    NUMBERS.iter().find(|n| n.0 == number).map(|n| n.1)
}

/// The number in packages of a call of this machine; none if it is not one of [`numbers`].
#[must_use]
pub fn packaged(number: i64) -> Option<i64> {
    NUMBERS.iter().find(|n| n.1 == number).map(|n| n.0)
}
