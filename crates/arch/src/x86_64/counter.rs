//! The time stamp counter.

use core::arch::asm;

/// Its name.
pub const NAME: &str = "time stamp counter";

/// Whether its rate is constant, from the text of `/proc/cpuinfo`; none if the processor has no `rdtscp`, which times.
#[must_use]
pub fn is_steady(information: &str) -> Option<bool> {
    let line = information.lines().find(|l| l.starts_with("flags"))?;
    let has = |flag: &str| line.split_whitespace().any(|f| f == flag);
    has("rdtscp").then(|| has("constant_tsc") && has("nonstop_tsc"))
}

/// Assembly of [`start`]: puts the counter in RAX and overwrites RDX.
#[macro_export]
macro_rules! start_asm {
    () => {
        "lfence\nrdtsc\nlfence\nshl rdx, 32\nor rax, rdx"
    };
}

/// Assembly of [`stop`]: puts the counter in RAX and the processor's register TSC_AUX in ECX, and overwrites RDX.
#[macro_export]
macro_rules! stop_asm {
    () => {
        "rdtscp\nlfence\nshl rdx, 32\nor rax, rdx"
    };
}

/// Reads the counter at the start of a timed part: earlier instructions are complete, later ones have not begun.
#[inline(always)]
pub fn start() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter; touches no memory.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Reads the counter at the end of a timed part: the part's instructions are complete, later ones have not begun.
#[inline(always)]
pub fn stop() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter; touches no memory.
    unsafe {
        asm!("rdtscp", "lfence", out("eax") low, out("edx") high, out("ecx") _, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// The counter, and which processor read it (the register TSC_AUX).
#[inline(always)]
pub fn processor() -> (u64, u32) {
    let (low, high, processor): (u32, u32, u32);
    // SAFETY: reads two registers of the processor; touches no memory.
    unsafe {
        asm!("rdtscp", out("eax") low, out("edx") high, out("ecx") processor, options(nomem, nostack, preserves_flags));
    }
    (u64::from(high) << 32 | u64::from(low), processor)
}

/// Length of the instruction at `address` if it reads the counter: 2 for `rdtsc`, 3 for `rdtscp`.
///
/// # Safety
/// The processor has just tried to execute it.
pub unsafe fn reads_counter(address: usize) -> Option<usize> {
    let at = address as *const u8;
    // An address that is none is at fault itself.
    if address >> 47 != 0 {
        return None;
    }
    // SAFETY: the processor has just tried to execute it; both instructions are as long as what is read.
    unsafe {
        if at.read() != 0x0f {
            return None;
        }
        match at.add(1).read() {
            0x31 => Some(2),
            0x01 if at.add(2).read() == 0xf9 => Some(3),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_steady;

    #[test]
    fn rates_of_counters() {
        let of = |flags: &str| is_steady(&format!("processor\t: 0\nflags\t\t: fpu {flags} sse\n"));
        assert_eq!(of("rdtscp constant_tsc nonstop_tsc"), Some(true));
        assert_eq!(of("rdtscp constant_tsc"), Some(false));
        assert_eq!(of("constant_tsc nonstop_tsc"), None);
        assert_eq!(is_steady(""), None);
    }
}
