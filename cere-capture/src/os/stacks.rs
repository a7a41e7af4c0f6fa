//! Whether a region has touched stacks of other threads. These stay open, so touches do not fault, and they are not captured:
//! a replay has no such stacks. The kernel reports referenced mappings; if the stack's thread has not run meanwhile, the region
//! touched it. Ordinary code, with everything open.

use super::files;

/// A thread that rests, and its stack.
#[derive(Debug, Clone)]
pub struct Resting {
    id: i32,
    stack: (usize, usize),
    switches: u64,
}

/// Context switches of a thread so far, if it rests.
fn count_switches(id: i32) -> Option<u64> {
    let text = files::read_text(files::of_process(&format!("task/{id}/status"))).ok()?;
    let field = |name: &str| Some(text.lines().find_map(|l| l.strip_prefix(name))?.trim());
    if !field("State:")?.starts_with(['S', 'D']) {
        return None;
    }
    let number = |name| field(name)?.parse::<u64>().ok();
    Some(number("voluntary_ctxt_switches:")? + number("nonvoluntary_ctxt_switches:")?)
}

/// Begins to watch the stacks of those threads that rest.
pub fn watch_stacks(threads: Vec<(i32, (usize, usize))>) -> Vec<Resting> {
    if threads.is_empty() || files::write("/proc/self/clear_refs", "1").is_err() {
        return Vec::new();
    }
    let resting = |(id, stack)| {
        let switches = count_switches(id)?;
        Some(Resting {
            id,
            stack,
            switches,
        })
    };
    threads.into_iter().filter_map(resting).collect()
}

/// Why the region cannot be replayed, if it touched the stack of a thread that has not run since.
pub fn find_touched(watched: &[Resting]) -> Option<String> {
    if watched.is_empty() {
        return None;
    }
    let text = files::read("/proc/self/smaps").ok()?;
    let mut mapping = (0, 0);
    let mut stacks = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        if let Some(size) = line.strip_prefix("Referenced:") {
            // A larger mapping holds other data as well.
            let own = |w: &&Resting| w.stack.0 <= mapping.0 && mapping.1 <= w.stack.1;
            if !size.trim_start().starts_with("0 ") {
                stacks.extend(watched.iter().filter(own));
            }
        } else if let Some(range) = parse_range(line) {
            mapping = range;
        }
    }
    let rested = |w: &&&Resting| count_switches(w.id) == Some(w.switches);
    let found = stacks.iter().find(rested)?;
    Some(format!(
        "it touches the stack of another thread ({}), which a replay does not have",
        found.id
    ))
}

/// [start, end) of a line that opens a mapping.
fn parse_range(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let hexadecimal = |text| usize::from_str_radix(text, 16).ok();
    Some((hexadecimal(start)?, hexadecimal(end)?))
}
