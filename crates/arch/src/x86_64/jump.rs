//! Machine code that leads elsewhere.

/// Fills pages on which no code is to run.
pub const BREAKPOINT: [u8; 1] = [0xcc];
/// How far behind a breakpoint the processor says that it is.
pub const AFTER_BREAKPOINT: u64 = 1;
/// Bytes of a jump to anywhere.
pub const FAR: u64 = 14;
/// Bytes of the shortest jump that there is.
pub const NEAR: u64 = 5;
/// Executed code starts at multiples of this.
pub const ALIGN: u64 = 1;

/// A jump from `at` to `to` of at most `room` bytes; none if there is no room.
#[must_use]
pub fn encode(at: u64, to: u64, room: u64) -> Option<Vec<u8>> {
    let distance = to.wrapping_sub(at.wrapping_add(NEAR)) as i64;
    match i32::try_from(distance) {
        Ok(near) if room >= NEAR => Some([&[0xe9][..], &near.to_le_bytes()].concat()),
        _ if room >= FAR => Some(far(to)),
        _ => None,
    }
}

/// A jump to anywhere.
#[must_use]
pub fn far(to: u64) -> Vec<u8> {
    [&[0xff, 0x25, 0, 0, 0, 0][..], &to.to_le_bytes()].concat()
}

/// Nothing: this processor sees what is written.
///
/// # Safety
/// The range is mapped.
pub unsafe fn written(_start: u64, _end: u64) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_jump_that_reaches() {
        let (old, near) = (0x40_0000, 0x40_1000);
        assert_eq!(encode(old, near, 14), Some(vec![0xe9, 0xfb, 0x0f, 0, 0]));
        assert_eq!(encode(old, near, 4), None);
        let far = 0x7fff_0000_0000;
        assert_eq!(encode(old, far, 14).map(|b| b.len()), Some(14));
        assert_eq!(encode(old, far, 13), None);
    }
}
