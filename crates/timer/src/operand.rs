//! What a kernel works on, and where it shall be when the kernel begins.

use crate::aligned;
use crate::error::TimerError;
use crate::memory::{LINE, PAGE};
use std::fmt;

/// Where an operand is when the kernel begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// In the nearest cache that it fits in: read last before the timed part.
    Warm,
    /// In no cache.
    Cold,
    /// In the cache of this level, from 1, and in no nearer one.
    InLevel(u32),
}

type Fill<'a> = Box<dyn Fn(&mut [u8]) + 'a>;

/// One operand of a kernel.
pub struct Operand<'a> {
    pub(crate) bytes: usize,
    pub(crate) align: usize,
    pub(crate) misalign: usize,
    pub(crate) state: State,
    pub(crate) fill: Option<Fill<'a>>,
}

impl fmt::Debug for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bytes,
            align,
            misalign,
            state,
            ..
        } = self;
        write!(f, "Operand({bytes}, {align}, {misalign}, {state:?})")
    }
}

impl<'a> Operand<'a> {
    /// An operand of `bytes` (1 or more), aligned to `align` bytes (a power of two) and not aligned to `misalign` (a
    /// power of two above `align`, or 0 for any), that is in `state` whenever a timed part begins. It holds the values
    /// of [`fill_values`] until [`Operand::filled`] says otherwise.
    ///
    /// # Errors
    /// [`TimerError::ZeroBytes`], [`TimerError::Align`], [`TimerError::Misalign`].
    pub fn new(
        bytes: usize,
        align: usize,
        misalign: usize,
        state: State,
    ) -> Result<Self, TimerError> {
        aligned::check(align, misalign)?;
        if bytes == 0 {
            return Err(TimerError::ZeroBytes);
        }
        Ok(Self {
            bytes,
            align,
            misalign,
            state,
            fill: None,
        })
    }

    /// Writes its values by `fill`, which is called once for each copy of the operand, before anything is timed. The
    /// kernel sees them as earlier invocations left them: guarding against overflow and denormal numbers is its
    /// caller's part.
    #[must_use]
    pub fn filled(mut self, fill: impl Fn(&mut [u8]) + 'a) -> Self {
        self.fill = Some(Box::new(fill));
        self
    }

    /// Bytes from one copy of it to the next: keeps both alignments and is more than a page, so that no prefetcher gets
    /// to a copy from another one, and no multiple of a page, so that copies spread over the sets of a cache.
    /// More than any memory where that overflows.
    pub(crate) fn stride(&self) -> usize {
        let modulus = PAIR.max(self.align).max(self.misalign);
        let apart = self.bytes.max(PAGE).saturating_add(PAIR);
        apart
            .checked_next_multiple_of(modulus)
            .unwrap_or(usize::MAX)
    }

    /// Bytes of the cache lines that it fills, at least.
    pub(crate) fn footprint(&self) -> usize {
        self.bytes
            .checked_next_multiple_of(LINE)
            .unwrap_or(usize::MAX)
    }
}

/// Bytes of two neighbouring cache lines.
const PAIR: usize = 2 * LINE;

/// The default values: around 1, both signs. Read as numbers of 64, 32 or 16 bits (IEEE or bfloat16) none is denormal,
/// infinite or not a number, and sums of them stay small.
pub fn fill_values(bytes: &mut [u8]) {
    const VALUES: [u64; 4] = [
        0x3ff0_0000_3f80_0000,
        0xbff4_0000_bfa0_0000,
        0x3ff4_0000_3fa0_0000,
        0xbff0_0000_bf80_0000,
    ];
    for (chunk, value) in bytes.chunks_mut(8).zip(VALUES.iter().cycle()) {
        chunk.copy_from_slice(&value.to_le_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_values_are_harmless_at_every_width() {
        let mut bytes = vec![0; 4096];
        fill_values(&mut bytes);
        let f64s = bytes
            .chunks(8)
            .map(|c| f64::from_le_bytes(c.try_into().unwrap()));
        assert!(f64s.clone().all(|v| v.is_normal() && v.abs() < 2.0));
        assert!(f64s.sum::<f64>().abs() < 1.0);
        let f32s = bytes
            .chunks(4)
            .map(|c| f32::from_le_bytes(c.try_into().unwrap()));
        assert!(f32s.clone().all(|v| v.is_normal() && v.abs() < 2.0));
        // Exponents of the two formats of 16 bits: neither zero with a mantissa, nor all ones.
        for half in bytes
            .chunks(2)
            .map(|c| u16::from_le_bytes(c.try_into().unwrap()))
        {
            for (exponent, mantissa) in [(0x7c00, 0x03ff), (0x7f80, 0x007f)] {
                assert!(half & exponent != 0 || half & mantissa == 0, "{half:x}");
                assert_ne!(half & exponent, exponent, "{half:x}");
            }
        }
        let mut odd = [0; 13];
        fill_values(&mut odd);
        assert_eq!(odd, bytes[..13]);
    }
}
