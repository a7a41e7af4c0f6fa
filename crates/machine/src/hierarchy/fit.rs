//! The size of a cache from the share of misses at each working set: Servet's fit (III.A), with placement either even or at random.
//!
//! Servet takes `P(X > K)` of a set of pages for the rate of misses. That is the share of *sets* with too many pages. Misses count by
//! page: a page misses if at least `K` of the *other* pages are in its set, as with least recently used replacement all pages of
//! such a set miss. For 2 MiB in 8 ways, filled exactly, this is 0.546 instead of 0.407.

use crate::analysis::{at_least, chances};

/// Where pages lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// One set of pages after the other: the index is virtual, pages are huge, or the system colours them.
    Even,
    /// Each page in a set at random.
    Random,
}

/// Which line of a full set leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The least recently used one: of a set with too many all miss.
    Lru,
    /// Any.
    Random,
}

/// A cache that explains a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Pages in one way: the number of sets of pages.
    pub sets: u64,
    /// Ways.
    pub ways: u64,
    /// Where pages lie.
    pub placement: Placement,
    /// Which line leaves.
    pub policy: Policy,
    /// Mean distance of its miss rates from the measured ones.
    pub residual: f64,
}

impl Fit {
    /// Pages that it holds.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.sets * self.ways
    }
}

/// The share of accesses that miss when `pages` pages are read in turns.
#[must_use]
pub fn misses(pages: u64, sets: u64, ways: u64, placement: Placement, policy: Policy) -> f64 {
    if pages <= ways {
        return 0.0;
    }
    let of = |count: u64| match (count > ways, policy) {
        (false, _) => 0.0,
        (true, Policy::Lru) => 1.0,
        (true, Policy::Random) => thrown_out(count, ways),
    };
    match (placement, policy) {
        (Placement::Even, _) => {
            let (each, more) = (pages / sets, pages % sets);
            let larger = (more * (each + 1)) as f64 / pages as f64;
            larger * of(each + 1) + (1.0 - larger) * of(each)
        }
        (Placement::Random, Policy::Lru) => at_least(pages - 1, 1.0 / sets as f64, ways),
        (Placement::Random, Policy::Random) => {
            // By the number of other pages in a page's set, to where hardly any set has more.
            let most = (3 * pages / sets + 4 * ways).min(pages - 1);
            let counts = chances(pages - 1, 1.0 / sets as f64, most)
                .into_iter()
                .enumerate();
            let rates = counts
                .skip(ways as usize)
                .map(|(others, share)| share * of(others as u64 + 1));
            rates.sum()
        }
    }
}

/// The share of misses where `count` lines are read in turns in a set of `ways` lines that throws out any: between two reads of a
/// line the others miss `(count - 1) m` times, and each miss throws it out with probability `1 / ways`.
fn thrown_out(count: u64, ways: u64) -> f64 {
    let stays = 1.0 - 1.0 / ways as f64;
    let mut m = 1.0;
    for _ in 0..30 {
        m = 1.0 - f64::powf(stays, (count - 1) as f64 * m);
    }
    m
}

/// Ways that are tried, at most.
const WAYS: u64 = 32;

/// The time of a miss may differ from the next plateau's, by which rates were scaled, by this share.
const FULL: f64 = 0.2;

/// The caches that explain `rates` best, the best first: pairs of pages (at least one) and miss rate, by rising pages.
#[must_use]
pub fn fits(rates: &[(u64, f64)], placements: &[Placement]) -> Vec<Fit> {
    let (Some(first), Some(last)) = (rates.first(), rates.last()) else {
        return Vec::new();
    };
    let powers = (0..40).map(|power| 1u64 << power);
    let sets = powers.flat_map(|n| [n, 3 * n]);
    let wanted = |fit: &(u64, u64)| (first.0 / 2..=2 * last.0).contains(&(fit.0 * fit.1));
    let pairs = sets.flat_map(|sets| (2..=WAYS).map(move |ways| (sets, ways)));
    let kinds = |&placement: &Placement| [(placement, Policy::Lru), (placement, Policy::Random)];
    let kinds: Vec<_> = placements.iter().flat_map(kinds).collect();
    let all = pairs.filter(wanted).flat_map(|(sets, ways)| {
        let of = move |placement, policy| {
            let told: Vec<f64> = rates
                .iter()
                .map(|r| misses(r.0, sets, ways, placement, policy))
                .collect();
            let both = || told.iter().zip(rates).map(|(m, (_, rate))| (*m, *rate));
            let square: f64 = told.iter().map(|m| m * m).sum();
            let full =
                both().map(|(m, rate)| m * rate).sum::<f64>() / square.max(f64::MIN_POSITIVE);
            let full = full.clamp(1.0 - FULL, 1.0 + FULL);
            let residual =
                both().map(|(m, rate)| (rate - full * m).abs()).sum::<f64>() / rates.len() as f64;
            Fit {
                sets,
                ways,
                placement,
                policy,
                residual,
            }
        };
        kinds
            .clone()
            .into_iter()
            .map(move |(placement, policy)| of(placement, policy))
    });
    let mut found: Vec<Fit> = all.collect();
    found.sort_by(|a, b| a.residual.total_cmp(&b.residual));
    found
}

/// Residual below which fits are as good as exact.
const EXACT: f64 = 0.005;
/// Fits whose residual is at most this above the least one explain the curve as well.
const ALIKE: f64 = 0.012;

/// How often such a cache is built, over the most frequent kind: a power of two of sets, few ways or 16, old lines leave.
fn prior(fit: &Fit) -> f64 {
    let sets = if fit.sets.is_power_of_two() { 1.0 } else { 0.3 };
    let ways = match fit.ways {
        4 | 8 | 12 | 16 => 1.0,
        ways if ways % 2 == 1 || ways > 20 => 0.2,
        _ => 0.6,
    };
    let policy = if fit.policy == Policy::Lru { 1.0 } else { 0.3 };
    sets * ways * policy
}

/// The best fits that explain the curve alike, each with its weight: how near it is times how often such a cache is built.
pub fn alike(fits: &[Fit]) -> impl Iterator<Item = (&Fit, f64)> {
    let least = fits.first().map_or(0.0, |fit| fit.residual);
    let near = fits
        .iter()
        .take_while(move |fit| fit.residual <= least + ALIKE);
    near.map(|fit| (fit, prior(fit) / (fit.residual + EXACT)))
}

/// The size in pages with the largest weight among the fits that are [`alike`]; `None` without rates. (Servet takes the mode of the
/// five best, which an exact fit loses against two poor ones that agree.)
#[must_use]
pub fn size(fits: &[Fit]) -> Option<u64> {
    let weight = |pages: u64| -> f64 {
        alike(fits)
            .filter(|(f, _)| f.pages() == pages)
            .map(|(_, w)| w)
            .sum()
    };
    let sizes = alike(fits).map(|(fit, _)| fit.pages());
    sizes.max_by(|a, b| weight(*a).total_cmp(&weight(*b)).then(b.cmp(a)))
}

/// Fits whose residual is at most this above the least one cannot be ruled out.
const POSSIBLE: f64 = 0.03;

/// Whether caches of another size that replace lines in another way explain the curve about as well as one of `pages`.
#[must_use]
pub fn is_ambiguous(fits: &[Fit], pages: u64) -> bool {
    let least = fits.first().map_or(0.0, |fit| fit.residual);
    let best = |policy| {
        let mut of = fits.iter().filter(move |fit| fit.policy == policy);
        of.next().filter(|fit| fit.residual <= least + POSSIBLE)
    };
    let away = |fit: &Fit| (fit.pages() as f64 / pages as f64 - 1.0).abs() > 0.125;
    [Policy::Lru, Policy::Random]
        .into_iter()
        .filter_map(best)
        .any(away)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_misses() {
        // The facts above: 512 pages in 64 sets of 8 ways.
        assert!((misses(512, 64, 8, Placement::Random, Policy::Lru) - 0.546).abs() < 1e-3);
        assert_eq!(misses(512, 64, 8, Placement::Even, Policy::Lru), 0.0);
        // One page more: nine pages of one set miss.
        assert_eq!(
            misses(513, 64, 8, Placement::Even, Policy::Lru),
            9.0 / 513.0
        );
        assert_eq!(misses(577, 64, 8, Placement::Even, Policy::Lru), 1.0);
        assert_eq!(misses(8, 64, 8, Placement::Random, Policy::Lru), 0.0);
    }

    #[test]
    fn sizes_from_exact_rates() {
        for (placement, policy) in [
            (Placement::Even, Policy::Lru),
            (Placement::Random, Policy::Lru),
            (Placement::Even, Policy::Random),
            (Placement::Random, Policy::Random),
        ] {
            for (sets, ways) in [
                (1, 8),
                (1, 12),
                (16, 8),
                (32, 16),
                (64, 8),
                (256, 20),
                (96, 16),
            ] {
                let pages = sets * ways;
                let xs = (pages / 2..2 * pages).step_by((pages / 16).max(1) as usize);
                let rates: Vec<(u64, f64)> = xs
                    .map(|x| (x, misses(x, sets, ways, placement, policy)))
                    .collect();
                assert_eq!(
                    size(&fits(&rates, &[placement])),
                    Some(pages),
                    "{sets} {ways} {placement:?} {policy:?}"
                );
            }
        }
        assert_eq!(size(&fits(&[], &[Placement::Even])), None);
    }
}
