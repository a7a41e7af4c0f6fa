//! Reserving and opening the addresses that the captured process used.

use crate::error::Error;
use crate::pages::{PAGE, Page};
use cere_format::capture::{Mapping, PAGE_ABSENT};
use cere_format::package::Manifest;
use libc::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Room below the captured stack pointer.
const STACK_ROOM: u64 = 8 << 20;
/// Room below the frames that were seen on a stack of the program's own, for other flags may need more.
const MORE_ROOM: u64 = 64 << 10;
/// Ranges opened at most: far below `vm.max_map_count`.
const MOST_RANGES: usize = 20_000;
/// A huge page.
pub const HUGE: u64 = 2 << 20;

static RESERVED: OnceLock<Vec<(u64, u64)>> = OnceLock::new();

/// Whether `address` lies in a range that belongs to the captured process.
pub fn reserved(address: u64) -> bool {
    let Some(ranges) = RESERVED.get() else {
        return false;
    };
    let position = ranges.partition_point(|r| r.1 <= address);
    ranges.get(position).is_some_and(|r| r.0 <= address)
}

/// The captured mapping that holds `address`.
pub fn place(manifest: &Manifest, address: u64) -> Option<&Mapping> {
    manifest
        .mappings
        .iter()
        .find(|m| m.start <= address && address < m.end)
}

/// Sorts, rounds to pages and merges ranges that are at most `gap` apart.
pub fn merge(mut ranges: Vec<(u64, u64)>, gap: u64) -> Vec<(u64, u64)> {
    ranges.retain(|r| r.0 < r.1);
    for r in &mut ranges {
        r.0 &= !(PAGE - 1);
        r.1 = r.1.saturating_add(PAGE - 1) & !(PAGE - 1);
    }
    ranges.retain(|r| r.0 < r.1);
    joined(ranges, gap)
}

fn joined(mut ranges: Vec<(u64, u64)>, gap: u64) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for r in ranges {
        match joined.last_mut() {
            Some(last) if r.0 <= last.1.saturating_add(gap) => last.1 = last.1.max(r.1),
            _ => joined.push(r),
        }
    }
    joined
}

/// Ranges of both, rising and apart.
pub fn union(a: &[(u64, u64)], b: &[(u64, u64)]) -> Vec<(u64, u64)> {
    joined([a, b].concat(), 0)
}

/// Bytes of ranges that are apart.
pub fn bytes(ranges: &[(u64, u64)]) -> u64 {
    ranges.iter().map(|r| r.1 - r.0).sum()
}

/// Fresh memory to read and write, mapped with `more` flags; where there is none, the system has said why.
pub fn fresh(size: usize, more: libc::c_int) -> Option<*mut c_void> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more;
    // SAFETY: a mapping where the kernel has room.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, flags, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start)
}

/// The parts of `ranges` outside `taken`; both rising and disjoint.
pub fn without(ranges: &[(u64, u64)], taken: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    for &(start, end) in ranges {
        let first = taken.partition_point(|t| t.1 <= start);
        let mut at = start;
        for &(from, to) in taken[first..].iter().take_while(|t| t.0 < end) {
            if at < from {
                left.push((at, from));
            }
            at = to;
        }
        if at < end {
            left.push((at, end));
        }
    }
    left
}

/// The captured stack below the captured pointer: the room that the region has. On a stack of the program's own, of which
/// only the frames are known, a little more than it used in vivo.
pub fn stack(manifest: &Manifest) -> (u64, u64) {
    let top = manifest.entry.stack_pointer;
    let Some(frames) = manifest.entry.frames else {
        return (top.saturating_sub(STACK_ROOM), top);
    };
    let mapping = place(manifest, top.saturating_sub(1)).map_or(0, |m| m.start);
    let lowest = frames.saturating_sub(MORE_ROOM).max(mapping);
    (lowest.clamp(top.saturating_sub(STACK_ROOM), top), top)
}

/// All that the captured process had mapped.
fn ranges(manifest: &Manifest, pages: &[Page]) -> Vec<(u64, u64)> {
    let ranges = manifest
        .mappings
        .iter()
        .filter(|m| !m.path.starts_with("[v"))
        .map(|m| (m.start, m.end))
        .chain(manifest.fresh.iter().copied())
        .chain([manifest.heap, manifest.image.range, stack(manifest)])
        .chain(pages.iter().map(|p| (p.start(), p.end())))
        .collect();
    merge(ranges, 0)
}

/// A page that keeps the C library's allocator from the break; 0: none.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Before the first allocation: the break begins anywhere behind the executable, up to 1 GiB, where captured addresses may
/// be. Until those are reserved the allocator maps its memory elsewhere.
pub fn hold_break() {
    /// No page.
    const NONE: u64 = 1;
    if HELD.load(Relaxed) != 0 || HELD.swap(NONE, Relaxed) != 0 {
        return;
    }
    let protection = libc::PROT_NONE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: asks for the break, and maps a page where nothing is. By bare calls: the functions are the region's.
    unsafe {
        let end = libc::syscall(libc::SYS_brk, 0) as u64;
        let page = end.saturating_add(PAGE - 1) & !(PAGE - 1);
        let found = libc::syscall(libc::SYS_mmap, page, PAGE, protection, flags, -1, 0);
        if found as u64 == page {
            HELD.store(page, Relaxed);
        }
    }
}

/// The captured addresses are about to be reserved, or are.
fn let_go_of_break() {
    let page = HELD.load(Relaxed);
    if page.is_multiple_of(PAGE) && page != 0 {
        // SAFETY: the page of `hold_break`, which nobody uses.
        unsafe { libc::syscall(libc::SYS_munmap, page, PAGE) };
    }
}

/// Takes over the addresses that the process that this one is a fork of reserved and opened.
pub fn inherit(manifest: &Manifest, pages: &[Page]) {
    let_go_of_break();
    let _ = RESERVED.set(ranges(manifest, pages));
}

/// Reserves all that the captured process had mapped.
pub fn reserve(manifest: &Manifest, pages: &[Page]) -> Result<(), Error> {
    let ranges = ranges(manifest, pages);
    let_go_of_break();
    for &(start, end) in &ranges {
        // SAFETY: fails where something is mapped already.
        let at = unsafe {
            libc::mmap(
                start as *mut c_void,
                (end - start) as usize,
                libc::PROT_NONE,
                libc::MAP_PRIVATE
                    | libc::MAP_ANONYMOUS
                    | libc::MAP_NORESERVE
                    | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                // Another layout may have nothing there.
                Some(libc::EEXIST) => Error::Taken {
                    start,
                    end,
                    times: 1,
                },
                _ => Error::of_system(format!(
                    "the system refuses the captured addresses {start:#x}-{end:#x}"
                ))(error),
            });
        }
        if at as u64 != start {
            return Err(Error::NoReplace);
        }
    }
    let _ = RESERVED.set(ranges);
    Ok(())
}

/// Changes the protection of [start, end).
pub fn protect(start: u64, end: u64, protection: i32) -> Result<(), Error> {
    // SAFETY: only reserved ranges are handed in.
    let rc = unsafe { libc::mprotect(start as *mut c_void, (end - start) as usize, protection) };
    if rc != 0 {
        return Err(Error::system(format!(
            "cannot change the protection of {start:#x}-{end:#x}"
        )));
    }
    Ok(())
}

/// Has the kernel put pages that are about to be filled into memory: a call for neighbours costs less than a fault for each. Best
/// effort: kernels before 5.14 leave it to the faults.
pub fn populate<'p>(pages: impl Iterator<Item = &'p Page>) {
    for (start, end) in merge(pages.map(|p| (p.start(), p.end())).collect(), 0) {
        let advice = libc::MADV_POPULATE_WRITE;
        // By the bare call: `madvise` is the region's.
        // SAFETY: captured pages, opened for writing; what they hold stays.
        unsafe { libc::syscall(libc::SYS_madvise, start, end - start, advice) };
    }
}

/// The parts of [start, end) that are in memory. All of it where the system does not say.
pub fn resident(start: u64, end: u64) -> Vec<(u64, u64)> {
    let (start, end) = (start & !(PAGE - 1), end.next_multiple_of(PAGE));
    let mut pages = vec![0u8; ((end.max(start) - start) / PAGE) as usize];
    // SAFETY: the kernel writes a byte for each page, for which there is room.
    let rc = unsafe {
        let length = pages.len() * PAGE as usize;
        libc::mincore(start as *mut c_void, length, pages.as_mut_ptr())
    };
    if rc != 0 {
        return Vec::from([(start, end)]);
    }
    let page = |at: usize| start + at as u64 * PAGE;
    let there = pages.iter().enumerate().filter(|p| p.1 & 1 != 0);
    merge(there.map(|(at, _)| (page(at), page(at + 1))).collect(), 0)
}

/// Whole huge pages of mappings that had them and that were captured for the greater part.
pub fn huge_pages(manifest: &Manifest, pages: &[Page]) -> Vec<(u64, u64)> {
    let huge: Vec<&Mapping> = manifest.mappings.iter().filter(|m| m.huge).collect();
    pages
        .chunk_by(|a, b| a.start() / HUGE == b.start() / HUGE)
        .filter(|chunk| chunk.len() as u64 > HUGE / PAGE / 2)
        .map(|chunk| chunk[0].start() & !(HUGE - 1))
        .map(|start| (start, start + HUGE))
        .filter(|r| huge.iter().any(|m| m.start <= r.0 && r.1 <= m.end))
        .collect()
}

/// Asks for huge pages wherever captured pages fill whole ones. Best effort: the system may have none.
pub fn prefer_huge(pages: &[Page]) {
    for (start, end) in merge(pages.iter().map(|p| (p.start(), p.end())).collect(), 0) {
        let (start, end) = (start.next_multiple_of(HUGE), end & !(HUGE - 1));
        if start < end {
            // SAFETY: a hint on captured pages that are open and not filled yet.
            unsafe { libc::syscall(libc::SYS_madvise, start, end - start, libc::MADV_HUGEPAGE) };
        }
    }
}

/// Ranges of pages that were not there at entry.
pub fn absent(pages: &[Page]) -> Vec<(u64, u64)> {
    let absent = pages.iter().filter(|p| p.is(PAGE_ABSENT));
    merge(absent.map(|p| (p.start(), p.end())).collect(), 0)
}

/// Opens all captured pages for writing, the stack below them, the region heap and what was mapped inside.
pub fn open(manifest: &Manifest, pages: &[Page]) -> Result<(), Error> {
    let huge = huge_pages(manifest, pages);
    let wanted: Vec<(u64, u64)> = pages
        .iter()
        .map(|p| (p.start(), p.end()))
        .chain(huge.iter().copied())
        .chain(manifest.fresh.iter().copied())
        .chain([manifest.heap, stack(manifest)])
        .collect();
    let mut gap = 0;
    let mut ranges = merge(wanted.clone(), gap);
    // Between close pages what lies between is opened as well, to stay within the number of mappings.
    while ranges.len() > MOST_RANGES {
        gap = (gap * 2).max(PAGE);
        ranges = merge(wanted.clone(), gap);
    }
    for (start, end) in ranges {
        // A gap may hold addresses that were never mapped.
        let parts = RESERVED.get().into_iter().flatten();
        for &(from, to) in parts.filter(|r| r.0 < end && start < r.1) {
            let writable = libc::PROT_READ | libc::PROT_WRITE;
            protect(from.max(start), to.min(end), writable)?;
        }
    }
    let advise = |(start, end): (u64, u64), advice| {
        // SAFETY: a hint on reserved memory; without huge pages it changes nothing.
        unsafe { libc::madvise(start as *mut c_void, (end - start) as usize, advice) };
    };
    if manifest.mappings.iter().any(|m| m.huge) {
        // The capture saw which mappings have huge pages: where the system gives them unasked, the others get none.
        let others = manifest.mappings.iter().filter(|m| !m.huge);
        let others = others.filter(|m| reserved(m.start) && !m.path.starts_with("[v"));
        others.for_each(|m| advise((m.start, m.end), libc::MADV_NOHUGEPAGE));
    }
    merge(huge, 0)
        .into_iter()
        .for_each(|r| advise(r, libc::MADV_HUGEPAGE));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{merge, union, without};

    #[test]
    fn ranges_of_both() {
        let found = union(&[(10, 100), (200, 208)], &[(20, 30), (90, 120), (150, 160)]);
        assert_eq!(found, [(10, 120), (150, 160), (200, 208)]);
        assert!(union(&[], &[]).is_empty());
    }

    #[test]
    fn what_is_left_of_ranges() {
        let ranges = [(10, 20), (30, 40), (50, 60)];
        assert_eq!(without(&ranges, &[]), ranges);
        let taken = [(0, 5), (12, 14), (18, 32), (35, 36), (50, 70)];
        let left = [(10, 12), (14, 18), (32, 35), (36, 40)];
        assert_eq!(without(&ranges, &taken), left);
        assert_eq!(without(&ranges, &[(0, 100)]), []);
    }

    #[test]
    fn ranges_merge_by_pages() {
        let ranges = vec![(0x5000, 0x5001), (0x1010, 0x2000), (0x2fff, 0x3000), (7, 7)];
        assert_eq!(
            merge(ranges.clone(), 0),
            [(0x1000, 0x3000), (0x5000, 0x6000)]
        );
        assert_eq!(merge(ranges, 0x2000), [(0x1000, 0x6000)]);
        assert_eq!(merge(vec![(u64::MAX - 1, u64::MAX)], 0), []);
    }
}
