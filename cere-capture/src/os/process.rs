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

/// Has [`is_copy`] recognise processes that this one starts. A kernel that does not clear pages (before Linux 4.14) has only
/// those recognised that libc's `fork` starts.
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

/// Whether this is another process than the one that results are of, started by a system call that libc knows nothing of.
#[inline(always)]
pub fn is_copy() -> bool {
    let mark = MARK.load(Ordering::Relaxed);
    // SAFETY: null, or a page of our own.
    unsafe { mark.as_ref() }.is_some_and(|mark| *mark == 0)
}
