//! Reads the times of invocations in threads other than the first.

use super::layout::*;
use super::source::{Reader, u32_at, u64_at};
use crate::FormatError;
use std::mem::offset_of;

/// Quantiles that a profile keeps: the least, of each tenth, and the most.
const PARTS: usize = 10;

/// The quantiles of the cycles of the invocations in the samples of the regions at these places; empty if there are none.
pub fn quantiles(reader: &Reader, slots: &[usize]) -> Result<Vec<f64>, FormatError> {
    let mut all: Vec<f32> = Vec::new();
    for slot in slots {
        let size = size_of::<RawSample>();
        let data = reader.words(SAMPLES_OFFSET + slot * size, size)?;
        let count = u64_at(&data, 0).min(SAMPLE as u64) as usize;
        let cycles =
            |place| f32::from_bits(u32_at(&data, offset_of!(RawSample, cycles) + place * 4));
        all.extend(
            (0..count)
                .map(cycles)
                .filter(|cycles| cycles.is_finite() && *cycles >= 0.0),
        );
    }
    all.sort_by(f32::total_cmp);
    let Some(last) = all.len().checked_sub(1) else {
        return Ok(Vec::new());
    };
    let quantile = |part: usize| f64::from(all[(last * part + PARTS / 2) / PARTS]);
    Ok((0..=PARTS).map(quantile).collect())
}
