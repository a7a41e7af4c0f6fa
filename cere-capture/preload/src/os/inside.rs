//! System calls in which other threads are when memory is closed. The kernel would find the addresses closed, and the call
//! would fail. Later calls are held until memory is open again ([`crate::engine::gate::await_calls`]). What becomes of threads
//! that rest in a call beside a captured invocation: [`super::resting`].

use super::files::{self, FileError};
use super::{names, sys};
use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::time::Duration;

/// Nanoseconds on a processor after which a running thread counts as computing: no call takes that long to return or to come
/// to rest.
const RUNS: u64 = 10_000_000;
/// Milliseconds after which it counts as computing where its time on a processor is not known.
const ROUNDS: u32 = 10;
/// Milliseconds after which it counts as computing in any case.
const MOST_ROUNDS: u32 = 1000;

/// Calls that reach memory through what their arguments point to, or through what the process set up before.
const NESTED: [i64; 18] = [
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendmmsg,
    libc::SYS_vmsplice,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_io_submit,
    libc::SYS_io_uring_enter,
    libc::SYS_ioctl,
    libc::SYS_ptrace,
    libc::SYS_restart_syscall,
];

/// Calls in which threads rest, and which of their arguments, the first being 1, lead to memory that they still touch
/// then. Other registers hold anything.
const KNOWN: [(i64, &[usize]); 34] = [
    (libc::SYS_read, &[2]),
    (libc::SYS_write, &[2]),
    (libc::SYS_pread64, &[2]),
    (libc::SYS_pwrite64, &[2]),
    (libc::SYS_recvfrom, &[2, 5, 6]),
    (libc::SYS_sendto, &[2]),
    (libc::SYS_accept, &[2, 3]),
    (libc::SYS_accept4, &[2, 3]),
    (libc::SYS_connect, &[]),
    (libc::SYS_open, &[]),
    (libc::SYS_openat, &[]),
    (libc::SYS_close, &[]),
    (libc::SYS_fsync, &[]),
    (libc::SYS_fdatasync, &[]),
    (libc::SYS_flock, &[]),
    (libc::SYS_fcntl, &[3]),
    (libc::SYS_poll, &[1]),
    (libc::SYS_ppoll, &[1, 3]),
    (libc::SYS_select, &[2, 3, 4, 5]),
    (libc::SYS_pselect6, &[2, 3, 4, 5]),
    (libc::SYS_epoll_wait, &[2]),
    (libc::SYS_epoll_pwait, &[2]),
    (libc::SYS_epoll_pwait2, &[2]),
    (libc::SYS_wait4, &[2, 4]),
    (libc::SYS_waitid, &[3, 5]),
    (libc::SYS_nanosleep, &[2]),
    (libc::SYS_clock_nanosleep, &[4]),
    (libc::SYS_pause, &[]),
    (libc::SYS_rt_sigsuspend, &[]),
    (libc::SYS_rt_sigtimedwait, &[2]),
    (libc::SYS_semop, &[]),
    (libc::SYS_semtimedop, &[]),
    (libc::SYS_msgrcv, &[2]),
    (libc::SYS_sched_yield, &[]),
];

/// Why memory cannot be closed during the call in which another thread is.
#[derive(Debug)]
pub enum Obstacle {
    /// The kernel does not report the call.
    Unknown(FileError),
    /// It reaches memory that would be closed: the call's number.
    Reaches(usize),
}

impl Display for Obstacle {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Obstacle::Unknown(e) => {
                write!(f, "the kernel does not report what other threads do: {e}")
            }
            Obstacle::Reaches(number) => write!(
                f,
                "another thread is inside {}, which reaches memory that a capture closes",
                names::name_call(*number)
            ),
        }
    }
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It runs or waits for a processor, inside a call or not.
    Runs,
    /// It rests outside of calls, for a page.
    Waits,
    /// It rests in this call.
    Rests(Call),
    /// It has ended.
    Ended,
}

/// A system call in which a thread rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: usize,
    /// Its arguments.
    pub arguments: [usize; 6],
    /// The stack pointer.
    pub stack: usize,
    /// Where the program goes on.
    pub next: usize,
}

fn parse_doing(text: &str) -> Doing {
    let mut words = text.split_ascii_whitespace();
    let number = match words.next() {
        Some("-1") => return Doing::Waits,
        Some(word) => word.parse().ok(),
        None => None,
    };
    let Some(number) = number else {
        return Doing::Runs;
    };
    let mut values = [0; 8];
    for value in &mut values {
        let word = words.next().and_then(|w| w.strip_prefix("0x"));
        let found = word.and_then(|w| usize::from_str_radix(w, 16).ok());
        *value = found.unwrap_or(0);
    }
    let [a, b, c, d, e, f, stack, next] = values;
    Doing::Rests(Call {
        number,
        arguments: [a, b, c, d, e, f],
        stack,
        next,
    })
}

/// What the thread `id` does.
pub fn read_doing(id: i32) -> Result<Doing, Obstacle> {
    let path = format!("/proc/self/task/{id}/syscall");
    // The helper may not be allowed to look at another process, nor this one to open files.
    let text = std::fs::read_to_string(&path).or_else(|e| match e.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => Err(e),
        _ => files::read_text(files::of_process(&format!("task/{id}/syscall"))),
    });
    match text {
        Ok(text) => Ok(parse_doing(&text)),
        Err(e) if [Some(libc::ESRCH), Some(libc::ENOENT)].contains(&e.raw_os_error()) => {
            Ok(Doing::Ended)
        }
        Err(e) => Err(Obstacle::Unknown(files::failed("read", Path::new(&path))(
            e,
        ))),
    }
}

/// Nanoseconds that a thread has been on a processor.
pub fn time_on_processor(id: i32) -> Option<u64> {
    // The kernel's clock of this thread.
    let clock = !(id as usize) << 3 | 6;
    let mut time = [0u64; 2];
    let arguments = [clock, time.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes the two words.
    let result = unsafe { sys::call(libc::SYS_clock_gettime, arguments) };
    (result == 0).then(|| time[0] * 1_000_000_000 + time[1])
}

/// What the thread `id` does, if memory can be closed meanwhile. `closed` says whether an address would be closed.
pub fn find_doing(id: i32, closed: &dyn Fn(usize) -> bool) -> Result<Doing, Obstacle> {
    let doing = read_doing(id)?;
    match doing {
        Doing::Rests(call) if reaches_closed(call.number, &call.arguments, closed) => {
            Err(Obstacle::Reaches(call.number))
        }
        doing => Ok(doing),
    }
}

/// Whether a call in which a thread rests touches closed memory before it returns.
pub fn reaches_closed(number: usize, a: &[usize; 6], closed: &dyn Fn(usize) -> bool) -> bool {
    match number as i64 {
        // It has read its word and writes nothing.
        libc::SYS_futex => {
            let operation = a[1] as i32 & 127;
            ![libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET].contains(&operation) && closed(a[0])
        }
        number if NESTED.contains(&number) => true,
        number => match KNOWN.iter().find(|known| known.0 == number) {
            Some((_, places)) => places.iter().any(|place| closed(a[place - 1])),
            None => a.iter().any(|at| closed(*at)),
        },
    }
}

/// Waits until the threads `ids` rest or count as computing. `closed` says whether an address would be closed.
pub fn await_rest(ids: Vec<i32>, closed: &dyn Fn(usize) -> bool) -> Result<(), Obstacle> {
    let running = ids.into_iter().map(|id| (id, time_on_processor(id)));
    let mut running: Vec<(i32, Option<u64>)> = running.collect();
    for round in 0..MOST_ROUNDS {
        if round > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut still = Vec::new();
        for (id, began) in running {
            if ![Doing::Runs, Doing::Waits].contains(&find_doing(id, closed)?) {
                continue;
            }
            let long = match (began, time_on_processor(id)) {
                (Some(began), Some(now)) => now.saturating_sub(began) >= RUNS,
                _ => round >= ROUNDS,
            };
            if !long {
                still.push((id, began));
            }
        }
        running = still;
        if running.is_empty() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_is_at() {
        assert_eq!(parse_doing("running\n"), Doing::Runs);
        assert_eq!(parse_doing("-1 0x7ffd 0x401000\n"), Doing::Waits);
        let read = "0 0x3 0x5000 0x1000 0x0 0x0 0x0 0x7ffd 0x7f00\n";
        let call = Call {
            number: 0,
            arguments: [3, 0x5000, 0x1000, 0, 0, 0],
            stack: 0x7ffd,
            next: 0x7f00,
        };
        assert_eq!(parse_doing(read), Doing::Rests(call));
    }

    #[test]
    fn calls_that_reach_closed_memory() {
        let closed = |at: usize| at == 0x5000;
        let reaches = |number: i64, a: [usize; 6]| reaches_closed(number as usize, &a, &closed);
        assert!(reaches(libc::SYS_read, [3, 0x5000, 9, 0, 0, 0]));
        assert!(!reaches(libc::SYS_read, [3, 0x6000, 9, 0, 0x5000, 0]));
        assert!(reaches(libc::SYS_getdents64, [3, 0x5000, 9, 0, 0, 0]));
        let wait = libc::FUTEX_WAIT as usize | 128;
        assert!(!reaches(libc::SYS_futex, [0x5000, wait, 0, 0, 0, 0]));
        assert!(!reaches(libc::SYS_nanosleep, [0x5000, 0, 0, 0, 0, 0]));
        assert!(reaches(libc::SYS_nanosleep, [0, 0x5000, 0, 0, 0, 0]));
        assert!(reaches(libc::SYS_readv, [3, 0x6000, 1, 0, 0, 0]));
    }
}
