//! Whether other threads have stood still while an invocation was captured, and whether that has touched the stack of one that
//! rests in a call: that stack stays open, so touches do not fault, and it is not captured. The kernel reports referenced mappings.
//! Ordinary code, with the captured thread's memory open and the others still held.

use super::inside::{self, Call, Doing};
use super::sys::PAGE;
use super::{files, names};

/// A thread outside teams that does not run while an invocation is captured, and its stack.
#[derive(Debug, Clone)]
pub struct Still {
    /// Its id.
    pub id: i32,
    /// Its stack.
    pub stack: (usize, usize),
    /// The call in which it was left; none if the library holds it.
    pub call: Option<Call>,
    /// [start, end) of what that call, or the library, reaches when it goes on: stays open, and is captured.
    pub reached: Vec<(usize, usize)>,
    /// [start, end) of what is below the frames of a thread that the library holds: stays open.
    pub below: (usize, usize),
    /// [start, end) of what the kernel and the library change meanwhile: not the program's.
    pub changing: [(usize, usize); 2],
}

/// What stays open on the stack of a thread that the library holds.
pub struct Frames {
    /// Its stack pointer now.
    pub pointer: usize,
    /// The one of what a handler interrupts; 0: no handler holds it.
    pub interrupted: usize,
}

impl Frames {
    /// Bytes below the pointer for handlers of signals.
    const BELOW: usize = 64 << 10;
    /// Bytes of the library's frames, if no handler holds the thread.
    const ABOVE: usize = 16 << 10;
    /// Bytes below the stack pointer that a function may use, and no handler changes.
    const RED_ZONE: usize = 128;

    /// What stays open below them, what is captured and stays open, and what changes, on this stack.
    pub fn ranges(&self, stack: (usize, usize)) -> [(usize, usize); 3] {
        let low = self.pointer & !(PAGE - 1);
        if !(stack.0..stack.1).contains(&self.pointer) {
            return [(0, 0); 3];
        }
        let (high, changing) = match self.interrupted {
            0 => (self.pointer + Self::ABOVE, self.pointer),
            above => (above, above - Self::RED_ZONE),
        };
        let high = high.next_multiple_of(PAGE).min(stack.1);
        [
            (low.saturating_sub(Self::BELOW).max(stack.0), low),
            (low, high),
            (low, changing.min(stack.1)),
        ]
    }
}

impl Still {
    /// Whether it still rests in the same call: it cannot have returned, as calls that it begins are held.
    pub fn rested(&self) -> bool {
        let same = |call| inside::read_doing(self.id).is_ok_and(|now| now == Doing::Rests(call));
        self.call.is_none_or(same)
    }

    /// The name of that call.
    fn name(&self) -> String {
        let named = |call: Call| names::name_call(call.number);
        self.call.map_or_else(|| "a system call".into(), named)
    }
}

/// Forgets which pages were referenced.
pub fn watch_stacks() {
    // Where the kernel refuses, touched stacks are not found.
    let _ = files::write("/proc/self/clear_refs", "1");
}

/// Why the region cannot be replayed, if one of `others` has run meanwhile, or if it touched the stack of one.
pub fn find_disturbance(others: &[Still]) -> Option<String> {
    if let Some(ran) = others.iter().find(|o| !o.rested()) {
        return Some(format!(
            "another thread ({}), which rested in {}, runs on meanwhile and may change what it reads or writes",
            ran.id,
            ran.name()
        ));
    }
    let others: Vec<&Still> = others.iter().filter(|o| o.call.is_some()).collect();
    if others.is_empty() {
        return None;
    }
    let text = files::read("/proc/self/smaps").ok()?;
    let mut mapping = (0, 0);
    for line in String::from_utf8_lossy(&text).lines() {
        if let Some(size) = line.strip_prefix("Referenced:") {
            // A larger mapping holds other data as well.
            let own = |o: &&&Still| o.stack.0 <= mapping.0 && mapping.1 <= o.stack.1;
            if !size.trim_start().starts_with("0 ")
                && let Some(found) = others.iter().find(own)
            {
                return Some(format!(
                    "it touches the stack of another thread ({}), which a replay does not have",
                    found.id
                ));
            }
        } else if let Some(range) = parse_range(line) {
            mapping = range;
        }
    }
    None
}

/// [start, end) of a line that opens a mapping.
fn parse_range(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let hexadecimal = |text| usize::from_str_radix(text, 16).ok();
    Some((hexadecimal(start)?, hexadecimal(end)?))
}
