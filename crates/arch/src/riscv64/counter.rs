//! The counter of time (`rdtime`): a constant rate, often 1 to 100 MHz, the same on all processors.

pub use super::unread::{processor, reads_counter};
use core::arch::asm;

/// Its name.
pub const NAME: &str = "time counter";

/// Whether its rate is constant: the architecture says so, whatever `/proc/cpuinfo` does.
#[must_use]
pub fn is_steady(_information: &str) -> Option<bool> {
    Some(true)
}

/// Assembly of [`start`]: puts the counter in A0.
#[macro_export]
macro_rules! start_asm {
    () => {
        "fence\nrdtime a0\nfence"
    };
}

/// Assembly of [`stop`]: the same.
#[macro_export]
macro_rules! stop_asm {
    () => {
        "fence\nrdtime a0\nfence"
    };
}

/// Reads the counter at the start of a timed part: earlier accesses to memory are complete, later ones have not begun.
#[inline(always)]
pub fn start() -> u64 {
    let counter;
    // SAFETY: reads a counter; touches no memory.
    unsafe {
        asm!("fence", "rdtime {}", "fence", out(reg) counter, options(nostack, preserves_flags));
    }
    counter
}

/// Reads the counter at the end of a timed part: likewise.
#[inline(always)]
pub fn stop() -> u64 {
    start()
}
