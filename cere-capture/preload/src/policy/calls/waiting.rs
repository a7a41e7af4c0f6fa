//! System calls that are made while other threads may have their turn.

use crate::engine::in_turn::InTurn;
use crate::engine::{gate, parallel, tracer, turn};
use crate::os::{local, sys};
use libc::ucontext_t;

/// Operations of futex that wait, with a timeout as fourth argument.
pub const WAITS: [i32; 5] = [
    libc::FUTEX_WAIT,
    libc::FUTEX_WAIT_BITSET,
    libc::FUTEX_WAIT_REQUEUE_PI,
    libc::FUTEX_LOCK_PI,
    FUTEX_LOCK_PI2,
];
const FUTEX_LOCK_PI2: i32 = 13;

/// Slice of a wait for other threads of the team, as a `timespec`: 10 ms.
const SLICE: [i64; 2] = [0, 10_000_000];

/// Whether a call waits for another thread on a word of memory.
pub fn is_wait(number: usize, a: [usize; 6]) -> bool {
    number as i64 == libc::SYS_futex && WAITS.contains(&(a[1] as i32 & 127))
}

/// Makes a call whose memory is open while others may have their turn. The memory stays open meanwhile. A thread of a team may
/// rest in the call until long after the captures, so it has the signal mask that the handler returns to.
pub fn make_out_of_turn(
    mut engine: InTurn,
    number: usize,
    a: [usize; 6],
    context: &ucontext_t,
) -> isize {
    // The runtime's own words are never closed, and its threads may rest on them for long.
    let mut closed = |at| engine.pages.spans.find(at).is_some();
    let pin = number as i64 != libc::SYS_futex || closed(a[0]) || closed(a[3]);
    if pin {
        tracer::pin_pages();
    }
    drop(engine);
    let result = if local::is_of_team() {
        // SAFETY: the kernel's record.
        let mask = unsafe { *(&raw const context.uc_sigmask).cast::<u64>() };
        let inside = sys::exchange_mask(mask);
        let result = make_call(number, a);
        sys::exchange_mask(inside);
        result
    } else {
        make_call(number, a)
    };
    if pin {
        tracer::unpin_later();
    }
    result
}

/// Makes a call whose memory is open. A wait for other threads of the team is cut into slices: they may have failed.
pub fn make_call(number: usize, a: [usize; 6]) -> isize {
    let active = parallel::in_parallel() || turn::team_exists() && gate::is_captured();
    let waits = number as i64 == libc::SYS_futex
        && [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET].contains(&(a[1] as i32 & 127))
        && active;
    if !waits || a[3] != 0 {
        // SAFETY: the program's own call; the memory that it reaches is open.
        return unsafe { sys::call(number as i64, a) };
    }
    // Without a timeout both operations differ only in which waiters a wake-up selects; spurious wake-ups are allowed.
    let private = a[1] & libc::FUTEX_PRIVATE_FLAG as usize;
    let wait = libc::FUTEX_WAIT as usize | private;
    // SAFETY: a wait on the program's word, whose page is open.
    let result = unsafe {
        sys::call(
            number as i64,
            [a[0], wait, a[2], SLICE.as_ptr() as usize, 0, 0],
        )
    };
    match result {
        result if result == -(libc::ETIMEDOUT as isize) => -(libc::EAGAIN as isize),
        result => result,
    }
}
