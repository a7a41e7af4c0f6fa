//! `mmap` and family inside the region: what the captured invocation mapped is there already, at its addresses.

use crate::heap::ACTIVE;
use crate::pages::PAGE;
use crate::space;
use libc::{c_int, c_long, c_void, off_t, size_t};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

/// Ranges mapped inside the captured invocation, and whether this repetition handed them out.
static FRESH: Mutex<Vec<((u64, u64), bool)>> = Mutex::new(Vec::new());

/// Before a repetition: nothing is handed out.
pub fn reset(fresh: &[(u64, u64)]) {
    if let Ok(mut ranges) = FRESH.lock() {
        *ranges = fresh.iter().map(|r| (*r, false)).collect();
    }
}

fn take(length: u64) -> Option<u64> {
    let mut ranges = FRESH.lock().ok()?;
    let fits = |r: &&mut ((u64, u64), bool)| !r.1 && r.0.1 - r.0.0 == length;
    let found = ranges.iter_mut().find(fits)?;
    found.1 = true;
    Some(found.0.0)
}

/// `mmap`. Inside, anonymous memory of a length that the captured invocation mapped comes from there.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    if ACTIVE.load(Relaxed)
        && flags & libc::MAP_ANONYMOUS != 0
        && let Some(place) = take((length as u64).next_multiple_of(PAGE))
    {
        return place as *mut c_void;
    }
    // SAFETY: as the caller's.
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

/// `mmap64`.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: as the caller's.
    unsafe { mmap(address, length, protection, flags, file, offset) }
}

/// `munmap`. Captured addresses stay mapped: the next repetition needs them.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    if ACTIVE.load(Relaxed) && space::reserved(address as u64) {
        return 0;
    }
    // SAFETY: as the caller's.
    unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int }
}
