//! What is known of threads beside the captured one, and why they can be in the way.

use crate::os::inside::Obstacle;
use std::fmt::{self, Display, Formatter};
use std::io;

/// A thread and its stack, thread control block included.
#[derive(Debug, Clone, Copy)]
pub struct Thread {
    /// Its number in the kernel.
    pub id: i32,
    /// [start, end) of the pages that its stack lies on.
    pub stack: (usize, usize),
    /// Those of them that hold nothing else.
    pub within: (usize, usize),
    /// Its alternate stack for signals, or an empty range.
    pub alternate: (usize, usize),
    /// Whether it is about to end.
    pub ends: bool,
    /// Its number among the threads of the OpenMP runtime, from 1; 0 for others.
    pub number: u32,
    /// Its thread pointer.
    pub pointer: usize,
    /// Pages of its control block and static thread-local storage, once they are asked for.
    pub control: (usize, usize),
    /// Whether its system calls can be held.
    pub held: bool,
}

/// Why memory cannot be closed beside other threads.
#[derive(Debug)]
pub enum Beside {
    /// They start threads or processes all the time.
    Busy,
    /// They cannot be listed.
    Unlisted(io::Error),
    /// The library has failed with its list of them locked.
    Spoilt,
    /// One ends.
    Ends,
    /// One was not started by `pthread_create`.
    Unknown,
    /// The kernel does not hold the system calls of one.
    Unheld,
    /// One blocks the signals of faults.
    BlocksFaults,
    /// A call in which one is.
    Call(Obstacle),
    /// The stack of this one is memory of the program that would be closed.
    OwnStack(i32),
    /// This one goes on.
    Unstoppable(i32),
}

impl Display for Beside {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Beside::Busy => "other threads start threads or processes all the time",
            Beside::Unlisted(e) => return write!(f, "the program's threads cannot be listed: {e}"),
            Beside::Spoilt => "the library's list of threads is spoilt: it failed before",
            Beside::Ends => "another thread ends",
            Beside::Unknown => "threads run that were not started by pthread_create",
            Beside::Unheld => "the kernel does not hold system calls of other threads",
            Beside::BlocksFaults => "another thread blocks all signals, faults included (threads of D's collector do: --DRT-gcopt=parallel:0 among the program's arguments starts none)",
            Beside::Call(e) => return e.fmt(f),
            Beside::OwnStack(id) => {
                return write!(
                    f,
                    "another thread ({id}) has a stack that the program made itself, which a capture closes"
                );
            }
            Beside::Unstoppable(id) => return write!(f, "another thread ({id}) cannot be stopped"),
        })
    }
}
