//! `malloc` and family. Outside the region they are glibc's. Inside, memory comes from the region heap at
//! the captured addresses, and pointers of captured memory are never handed to a fresh allocator.

use crate::memory;
use libc::{c_int, c_void, size_t};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Whether the region is running.
pub static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Region heap, [start, end); zero if there is none.
pub static START: AtomicU64 = AtomicU64::new(0);
/// End of the region heap.
pub static END: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn __libc_malloc(size: size_t) -> *mut c_void;
    fn __libc_calloc(count: size_t, size: size_t) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: size_t) -> *mut c_void;
    fn __libc_memalign(align: size_t, size: size_t) -> *mut c_void;
    fn __libc_free(old: *mut c_void);
}

fn captured(pointer: *mut c_void) -> bool {
    memory::reserved(pointer as u64)
}

/// `malloc`.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: size_t) -> *mut c_void {
    // SAFETY: as the caller's.
    unsafe { __libc_malloc(size) }
}
/// `calloc`.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: size_t, size: size_t) -> *mut c_void {
    // SAFETY: as the caller's.
    unsafe { __libc_calloc(count, size) }
}
/// `free`; of captured memory: nothing.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(old: *mut c_void) {
    if old.is_null() || captured(old) {
        return;
    }
    // SAFETY: as the caller's.
    unsafe { __libc_free(old) }
}
/// `realloc`; of captured memory: a fresh block with the old content.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(old: *mut c_void, size: size_t) -> *mut c_void {
    if !old.is_null() && captured(old) {
        // SAFETY: glibc keeps the size of a block in the word before it; the block is captured memory.
        unsafe {
            let usable = (*(old as *const u64).sub(1) & !7).saturating_sub(8);
            let new = malloc(size);
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(
                    old as *const u8,
                    new as *mut u8,
                    size.min(usable as usize),
                );
            }
            return new;
        }
    }
    // SAFETY: as the caller's.
    unsafe { __libc_realloc(old, size) }
}
/// `memalign`.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: size_t, size: size_t) -> *mut c_void {
    // SAFETY: as the caller's.
    unsafe { __libc_memalign(align, size) }
}
/// `aligned_alloc`.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: size_t, size: size_t) -> *mut c_void {
    // SAFETY: as the caller's.
    unsafe { memalign(align, size) }
}
/// `posix_memalign`.
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    out: *mut *mut c_void,
    align: size_t,
    size: size_t,
) -> c_int {
    if !align.is_power_of_two() || align < 8 {
        return libc::EINVAL;
    }
    // SAFETY: as the caller's.
    unsafe {
        let block = memalign(align, size);
        if block.is_null() {
            return libc::ENOMEM;
        }
        *out = block;
    }
    0
}
