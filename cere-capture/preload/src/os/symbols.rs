//! The next definitions of functions that the library interposes.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The next definition of a function of libc that the library interposes, of this type. Unsafe: the caller vouches for the type.
/// The first look-up of each may allocate.
macro_rules! next {
    ($name:expr, $type:ty) => {{
        static REAL: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        std::mem::transmute::<usize, $type>($crate::os::symbols::find_next(&REAL, $name))
    }};
}
pub(crate) use next;

/// The name of a function as C has it.
macro_rules! c_name {
    ($name:ident) => {
        const {
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            }
        }
    };
}
pub(crate) use c_name;

/// Finds the definition of a symbol that the program gets. 0 if there is none.
pub fn find_default(name: &CStr) -> usize {
    // SAFETY: a plain look-up.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

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
