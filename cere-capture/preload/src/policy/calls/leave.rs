//! Why the traced program has to make a system call itself.

use crate::engine::tracer::Cut;
use crate::policy::halt::Halt;

/// Why the program has to make a call itself.
pub enum Leave {
    /// It ends the program or the thread.
    End,
    /// It does what the trace cannot follow.
    Cut(&'static str),
    /// The same, and the window ends.
    Stop(&'static str),
    /// The call is made, with this result, but the trace lacks something.
    Made(isize, &'static str),
}

impl Leave {
    /// The gap in the trace; none if the program or the window ends.
    pub fn cut(&self, number: usize) -> Option<Cut> {
        match self {
            Leave::End | Leave::Stop(_) => None,
            Leave::Cut(why) => Some(Cut::Call(number, why)),
            Leave::Made(_, why) => Some(Cut::Because(why)),
        }
    }

    /// The result of a call that was made.
    pub fn result(&self) -> Option<isize> {
        match self {
            Leave::Made(result, _) => Some(*result),
            _ => None,
        }
    }
}

impl From<&'static str> for Leave {
    fn from(lack: &'static str) -> Leave {
        Leave::Cut(lack)
    }
}

impl From<Halt> for Leave {
    fn from(halt: Halt) -> Leave {
        match halt {
            Halt::Made(result, lack) => Leave::Made(result, lack),
            Halt::Lack(lack) => Leave::Cut(lack),
            Halt::HalfWay => Leave::Cut("it fails half way"),
            _ => Leave::Cut("it changes what is mapped"),
        }
    }
}
