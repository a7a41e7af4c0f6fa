//! Whether a region has touched the stacks of other threads. They stay open, so no fault tells, and are not captured: a
//! replay has none. The kernel tells which mappings were touched; a stack whose thread has not run meanwhile was touched by
//! the region. Ordinary code, with everything open.

/// A thread that rests, and its stack.
#[derive(Debug, Clone)]
pub struct Resting {
    id: i32,
    stack: (usize, usize),
    switches: u64,
}

/// How often a thread was taken off a processor, if it rests.
fn count_switches(id: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{id}/status")).ok()?;
    let field = |name: &str| Some(text.lines().find_map(|l| l.strip_prefix(name))?.trim());
    if !field("State:")?.starts_with(['S', 'D']) {
        return None;
    }
    let number = |name| field(name)?.parse::<u64>().ok();
    Some(number("voluntary_ctxt_switches:")? + number("nonvoluntary_ctxt_switches:")?)
}

/// Begins to watch the stacks of these threads: those that rest.
pub fn watch_stacks(threads: Vec<(i32, (usize, usize))>) -> Vec<Resting> {
    if threads.is_empty() || std::fs::write("/proc/self/clear_refs", "1").is_err() {
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

/// Why the region cannot be replayed, if it has touched the stack of one that has not run since.
pub fn find_touched(watched: &[Resting]) -> Option<String> {
    if watched.is_empty() {
        return None;
    }
    let text = std::fs::read("/proc/self/smaps").ok()?;
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
