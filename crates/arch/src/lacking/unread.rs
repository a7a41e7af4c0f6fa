//! A counter whose readings never fault, beside which no register says which processor read it.

/// The counter, and 0 in place of a processor: a thread that moved to another one shows it by its context switches.
#[inline(always)]
pub fn processor() -> (u64, u32) {
    (super::counter::stop(), 0)
}

/// Length of the instruction at `address` if it reads the counter: none that faults does. (Linux can have them fault on AArch64 from
/// 6.12 on; nothing uses that.)
///
/// # Safety
/// The processor has just tried to execute it.
pub unsafe fn reads_counter(_address: usize) -> Option<usize> {
    None
}
