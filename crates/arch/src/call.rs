//! System calls without libc: no errno, no thread-local storage, no function that the program may have replaced.

pub use crate::here::call::{SHARED, STARTS, inlined, native, own, packaged};

unsafe extern "C" {
    static __start_cere_calls: u8;
    static __stop_cere_calls: u8;
    fn cere_call(
        number: usize,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
    ) -> isize;
    fn cere_call_plain();
    fn cere_call_restorer();
}

/// A system call; negative results are negated errors.
///
/// # Safety
/// As the call itself.
#[inline]
pub unsafe fn call(number: i64, a: [usize; 6]) -> isize {
    // SAFETY: six registers go to the kernel; the caller answers for what the call reaches.
    unsafe { cere_call(number as usize, a[0], a[1], a[2], a[3], a[4], a[5]) }
}

/// The section with the calls, the only code that Syscall User Dispatch lets through to the kernel: its start and its length.
#[must_use]
pub fn section() -> (usize, usize) {
    let start = &raw const __start_cere_calls as usize;
    (start, &raw const __stop_cere_calls as usize - start)
}

/// The address of an instruction that makes a call, and returns, which nothing catches.
#[must_use]
pub fn plain() -> usize {
    cere_call_plain as *const () as usize
}

/// Where a handler returns to, which gives the stack pointer back to the kernel as it got it.
#[must_use]
pub fn restorer() -> usize {
    cere_call_restorer as *const () as usize
}

/// Returns from a handler whose frame lies at `stack`.
///
/// # Safety
/// It does, and this function's caller is left for good.
pub unsafe fn leave_handler(stack: usize) -> ! {
    // SAFETY: by the contract; the restorer needs no register but the stack pointer.
    unsafe { crate::here::call::go_on(stack, restorer()) }
}
