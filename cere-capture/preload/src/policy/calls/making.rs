//! Makes system calls of the traced program for it.

use super::leave::Leave;
use super::reach::Wait;
use crate::engine::state::Engine;
use crate::engine::turn;
use crate::os::{local, signals, sys};

/// Cost of opening everything for a call, in faults.
const PRICE: u64 = 64;

/// Makes a call whose memory is open. It must not wait if the program handles signals, or if other threads wait for the turn.
pub fn make_in_turn(
    number: usize,
    a: [usize; 6],
    wait: Wait,
    length: usize,
) -> Result<isize, Leave> {
    // SAFETY: the program's own call.
    let call = || unsafe { sys::call(number as i64, a) };
    let beside = turn::team_exists();
    let waits = match wait {
        Wait::Never => false,
        Wait::Until(events) => {
            (beside || signals::program_handles()) && !is_ready(a[0], events, length)
        }
        Wait::Perhaps => true,
    };
    match wait {
        Wait::Never => Ok(call()),
        _ if beside && !waits => Ok(call()),
        _ if beside => Err(Leave::Cut("it may wait, and other threads of the team run")),
        _ if signals::program_handles() && !waits => Ok(call()),
        _ => signals::wait_with_signals(call)
            .ok_or(Leave::Cut("it may wait, and the program handles signals")),
    }
}

/// Whether a transfer of `length` bytes does not wait.
fn is_ready(descriptor: usize, events: i16, length: usize) -> bool {
    /// Bytes that a ready pipe takes at once.
    const PIPE: usize = 4096;
    let mut poll = libc::pollfd {
        fd: descriptor as i32,
        events,
        revents: 0,
    };
    let at = &raw mut poll as usize;
    // SAFETY: a structure of our own.
    let ready = unsafe { sys::call(libc::SYS_poll, [at, 1, 0, 0, 0, 0]) } == 1;
    if length <= PIPE || events == libc::POLLIN || !ready {
        return ready;
    }
    // SAFETY: any bytes are a valid structure, which the kernel fills.
    unsafe {
        let mut file: libc::stat = std::mem::zeroed();
        let at = &raw mut file as usize;
        sys::call(libc::SYS_fstat, [descriptor, at, 0, 0, 0, 0]) == 0
            && file.st_mode & libc::S_IFMT == libc::S_IFREG
    }
}

/// Makes a call with everything open.
pub fn make_with_all_open(
    engine: &mut Engine,
    number: usize,
    a: [usize; 6],
    wait: Wait,
    length: usize,
) -> Result<isize, Leave> {
    // Pages that calls of other threads have pinned would be closed as well.
    if local::is_of_team() || engine.shared() {
        return Err(Leave::Cut("other threads of the team run"));
    }
    engine.tracer.charge(PRICE);
    engine.uncover();
    let result = make_in_turn(number, a, wait, length)?;
    match engine.close() {
        Ok(()) => Ok(result),
        Err(_) => Err(Leave::Made(result, "memory cannot be closed")),
    }
}
