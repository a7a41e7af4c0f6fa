//! Why captures end early, and what a handler has to do for that.

use super::halt::Halt;
use super::team;
use crate::engine::tracer::Cut;

/// Why captures end early.
#[derive(Debug, Clone, Copy)]
pub enum Cause {
    /// Their regions were left by longjmp.
    Left,
    /// They take what there is not.
    Lack(&'static str),
    /// The program may not access this address.
    Crash(usize),
    /// An instruction of the program has this signal.
    Signal(i32),
    /// A system call, by number.
    Call(usize, Halt),
    /// A thread of a team cannot go on.
    Team,
    /// In words, unless a thread of a team cannot go on.
    Because(&'static str),
}

impl Cause {
    /// For people; none if the regions do not end. In what ends captures, with everything open and threads of teams kept out.
    pub fn reason(self) -> Option<String> {
        let of_team = || team::take_failure()?.reason();
        match self {
            Cause::Left => None,
            Cause::Lack(lack) => Some(format!("it takes {lack}")),
            Cause::Crash(at) => Some(format!(
                "the program crashes inside: it may not access {at:#x}"
            )),
            Cause::Signal(signal) => Some(format!("it takes signal {signal}")),
            Cause::Call(number, halt) => halt.reason(number),
            Cause::Team => of_team(),
            Cause::Because(reason) => of_team().or(Some(reason.into())),
        }
    }
}

/// Why the captures end as soon as the captured thread has left the section that it is in. Main thread only.
static mut ENDING: Option<Cause> = None;

/// Whether they do: memory is open.
pub fn is_ending() -> bool {
    let ending = &raw const ENDING;
    // SAFETY: main thread only.
    unsafe { (*ending).is_some() }
}

/// The cause, once.
pub fn take_ending() -> Option<Cause> {
    let ending = &raw mut ENDING;
    // SAFETY: main thread only.
    unsafe { (*ending).take() }
}

/// Captures end for this as soon as the section is left that the captured thread is in. Main thread only.
pub fn end_later(cause: Cause) {
    let ending = &raw mut ENDING;
    // SAFETY: main thread only.
    unsafe {
        (*ending).get_or_insert(cause);
    }
}

/// What is left to do when a system call or a fault of the captured thread was handled, out of turn.
pub enum After {
    /// Nothing.
    GoOn,
    /// The capture ends.
    End(Cause),
    /// The page trace is suspended, with this gap.
    Suspend(Option<Cut>),
}
