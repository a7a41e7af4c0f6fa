//! What memory the arguments of system calls reach.

use crate::engine::memory::Access;
use cere_format::answers::question;

/// Memory that a call's arguments reach: start, length, what the kernel does there.
pub type Reach = [(usize, usize, Access); 3];

/// What the arguments reach of calls that only ask, and may be made anywhere. None: it is none of those.
pub fn harmless(number: usize, a: [usize; 6]) -> Option<Reach> {
    use Access::Write;
    let written = |(start, length)| (start, length, Write);
    const NONE: (usize, usize, Access) = (0, 0, Access::Read);
    if let Some(asked) = question(number, a) {
        let [first, second] = asked.writes.map(written);
        return Some([first, second, NONE]);
    }
    match number as i64 {
        libc::SYS_sched_getaffinity => Some([written((a[2], a[1])), NONE, NONE]),
        libc::SYS_sched_yield => Some([NONE; 3]),
        _ => None,
    }
}
