//! Which memory a capture or a page trace protects. Ordinary code, with everything open.

use super::heap;
use super::spans::{
    KIND_FILE, KIND_FOREIGN, KIND_GROWS, KIND_OUTSIDE, KIND_SHARED, KIND_STACK, KIND_TWICE, Span,
};
use super::state::{Engine, Obstacle, Place};
use crate::os::guards;
use crate::os::mappings::{self, STACK};
use crate::os::shared::{self, Found};
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

/// What the protected memory depends on, beside what is mapped.
pub struct Around<'a> {
    /// The stack pointer.
    pub pointer: u64,
    /// [start, end) of the thread's own stack, if it is not the main one; else empty.
    pub stack: (usize, usize),
    /// The loaded images.
    pub images: &'a [Image],
    /// The thread's control block.
    pub control: (usize, usize),
    /// The image of the OpenMP runtime.
    pub runtime: (usize, usize),
    /// Maximum number of mappings that the kernel allows.
    pub mapping_limit: usize,
}

/// Fills the engine's spans with the memory to protect. For a capture that has not started to run, describes the mappings in it.
pub fn lay_out(engine: &mut Engine, around: &Around) -> Result<(), Obstacle> {
    /// Mappings reserved for the program, and for errors of the estimate of splits.
    const SPARE: isize = 2500;
    let fresh = engine.level.as_ref().is_some_and(|l| l.started == 0);
    let known = engine.level.as_ref().map(|l| l.growing.clone());
    let (all, growing) = match fresh {
        true => mappings::read_all(),
        false => mappings::read_maps().map(|all| (all, known.unwrap_or_default())),
    }
    .map_err(Obstacle::Mappings)?;
    engine.pages.budget = around.mapping_limit as isize - all.len() as isize - SPARE;
    let shared = match fresh {
        true => shared::find_shared(),
        false => note_later(engine, &all),
    };
    engine.pages.spans.clear();
    let mut spans = all
        .iter()
        .filter_map(|m| find_span(m, &growing, &shared, around));
    let mut fits = spans.all(|span| engine.pages.spans.insert(span));
    let own = around.own_stack(engine.pages.spans.find(around.pointer as usize - 1));
    if let Some(span) = own {
        fits &= engine.pages.spans.insert(span);
    }
    if !fits || !carve_open(engine, fresh, around.control) {
        // Nothing may be closed by a list that lacks what has to stay open.
        engine.pages.spans.clear();
        return Err(Obstacle::TooMany);
    }
    let stack = all.iter().find(|m| around.runs_on(m));
    let grows = stack.is_some_and(|m| m.path == STACK);
    engine.place = Place {
        stack: match own {
            Some(span) => (span.start, span.end),
            None => stack.map_or((0, 0), |m| (m.start as usize, m.end as usize)),
        },
        grows,
        own: grows || own.is_some(),
        control: around.control,
    };
    if fresh {
        describe_mappings(engine, all, &growing, around.pointer);
        if let Some(level) = engine.level.as_mut() {
            level.shared = shared;
        }
    }
    Ok(())
}

/// A capture goes on after memory was open: what was mapped meanwhile is there in a replay from the beginning. What is shared of it
/// another process may write. Returns which mappings are shared.
fn note_later(engine: &mut Engine, all: &[Mapping]) -> Found {
    let Some(level) = engine.level.as_mut() else {
        return Found::default();
    };
    let own = engine.own.iter().map(|o| (o.0 as u64, o.1 as u64));
    let known = level.mappings.iter().map(|m| (m.start, m.end));
    let known: Vec<(u64, u64)> = known
        .chain(level.fresh.iter().chain(&level.growing).copied())
        .chain(own)
        .chain([heap::heap_range()])
        .collect();
    let stays = |m: &&Mapping| m.path != STACK && !m.path.starts_with("[v");
    let later = subtract_ranges(all.iter().filter(stays).cloned().collect(), &known);
    let outside = later.iter().filter(|m| m.permissions.ends_with('s'));
    level.shared.outside.extend(outside.map(|m| m.start));
    level.mappings.extend(later);
    level.mappings.sort_by_key(|m| m.start);
    level.shared.clone()
}

impl Around<'_> {
    /// Whether the stack pointer lies in this mapping.
    fn runs_on(&self, mapping: &Mapping) -> bool {
        mapping.start < self.pointer && self.pointer <= mapping.end
    }

    /// The part of `span`, in which the stack pointer lies, that is the thread's own stack and nothing else; none if it runs on another one,
    /// or is the main thread.
    fn own_stack(&self, span: Option<Span>) -> Option<Span> {
        let span = span?;
        let (start, end) = (self.stack.0.max(span.start), self.stack.1.min(span.end));
        let pointer = self.pointer as usize;
        // One that is a variable of the program is data as well.
        let variable = of_program(self.images, start as u64).is_some();
        (start < pointer && pointer <= end && !variable).then_some(Span {
            start,
            end,
            kind: span.kind | KIND_STACK,
            ..span
        })
    }
}

/// The span of a mapping that is protected: neither the kernel's nor code of a library nor of the OpenMP runtime. Code outside all
/// images was made by the program: it belongs to the region.
fn find_span(
    mapping: &Mapping,
    growing: &[(u64, u64)],
    shared: &Found,
    around: &Around,
) -> Option<Span> {
    let protection = parse_protection(&mapping.permissions);
    let start = mapping.start as usize;
    let library = of_program(around.images, mapping.start) == Some(false);
    let code = protection & libc::PROT_EXEC as u8 != 0;
    let in_runtime = (around.runtime.0..around.runtime.1).contains(&start);
    if protection == 0 || mapping.path.starts_with("[v") || (code && library) || in_runtime {
        return None;
    }
    let kinds = [
        (library, KIND_FOREIGN),
        (mapping.path.starts_with('/'), KIND_FILE),
        (mapping.permissions.ends_with('s'), KIND_SHARED),
        (shared.twice.contains(&mapping.start), KIND_TWICE),
        (shared.outside.contains(&mapping.start), KIND_OUTSIDE),
        (growing.iter().any(|g| g.1 == mapping.end), KIND_GROWS),
        (mapping.path == STACK && around.runs_on(mapping), KIND_STACK),
    ];
    let these = kinds.iter().filter(|kind| kind.0);
    Some(Span {
        start,
        end: mapping.end as usize,
        protection,
        kind: these.fold(0, |all, kind| all | kind.1),
    })
}

/// Takes what stays open out of the spans. False if there is no room for the pieces.
fn carve_open(engine: &mut Engine, fresh: bool, control: (usize, usize)) -> bool {
    let spans = &mut engine.pages.spans;
    let open = engine.own.iter().chain(&engine.stacks).chain([&control]);
    let mut fits = true;
    for (start, end) in open {
        fits &= spans.carve(*start, *end);
    }
    let Some(level) = engine.level.as_mut() else {
        return fits;
    };
    if fresh {
        let ranges: Vec<_> = spans.all().iter().map(|s| (s.start, s.end)).collect();
        level.guards = guards::find_guards(&ranges);
    }
    for (start, end) in level.guards.iter().flatten() {
        fits &= spans.carve(*start, *end);
    }
    fits
}

/// Describes what is mapped in the capture that begins, and where its stack lies.
fn describe_mappings(engine: &mut Engine, all: Vec<Mapping>, growing: &[(u64, u64)], pointer: u64) {
    let Some(level) = engine.level.as_mut() else {
        return;
    };
    let heap = heap::heap_range();
    let own = engine.own.iter().map(|o| (o.0 as u64, o.1 as u64));
    let own: Vec<(u64, u64)> = own.chain([heap]).collect();
    if engine.place.own {
        level.stack = engine.place.stack;
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

/// Bytes of a thread's control block, at most.
pub const CONTROL_BLOCK: usize = 0xc00;

/// Pages of the calling thread's control block, which ends before `end`, and of the static thread-local storage below it.
pub fn find_control(thread: usize, images: &[Image], end: usize) -> (usize, usize) {
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
        (thread as usize + CONTROL_BLOCK)
            .next_multiple_of(PAGE)
            .min(end),
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
