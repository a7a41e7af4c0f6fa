//! Code of large libraries in huge pages: a fork shares them at no cost, where each child would fault in the pages of a file
//! once more, and they need few entries of the translation caches.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{copy_nonoverlapping, null_mut};

const HUGE: usize = 2 << 20;
/// Smaller code is not worth it.
const LARGE: usize = 16 << 20;
const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Moves the code of all large libraries, where the system has huge pages. What cannot be moved stays.
pub fn move_code() {
    let setting = std::fs::read_to_string(SETTING).unwrap_or_default();
    if !setting.contains("[always]") && !setting.contains("[madvise]") {
        return;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for code in maps.lines().filter_map(large_code) {
        // SAFETY: the range is code of a library that nothing of this function is in: those are small.
        unsafe { copy(code) };
    }
}

/// The huge pages within a line of `/proc/self/maps`, if it is much code.
fn large_code(line: &str) -> Option<Range<usize>> {
    let mut words = line.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    let inside = start.next_multiple_of(HUGE)..end / HUGE * HUGE;
    (words.next()? == "r-xp" && inside.len() >= LARGE).then_some(inside)
}

/// Puts a copy in huge pages in the place of `code`, if there is room for one.
///
/// # Safety
/// `code` is mapped, nobody writes it, and no function called here lies in it.
unsafe fn copy(code: Range<usize>) {
    const WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
    const NEW: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    const REPLACE: i32 = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let (place, size) = (code.start as *mut c_void, code.len());
    // SAFETY: new memory, to which nothing refers until it replaces the same bytes at once.
    unsafe {
        let room = libc::mmap(null_mut(), size + HUGE, WRITE, NEW, -1, 0);
        if room == libc::MAP_FAILED {
            return;
        }
        let before = room.align_offset(HUGE);
        let aligned = room.byte_add(before);
        if libc::madvise(aligned, size, libc::MADV_HUGEPAGE) == 0 {
            copy_nonoverlapping(place.cast::<u8>(), aligned.cast(), size);
            libc::mprotect(aligned, size, libc::PROT_READ | libc::PROT_EXEC);
            if libc::mremap(aligned, size, size, REPLACE, place) == place {
                // Its ends are left, which nobody touched.
                return;
            }
        }
        libc::munmap(room, size + HUGE);
    }
}
