//! Machine code that leads elsewhere.

use core::arch::asm;

/// Fills pages on which no code is to run: `brk #1`.
pub const BREAKPOINT: [u8; 4] = 0xd420_0020_u32.to_le_bytes();
/// How far behind a breakpoint the processor says that it is.
pub const AFTER_BREAKPOINT: u64 = 0;
/// Bytes of a jump to anywhere.
pub const FAR: u64 = 16;
/// Bytes of the shortest jump that there is.
pub const NEAR: u64 = 4;
/// Executed code starts at multiples of this: a jump elsewhere faults.
pub const ALIGN: u64 = 4;
/// Bytes that a near jump reaches.
const REACH: i64 = 1 << 27;

/// A jump from `at` to `to` of at most `room` bytes; none if there is no room, or if code cannot be at `at`.
#[must_use]
pub fn encode(at: u64, to: u64, room: u64) -> Option<Vec<u8>> {
    if !at.is_multiple_of(ALIGN) {
        return None;
    }
    let distance = to.wrapping_sub(at) as i64;
    match (-REACH..REACH).contains(&distance) {
        true if room >= NEAR => {
            let branch = 0x1400_0000 | (distance >> 2) as u32 & 0x03ff_ffff;
            Some(branch.to_le_bytes().to_vec())
        }
        _ if room >= FAR => Some(far(to)),
        _ => None,
    }
}

/// A jump to anywhere: `ldr x16, #8; br x16` and the address. Functions leave X16 to such code.
#[must_use]
pub fn far(to: u64) -> Vec<u8> {
    let code = [0x5800_0050_u32.to_le_bytes(), 0xd61f_0200_u32.to_le_bytes()];
    [code.as_flattened(), &to.to_le_bytes()].concat()
}

/// Has the processor see code that was written.
///
/// # Safety
/// The range is mapped.
pub unsafe fn written(start: u64, end: u64) {
    /// The least size of a line that there is.
    const LINE: usize = 16;
    for line in (start & !(LINE as u64 - 1)..end).step_by(LINE) {
        // SAFETY: a mapped line; the instructions change no content.
        unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for line in (start & !(LINE as u64 - 1)..end).step_by(LINE) {
        // SAFETY: as above.
        unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_jump_that_reaches() {
        let (old, near) = (0x40_0000, 0x40_1000);
        assert_eq!(encode(old, near, 16), Some(vec![0x00, 0x04, 0x00, 0x14]));
        assert_eq!(encode(old, near, 3), None);
        assert_eq!(encode(old + 1, near, 16), None);
        let far = 0x7fff_0000_0000;
        assert_eq!(encode(old, far, 16).map(|b| b.len()), Some(16));
        assert_eq!(encode(old, far, 15), None);
    }
}
