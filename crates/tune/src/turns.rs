//! Which region gets the next evaluation.

/// Minimum weight of a region over the maximum: small regions get turns too.
const LEAST: f64 = 0.1;

/// Turns of regions that are not done, those with more run time more often: each region's turns are spaced by the
/// inverse of its weight (stride scheduling). An endless iterator of region numbers until all are done.
#[derive(Debug, Clone)]
pub struct Turns {
    regions: Vec<Region>,
}

#[derive(Debug, Clone)]
struct Region {
    weight: f64,
    /// Virtual time of its next turn.
    due: f64,
    done: bool,
}

impl Turns {
    /// Turns for regions by their shares of the run time, in any unit; a share that is not positive counts as the minimum.
    pub fn new(shares: &[f64]) -> Self {
        Self::after(shares, &[])
    }

    /// The same after each region had `taken` turns; none where `taken` says nothing.
    pub fn after(shares: &[f64], taken: &[u64]) -> Self {
        let weights = weights(shares);
        let region = |(i, weight): (usize, f64)| {
            let mut region = Region {
                weight,
                due: 1.0 / weight,
                done: false,
            };
            // As `next` does it, so that rounding is the same.
            (0..taken.get(i).copied().unwrap_or(0)).for_each(|_| region.take());
            region
        };
        Self {
            regions: weights.into_iter().enumerate().map(region).collect(),
        }
    }

    /// Ends the turns of region `i`.
    pub fn done(&mut self, i: usize) {
        if let Some(region) = self.regions.get_mut(i) {
            region.done = true;
        }
    }
}

impl Region {
    fn take(&mut self) {
        self.due += 1.0 / self.weight;
    }
}

fn weights(shares: &[f64]) -> Vec<f64> {
    let share = |s: f64| if s.is_finite() { s } else { 0.0 };
    let most = shares.iter().copied().map(share).fold(0.0, f64::max);
    let weight = |s: &f64| {
        if most > 0.0 {
            (share(*s) / most).max(LEAST)
        } else {
            1.0
        }
    };
    shares.iter().map(weight).collect()
}

impl Iterator for Turns {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let waiting = self.regions.iter().enumerate().filter(|(_, r)| !r.done);
        let (i, _) = waiting.min_by(|a, b| a.1.due.total_cmp(&b.1.due))?;
        self.regions[i].take();
        Some(i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(turns: &mut Turns, regions: usize, of: usize) -> Vec<usize> {
        let mut counts = vec![0; regions];
        for i in turns.take(of) {
            counts[i] += 1;
        }
        counts
    }

    #[test]
    fn equal_shares_take_turns() {
        let first: Vec<usize> = Turns::new(&[0.2, 0.2, 0.2]).take(6).collect();
        assert_eq!(first, [0, 1, 2, 0, 1, 2]);
        assert_eq!(counts(&mut Turns::new(&[0.0, -1.0]), 2, 10), [5, 5]);
    }

    #[test]
    fn larger_shares_come_more_often() {
        let mut turns = Turns::new(&[0.1, 0.4, 0.2, 0.0]);
        let seen = counts(&mut turns, 4, 185);
        assert_eq!(seen, [25, 100, 50, 10]);
    }

    #[test]
    fn going_on_after_some_turns_is_the_same() {
        let shares = [0.3, 0.1, 0.7];
        let mut turns = Turns::new(&shares);
        let mut taken = [0; 3];
        for _ in 0..500 {
            let other = Turns::after(&shares, &taken);
            assert!(turns.clone().take(40).eq(other.take(40)), "{taken:?}");
            taken[turns.next().unwrap()] += 1;
        }
    }

    #[test]
    fn until_all_are_done() {
        let mut turns = Turns::new(&[0.9, 0.1]);
        turns.done(0);
        turns.done(7);
        assert_eq!(turns.next(), Some(1));
        assert_eq!(turns.next(), Some(1));
        turns.done(1);
        assert_eq!(turns.next(), None);
        assert_eq!(Turns::new(&[]).next(), None);
        let odd = Turns::new(&[f64::NAN, f64::INFINITY, 1.0]);
        let seen: Vec<usize> = odd.take(12).collect();
        assert_eq!(seen, [2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 1, 2]);
    }
}
