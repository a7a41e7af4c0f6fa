//! Machine code that leads elsewhere.

use core::arch::asm;

/// Fills pages on which no code is to run: `c.ebreak`.
pub const BREAKPOINT: [u8; 2] = 0x9002_u16.to_le_bytes();
/// How far behind a breakpoint the processor says that it is.
pub const AFTER_BREAKPOINT: u64 = 0;
/// Bytes of a jump to anywhere.
pub const FAR: u64 = 24;
/// Bytes of the shortest jump that there is.
pub const NEAR: u64 = 4;
/// Executed code starts at multiples of this: a jump elsewhere faults.
pub const ALIGN: u64 = 2;
/// Bytes that a near jump reaches.
const REACH: i64 = 1 << 20;

/// A jump from `at` to `to` of at most `room` bytes; none if there is no room, or if code cannot be at `at`.
#[must_use]
pub fn encode(at: u64, to: u64, room: u64) -> Option<Vec<u8>> {
    if !at.is_multiple_of(ALIGN) {
        return None;
    }
    let distance = to.wrapping_sub(at) as i64;
    match (-REACH..REACH).contains(&distance) {
        true if room >= NEAR => {
            let bits = distance as u32;
            let jal = 0x6f
                | (bits >> 20 & 1) << 31
                | (bits >> 1 & 0x3ff) << 21
                | (bits >> 11 & 1) << 20
                | (bits >> 12 & 0xff) << 12;
            Some(jal.to_le_bytes().to_vec())
        }
        // The address lies 16 bytes on, and is loaded as a word that need not be aligned.
        _ if room >= FAR => Some(far(to)),
        _ => None,
    }
}

/// A jump to anywhere: `auipc t1, 0; ld t1, 16(t1); jr t1` and the address. Functions leave T1 to such code.
#[must_use]
pub fn far(to: u64) -> Vec<u8> {
    let code = [0x0000_0317_u32, 0x0103_3303, 0x0003_0067, 0x0000_0013];
    let code = code.map(u32::to_le_bytes);
    [code.as_flattened(), &to.to_le_bytes()].concat()
}

/// Has the processor see code that was written.
///
/// # Safety
/// None is needed.
pub unsafe fn written(_start: u64, _end: u64) {
    // SAFETY: a barrier. Threads on other processors start after it.
    unsafe { asm!("fence.i", options(nostack, preserves_flags)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_jump_that_reaches() {
        let (old, near) = (0x40_0000, 0x40_1000);
        assert_eq!(encode(old, near, 24), Some(vec![0x6f, 0x10, 0x00, 0x00]));
        assert_eq!(encode(old, near, 3), None);
        assert_eq!(encode(old + 1, near, 24), None);
        assert_eq!(encode(old, 0x7fff_0000_0000, 24).map(|b| b.len()), Some(24));
    }
}
