//! Guard pages (`MADV_GUARD_INSTALL`, Linux 6.13): an access is a SIGSEGV though the mapping allows it. The library never touches
//! them: in a handler that would end the program. Ordinary code, with everything open.

use super::files::File;
use super::sys::{self, PAGE};
use std::path::Path;

/// Advice that installs guard pages.
pub const INSTALL: usize = 102;
/// Advice that removes them.
pub const REMOVE: usize = 103;

/// The kernel's `pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    found: u64,
    found_most: u64,
    pages_most: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    shown: u64,
}

/// Its `page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    kinds: u64,
}

/// Whether the kernel knows guard pages.
fn exist() -> bool {
    #[repr(align(4096))]
    struct Page {
        _bytes: [u8; PAGE],
    }
    let page = Box::into_raw(Box::new(Page { _bytes: [0; PAGE] }));
    let advise = |advice| {
        // SAFETY: a page of our own, which nobody touches in between.
        unsafe { sys::call(libc::SYS_madvise, [page as usize, PAGE, advice, 0, 0, 0]) }
    };
    let exist = advise(INSTALL) == 0;
    if exist && advise(REMOVE) != 0 {
        // It stays as it is, touched by nobody.
        return true;
    }
    // SAFETY: boxed above; its guard is removed.
    drop(unsafe { Box::from_raw(page) });
    exist
}

/// Guard pages in the rising `ranges`, as [start, end). None where the kernel has such pages and does not report them: before
/// Linux 6.15, or where `/proc` cannot be read.
pub fn find_guards(ranges: &[(usize, usize)]) -> Option<Vec<(usize, usize)>> {
    const PAGEMAP_SCAN: usize = 0xc060_6610;
    const IS_GUARD: u64 = 1 << 8;
    let mut list = Vec::new();
    let Ok(file) = File::open(Path::new("/proc/self/pagemap"), libc::O_RDONLY) else {
        return (!exist()).then_some(list);
    };
    let mut found = [Region::default(); 64];
    for &(start, end) in ranges {
        let mut at = start as u64;
        while at < end as u64 {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start: at,
                end: end as u64,
                found: found.as_mut_ptr() as u64,
                found_most: found.len() as u64,
                all_of: IS_GUARD,
                shown: IS_GUARD,
                ..Scan::default()
            };
            let rest = [PAGEMAP_SCAN, &raw mut scan as usize, 0];
            // SAFETY: the kernel's structures, of this frame.
            let Ok(count) = (unsafe { file.call(libc::SYS_ioctl, rest) }) else {
                return (!exist()).then_some(list);
            };
            let found = found.iter().take(count);
            list.extend(found.map(|region| (region.start as usize, region.end as usize)));
            if scan.walk_end <= at {
                break;
            }
            at = scan.walk_end;
        }
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_found_where_there_are_any() {
        const PAGES: usize = 300;
        // SAFETY: a fresh mapping of the test's own, advised where nothing is used.
        unsafe {
            let rights = (libc::PROT_READ | libc::PROT_WRITE) as usize;
            let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
            let arguments = [0, PAGES * PAGE, rights, flags, usize::MAX, 0];
            let start = sys::call(libc::SYS_mmap, arguments) as usize;
            let range = [(start, start + PAGES * PAGE)];
            if !exist() {
                assert_eq!(find_guards(&range), Some(Vec::new()));
                return;
            }
            // More regions than one question to the kernel answers.
            let mut expected = Vec::new();
            for page in (1..PAGES).step_by(3) {
                let at = start + page * PAGE;
                assert_eq!(
                    sys::call(libc::SYS_madvise, [at, PAGE, INSTALL, 0, 0, 0]),
                    0
                );
                expected.push((at, at + PAGE));
            }
            if let Some(found) = find_guards(&range) {
                assert_eq!(found, expected);
            }
        }
    }
}
