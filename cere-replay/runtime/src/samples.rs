//! Which repetitions count, and when there are enough.

use cere_format::replay::{CONFIDENCE, Repetitions, SetAside};
use cere_timing::clock::Usage;
use cere_timing::stats::{far, interval, median_of_rising};

/// Seconds by which a repetition must exceed the upper quartile before it can be one that an interrupt or the
/// hypervisor stretched.
const STRETCHED: f64 = 20e-6;
/// Repetitions that a long codelet gets after [`Repetitions::seconds`].
const FEW: usize = 3;
/// How many times [`Repetitions::seconds`] later one will do.
const PATIENCE: f64 = 10.0;

/// A timed repetition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timed {
    /// Cycles, the clock's own cost subtracted.
    pub cycles: u64,
    /// Faults and context switches in it.
    pub usage: Usage,
    /// Whether it began on one processor and ended on another.
    pub moved: bool,
}

/// What the repetitions come to.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Cycles that count, in order.
    pub cycles: Vec<u64>,
    /// What does not count.
    pub set_aside: SetAside,
    /// Whether `cycles` are disturbed ones for want of others.
    pub disturbed: bool,
}

/// Repetitions so far.
pub struct Samples {
    rule: Repetitions,
    good: Vec<u64>,
    disturbed: Vec<u64>,
    set_aside: SetAside,
}

impl Samples {
    /// None yet.
    pub fn new(rule: Repetitions) -> Self {
        Self {
            rule,
            good: Vec::new(),
            disturbed: Vec::new(),
            set_aside: SetAside::default(),
        }
    }

    /// One more. Of several causes the first counts: switch, move, fault.
    pub fn add(&mut self, timed: Timed) {
        let cause = match timed {
            Timed { usage, .. } if usage.switches > 0 => &mut self.set_aside.switches,
            Timed { moved: true, .. } => &mut self.set_aside.migrations,
            Timed { usage, .. } if usage.faults > 0 => &mut self.set_aside.faults,
            _ => return self.good.push(timed.cycles),
        };
        *cause += 1;
        self.disturbed.push(timed.cycles);
    }

    /// Median of those that count, else of all.
    pub fn median(&self) -> u64 {
        let mut sorted = match self.good.is_empty() {
            true => self.disturbed.clone(),
            false => self.good.clone(),
        };
        sorted.sort_unstable();
        median_of_rising(&sorted)
    }

    /// Half the width of the median's interval in cycles, once it reaches the confidence level.
    pub fn half_width(&self) -> Option<u64> {
        let mut sorted = self.good.clone();
        sorted.sort_unstable();
        let (low, high, ranks) = interval(&sorted, CONFIDENCE)?;
        (ranks.level >= CONFIDENCE).then_some((high - low) / 2)
    }

    /// Whether another repetition would be one too many, `seconds` after the first began.
    pub fn enough(&self, seconds: f64) -> bool {
        let (good, all) = (self.good.len(), self.good.len() + self.disturbed.len());
        if all >= self.rule.most.max(1) as usize {
            return true;
        }
        let least = self.rule.least.max(1) as usize;
        if seconds > self.rule.seconds * PATIENCE && all > 0 {
            return true;
        }
        if seconds > self.rule.seconds && good >= least.min(FEW) {
            return true;
        }
        // Large samples change little by one more.
        let due = good <= 100 || good.is_multiple_of(10);
        if good < least || self.rule.precision <= 0.0 || !due {
            return false;
        }
        let median = self.median() as f64;
        self.half_width()
            .is_some_and(|half| half as f64 <= self.rule.precision * median)
    }

    /// What counts in the end, for a counter of `hz`.
    pub fn finish(mut self, hz: f64) -> Outcome {
        let mut sorted = self.good.clone();
        sorted.sort_unstable();
        let above = far(&sorted, (STRETCHED * hz) as u64);
        self.set_aside.stolen = above as u64;
        if above > 0 {
            let bound = sorted[sorted.len() - above];
            self.good.retain(|cycles| *cycles < bound);
        }
        let disturbed = self.good.is_empty();
        Outcome {
            cycles: match disturbed {
                true => self.disturbed,
                false => self.good,
            },
            set_aside: self.set_aside,
            disturbed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cycles: u64, faults: u64, switches: u64, moved: bool) -> Timed {
        Timed {
            cycles,
            usage: Usage { faults, switches },
            moved,
        }
    }

    fn filled(rule: Repetitions, cycles: impl IntoIterator<Item = u64>) -> Samples {
        let mut samples = Samples::new(rule);
        cycles
            .into_iter()
            .for_each(|c| samples.add(of(c, 0, 0, false)));
        samples
    }

    #[test]
    fn disturbed_repetitions_are_counted_by_cause() {
        let mut samples = Samples::new(Repetitions::exactly(9));
        samples.add(of(100, 0, 0, false));
        samples.add(of(900, 2, 0, false));
        samples.add(of(901, 2, 1, true));
        samples.add(of(902, 0, 0, true));
        assert_eq!((samples.median(), samples.enough(0.0)), (100, false));
        let outcome = samples.finish(1e9);
        assert_eq!((outcome.cycles, outcome.disturbed), (vec![100], false));
        let SetAside {
            faults,
            switches,
            migrations,
            stolen,
        } = outcome.set_aside;
        assert_eq!((faults, switches, migrations, stolen), (1, 1, 1, 0));
    }

    #[test]
    fn disturbed_ones_are_better_than_none_and_are_named() {
        let mut samples = Samples::new(Repetitions::exactly(2));
        samples.add(of(7, 1, 0, false));
        samples.add(of(8, 0, 1, false));
        assert!(samples.enough(0.0));
        let outcome = samples.finish(1e9);
        assert!(outcome.disturbed);
        assert_eq!(outcome.cycles, [7, 8]);
    }

    #[test]
    fn a_stolen_processor_is_told_from_two_modes() {
        let steady = || (0..30).map(|i| 100_000 + i);
        let outcome = filled(Repetitions::exactly(40), steady().chain([9_000_000])).finish(2e9);
        assert_eq!((outcome.set_aside.stolen, outcome.cycles.len()), (1, 30));
        // 5 us more is no theft.
        let outcome = filled(Repetitions::exactly(40), steady().chain([110_000])).finish(2e9);
        assert_eq!((outcome.set_aside.stolen, outcome.cycles.len()), (0, 31));
        let modes = steady().chain((0..6).map(|i| 9_000_000 + i));
        let outcome = filled(Repetitions::exactly(40), modes).finish(2e9);
        assert_eq!((outcome.set_aside.stolen, outcome.cycles.len()), (0, 36));
    }

    #[test]
    fn repeats_until_the_median_is_known() {
        let rule = Repetitions::default();
        let steady = |n: u64| filled(rule, (0..n).map(|i| 1000 + i % 2));
        assert!(!steady(9).enough(0.1));
        assert!(steady(10).enough(0.1));
        let wild = |n: u64| filled(rule, (0..n).map(|i| 1000 + 500 * (i % 2)));
        assert!(!wild(100).enough(0.1));
        assert!(wild(100).enough(2.1));
        assert!(wild(1000).enough(0.1));
        // Long codelets: three, or one.
        assert!(!steady(2).enough(5.0) && steady(3).enough(5.0));
        assert!(!steady(0).enough(99.0) && steady(1).enough(20.1));
        let mut switched = Samples::new(rule);
        switched.add(of(1, 0, 1, false));
        assert!(!switched.enough(19.0) && switched.enough(21.0));
        // Fixed numbers and regions that take no time.
        let fixed = |n: u64| filled(Repetitions::exactly(7), 0..n);
        assert!(!fixed(6).enough(100.0) && fixed(7).enough(0.0));
        assert!(filled(rule, [0; 10]).enough(0.1));
    }
}
