//! What memory the arguments of system calls reach.

use crate::engine::memory::Access::{self, Read, Write};
use cere_format::answers::question;

/// Memory that a call's arguments reach: start, length, access by the kernel.
pub type Reach = [(usize, usize, Access); 2];

/// A part that nothing reaches.
const NONE: (usize, usize, Access) = (0, 0, Read);

/// What the arguments reach if the call is a harmless question. None if it is another call.
pub fn find_answers_reach(number: usize, a: [usize; 6]) -> Option<Reach> {
    if let Some(asked) = question(number, a) {
        return Some(asked.writes.map(|(start, length)| (start, length, Write)));
    }
    match number as i64 {
        libc::SYS_sched_getaffinity => Some([(a[2], a[1], Write), NONE]),
        libc::SYS_sched_yield => Some([NONE; 2]),
        _ => None,
    }
}

/// Whether a call may wait.
#[derive(Clone, Copy, PartialEq)]
pub enum Wait {
    /// It does not.
    Never,
    /// It may unless the descriptor in the first argument is ready for these events of poll.
    Until(i16),
    /// It may.
    Perhaps,
}

/// Bytes that a call writes to a descriptor.
pub fn count_written(number: usize, a: [usize; 6]) -> usize {
    match number as i64 {
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => a[2],
        _ => 0,
    }
}

/// What the arguments of a call reach, and whether it may wait. None if unknown.
pub fn find_reach(number: usize, a: [usize; 6]) -> Option<(Reach, Wait)> {
    let reach = find_reach_of_file(number, a)
        .or_else(|| find_reach_of_descriptor(number, a))
        .or_else(|| find_reach_of_process(number, a))
        .or_else(|| find_answers_reach(number, a))?;
    let wait = match number as i64 {
        libc::SYS_read | libc::SYS_pread64 => Wait::Until(libc::POLLIN),
        libc::SYS_write | libc::SYS_pwrite64 => Wait::Until(libc::POLLOUT),
        libc::SYS_open | libc::SYS_creat | libc::SYS_openat => Wait::Perhaps,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Wait::Perhaps,
        _ => Wait::Never,
    };
    Some((reach, wait))
}

/// Calls that name files.
fn find_reach_of_file(number: usize, a: [usize; 6]) -> Option<Reach> {
    let path = |at| (at, libc::PATH_MAX as usize, Read);
    Some(match number as i64 {
        libc::SYS_open
        | libc::SYS_creat
        | libc::SYS_access
        | libc::SYS_unlink
        | libc::SYS_chdir
        | libc::SYS_mkdir
        | libc::SYS_rmdir => [path(a[0]), NONE],
        libc::SYS_openat
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_unlinkat
        | libc::SYS_mkdirat => [path(a[1]), NONE],
        libc::SYS_stat | libc::SYS_lstat => [path(a[0]), (a[1], 144, Write)],
        libc::SYS_newfstatat => [path(a[1]), (a[2], 144, Write)],
        libc::SYS_statx => [path(a[1]), (a[4], 256, Write)],
        libc::SYS_rename => [path(a[0]), path(a[1])],
        libc::SYS_renameat | libc::SYS_renameat2 => [path(a[1]), path(a[3])],
        libc::SYS_readlink => [path(a[0]), (a[1], a[2], Write)],
        libc::SYS_readlinkat => [path(a[1]), (a[2], a[3], Write)],
        _ => return None,
    })
}

/// Calls on open files.
fn find_reach_of_descriptor(number: usize, a: [usize; 6]) -> Option<Reach> {
    let asks = |request: libc::Ioctl| a[1] == request as usize;
    Some(match number as i64 {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_getdents64 => [(a[1], a[2], Write), NONE],
        libc::SYS_write | libc::SYS_pwrite64 => [(a[1], a[2], Read), NONE],
        libc::SYS_fstat => [(a[1], 144, Write), NONE],
        libc::SYS_fstatfs => [(a[1], 120, Write), NONE],
        libc::SYS_ioctl if asks(libc::TCGETS) => [(a[2], 64, Write), NONE],
        libc::SYS_ioctl if asks(libc::TIOCGWINSZ) => [(a[2], 8, Write), NONE],
        libc::SYS_ioctl if asks(libc::FIONREAD) => [(a[2], 4, Write), NONE],
        libc::SYS_fcntl
            if matches!(
                a[1] as i32,
                libc::F_GETFL | libc::F_SETFL | libc::F_GETFD | libc::F_SETFD | libc::F_DUPFD
            ) =>
        {
            [NONE; 2]
        }
        libc::SYS_pipe | libc::SYS_pipe2 => [(a[0], 8, Write), NONE],
        libc::SYS_close
        | libc::SYS_lseek
        | libc::SYS_dup
        | libc::SYS_dup2
        | libc::SYS_dup3
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_ftruncate
        | libc::SYS_fadvise64 => [NONE; 2],
        _ => return None,
    })
}

/// Calls that concern the process: its directory, time, processors, limits and signals.
fn find_reach_of_process(number: usize, a: [usize; 6]) -> Option<Reach> {
    Some(match number as i64 {
        libc::SYS_getcwd | libc::SYS_getrandom => [(a[0], a[1], Write), NONE],
        libc::SYS_futex if a[1] as i32 & 127 == libc::FUTEX_WAKE => [(a[0], 4, Write), NONE],
        libc::SYS_nanosleep => [(a[0], 16, Read), (a[1], 16, Write)],
        libc::SYS_clock_nanosleep => [(a[2], 16, Read), (a[3], 16, Write)],
        libc::SYS_sched_setaffinity => [(a[2], a[1], Read), NONE],
        libc::SYS_setitimer => [(a[1], 32, Read), (a[2], 32, Write)],
        libc::SYS_getitimer => [(a[1], 32, Write), NONE],
        libc::SYS_prlimit64 => [(a[2], 16, Read), (a[3], 16, Write)],
        libc::SYS_umask | libc::SYS_alarm | libc::SYS_kill | libc::SYS_tgkill => [NONE; 2],
        _ => return None,
    })
}
