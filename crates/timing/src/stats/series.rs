//! Samples in the order in which they were taken, and the ratios of a subject to the baseline.

/// A sample of a subject: a time for each of its parts, 0 for a part too short to be timed.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    subject: usize,
    parts: Vec<f64>,
}

/// Samples of several subjects in the order in which they were taken. Subject 0 is the baseline.
///
/// A machine that others share changes its speed within seconds, so that only neighbours in time compare: each sample is
/// compared with the baseline at its own moment, interpolated between the baseline's samples before and after it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    samples: Vec<Sample>,
}

impl Series {
    /// Adds the next sample.
    pub fn add(&mut self, subject: usize, parts: Vec<f64>) {
        self.samples.push(Sample { subject, parts });
    }

    /// `ratio(baseline, sample)` of each sample of `subject` that has a baseline sample before and after it, in order.
    pub fn ratios(&self, subject: usize, ratio: impl Fn(&[f64], &[f64]) -> f64) -> Vec<f64> {
        let is_base = |at: &usize| self.samples[*at].subject == 0;
        let own = (0..self.samples.len()).filter(|at| self.samples[*at].subject == subject);
        let found = own.filter_map(|at| {
            let before = (0..at).rev().find(is_base)?;
            let after = (at + 1..self.samples.len()).find(is_base)?;
            let part = (at - before) as f64 / (after - before) as f64;
            let (before, after) = (&self.samples[before], &self.samples[after]);
            let base = between(&before.parts, &after.parts, part);
            Some(ratio(&base, &self.samples[at].parts))
        });
        found.collect()
    }

    /// The ratios of one part.
    pub fn part_ratios(&self, subject: usize, part: usize) -> Vec<f64> {
        let of = |parts: &[f64]| parts.get(part).copied().unwrap_or(0.0);
        let ratios = self.ratios(subject, |base, now| of(now) / of(base));
        ratios
            .into_iter()
            .filter(|r| r.is_finite() && *r > 0.0)
            .collect()
    }

    /// The times of a part in all samples of `subject`, without those too short to be timed.
    pub fn times(&self, subject: usize, part: usize) -> Vec<f64> {
        let own = self.samples.iter().filter(|s| s.subject == subject);
        let times = own.filter_map(|s| s.parts.get(part).copied());
        times.filter(|time| *time > 0.0).collect()
    }
}

/// Times of parts interpolated at `part`, 0 to 1, between two samples; 0 for those too short to be timed in either.
pub fn between(before: &[f64], after: &[f64], part: f64) -> Vec<f64> {
    let each = before.iter().zip(after);
    each.map(|(&before, &after)| match before > 0.0 && after > 0.0 {
        true => before + part * (after - before),
        false => 0.0,
    })
    .collect()
}

/// The order in which subjects (without the baseline, 0) are sampled in a round: the baseline before each `every` of them.
/// Odd rounds go backwards, for the machine's speed may go one way in a round. The baseline that ends the last round is the
/// caller's to add.
///
/// # Panics
/// If `every` is 0.
pub fn round(subjects: &[usize], every: usize, number: usize) -> Vec<usize> {
    let mut subjects = subjects.to_vec();
    if number % 2 == 1 {
        subjects.reverse();
    }
    let chunks = subjects.chunks(every);
    chunks
        .flat_map(|some| std::iter::once(0).chain(some.iter().copied()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_slows_down_says_the_same() {
        // Every sample takes 10 % longer than the one before; subjects 1 and 2 take half and twice the baseline's time.
        let mut order = [round(&[1, 2], 2, 0), round(&[1, 2], 2, 1)].concat();
        order.push(0);
        assert_eq!(order, [0, 1, 2, 0, 2, 1, 0]);
        let own = [1.0, 0.5, 2.0];
        let mut series = Series::default();
        for (at, subject) in order.into_iter().enumerate() {
            series.add(subject, vec![own[subject] * (1.0 + 0.1 * at as f64)]);
        }
        for (subject, own) in own.iter().enumerate().skip(1) {
            let ratios = series.part_ratios(subject, 0);
            assert_eq!(ratios.len(), 2);
            assert!(ratios.iter().all(|r| (r - own).abs() < 1e-9), "{ratios:?}");
        }
        assert_eq!(series.times(0, 0), [1.0, 1.3, 1.6]);
    }

    #[test]
    fn parts_too_short_and_samples_without_neighbours_are_left_out() {
        let mut series = Series::default();
        series.add(1, vec![1.0, 1.0]);
        series.add(0, vec![1.0, 0.0]);
        series.add(1, vec![0.5, 1.0]);
        series.add(0, vec![1.0, 1.0]);
        series.add(1, vec![0.5, 1.0]);
        assert_eq!(series.part_ratios(1, 0), [0.5]);
        assert!(series.part_ratios(1, 1).is_empty());
        assert!(series.part_ratios(1, 7).is_empty());
        assert_eq!(series.times(1, 1), [1.0, 1.0, 1.0]);
    }
}
