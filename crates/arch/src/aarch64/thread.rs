//! The thread pointer.

pub use super::unmoved::{GUARDS, MOVES, SELF, TABLE, set_pointer};
use core::arch::asm;

/// The calling thread's thread pointer.
#[inline(always)]
#[must_use]
pub fn pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
