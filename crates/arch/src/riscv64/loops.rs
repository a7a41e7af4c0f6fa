//! Loops of probes: no compiler may change them.

use core::arch::asm;

/// Goes on from the word at `from`, each word being the address of the next: `LOADS` loads in each of `rounds`, which is at least 1.
/// The address that it ends at.
///
/// # Safety
/// All words of the chain are readable and hold addresses of words of it.
#[inline(never)]
#[must_use]
pub unsafe fn chase<const LOADS: usize>(from: u64, rounds: u64) -> u64 {
    let mut at = from;
    // SAFETY: reads words of the chain, by the contract.
    unsafe {
        asm!("2:", ".rept {loads}", "ld {at}, 0({at})", ".endr", "addi {left}, {left}, -1", "bnez {left}, 2b", loads = const LOADS,
            at = inout(reg) at, left = inout(reg) rounds.max(1) => _, options(readonly, nostack));
    }
    at
}

/// Adds 1 to the word at `first` and at each of `lines`, at least 1, `stride` bytes apart.
///
/// # Safety
/// The words are there and writable; nobody else uses them meanwhile.
#[inline(never)]
pub unsafe fn increment(first: u64, lines: u64, stride: u64) {
    // SAFETY: changes the words of the contract.
    unsafe {
        asm!("2:", "ld {word}, 0({at})", "addi {word}, {word}, 1", "sd {word}, 0({at})", "add {at}, {at}, {stride}",
            "addi {left}, {left}, -1", "bnez {left}, 2b", word = out(reg) _, at = inout(reg) first => _, stride = in(reg) stride,
            left = inout(reg) lines.max(1) => _, options(nostack));
    }
}

/// Dependent additions of two registers: `LENGTH` in each of `rounds`, at least 1.
#[inline(never)]
pub fn additions<const LENGTH: usize>(rounds: u64) {
    // SAFETY: registers alone.
    unsafe {
        asm!("2:", ".rept {length}", "add {sum}, {sum}, {one}", ".endr", "addi {left}, {left}, -1", "bnez {left}, 2b",
            length = const LENGTH, sum = inout(reg) 0u64 => _, one = in(reg) 1u64, left = inout(reg) rounds.max(1) => _,
            options(nomem, nostack));
    }
}

/// A branch for each byte, taken where it is 0.
#[inline(never)]
pub fn branches(directions: &[u8]) {
    if directions.is_empty() {
        return;
    }
    // SAFETY: reads the bytes of the slice.
    unsafe {
        asm!("2:", "lbu {byte}, 0({at})", "addi {at}, {at}, 1", "beqz {byte}, 3f", "add {byte}, {byte}, {left}", "3:",
            "addi {left}, {left}, -1", "bnez {left}, 2b", byte = out(reg) _, at = inout(reg) directions.as_ptr() => _,
            left = inout(reg) directions.len() => _, options(readonly, nostack));
    }
}

/// Keeps a variable in a general register: the compiler does not join several in one.
#[macro_export]
macro_rules! keep_integer {
    ($variable:ident) => {
        core::arch::asm!("/* {0} */", inout(reg) $variable, options(pure, nomem, nostack, preserves_flags))
    };
}

/// Likewise in a register of floating point.
#[macro_export]
macro_rules! keep_float {
    ($variable:ident) => {
        core::arch::asm!("/* {0} */", inout(freg) $variable, options(pure, nomem, nostack, preserves_flags))
    };
}

/// Likewise in a vector register: the same.
#[macro_export]
macro_rules! keep_vector {
    ($variable:ident) => {
        $crate::keep_float!($variable)
    };
}
