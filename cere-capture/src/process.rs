//! What the kernel says of the process. Ordinary code: for hooks with everything open.

use crate::engine::Engine;
use crate::pool::PAGE;
use crate::spans::{KIND_FOREIGN, KIND_STACK, Span};
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

/// Everything that is mapped, with huge pages where the kernel tells.
pub fn mappings() -> Result<Vec<Mapping>, String> {
    let read = |path| std::fs::read(path).map_err(|e| format!("cannot read {path}: {e}"));
    let text = read("/proc/self/smaps").or_else(|_| read("/proc/self/maps"))?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

/// Start of the main thread's stack, which grows down.
pub fn stack_start() -> Option<u64> {
    let text = std::fs::read("/proc/self/maps").ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find(|l| l.ends_with(" [stack]"))?;
    header(line).map(|m| m.start)
}

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

/// Whether `address` lies in the program itself or in an instrumented library; None if in no image.
fn of_program(images: &[Image], address: u64) -> Option<bool> {
    let inside = |i: &Image| i.range.0 <= address && address < i.range.1;
    let place = images.iter().position(inside)?;
    Some(place == 0 || images[place].instrumented)
}

/// Kind of the memory at `address`, the stack apart.
pub fn kind(images: &[Image], address: u64) -> u8 {
    match of_program(images, address) {
        Some(false) => KIND_FOREIGN,
        _ => 0,
    }
}

/// Puts the memory that is to be protected into the engine's spans, for its innermost level, and describes the
/// mappings there if the level has not begun to run.
pub fn lay_out(engine: &mut Engine, mapping_limit: usize) -> Result<(), String> {
    /// Mappings left to the program and to what the estimate of splits misses.
    const SPARE: isize = 2500;
    let Some(level) = engine.levels.last_mut() else {
        return Ok(());
    };
    let all = mappings()?;
    engine.budget = mapping_limit as isize - all.len() as isize - SPARE;
    engine.spans.clear();
    let pointer = level.entry.stack_pointer;
    let holds = |m: &&Mapping| m.start < pointer && pointer <= m.end;
    let images = &level.images;
    let mut fits = true;
    for mapping in &all {
        let protection = protection(&mapping.permissions);
        let code = protection & libc::PROT_EXEC as u8 != 0;
        let (start, end) = (mapping.start as usize, mapping.end as usize);
        let mut kind = kind(images, mapping.start);
        let library =
            mapping.path.starts_with('/') && of_program(images, mapping.start) != Some(true);
        if protection == 0 || mapping.path.starts_with("[v") || (code && library) {
            continue;
        }
        if holds(&mapping) {
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
    fits &= engine.spans.carve(level.control.0, level.control.1);
    if !fits {
        return Err("the program has too many mappings".into());
    }
    if level.started == 0 {
        let heap = crate::heap::range();
        let own = engine.own.iter().map(|o| (o.0 as u64, o.1 as u64));
        let own: Vec<(u64, u64)> = own.chain([heap]).collect();
        let stack = all.iter().find(holds);
        level.stack = stack.map_or((0, 0), |m| (m.start as usize, m.end as usize));
        level.grows = stack.is_some_and(|m| m.path == "[stack]");
        level.mappings = all
            .into_iter()
            .filter(|m| !own.iter().any(|o| m.start < o.1 && o.0 < m.end))
            .collect();
    }
    Ok(())
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
