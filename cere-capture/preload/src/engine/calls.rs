//! The calls of a captured invocation that a replay answers: what is known of them, and of the one that runs.
//!
//! Ordinary code, with everything open.

use cere_format::mpi::{ABSOLUTE, Begun, Element};

/// Memory behind an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Number of the call whose argument it is, from 0.
    pub call: u32,
    /// Which one, from 0.
    pub argument: u32,
    /// Its offset behind that, in two's complement.
    pub offset: u64,
    /// Its address.
    pub start: usize,
    /// Bytes.
    pub length: usize,
    /// What it consists of.
    pub element: Element,
}

impl Area {
    /// The address behind it.
    pub fn end(&self) -> usize {
        self.start + self.length
    }

    /// How many calls back its argument is from the call of this number.
    pub fn back(&self, number: u32) -> u32 {
        match self.argument {
            ABSOLUTE => 0,
            _ => number - self.call,
        }
    }
}

/// What is received once a request is complete.
#[derive(Debug)]
pub struct Pending {
    /// The request's handle.
    pub request: u64,
    /// Where to.
    pub areas: Vec<Area>,
}

/// The call that runs.
#[derive(Debug)]
pub struct Underway {
    /// The function, for people.
    pub name: &'static str,
    /// Its stack pointer.
    pub stack: usize,
    /// Its place in the list.
    pub begun: Begun,
    /// What may have changed when it returns.
    pub left: Vec<Area>,
    /// What may, once the request that it begins is complete.
    pub later: Vec<Area>,
    /// Where the handle of that is.
    pub begins: Option<usize>,
    /// Where handles of requests are that may be complete when it returns, and what they were.
    pub requests: Vec<(usize, u64)>,
    /// Bytes of a handle.
    pub handle: usize,
}

impl Underway {
    /// A call with nothing behind its arguments.
    #[cfg(test)]
    pub fn bare(name: &'static str, stack: usize, begun: Begun) -> Underway {
        Underway {
            name,
            stack,
            begun,
            left: Vec::new(),
            later: Vec::new(),
            begins: None,
            requests: Vec::new(),
            handle: 4,
        }
    }
}

/// The handle of so many bytes at an address of the program.
///
/// # Safety
/// There is one, and it is open.
pub unsafe fn read_handle(at: usize, size: usize) -> u64 {
    // SAFETY: by the contract.
    unsafe {
        match size {
            8 => (at as *const u64).read_unaligned(),
            _ => u64::from((at as *const u32).read_unaligned()),
        }
    }
}

/// The answered calls of a captured invocation.
#[derive(Debug, Default)]
pub struct Answered {
    /// The calls, as [`cere_format::mpi`] has them.
    pub list: Vec<u8>,
    /// How many.
    pub count: u32,
    /// Requests of theirs that are not known to be complete.
    pub pending: Vec<Pending>,
    /// The call that runs.
    pub underway: Option<Underway>,
    /// Pages that the capture has before that call.
    pub before: Vec<usize>,
    /// What those pages held.
    pub contents: Vec<u8>,
}

impl Answered {
    /// What was received by requests that are complete now has been left by this call. The one that it begins is pending.
    pub fn complete(&mut self, call: &mut Underway) {
        for (at, before) in &call.requests {
            // SAFETY: the call's own argument.
            let changed = unsafe { read_handle(*at, call.handle) } != *before;
            let known = self.pending.iter().position(|p| p.request == *before);
            if let Some(place) = known.filter(|_| changed) {
                call.left.extend(self.pending.swap_remove(place).areas);
            }
        }
        if let Some(at) = call.begins.filter(|_| !call.later.is_empty()) {
            self.pending.push(Pending {
                // SAFETY: the call's own argument.
                request: unsafe { read_handle(at, call.handle) },
                areas: std::mem::take(&mut call.later),
            });
        }
    }
}
