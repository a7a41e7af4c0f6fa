//! Whether other threads have stood still while an invocation was captured, and whether that has touched their stacks. Stacks
//! stay open, so touches do not fault, and they are not captured: a replay has no such stacks. The kernel reports referenced
//! mappings. Ordinary code, with the captured thread's memory open and the others still held.

use super::inside::{self, Doing};
use super::{files, names};

/// A thread outside teams that does not run while an invocation is captured, and its stack.
#[derive(Debug, Clone)]
pub struct Still {
    /// Its id.
    pub id: i32,
    /// Its stack.
    pub stack: (usize, usize),
    /// The call in which it rests; none if the library's handler holds it.
    pub call: Option<Doing>,
}

impl Still {
    /// Whether it still rests in the same call: it cannot have returned, as calls that it begins are held.
    fn rested(&self) -> bool {
        self.call
            .is_none_or(|call| inside::read_doing(self.id) == Ok(call))
    }

    /// The name of that call.
    fn name(&self) -> String {
        match self.call {
            Some(Doing::Rests(number, ..)) => names::name_call(number),
            _ => "a system call".into(),
        }
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
    if others.is_empty() {
        return None;
    }
    let text = files::read("/proc/self/smaps").ok()?;
    let mut mapping = (0, 0);
    for line in String::from_utf8_lossy(&text).lines() {
        if let Some(size) = line.strip_prefix("Referenced:") {
            // A larger mapping holds other data as well.
            let own = |o: &&Still| o.stack.0 <= mapping.0 && mapping.1 <= o.stack.1;
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
