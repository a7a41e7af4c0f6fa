//! Which memory a capture or a page trace protects. Ordinary code, with everything open.

use super::heap;
use super::spans::{KIND_FILE, KIND_FOREIGN, KIND_GROWS, KIND_STACK, KIND_TWICE, Span};
use super::state::{Engine, Place};
use crate::os::guards;
use crate::os::mappings::{self, STACK};
use crate::os::sys::PAGE;
use cere_format::capture::{Image, Mapping};

fn parse_protection(permissions: &str) -> u8 {
    let has = |letter, flag: i32| {
        if permissions.contains(letter) {
            flag as u8
        } else {
            0
        }
    };
    has('r', libc::PROT_READ) | has('w', libc::PROT_WRITE) | has('x', libc::PROT_EXEC)
}

/// Whether `address` lies in an image of the program; None if in no image.
fn of_program(images: &[Image], address: u64) -> Option<bool> {
    let inside = |i: &&Image| i.range.0 <= address && address < i.range.1;
    images.iter().find(inside).map(|image| image.program)
}

/// Kind of the memory at `address`, except for the stack.
pub fn find_kind(images: &[Image], address: u64) -> u8 {
    match of_program(images, address) {
        Some(false) => KIND_FOREIGN,
        _ => 0,
    }
}

/// Fills the engine's spans with the memory to protect. That depends on the stack pointer, the loaded images, the thread's
/// control block and the range of the OpenMP runtime's image. For a capture that has not started to run, describes the
/// mappings in it.
pub fn lay_out(
    engine: &mut Engine,
    mapping_limit: usize,
    pointer: u64,
    images: &[Image],
    control: (usize, usize),
    runtime: (usize, usize),
) -> Result<(), String> {
    /// Mappings reserved for the program, and for errors of the estimate of splits.
    const SPARE: isize = 2500;
    let fresh = engine.level.as_ref().is_some_and(|l| l.started == 0);
    let (all, growing) = match (fresh, engine.level.as_ref()) {
        (true, _) => mappings::read_all()?,
        (false, level) => (
            mappings::read_maps()?,
            level.map_or(Vec::new(), |l| l.growing.clone()),
        ),
    };
    engine.pages.budget = mapping_limit as isize - all.len() as isize - SPARE;
    engine.pages.spans.clear();
    let holds = |m: &&Mapping| m.start < pointer && pointer <= m.end;
    let mut fits = true;
    let twice = if fresh {
        mappings::mapped_twice()
    } else {
        Vec::new()
    };
    for mapping in &all {
        let protection = parse_protection(&mapping.permissions);
        let code = protection & libc::PROT_EXEC as u8 != 0;
        let (start, end) = (mapping.start as usize, mapping.end as usize);
        let mut kind = find_kind(images, mapping.start);
        // Code outside all images was made by the program: it belongs to the region.
        let library = of_program(images, mapping.start) == Some(false);
        if mapping.path.starts_with('/') {
            kind |= KIND_FILE;
        }
        if twice.contains(&mapping.start) {
            kind |= KIND_TWICE;
        }
        if growing.iter().any(|g| g.1 == mapping.end) {
            kind |= KIND_GROWS;
        }
        let in_runtime = (runtime.0..runtime.1).contains(&start);
        if protection == 0 || mapping.path.starts_with("[v") || (code && library) || in_runtime {
            continue;
        }
        if holds(&mapping) && mapping.path == STACK {
            kind |= KIND_STACK;
        }
        fits &= engine.pages.spans.insert(Span {
            start,
            end,
            protection,
            kind,
        });
    }
    for (start, end) in engine.own.iter().chain(&engine.stacks).copied() {
        fits &= engine.pages.spans.carve(start, end);
    }
    fits &= engine.pages.spans.carve(control.0, control.1);
    if let Some(level) = engine.level.as_mut() {
        if fresh {
            let ranges: Vec<_> = engine
                .pages
                .spans
                .all()
                .iter()
                .map(|s| (s.start, s.end))
                .collect();
            level.guards = guards::find_guards(&ranges);
        }
        for (start, end) in level.guards.iter().flatten() {
            fits &= engine.pages.spans.carve(*start, *end);
        }
    }
    if !fits {
        return Err("the program has too many mappings".into());
    }
    let stack = all.iter().find(holds);
    let place = Place {
        stack: stack.map_or((0, 0), |m| (m.start as usize, m.end as usize)),
        grows: stack.is_some_and(|m| m.path == STACK),
        control,
    };
    engine.place = place;
    if let Some(level) = engine.level.as_mut().filter(|_| fresh) {
        let heap = heap::heap_range();
        let own = engine.own.iter().map(|o| (o.0 as u64, o.1 as u64));
        let own: Vec<(u64, u64)> = own.chain([heap]).collect();
        if place.grows {
            level.stack = place.stack;
        } else {
            level.entry.frames = Some(pointer & !(PAGE as u64 - 1));
        }
        level.mappings = subtract_ranges(all, &own);
        level.growing.clear();
        level.growing.extend(growing);
        let used = (level.heap.used as u64).next_multiple_of(PAGE as u64);
        let mut ranges: Vec<(u64, u64)> = list_private(&level.mappings).collect();
        ranges.push((heap.0, used.max(heap.0)));
        ranges.sort_unstable();
        level.absent = mappings::find_absent(&ranges);
    }
    Ok(())
}

/// Private memory without a file, except for the stack.
fn list_private(mappings: &[Mapping]) -> impl Iterator<Item = (u64, u64)> {
    let own = |m: &&Mapping| {
        let place = m.path.is_empty() || m.path == "[heap]";
        place && m.permissions.starts_with("rw") && m.permissions.ends_with('p')
    };
    mappings.iter().filter(own).map(|m| (m.start, m.end))
}

/// The parts of `mappings` outside `ranges`: the kernel merges neighbouring mappings.
fn subtract_ranges(mappings: Vec<Mapping>, ranges: &[(u64, u64)]) -> Vec<Mapping> {
    let mut left = Vec::new();
    let mut rest = mappings;
    rest.reverse();
    while let Some(mapping) = rest.pop() {
        let (start, end) = (mapping.start, mapping.end);
        let Some(range) = ranges.iter().find(|r| start < r.1 && r.0 < end) else {
            left.push(mapping);
            continue;
        };
        for (start, end) in [(range.1, end), (start, range.0)] {
            let offset = match mapping.path.starts_with('/') {
                true => mapping.offset + start.saturating_sub(mapping.start),
                false => mapping.offset,
            };
            if start < end {
                rest.push(Mapping {
                    start,
                    end,
                    offset,
                    ..mapping.clone()
                });
            }
        }
    }
    left
}

/// Pages of the calling thread's control block and of the static thread-local storage below it.
pub fn find_control(thread: usize, images: &[Image]) -> (usize, usize) {
    const BLOCK: usize = 0xc00;
    const NEAR: u64 = 1 << 30;
    let thread = thread as u64;
    let low = images
        .iter()
        .filter_map(|i| i.tls)
        .filter(|(at, size)| at + size <= thread && thread - at < NEAR)
        .map(|(at, _)| at)
        .fold(thread, u64::min);
    let page = PAGE as u64;
    (
        (low / page * page) as usize,
        (thread as usize + BLOCK).next_multiple_of(PAGE),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::mappings::parse_mappings;

    #[test]
    fn mappings_without_ours() {
        let all = parse_mappings(
            "1000-5000 rw-p 00000000 00:00 0 \n\
             5000-9000 r--p 00001000 08:01 12 /a\n\
             a000-b000 rw-p 00000000 00:00 0 \n",
        );
        let ranges = [(0x2000, 0x3000), (0x4000, 0x6000), (0x9000, 0xc000)];
        let left = subtract_ranges(all, &ranges);
        let left: Vec<(u64, u64, u64)> = left.iter().map(|m| (m.start, m.end, m.offset)).collect();
        let expected = [
            (0x1000, 0x2000, 0),
            (0x3000, 0x4000, 0),
            (0x6000, 0x9000, 0x2000),
        ];
        assert_eq!(left, expected);
    }
}
