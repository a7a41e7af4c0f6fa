//! What memory the arguments of system calls reach.

use crate::engine::memory::Access;
use cere_format::answers::question;

/// Memory that a call's arguments reach: start, length, access by the kernel.
pub type Reach = [(usize, usize, Access); 3];

/// What the arguments reach if the call is a harmless question. None if it is another call.
pub fn find_answers_reach(number: usize, a: [usize; 6]) -> Option<Reach> {
    use Access::Write;
    let written = |(start, length)| (start, length, Write);
    const NONE: (usize, usize, Access) = (0, 0, Access::Read);
    if let Some(asked) = question(number, a) {
        let [first, second] = asked.writes.map(written);
        return Some([first, second, NONE]);
    }
    match number as i64 {
        libc::SYS_sched_getaffinity => Some([written((a[2], a[1])), NONE, NONE]),
        libc::SYS_sched_yield => Some([NONE; 3]),
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
    use Access::{Read, Write};
    const NONE: (usize, usize, Access) = (0, 0, Read);
    /// Maximum bytes of a path.
    const PATH: usize = libc::PATH_MAX as usize;
    let (mut reach, mut wait) = ([NONE; 3], Wait::Never);
    match number as i64 {
        libc::SYS_read | libc::SYS_pread64 => {
            reach[0] = (a[1], a[2], Write);
            wait = Wait::Until(libc::POLLIN);
        }
        libc::SYS_write | libc::SYS_pwrite64 => {
            reach[0] = (a[1], a[2], Read);
            wait = Wait::Until(libc::POLLOUT);
        }
        libc::SYS_open | libc::SYS_creat => {
            reach[0] = (a[0], PATH, Read);
            wait = Wait::Perhaps;
        }
        libc::SYS_openat => {
            reach[0] = (a[1], PATH, Read);
            wait = Wait::Perhaps;
        }
        libc::SYS_stat | libc::SYS_lstat => reach = [(a[0], PATH, Read), (a[1], 144, Write), NONE],
        libc::SYS_newfstatat => reach = [(a[1], PATH, Read), (a[2], 144, Write), NONE],
        libc::SYS_statx => reach = [(a[1], PATH, Read), (a[4], 256, Write), NONE],
        libc::SYS_access
        | libc::SYS_unlink
        | libc::SYS_chdir
        | libc::SYS_mkdir
        | libc::SYS_rmdir => reach[0] = (a[0], PATH, Read),
        libc::SYS_faccessat | libc::SYS_faccessat2 | libc::SYS_unlinkat | libc::SYS_mkdirat => {
            reach[0] = (a[1], PATH, Read)
        }
        libc::SYS_rename => reach = [(a[0], PATH, Read), (a[1], PATH, Read), NONE],
        libc::SYS_renameat | libc::SYS_renameat2 => {
            reach = [(a[1], PATH, Read), (a[3], PATH, Read), NONE]
        }
        libc::SYS_readlink => reach = [(a[0], PATH, Read), (a[1], a[2], Write), NONE],
        libc::SYS_readlinkat => reach = [(a[1], PATH, Read), (a[2], a[3], Write), NONE],
        libc::SYS_getcwd | libc::SYS_getrandom => reach[0] = (a[0], a[1], Write),
        libc::SYS_getdents64 => reach[0] = (a[1], a[2], Write),
        libc::SYS_fstat => reach[0] = (a[1], 144, Write),
        libc::SYS_fstatfs => reach[0] = (a[1], 120, Write),
        libc::SYS_ioctl if a[1] == libc::TCGETS as usize => reach[0] = (a[2], 64, Write),
        libc::SYS_ioctl if a[1] == libc::TIOCGWINSZ as usize => reach[0] = (a[2], 8, Write),
        libc::SYS_ioctl if a[1] == libc::FIONREAD as usize => reach[0] = (a[2], 4, Write),
        libc::SYS_fcntl
            if [
                libc::F_GETFL,
                libc::F_SETFL,
                libc::F_GETFD,
                libc::F_SETFD,
                libc::F_DUPFD,
            ]
            .contains(&(a[1] as i32)) => {}
        libc::SYS_futex if a[1] as i32 & 127 == libc::FUTEX_WAKE => reach[0] = (a[0], 4, Write),
        libc::SYS_pipe | libc::SYS_pipe2 => reach[0] = (a[0], 8, Write),
        libc::SYS_nanosleep => {
            reach = [(a[0], 16, Read), (a[1], 16, Write), NONE];
            wait = Wait::Perhaps;
        }
        libc::SYS_clock_nanosleep => {
            reach = [(a[2], 16, Read), (a[3], 16, Write), NONE];
            wait = Wait::Perhaps;
        }
        libc::SYS_sched_setaffinity => reach[0] = (a[2], a[1], Read),
        libc::SYS_setitimer => reach = [(a[1], 32, Read), (a[2], 32, Write), NONE],
        libc::SYS_getitimer => reach[0] = (a[1], 32, Write),
        libc::SYS_prlimit64 => reach = [(a[2], 16, Read), (a[3], 16, Write), NONE],
        libc::SYS_close
        | libc::SYS_lseek
        | libc::SYS_dup
        | libc::SYS_dup2
        | libc::SYS_dup3
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_ftruncate
        | libc::SYS_fadvise64
        | libc::SYS_umask
        | libc::SYS_alarm
        | libc::SYS_kill
        | libc::SYS_tgkill => {}
        _ => reach = find_answers_reach(number, a)?,
    }
    Some((reach, wait))
}
