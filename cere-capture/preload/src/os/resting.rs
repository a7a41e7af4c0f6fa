//! What becomes of a thread that rests in a system call while an invocation is captured.
//!
//! Most calls can be interrupted and made again, without the program noticing: the thread then stands still like one that
//! computes, and nothing can wake it meanwhile. The others are left alone: the memory that they reach stays open.

use super::inside::{Call, Obstacle, reaches_closed};
use super::sys;

/// Milliseconds of a time limit up to which it may begin anew.
const SHORT: u64 = 1000;

/// What is done with a thread that rests.
#[derive(Debug, PartialEq, Eq)]
pub enum Rest {
    /// It is interrupted, and makes the call again later.
    Interrupted,
    /// It rests on. The kernel reaches these [start, end) when it goes on.
    Left(Vec<(usize, usize)>),
}

/// How many bytes a call reaches at an address.
#[derive(Clone, Copy)]
enum Size {
    Bytes(usize),
    /// As many as this argument, the first being 1, says.
    Argument(usize),
    /// The argument's value times so many.
    Times(usize, usize),
}
use Size::{Argument, Bytes, Times};

/// Which argument, the first being 1, leads to memory, and how much.
type Reach = (usize, Size);

/// Calls that are not made again, or not always, and what they reach.
const LEFT: [(i64, &[Reach]); 13] = [
    (libc::SYS_write, &[(2, Argument(3))]),
    (libc::SYS_pwrite64, &[(2, Argument(3))]),
    (libc::SYS_sendto, &[(2, Argument(3)), (5, Argument(6))]),
    (libc::SYS_connect, &[]),
    (libc::SYS_close, &[]),
    (libc::SYS_poll, &[(1, Times(2, size_of::<libc::pollfd>()))]),
    (libc::SYS_epoll_wait, &[(2, Times(3, 12))]),
    (libc::SYS_epoll_pwait, &[(2, Times(3, 12))]),
    (libc::SYS_nanosleep, &[(2, Bytes(16))]),
    (libc::SYS_clock_nanosleep, &[(4, Bytes(16))]),
    (libc::SYS_rt_sigtimedwait, &[(2, Bytes(128))]),
    (libc::SYS_semtimedop, &[]),
    (libc::SYS_futex, &[]),
];

/// Calls that may have done a part of their work when they are interrupted, or that go on without their thread.
const PARTIAL: [i64; 16] = [
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_vmsplice,
    libc::SYS_tee,
    libc::SYS_connect,
    libc::SYS_close,
    libc::SYS_io_uring_enter,
    // Which call it is the kernel alone knows.
    libc::SYS_restart_syscall,
];

/// What is done with a thread that rests in this call. Memory is open; `closed` says whether an address would be closed.
pub fn choose(call: &Call, closed: &dyn Fn(usize) -> bool) -> Result<Rest, Obstacle> {
    let (number, a) = (call.number as i64, &call.arguments);
    // It would have received a part.
    let parts = libc::MSG_WAITALL as usize;
    let partial = PARTIAL.contains(&number)
        || number == libc::SYS_recvfrom && a[3] & parts != 0
        || number == libc::SYS_recvmsg && a[2] & parts != 0;
    if !partial && find_limit(number, a).is_none_or(|limit| limit <= SHORT) {
        return Ok(Rest::Interrupted);
    }
    match LEFT.iter().find(|known| known.0 == number) {
        Some((_, reach)) => Ok(Rest::Left(
            reach.iter().filter_map(|one| find_range(one, a)).collect(),
        )),
        None if reaches_closed(call.number, a, closed) => Err(Obstacle::Reaches(call.number)),
        None => Ok(Rest::Left(Vec::new())),
    }
}

fn find_range(&(place, size): &Reach, a: &[usize; 6]) -> Option<(usize, usize)> {
    let start = a[place - 1];
    let size = match size {
        Bytes(bytes) => bytes,
        Argument(place) => a[place - 1],
        Times(place, bytes) => a[place - 1].saturating_mul(bytes),
    };
    (start != 0 && size != 0).then(|| (start, start.saturating_add(size)))
}

/// Milliseconds after which the call returns, counted from its begin, if it was given such a time.
fn find_limit(number: i64, a: &[usize; 6]) -> Option<u64> {
    let milliseconds = |word: usize| u64::try_from(word as i32).ok();
    match number {
        libc::SYS_poll => milliseconds(a[2]),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => milliseconds(a[3]),
        libc::SYS_nanosleep => read_time(a[0]),
        libc::SYS_clock_nanosleep if a[1] & libc::TIMER_ABSTIME as usize == 0 => read_time(a[2]),
        libc::SYS_futex if a[1] as i32 & 127 == libc::FUTEX_WAIT => read_time(a[3]),
        libc::SYS_rt_sigtimedwait => read_time(a[2]),
        libc::SYS_semtimedop | libc::SYS_epoll_pwait2 => read_time(a[3]),
        // ppoll, pselect6 and recvmmsg keep what is left in the program's memory; other times are no durations.
        _ => None,
    }
}

/// The milliseconds of a timespec of the program.
fn read_time(at: usize) -> Option<u64> {
    if at == 0 || !at.is_multiple_of(8) || !sys::is_mapped(at & !(sys::PAGE - 1), sys::PAGE) {
        return None;
    }
    // SAFETY: mapped, and the kernel has read it there. Memory is open.
    let [seconds, nanoseconds] = unsafe { (at as *const [u64; 2]).read_volatile() };
    Some(
        seconds
            .saturating_mul(1000)
            .saturating_add(nanoseconds / 1_000_000),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose_of(number: i64, arguments: [usize; 6]) -> Option<Rest> {
        let call = Call {
            number: number as usize,
            arguments,
            stack: 0,
            next: 0,
        };
        choose(&call, &|at| at == 0x5000).ok()
    }

    #[test]
    fn calls_are_made_again_where_that_is_not_seen() {
        let again = Some(Rest::Interrupted);
        let forever = u32::MAX as usize;
        assert_eq!(
            choose_of(libc::SYS_poll, [0x5000, 1, forever, 0, 0, 0]),
            again
        );
        assert_eq!(choose_of(libc::SYS_poll, [0x5000, 1, 100, 0, 0, 0]), again);
        assert_eq!(choose_of(libc::SYS_read, [3, 0x5000, 9, 0, 0, 0]), again);
        let day = [86400u64, 0];
        let absolute = libc::FUTEX_WAIT_BITSET as usize | 128;
        let at = day.as_ptr() as usize;
        assert_eq!(
            choose_of(libc::SYS_futex, [0x5000, absolute, 0, at, 0, 0]),
            again
        );
        let relative = libc::FUTEX_WAIT as usize | 128;
        let left = Some(Rest::Left(Vec::new()));
        assert_eq!(
            choose_of(libc::SYS_futex, [0x5000, relative, 0, at, 0, 0]),
            left
        );
    }

    #[test]
    fn what_a_call_reaches_that_is_left() {
        let left = |ranges: &[(usize, usize)]| Some(Rest::Left(ranges.to_vec()));
        let hour = 3_600_000;
        let poll = choose_of(libc::SYS_poll, [0x5000, 2, hour, 0, 0, 0]);
        assert_eq!(poll, left(&[(0x5000, 0x5010)]));
        let write = choose_of(libc::SYS_write, [1, 0x5000, 100, 0, 0, 0]);
        assert_eq!(write, left(&[(0x5000, 0x5064)]));
        assert_eq!(
            choose_of(libc::SYS_connect, [1, 0x5000, 16, 0, 0, 0]),
            left(&[])
        );
        assert_eq!(choose_of(libc::SYS_writev, [1, 0x6000, 1, 0, 0, 0]), None);
    }
}
