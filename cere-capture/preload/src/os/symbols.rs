//! The next definitions of functions that the library interposes.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Finds the next definition of a symbol; caches it. 0 if there is none. The first look-up may allocate.
pub fn find_next(cache: &AtomicUsize, name: &CStr) -> usize {
    let known = cache.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: a plain look-up.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
    cache.store(found, Ordering::Relaxed);
    found
}
