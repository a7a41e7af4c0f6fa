//! The one timing module: serialised readings of the time stamp counter, their cost, the counter's frequency, and what
//! disturbs a timed part.
//!
//! Needs neither libc nor an allocator, so that the replay runtime and signal handlers may use it.
//!
//! ```
//! let hertz = cere_timing::clock::calibrate(2);
//! let from = cere_timing::clock::start();
//! std::hint::black_box((0..1000).sum::<u64>());
//! let cycles = (cere_timing::clock::stop() - from).saturating_sub(cere_timing::clock::cost());
//! println!("{:.0} ns", cycles as f64 / hertz * 1e9);
//! ```

mod usage;

pub use cere_arch::counter::{processor, reads_counter, start, stop};
pub use usage::{Usage, usage};

/// CLOCK_MONOTONIC in nanoseconds, by the bare system call.
pub fn monotonic_ns() -> u64 {
    const MONOTONIC: i64 = 1;
    let mut time = [0u64; 2];
    // SAFETY: clock_gettime(CLOCK_MONOTONIC) writes a timespec of two words.
    unsafe { cere_arch::call::inlined(libc::SYS_clock_gettime, MONOTONIC, time.as_mut_ptr()) };
    time[0] * 1_000_000_000 + time[1]
}

/// The counter and the clock at the same moment.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Time stamp counter.
    pub cycles: u64,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub nanoseconds: u64,
}

/// Reads both clocks, as close together as a few tries allow.
pub fn moment() -> Moment {
    let mut best = Moment {
        cycles: 0,
        nanoseconds: 0,
    };
    let mut width = u64::MAX;
    for _ in 0..8 {
        let before = start();
        let nanoseconds = monotonic_ns();
        let after = stop();
        if after.saturating_sub(before) < width {
            width = after.saturating_sub(before);
            best = Moment {
                cycles: before + width / 2,
                nanoseconds,
            };
        }
    }
    best
}

/// Frequency of the counter in Hz between two moments; none if they are less than a millisecond apart.
pub fn frequency(from: Moment, to: Moment) -> Option<f64> {
    let nanoseconds = to.nanoseconds.checked_sub(from.nanoseconds)?;
    let cycles = to.cycles.checked_sub(from.cycles)?;
    (nanoseconds >= 1_000_000).then(|| cycles as f64 * 1e9 / nanoseconds as f64)
}

/// Measures the counter's frequency in Hz, spinning for `milliseconds` (at least 1).
pub fn calibrate(milliseconds: u64) -> f64 {
    let from = moment();
    let wanted = milliseconds.max(1) * 1_000_000;
    loop {
        let to = moment();
        if to.nanoseconds.saturating_sub(from.nanoseconds) >= wanted
            && let Some(frequency) = frequency(from, to)
        {
            return frequency;
        }
    }
}

/// Cycles that an empty `start`..`stop` pair shows: what a timed part seems to take too long. The least of many.
pub fn cost() -> u64 {
    let mut least = u64::MAX;
    for _ in 0..200 {
        let from = start();
        let to = stop();
        least = least.min(to.saturating_sub(from));
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_forward_at_a_plausible_rate() {
        let frequency = calibrate(5);
        assert!((5e8..1e10).contains(&frequency), "{frequency}");
        let again = calibrate(5);
        assert!(
            (frequency / again - 1.0).abs() < 0.01,
            "{frequency} {again}"
        );
        assert!(cost() < 10_000);
        let readings = [start(), stop(), start(), stop()];
        assert!(
            readings.is_sorted() && readings[0] < readings[3],
            "{readings:?}"
        );
    }
}
