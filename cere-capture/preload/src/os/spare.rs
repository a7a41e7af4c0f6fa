//! Memory of the program's allocator: total and free.

use super::local;
use super::symbols::find_next;
use std::ffi::c_void;
use std::sync::atomic::AtomicUsize;

/// Memory that the C library's allocator has from the kernel, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Total.
    pub all: usize,
    /// Free.
    pub spare: usize,
}

/// Memory of the C library's allocator. None if the program has another allocator, or in a signal handler that interrupts the
/// allocator: its lists may be inconsistent, and this thread may hold its locks.
pub fn read_memory() -> Option<Memory> {
    static INFO: AtomicUsize = AtomicUsize::new(0);
    static MALLOC: AtomicUsize = AtomicUsize::new(0);
    if local::in_allocator() {
        return None;
    }
    let info = find_next(&INFO, c"mallinfo2");
    let malloc = find_next(&MALLOC, c"malloc");
    let image = |at: usize| {
        let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: an address of a loaded image or null; the result is filled in or stays zero.
        unsafe {
            libc::dladdr(at as *const c_void, found.as_mut_ptr());
            found.assume_init().dli_fbase as usize
        }
    };
    if info == 0 || image(info) != image(malloc) {
        return None;
    }
    type Info = unsafe extern "C" fn() -> libc::mallinfo2;
    // SAFETY: the C library's function of this name.
    let info = unsafe { std::mem::transmute::<usize, Info>(info)() };
    Some(Memory {
        all: info.arena + info.hblkhd,
        spare: info.fordblks,
    })
}
