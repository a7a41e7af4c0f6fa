//! Cache lines.

use core::arch::asm;

/// What throws a line out by its address: `dc civac`, which Linux lets programs use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flush;

/// What every processor has.
pub const ALWAYS: Flush = Flush;

/// Bytes of a line: the smallest of the data caches.
#[must_use]
pub fn size() -> u64 {
    let kinds: u64;
    // SAFETY: reads a register that says what caches are like; Linux lets programs read it.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) kinds, options(nomem, nostack, preserves_flags)) };
    4 << (kinds >> 16 & 0xf)
}

/// What this processor has.
#[must_use]
pub fn flush() -> Option<Flush> {
    Some(Flush)
}

impl Flush {
    /// Throws the line at `address` out of every cache of every core.
    ///
    /// # Safety
    /// The address is mapped for reading.
    #[inline(always)]
    pub unsafe fn line(self, address: u64) {
        // SAFETY: a readable address, as the caller says; the instruction changes no content.
        unsafe { asm!("dc civac, {}", in(reg) address, options(nostack, preserves_flags)) };
    }
}

/// Waits for flushes, and for accesses before them.
pub fn settle() {
    // SAFETY: barriers order accesses and make none.
    unsafe { asm!("dsb sy", "isb", options(nostack, preserves_flags)) };
}
