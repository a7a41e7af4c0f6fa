//! Cache lines.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};

/// What throws a line out by its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// `clflushopt`: in any order.
    Unordered,
    /// `clflush`.
    Ordered,
}

/// What every processor has.
pub const ALWAYS: Flush = Flush::Ordered;

/// Bytes of a line; 0 if the processor does not say.
#[must_use]
pub fn size() -> u64 {
    u64::from(__cpuid(1).ebx >> 8 & 0xff) * 8
}

/// What this processor has.
#[must_use]
pub fn flush() -> Option<Flush> {
    const CLFLUSH: u32 = 1 << 19;
    const CLFLUSHOPT: u32 = 1 << 23;
    let (highest, features) = (__cpuid(0).eax, __cpuid(1));
    let extended = match highest {
        7.. => __cpuid_count(7, 0).ebx,
        _ => 0,
    };
    match () {
        () if extended & CLFLUSHOPT != 0 => Some(Flush::Unordered),
        () if features.edx & CLFLUSH != 0 => Some(Flush::Ordered),
        () => None,
    }
}

impl Flush {
    /// Throws the line at `address` out of every cache of every core.
    ///
    /// # Safety
    /// The address is mapped for reading.
    #[inline(always)]
    pub unsafe fn line(self, address: u64) {
        // SAFETY: a readable address, as the caller says; the instructions change no content.
        unsafe {
            match self {
                Flush::Unordered => {
                    asm!("clflushopt [{}]", in(reg) address, options(nostack, preserves_flags));
                }
                Flush::Ordered => {
                    asm!("clflush [{}]", in(reg) address, options(nostack, preserves_flags));
                }
            }
        }
    }
}

/// Waits for flushes, and for accesses before them.
pub fn settle() {
    // SAFETY: fences order accesses and make none.
    unsafe { asm!("mfence", "lfence", options(nostack, preserves_flags)) };
}
