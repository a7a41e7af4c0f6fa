//! The program's calls of its allocator that are under way, and what that allocator has free.

use std::ffi::c_void;
use std::sync::atomic::AtomicUsize;

// Initial-exec: the general model's first access in a thread may itself allocate, from within `malloc`.
core::arch::global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".balign 8",
    ".globl cere_calls_underway",
    ".hidden cere_calls_underway",
    "cere_calls_underway:",
    ".zero 8",
    ".popsection",
);

/// A call of the program's allocator in this thread. A handler that leaves one by `longjmp` leaves it counted.
pub struct Underway;

impl Underway {
    /// Counts a call until the value is dropped.
    #[inline(always)]
    pub fn begin() -> Underway {
        // SAFETY: adds to this thread's own counter; one instruction, so that no signal handler comes between.
        unsafe {
            core::arch::asm!("mov {at}, [rip + cere_calls_underway@GOTTPOFF]", "inc qword ptr fs:[{at}]",
                at = out(reg) _, options(nostack));
        }
        Underway
    }

    fn any() -> bool {
        let calls: usize;
        // SAFETY: reads this thread's own counter.
        unsafe {
            core::arch::asm!("mov {calls}, [rip + cere_calls_underway@GOTTPOFF]", "mov {calls}, fs:[{calls}]",
                calls = out(reg) calls, options(nostack, readonly, preserves_flags));
        }
        calls != 0
    }
}

impl Drop for Underway {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: as in `begin`.
        unsafe {
            core::arch::asm!("mov {at}, [rip + cere_calls_underway@GOTTPOFF]", "dec qword ptr fs:[{at}]",
                at = out(reg) _, options(nostack));
        }
    }
}

/// Free bytes of the C library's allocator. None if the program has another one, or if this thread is in a signal
/// handler that interrupted the allocator: its lists may be half changed then, and its locks this thread's own.
pub fn spare() -> Option<usize> {
    static INFO: AtomicUsize = AtomicUsize::new(0);
    static MALLOC: AtomicUsize = AtomicUsize::new(0);
    if Underway::any() {
        return None;
    }
    let info = crate::next(&INFO, c"mallinfo2");
    let malloc = crate::next(&MALLOC, c"malloc");
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
    // SAFETY: the C library's function of this name.
    let info =
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn() -> libc::mallinfo2>(info)() };
    Some(info.fordblks)
}
