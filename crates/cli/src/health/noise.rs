//! How well this machine measures now: one kernel is timed in two series, A and B, in turns. Both are the same code, so any
//! difference is noise.

use cere_timing::stats::{Gain, Spread, gain};
use serde::Serialize;
use std::hint::black_box;

/// Seconds that the measurement takes.
pub const SECONDS: f64 = 2.0;
/// Words of the kernel's memory: 128 KiB, which fit the second cache.
const WORDS: usize = 16 << 10;
/// Passes of the kernel over its memory: a few milliseconds.
const PASSES: u32 = 100;
/// Timings of each series in one comparison of builds.
const RUNS: usize = 9;
/// Minimum timings of each series.
const LEAST: usize = 6;

/// The measured noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Noise {
    /// Timings of each series.
    pub timings: usize,
    /// Median of all, in seconds.
    pub median: f64,
    /// Interquartile range over the median, of all.
    pub spread: f64,
    /// Median of B over that of A, less 1: 0 without noise.
    pub difference: f64,
    /// Lower end of the 95 % interval of the median of B over A, less 1.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Timings of each series in one comparison, for [`untold`](Self::untold).
    pub runs: usize,
    /// Smallest relative difference that so many runs detect: in half of the comparisons the interval reaches farther from no
    /// difference.
    pub untold: f64,
}

impl Noise {
    /// Computes the noise from `a` and `b`, seconds of the same code in turns; `None` for fewer than 6 each.
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| b / a).collect();
        if ratios.len() < LEAST {
            return None;
        }
        let all = Spread::of(&[a, b].concat()).ok()?;
        let whole = gain(&ratios)?;
        // The larger distance of the interval's ends from no difference.
        let reach = |g: Gain| (1.0 - g.low).max(g.high - 1.0).max(0.0);
        let runs = RUNS.min(ratios.len());
        let reaches: Vec<f64> = ratios
            .chunks_exact(runs)
            .filter_map(|c| gain(c).map(reach))
            .collect();
        Some(Self {
            timings: ratios.len(),
            median: all.median,
            spread: all.relative(),
            difference: Spread::of(b).ok()?.median / Spread::of(a).ok()?.median - 1.0,
            low: whole.low - 1.0,
            high: whole.high - 1.0,
            runs,
            untold: Spread::of(&reaches).ok()?.median,
        })
    }

    /// The meaning for measurements, as a sentence.
    pub fn meaning(&self) -> String {
        let speed = match self.untold {
            ..0.01 => "quiet",
            ..0.05 => "usable",
            _ => "noisy: end other programs, or measure at another time",
        };
        format!(
            "differences below {:.1} % cannot be detected here in {} runs; the machine is {speed}",
            100.0 * self.untold,
            self.runs
        )
    }
}

/// Times the kernel for the given number of seconds.
pub fn measure(seconds: f64) -> Option<Noise> {
    let mut memory: Vec<u64> = (0..WORDS as u64).collect();
    let mut timings = [Vec::new(), Vec::new()];
    // The first timing is discarded: memory is fresh and the frequency still rises.
    run_kernel(&mut memory);
    let from = cere_timing::clock::moment();
    loop {
        let now = cere_timing::clock::moment();
        let elapsed = now.nanoseconds.saturating_sub(from.nanoseconds) as f64 / 1e9;
        if elapsed >= seconds {
            let frequency = cere_timing::clock::frequency(from, now)?;
            let [a, b] = timings.map(|series| -> Vec<f64> {
                series
                    .iter()
                    .map(|cycles: &u64| *cycles as f64 / frequency)
                    .collect()
            });
            return Noise::of(&a, &b);
        }
        for series in &mut timings {
            series.push(run_kernel(&mut memory));
        }
    }
}

/// The kernel's cycles: dependent arithmetic over memory that is read and written.
#[inline(never)]
fn run_kernel(memory: &mut [u64]) -> u64 {
    let from = cere_timing::clock::start();
    let mut state = 1u64;
    for _ in 0..PASSES {
        for word in memory.iter_mut() {
            state = (state ^ *word)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(7);
            *word = word.wrapping_add(state);
        }
    }
    black_box(state);
    cere_timing::clock::stop().saturating_sub(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_noise_all_is_told() {
        let noise = Noise::of(&[0.002; 30], &[0.002; 30]).unwrap();
        assert_eq!(
            (noise.spread, noise.difference, noise.untold),
            (0.0, 0.0, 0.0)
        );
        assert_eq!((noise.timings, noise.runs), (30, 9));
        assert!(noise.meaning().ends_with("quiet"), "{}", noise.meaning());
        assert_eq!(Noise::of(&[1.0; 5], &[1.0; 5]), None);
    }

    #[test]
    fn noise_hides_differences() {
        // Each B is up to 10 % from its A, on either side.
        let a = [1.0; 90];
        let b: Vec<f64> = (0..90)
            .map(|i| 0.9 + 0.2 * f64::from(i * 37 % 90) / 89.0)
            .collect();
        let noise = Noise::of(&a, &b).unwrap();
        assert!((0.05..0.1).contains(&noise.untold), "{noise:?}");
        assert!(noise.low < 0.0 && noise.high > 0.0, "{noise:?}");
        assert!(noise.meaning().contains("noisy"));
    }

    #[test]
    fn a_short_measurement() {
        let noise = measure(0.2).unwrap();
        assert!(noise.median > 1e-4 && noise.median < 0.1, "{noise:?}");
        assert!(noise.low <= noise.high);
    }
}
