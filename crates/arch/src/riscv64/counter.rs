//! The counter of time (`rdtime`): a constant rate, often 1 to 100 MHz, the same on all processors.

use core::arch::asm;

/// Its name.
pub const NAME: &str = "time counter";

/// Whether its rate is constant: the architecture says so, whatever `/proc/cpuinfo` does.
#[must_use]
pub fn is_steady(_information: &str) -> Option<bool> {
    Some(true)
}

/// Whether the kernel can have readings of the counter fault: it cannot.
pub const CAN_FAULT: bool = false;

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
