//! System calls without libc.

use core::arch::asm;

/// A system call that answers `what` in `words`.
///
/// # Safety
/// The call writes no more than the words.
#[inline(always)]
pub unsafe fn ask(number: i64, what: i64, words: &mut [u64]) {
    // SAFETY: the kernel changes the words, by the contract, and the registers that are named here.
    unsafe {
        asm!("syscall", inlateout("rax") number => _, in("rdi") what, in("rsi") words.as_mut_ptr(),
            out("rcx") _, out("r11") _, options(nostack));
    }
}
