//! Why captures end early, and what a handler has to do about it.

use super::halt::Halt;
use super::needs::Needs;
use super::{patience, team};
use crate::engine::tracer::Cut;

/// Why captures end early.
#[derive(Debug, Clone, Copy)]
pub enum Cause {
    /// Their regions were left by longjmp.
    Left,
    /// They lack this.
    Lack(&'static str),
    /// The program may not access this address, and does not handle that.
    Crash(usize),
    /// The program may not access this address, and its handler of SIGSEGV sees to it.
    Barrier(usize),
    /// An instruction of the program raises this signal.
    Signal(i32),
    /// A system call, by number.
    Call(usize, Halt),
    /// A thread of a team cannot go on.
    Team,
    /// A function that needs what no replay has.
    Meets(Needs, &'static str),
    /// It waits for another thread: seconds that it took in the profile at most.
    Waits(Option<f64>),
    /// This reason, unless a thread of a team cannot go on.
    Because(&'static str),
}

impl Cause {
    /// Reason for messages; none if nothing is refused. Called while captures end: everything is open, and teams are kept out.
    pub fn reason(self) -> Option<String> {
        let of_team = || team::take_failure()?.reason();
        match self {
            Cause::Left => None,
            Cause::Lack(lack) => Some(format!("it takes {lack}")),
            Cause::Crash(at) => Some(format!(
                "the program crashes inside: it may not access {at:#x}"
            )),
            Cause::Barrier(at) => Some(format!(
                "it touches {at:#x}, which it may not, and the program's own handler of SIGSEGV runs: a replay has no such handler"
            )),
            Cause::Signal(signal) => Some(format!("it takes signal {signal}")),
            Cause::Call(number, halt) => halt.reason(number),
            Cause::Team => of_team(),
            Cause::Meets(needs, function) => Some(needs.reason(function)),
            Cause::Waits(seconds) => of_team().or_else(|| Some(patience::reason(seconds))),
            Cause::Because(reason) => of_team().or(Some(reason.into())),
        }
    }
}

/// Cause of an end that waits for the end of the captured thread's section. Used by that thread alone.
static mut ENDING: Option<Cause> = None;

/// Whether an end waits for that: memory is open.
pub fn is_ending() -> bool {
    let ending = &raw const ENDING;
    // SAFETY: the captured thread only, in its handlers and hooks.
    unsafe { (*ending).is_some() }
}

/// Takes the cause of that end.
pub fn take_ending() -> Option<Cause> {
    let ending = &raw mut ENDING;
    // SAFETY: the captured thread only, in its handlers and hooks.
    unsafe { (*ending).take() }
}

/// Postpones the end of captures to the end of the captured thread's section.
pub fn end_later(cause: Cause) {
    let ending = &raw mut ENDING;
    // SAFETY: the captured thread only, in its handlers and hooks.
    unsafe {
        (*ending).get_or_insert(cause);
    }
}

/// What remains to be done out of turn after a system call of the captured thread.
pub enum After {
    /// Nothing.
    GoOn,
    /// The capture ends.
    End(Cause),
    /// The page trace is suspended, with this gap.
    Suspend(Option<Cut>),
}
