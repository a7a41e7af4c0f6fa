//! What the kernel says of the process. Ordinary code: for hooks with everything open.

use crate::engine::{Engine, Place};
use crate::pool::PAGE;
use crate::spans::{KIND_FILE, KIND_FOREIGN, KIND_STACK, KIND_TWICE, Span};
use cere_format::capture::{Image, Mapping};

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// A line that opens a mapping: `start-end permissions offset device inode path`.
fn header(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let trimmed = rest.trim_start_matches(' ');
        let (field, after) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        rest = after;
        field
    };
    let (start, end) = field().split_once('-')?;
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    let permissions = field().to_owned();
    let offset = hexadecimal(field())?;
    let (_, _) = (field(), field());
    let path = rest.trim_start_matches(' ').to_owned();
    Some(Mapping {
        start,
        end,
        permissions,
        offset,
        path,
        huge: false,
    })
}

fn parse(text: &str) -> Vec<Mapping> {
    let mut list: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        if let Some(mapping) = header(line) {
            list.push(mapping);
        } else if let Some(last) = list.last_mut() {
            let given = |prefix| line.strip_prefix(prefix).map(str::trim);
            last.huge |= given("AnonHugePages:").is_some_and(|size| size != "0 kB")
                || given("VmFlags:").is_some_and(|flags| flags.split(' ').any(|f| f == "hg"));
        }
    }
    list
}

/// Where mappings start that share a part of a file with another one: what is written in one changes in the other.
fn twice() -> Vec<u64> {
    let text = std::fs::read("/proc/self/maps").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let shared = |l: &&str| header(l).is_some_and(|m| m.permissions.ends_with('s'));
    let file = |l: &str| {
        let fields: Vec<&str> = l.split_ascii_whitespace().collect();
        (fields.len() > 5).then(|| (fields[3].to_owned(), fields[4].to_owned()))
    };
    let all: Vec<_> = text.lines().filter(shared).collect();
    let all: Vec<_> = all
        .iter()
        .filter_map(|l| Some((file(l)?, header(l)?)))
        .collect();
    let last = |m: &Mapping| m.offset + (m.end - m.start);
    let meets = |one: &Mapping, other: &Mapping| {
        one.start != other.start && one.offset < last(other) && other.offset < last(one)
    };
    let found = all.iter().filter(|(file, mapping)| {
        let mut others = all.iter();
        others.any(|(other, m)| other == file && meets(m, mapping))
    });
    found.map(|(_, mapping)| mapping.start).collect()
}

/// Everything that is mapped, with huge pages where the kernel tells.
pub fn mappings() -> Result<Vec<Mapping>, String> {
    let read = |path| std::fs::read(path).map_err(|e| format!("cannot read {path}: {e}"));
    let text = read("/proc/self/smaps").or_else(|_| read("/proc/self/maps"))?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

/// Everything that is mapped.
fn mapped() -> Result<Vec<Mapping>, String> {
    let text = std::fs::read("/proc/self/maps")
        .map_err(|e| format!("cannot read /proc/self/maps: {e}"))?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

/// What the program has that lets the kernel, or another process, reach its memory at any time, if it has such a thing:
/// it would find it closed.
pub fn reached_by_others() -> Option<&'static str> {
    /// Of descriptors and mappings, as the kernel names them.
    const NAMES: [(&str, &str); 3] = [
        ("anon_inode:[io_uring]", "an io_uring"),
        ("anon_inode:[userfaultfd]", "a userfaultfd"),
        ("/[aio]", "a context of io_setup (aio)"),
    ];
    let known = |name: &[u8]| {
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        let found = NAMES.iter().find(|n| name.ends_with(n.0.as_bytes()));
        found.map(|n| n.1)
    };
    let open = std::fs::read_dir("/proc/self/fd").ok()?.flatten();
    let mut names = open.filter_map(|d| std::fs::read_link(d.path()).ok());
    names
        .find_map(|name| known(name.as_os_str().as_encoded_bytes()))
        .or_else(|| {
            let text = std::fs::read("/proc/self/maps").unwrap_or_default();
            text.split(|byte| *byte == b'\n').find_map(known)
        })
}

/// Start of the main thread's stack, which grows down.
pub fn stack_start() -> Option<u64> {
    let text = std::fs::read("/proc/self/maps").ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut all = text.lines().filter_map(header);
    all.find(|m| m.path == STACK).map(|m| m.start)
}

/// What the kernel calls the main thread's stack.
pub const STACK: &str = "[stack]";

/// Most mappings that the kernel allows.
pub fn mapping_limit() -> usize {
    std::fs::read("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| String::from_utf8_lossy(&text).trim().parse().ok())
        .unwrap_or(65530)
}

/// Bytes that can be had without swapping.
pub fn available_memory() -> usize {
    let text = std::fs::read("/proc/meminfo").unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines()
        .find_map(|l| {
            l.strip_prefix("MemAvailable:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
        .map_or(usize::MAX / 2, |kib: usize| kib * 1024)
}

fn protection(permissions: &str) -> u8 {
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

/// Kind of the memory at `address`, the stack apart.
pub fn kind(images: &[Image], address: u64) -> u8 {
    match of_program(images, address) {
        Some(false) => KIND_FOREIGN,
        _ => 0,
    }
}

/// Puts the memory that is to be protected into the engine's spans, as seen from a stack pointer, the loaded images and
/// the thread's control block. If a capture has not begun to run, describes the mappings there.
pub fn lay_out(
    engine: &mut Engine,
    mapping_limit: usize,
    pointer: u64,
    images: &[Image],
    control: (usize, usize),
) -> Result<(), String> {
    /// Mappings left to the program and to what the estimate of splits misses.
    const SPARE: isize = 2500;
    let fresh = engine.level.as_ref().is_some_and(|l| l.started == 0);
    let all = if fresh { mappings()? } else { mapped()? };
    engine.budget = mapping_limit as isize - all.len() as isize - SPARE;
    engine.spans.clear();
    let holds = |m: &&Mapping| m.start < pointer && pointer <= m.end;
    let mut fits = true;
    let twice = if fresh { twice() } else { Vec::new() };
    for mapping in &all {
        let protection = protection(&mapping.permissions);
        let code = protection & libc::PROT_EXEC as u8 != 0;
        let (start, end) = (mapping.start as usize, mapping.end as usize);
        let mut kind = kind(images, mapping.start);
        // What no image holds was made by the program: its code is the region's.
        let library = of_program(images, mapping.start) == Some(false);
        if mapping.path.starts_with('/') {
            kind |= KIND_FILE;
        }
        if twice.contains(&mapping.start) {
            kind |= KIND_TWICE;
        }
        let runtime = crate::openmp::holds(start);
        if protection == 0 || mapping.path.starts_with("[v") || (code && library) || runtime {
            continue;
        }
        if holds(&mapping) && mapping.path == STACK {
            kind |= KIND_STACK;
        }
        fits &= engine.spans.insert(Span {
            start,
            end,
            protection,
            kind,
        });
    }
    for (start, end) in engine.own.iter().chain(&engine.stacks).copied() {
        fits &= engine.spans.carve(start, end);
    }
    fits &= engine.spans.carve(control.0, control.1);
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
        let heap = crate::heap::range();
        let own = engine.own.iter().map(|o| (o.0 as u64, o.1 as u64));
        let own: Vec<(u64, u64)> = own.chain([heap]).collect();
        if place.grows {
            level.stack = place.stack;
        } else {
            level.entry.frames = Some(pointer & !(PAGE as u64 - 1));
        }
        level.mappings = without(all, &own);
        let used = (level.heap.used as u64).next_multiple_of(PAGE as u64);
        let mut ranges: Vec<(u64, u64)> = private(&level.mappings).collect();
        ranges.push((heap.0, used.max(heap.0)));
        ranges.sort_unstable();
        level.absent = absent(&ranges);
    }
    Ok(())
}

/// Pages of mappings that are asked for, at most: 16 GiB, which takes tens of milliseconds.
const ASKED: u64 = 1 << 22;

/// Private memory without a file, the stack apart.
fn private(mappings: &[Mapping]) -> impl Iterator<Item = (u64, u64)> {
    let own = |m: &&Mapping| {
        let place = m.path.is_empty() || m.path == "[heap]";
        place && m.permissions.starts_with("rw") && m.permissions.ends_with('p')
    };
    mappings.iter().filter(own).map(|m| (m.start, m.end))
}

/// The pages of `ranges`, which rise, that are not there yet. What the kernel does not tell counts as there.
fn absent(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    use std::os::unix::fs::FileExt;
    /// In memory, or swapped out.
    const SOMEWHERE: u64 = 3 << 62;
    let mut found: Vec<(u64, u64)> = Vec::new();
    let Ok(file) = std::fs::File::open("/proc/self/pagemap") else {
        return found;
    };
    let mut words = vec![0u8; 8 << 12];
    let mut asked = 0;
    for &(start, end) in ranges {
        let pages = (end - start) / PAGE as u64;
        if asked + pages > ASKED {
            continue;
        }
        asked += pages;
        let mut at = start;
        while at < end {
            let count = ((end - at) as usize / PAGE).min(words.len() / 8);
            let words = &mut words[..8 * count];
            if file.read_exact_at(words, at / PAGE as u64 * 8).is_err() {
                break;
            }
            for (word, page) in words.as_chunks::<8>().0.iter().zip((at..).step_by(PAGE)) {
                if u64::from_le_bytes(*word) & SOMEWHERE != 0 {
                    continue;
                }
                match found.last_mut() {
                    Some(last) if last.1 == page => last.1 += PAGE as u64,
                    _ => found.push((page, page + PAGE as u64)),
                }
            }
            at += (count * PAGE) as u64;
        }
    }
    found
}

/// What of `mappings` lies outside `ranges`: the kernel makes one mapping of neighbours.
fn without(mappings: Vec<Mapping>, ranges: &[(u64, u64)]) -> Vec<Mapping> {
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
pub fn control(thread: usize, images: &[Image]) -> (usize, usize) {
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

    #[test]
    fn mappings_without_ours() {
        let all = parse(
            "1000-5000 rw-p 00000000 00:00 0 \n\
             5000-9000 r--p 00001000 08:01 12 /a\n\
             a000-b000 rw-p 00000000 00:00 0 \n",
        );
        let ranges = [(0x2000, 0x3000), (0x4000, 0x6000), (0x9000, 0xc000)];
        let left = without(all, &ranges);
        let left: Vec<(u64, u64, u64)> = left.iter().map(|m| (m.start, m.end, m.offset)).collect();
        let expected = [
            (0x1000, 0x2000, 0),
            (0x3000, 0x4000, 0),
            (0x6000, 0x9000, 0x2000),
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn smaps_with_names_and_huge_pages() {
        let list = parse(
            "55e0-55f0 r-xp 00001000 08:01 12 /a b/c (deleted)\nSize: 64 kB\nVmFlags: rd ex \n\
             7f00-8f00 rw-p 00000000 00:00 0 \nAnonHugePages: 2048 kB\n\
             9f00-af00 rw-p 00000000 00:00 0 [stack]\nVmFlags: rd wr hg\n",
        );
        assert_eq!(list.len(), 3);
        assert_eq!(
            (list[0].start, list[0].end, list[0].offset),
            (0x55e0, 0x55f0, 0x1000)
        );
        assert_eq!(list[0].path, "/a b/c (deleted)");
        assert_eq!(list[0].permissions, "r-xp");
        assert!(!list[0].huge && list[1].huge && list[2].huge);
        assert_eq!(
            (list[1].path.as_str(), list[2].path.as_str()),
            ("", "[stack]")
        );
    }
}
