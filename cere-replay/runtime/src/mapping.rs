//! `mmap` and family inside the region. The addresses that the captured invocation mapped are there already;
//! which of them a call gets follows from the kernel's rule: the free range nearest to the base of its mappings.

use crate::heap::ACTIVE;
use crate::pages::PAGE;
use crate::{library, space};
use cere_format::package::Manifest;
use libc::{c_int, c_long, c_void, off_t, size_t};
use std::ptr::{copy_nonoverlapping, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where kernels with mappings that grow upwards start them without randomisation, up to the end of what is likely.
const UPWARDS: std::ops::Range<u64> = 0x2aaa_aaaa_a000..0x2c00_0000_0000;

/// Captured addresses that are free inside the region.
struct Free {
    /// By rising address, never touching.
    ranges: Vec<(u64, u64)>,
    upwards: bool,
}

static FREE: Mutex<Free> = Mutex::new(Free {
    ranges: Vec::new(),
    upwards: false,
});

impl Free {
    fn take(&mut self, length: u64) -> Option<u64> {
        let fits = |r: &(u64, u64)| r.1 - r.0 >= length;
        let found = if self.upwards {
            self.ranges.iter().position(fits)
        } else {
            self.ranges.iter().rposition(fits)
        }?;
        let range = &mut self.ranges[found];
        let at = if self.upwards {
            range.0 += length;
            range.0 - length
        } else {
            range.1 -= length;
            range.1
        };
        if range.0 == range.1 {
            self.ranges.remove(found);
        }
        Some(at)
    }

    /// Takes [start, end), if all of it is free.
    fn take_at(&mut self, start: u64, end: u64) -> bool {
        let holds = |r: &(u64, u64)| r.0 <= start && end <= r.1;
        let Some(found) = self.ranges.iter().position(holds) else {
            return false;
        };
        let (from, to) = self.ranges.remove(found);
        for rest in [(end, to), (from, start)] {
            if rest.0 < rest.1 {
                self.ranges.insert(found, rest);
            }
        }
        true
    }

    fn give(&mut self, start: u64, end: u64) {
        self.ranges.push((start, end));
        self.ranges = space::merge(std::mem::take(&mut self.ranges), 0);
    }
}

/// Before a repetition: all that was mapped inside is free.
pub fn reset(manifest: &Manifest) {
    let end = manifest.program_break;
    let data = manifest.mappings.iter().find(|m| m.path == "[heap]");
    BREAK.store(end, Relaxed);
    LOWEST.store(data.map_or(end, |m| m.start.min(end)), Relaxed);
    if let Ok(mut free) = FREE.lock() {
        free.ranges = space::merge(manifest.fresh.clone(), 0);
        let mappings = manifest.mappings.iter().map(|m| m.start);
        let mut all = mappings.chain(manifest.fresh.iter().map(|r| r.0));
        free.upwards = all.any(|start| UPWARDS.contains(&start));
    }
}

/// Whether the call is the region's and about captured addresses.
fn inside(address: *mut c_void) -> bool {
    ACTIVE.load(Relaxed) && space::reserved(address as u64)
}

/// Makes a captured range read as zero.
fn drop_pages(start: u64, end: u64) {
    // SAFETY: captured addresses that the region gave up.
    unsafe {
        libc::madvise(
            start as *mut c_void,
            (end - start) as usize,
            libc::MADV_DONTNEED,
        );
    }
}

fn rounded(length: size_t) -> u64 {
    (length as u64).saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// Inside, anonymous memory comes from the addresses that the captured invocation mapped.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    if ACTIVE.load(Relaxed) && flags & libc::MAP_ANONYMOUS != 0 && length > 0 {
        let length = rounded(length);
        if flags & libc::MAP_FIXED != 0 && inside(address) {
            let start = address as u64;
            if let Ok(mut free) = FREE.lock() {
                free.take_at(start, start + length);
            }
            drop_pages(start, start + length);
            return address;
        }
        // A free address that the region asks for is what the kernel gave it.
        let (start, end) = (address as u64, (address as u64).saturating_add(length));
        let wanted = |free: &mut Free| (start != 0 && free.take_at(start, end)).then_some(start);
        let take =
            |mut free: std::sync::MutexGuard<Free>| wanted(&mut free).or_else(|| free.take(length));
        let place = FREE.lock().ok().and_then(take);
        if let Some(place) = place {
            return place as *mut c_void;
        }
    }
    // SAFETY: memory that is not captured is the program's own, to map as it likes; the kernel checks the arguments.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            address,
            length,
            c_long::from(protection),
            c_long::from(flags),
            c_long::from(file),
            offset,
        )
    };
    rc as *mut c_void
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: memory that is not captured is the program's own, to map as it likes; the kernel checks the arguments.
    unsafe { mmap(address, length, protection, flags, file, offset) }
}

/// Captured addresses stay mapped: the next repetition needs them.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    if inside(address) {
        let (start, end) = (address as u64, address as u64 + rounded(length));
        drop_pages(start, end);
        if let Ok(mut free) = FREE.lock() {
            free.give(start, end);
        }
        return 0;
    }
    // SAFETY: memory that is not captured is the program's own, to map as it likes; the kernel checks the arguments.
    unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int }
}

/// Without a wanted address.
#[unsafe(no_mangle)]
unsafe extern "C" fn mremap(
    address: *mut c_void,
    old_length: size_t,
    new_length: size_t,
    flags: c_int,
    wanted: *mut c_void,
) -> *mut c_void {
    if !inside(address) || flags & libc::MREMAP_FIXED != 0 {
        // SAFETY: memory that is not captured is the program's own, to map as it likes; the kernel checks the arguments.
        return unsafe {
            libc::syscall(
                libc::SYS_mremap,
                address,
                old_length,
                new_length,
                flags,
                wanted,
            )
        } as *mut c_void;
    }
    let start = address as u64;
    let (old, new) = (rounded(old_length), rounded(new_length));
    if new <= old {
        // SAFETY: the end of the caller's mapping.
        unsafe { munmap((start + new) as *mut c_void, (old - new) as usize) };
        return address;
    }
    let grown = |mut free: std::sync::MutexGuard<Free>| free.take_at(start + old, start + new);
    if FREE.lock().ok().is_some_and(grown) {
        return address;
    }
    // SAFETY: a new place and the caller's mapping, which is given up.
    unsafe {
        let place = mmap(
            null_mut(),
            new as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if place != libc::MAP_FAILED {
            copy_nonoverlapping(address as *const u8, place as *mut u8, old as usize);
            munmap(address, old as usize);
        }
        place
    }
}

/// Inside, captured memory stays as open as it is.
#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(address: *mut c_void, length: size_t, protection: c_int) -> c_int {
    if inside(address) {
        return 0;
    }
    // SAFETY: memory that is not captured is the program's own, to map as it likes; the kernel checks the arguments.
    unsafe { libc::syscall(libc::SYS_mprotect, address, length, protection) as c_int }
}

/// End of the captured program's data; 0 if the capture does not tell.
static BREAK: AtomicU64 = AtomicU64::new(0);

/// What it cannot move below.
static LOWEST: AtomicU64 = AtomicU64::new(0);

/// Where the captured program's data ends, if the call is the region's.
fn captured_break() -> Option<u64> {
    let end = BREAK.load(Relaxed);
    (end != 0 && ACTIVE.load(Relaxed)).then_some(end)
}

/// Moves the end of the captured program's data; -1 if there is no room.
fn move_break(from: u64, to: u64) -> c_int {
    let (old, new) = (rounded(from as size_t), rounded(to as size_t));
    let there = (old..new).step_by(PAGE as usize).all(space::reserved);
    if to < LOWEST.load(Relaxed) || !there {
        // SAFETY: this thread's errno.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
        return -1;
    }
    if new < old {
        drop_pages(new, old);
    }
    BREAK.store(to, Relaxed);
    0
}

/// Inside, the captured program's.
#[unsafe(no_mangle)]
unsafe extern "C" fn brk(address: *mut c_void) -> c_int {
    if let Some(from) = captured_break() {
        return move_break(from, address as u64);
    }
    type Brk = unsafe extern "C" fn(*mut c_void) -> c_int;
    let Some(real) = library::next(c"brk") else {
        return -1;
    };
    // SAFETY: the C library's function, of that type.
    unsafe { std::mem::transmute::<*mut c_void, Brk>(real)(address) }
}

/// Inside, the captured program's.
#[unsafe(no_mangle)]
unsafe extern "C" fn sbrk(change: libc::intptr_t) -> *mut c_void {
    if let Some(from) = captured_break() {
        return match move_break(from, from.wrapping_add_signed(change as i64)) {
            0 => from as *mut c_void,
            _ => libc::MAP_FAILED,
        };
    }
    type Sbrk = unsafe extern "C" fn(libc::intptr_t) -> *mut c_void;
    let Some(real) = library::next(c"sbrk") else {
        return libc::MAP_FAILED;
    };
    // SAFETY: the C library's function, of that type.
    unsafe { std::mem::transmute::<*mut c_void, Sbrk>(real)(change) }
}

#[cfg(test)]
mod tests {
    use super::Free;

    #[test]
    fn the_nearest_free_range() {
        let mut free = Free {
            ranges: vec![(0x1000, 0x4000), (0x8000, 0x9000)],
            upwards: false,
        };
        assert_eq!(free.take(0x1000), Some(0x8000));
        assert_eq!(free.take(0x1000), Some(0x3000));
        free.give(0x8000, 0x9000);
        assert!(free.take_at(0x1000, 0x2000) && !free.take_at(0x1000, 0x2000));
        assert_eq!(free.take(0x2000), None);
        free.upwards = true;
        assert_eq!(free.take(0x1000), Some(0x2000));
    }
}
