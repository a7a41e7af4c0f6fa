//! Which process this is.

use super::sys::{self, PAGE};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A page that the kernel clears in each new process; its first byte is 1 in this one. Null before [`mark`].
static MARK: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Number of the calling process.
pub fn id() -> i32 {
    // SAFETY: no arguments.
    unsafe { sys::call(libc::SYS_getpid, [0; 6]) as i32 }
}

/// Prepares [`is_copy`]. Before Linux 4.14 the kernel does not clear pages: only processes started by libc's `fork` are then
/// recognised, by its handlers.
pub fn mark() {
    const MADV_WIPEONFORK: usize = 18;
    #[repr(align(4096))]
    struct Page([u8; PAGE]);
    let mut page = Page([0; PAGE]);
    page.0[0] = 1;
    let page: *mut Page = Box::into_raw(Box::new(page));
    let arguments = [page as usize, PAGE, MADV_WIPEONFORK, 0, 0, 0];
    // SAFETY: a page of our own, which nobody else changes.
    unsafe { sys::call(libc::SYS_madvise, arguments) };
    MARK.store(page.cast(), Ordering::Relaxed);
}

/// Whether this is a child process, started by a system call that bypassed libc: results belong to its parent.
#[inline(always)]
pub fn is_copy() -> bool {
    let mark = MARK.load(Ordering::Relaxed);
    // SAFETY: null, or a page of our own.
    unsafe { mark.as_ref() }.is_some_and(|mark| *mark == 0)
}
