//! The virtual counter of the generic timer: a constant rate, often 25 MHz to 1 GHz, the same on all processors.

pub use super::unread::{processor, reads_counter};
use core::arch::asm;

/// Its name.
pub const NAME: &str = "generic timer";

/// Whether its rate is constant: the architecture says so, whatever `/proc/cpuinfo` does.
#[must_use]
pub fn is_steady(_information: &str) -> Option<bool> {
    Some(true)
}

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
