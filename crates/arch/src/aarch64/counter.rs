//! The virtual counter of the generic timer: a constant rate, often 25 MHz to 1 GHz, the same on all processors.

use core::arch::asm;

/// Its name.
pub const NAME: &str = "generic timer";

/// Whether its rate is constant: the architecture says so, whatever `/proc/cpuinfo` does.
#[must_use]
pub fn is_steady(_information: &str) -> Option<bool> {
    Some(true)
}

/// Whether the kernel can have readings of the counter fault. Linux can from 6.12 on; nothing uses that: code that reads the counter
/// is refused before it runs.
pub const CAN_FAULT: bool = false;

/// Assembly of [`start`]: puts the counter in X0.
#[macro_export]
macro_rules! start_asm {
    () => {
        "dsb ish\nisb\nmrs x0, cntvct_el0\nisb"
    };
}

/// Assembly of [`stop`]: puts the counter in X0.
#[macro_export]
macro_rules! stop_asm {
    () => {
        "isb\nmrs x0, cntvct_el0\nisb"
    };
}

/// Reads the counter at the start of a timed part: earlier instructions are complete, later ones have not begun.
#[inline(always)]
pub fn start() -> u64 {
    let counter;
    // SAFETY: reads a counter; touches no memory.
    unsafe {
        asm!("dsb ish", "isb", "mrs {}, cntvct_el0", "isb", out(reg) counter, options(nostack, preserves_flags));
    }
    counter
}

/// Reads the counter at the end of a timed part: the part's instructions are complete, later ones have not begun.
#[inline(always)]
pub fn stop() -> u64 {
    let counter;
    // SAFETY: reads a counter; touches no memory.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) counter, options(nostack, preserves_flags));
    }
    counter
}

/// The counter; no register tells the processor: always 0. A thread that is moved shows in its context switches.
#[inline(always)]
pub fn processor() -> (u64, u32) {
    (stop(), 0)
}

/// Length of the instruction at `address` if it reads the counter: none does that faults.
///
/// # Safety
/// The processor has just tried to execute it.
pub unsafe fn reads_counter(_address: usize) -> Option<usize> {
    None
}
