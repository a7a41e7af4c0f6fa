//! Why a system call of a captured invocation is not simply made.

use crate::os::names;

/// Why a call is not simply done.
#[derive(Debug, Clone, Copy)]
pub enum Halt {
    /// It ends the program.
    Exit,
    /// What it does is not part of the region's memory.
    Outside,
    /// The same, for a descriptor.
    Descriptor(usize),
    /// It waits for another thread.
    Waits,
    /// It sleeps while there are signals to handle.
    Sleeps,
    /// It starts a thread or process.
    Starts,
    /// It changes what signals do.
    Signals,
    /// It drops memory whose content a file, or another user of it, provides again.
    Drops,
    /// It changes which pages are guard pages.
    Guards,
    /// It fails after it has changed a part of its range.
    HalfWay,
    /// The capture lacks something.
    Lack(&'static str),
    /// The same after the call was made, with this result.
    Made(isize, &'static str),
}

impl From<&'static str> for Halt {
    fn from(lack: &'static str) -> Halt {
        Halt::Lack(lack)
    }
}

impl Halt {
    /// Reason for messages; none if the program ends.
    pub fn reason(&self, number: usize) -> Option<String> {
        let name = names::name_call(number);
        Some(match self {
            Halt::Exit => return None,
            Halt::Outside => format!("calls {name}: it depends on outside state"),
            Halt::Descriptor(d) => {
                format!("calls {name} on descriptor {d}: it depends on outside state")
            }
            Halt::Waits => format!("calls {name}: it waits for another thread"),
            Halt::Sleeps => {
                format!("calls {name}: it sleeps, and the program handles signals")
            }
            Halt::Starts => format!("calls {name}: it starts a thread or a process"),
            Halt::Signals => format!("calls {name}: it changes what signals do"),
            Halt::Guards => format!("calls {name} for guard pages, which a replay does not have"),
            Halt::HalfWay => format!("calls {name}, which fails half way"),
            Halt::Drops => format!(
                "calls {name} to drop memory of a file or shared memory, whose content comes back"
            ),
            Halt::Lack(lack) | Halt::Made(_, lack) => format!("it takes {lack}"),
        })
    }
}
