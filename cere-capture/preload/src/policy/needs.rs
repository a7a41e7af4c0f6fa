//! Functions that a captured invocation may not call, because no replay has what they need. What stands in their place in this
//! library calls [`refuse_call`] first.

use crate::engine::{gate, parallel, status};
use crate::os::{local, signals};

/// Functions whose effects no replay has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// They start a thread.
    NewThread,
    /// They wait for another thread, or use its state.
    OtherThread,
    /// They are MPI's, and wait for other ranks.
    OtherRanks,
    /// They end the thread.
    End,
}

/// Whether the calling thread runs a captured invocation, alone or in its team: [`refuse_call`] does something then.
pub fn is_captured() -> bool {
    status::captures() && (gate::is_captured() || local::is_of_team() && parallel::in_parallel())
}

/// The calling thread is about to call this function: if it runs a captured invocation, the capture ends with that reason, and
/// memory is open when this returns. From ordinary code of the program's threads, outside of sections.
pub fn refuse_call(needs: Needs, function: &'static str) {
    if is_captured() {
        local::leave_reason(needs as usize, function);
        signals::nudge_self(signals::MEETS);
    }
}

/// In the handler of that nudge: what [`refuse_call`] was called for.
pub fn take_call() -> Option<(Needs, &'static str)> {
    let (number, function) = local::take_reason()?;
    let all = [
        Needs::NewThread,
        Needs::OtherThread,
        Needs::OtherRanks,
        Needs::End,
    ];
    Some((*all.get(number)?, function))
}

impl Needs {
    /// Why a capture that calls this function is refused.
    pub fn reason(self, function: &str) -> String {
        let what = match self {
            Needs::NewThread => "it starts a thread",
            Needs::OtherThread => "it waits for another thread, or uses its state",
            Needs::OtherRanks => "it waits for other ranks",
            Needs::End => "its thread ends inside",
        };
        format!("calls {function}: {what}")
    }
}
