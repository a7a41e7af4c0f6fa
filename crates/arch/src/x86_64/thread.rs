//! The thread pointer.

use core::arch::asm;

/// Words of the control block that a captured one is put in place of: the address of the block itself, the table of thread-local
/// blocks, both guards.
pub const SELF: u64 = 0;
/// See [`SELF`].
pub const TABLE: u64 = 8;
/// See [`SELF`].
pub const GUARDS: u64 = 0x28;
/// Whether the control block lies where the thread pointer points, with the thread-local blocks below it, so that it can lie where
/// the captured one did.
pub const MOVES: bool = true;

/// The calling thread's control block.
#[inline(always)]
#[must_use]
pub fn pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first word of the control block is its own address on x86-64.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// Has the calling thread's control block at `to`; zero or a negated error.
///
/// # Safety
/// A control block is there.
pub unsafe fn set_pointer(to: usize) -> isize {
    const ARCH_SET_FS: usize = 0x1002;
    // SAFETY: by the contract.
    unsafe { crate::call::call(libc::SYS_arch_prctl, [ARCH_SET_FS, to, 0, 0, 0, 0]) }
}
