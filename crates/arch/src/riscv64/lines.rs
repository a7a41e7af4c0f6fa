//! Cache lines.

use core::arch::asm;

/// What throws a line out by its address: nothing that programs may use on all processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flush;

/// What every processor has: nothing, see [`flush`].
pub const ALWAYS: Flush = Flush;

/// Bytes of a line; 0: the processor does not say.
#[must_use]
pub fn size() -> u64 {
    0
}

/// What this processor has: none.
#[must_use]
pub fn flush() -> Option<Flush> {
    None
}

impl Flush {
    /// Nothing.
    ///
    /// # Safety
    /// None is needed.
    #[inline(always)]
    pub unsafe fn line(self, _address: u64) {}
}

/// Waits for accesses before.
pub fn settle() {
    // SAFETY: a barrier orders accesses and makes none.
    unsafe { asm!("fence", options(nostack, preserves_flags)) };
}
