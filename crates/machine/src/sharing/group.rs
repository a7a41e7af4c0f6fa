//! What tables over pairs of cores say: pure functions.

use cere_format::machine::Contention;
use cere_timing::stats::median;

/// Two cores.
pub type Pair = (u32, u32);

/// Sets of cores that `edges` connect, singles among them; each in rising order, by their first core.
#[must_use]
pub fn components(cores: &[u32], edges: &[Pair]) -> Vec<Vec<u32>> {
    let mut sets: Vec<Vec<u32>> = cores.iter().map(|core| vec![*core]).collect();
    for (a, b) in edges {
        let of = |core| sets.iter().position(|set| set.contains(core));
        if let (Some(one), Some(other)) = (of(a), of(b))
            && one != other
        {
            let taken = sets.swap_remove(one.max(other));
            sets[one.min(other)].extend(taken);
        }
    }
    sets.iter_mut().for_each(|set| set.sort_unstable());
    sets.sort();
    sets
}

/// Groups of values that are alike: a value joins the group below it unless it is above its mean by more than `tolerance` of it. By
/// rising value, as indices (Servet, figures 6 and 7; in order of value, so that the order of pairs does not matter).
#[must_use]
pub fn similar(values: &[f64], tolerance: f64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in order {
        match groups.last_mut() {
            Some(last) if values[at] <= mean(last, values) * (1.0 + tolerance) => last.push(at),
            _ => groups.push(vec![at]),
        }
    }
    groups
}

/// Mean of the values at `group`.
#[must_use]
pub fn mean(group: &[usize], values: &[f64]) -> f64 {
    group.iter().map(|at| values[*at]).sum::<f64>() / group.len().max(1) as f64
}

/// A chase by two cores at once, and what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duel {
    /// The cores.
    pub pair: Pair,
    /// Time of a step in one array, alone: the fast reference.
    pub fast: f64,
    /// In an array as long as two, alone: the slow reference.
    pub slow: f64,
    /// Of both at once, in an array each.
    pub both: f64,
    /// Slowdown of both at once in arrays that certainly fit: shared pipelines, lower clocks.
    pub control: f64,
    /// 0 to 1: how well the windows of both agreed.
    pub repeated: f64,
}

/// Least ratio of the slow reference to the fast one that tells them apart.
pub const CONTRAST: f64 = 1.2;

impl Duel {
    /// Where it lies between the fast reference, 0, and the slow one, 1.
    #[must_use]
    pub fn position(&self) -> f64 {
        (self.both / self.control.max(1.0) - self.fast) / (self.slow - self.fast)
    }
}

/// Why it is not known which cores have a cache together.
#[derive(Debug, thiserror::Error)]
pub enum Unknown {
    /// Its size is needed.
    #[error("its size is not known well enough")]
    Size,
    /// Seconds that are needed, and those that are left.
    #[error("arrays of its size take up to {0:.0} s, of which {1:.0} s are left")]
    TooLong(f64, f64),
    /// Pairs were left out.
    #[error("time ran out, or threads were stopped too often, before all pairs had run at once")]
    Unfinished,
    /// The slow reference over the fast one.
    #[error(
        "an array of 4/3 of the level takes {0:.2} of the time of one of 2/3: cores that evict each other cannot be told from cores that \
         do not"
    )]
    Contrast(f64),
}

/// Groups of cores that have a cache together, and the confidence.
///
/// The threshold of Servet, a ratio above 2, holds where two arrays evict each other wholly and the next level is much slower. Other
/// replacement keeps a part, and a far level costs many times more. So a pair is compared with what the same cache does to one core
/// with both arrays: nearer to that is shared.
pub fn shared(cores: &[u32], duels: &[Duel]) -> Result<(Vec<Vec<u32>>, f64), Unknown> {
    let contrasts: Vec<f64> = duels.iter().map(|d| d.slow / d.fast).collect();
    let contrast = median(&contrasts).unwrap_or(0.0);
    if contrast.is_nan() || contrast < CONTRAST {
        return Err(Unknown::Contrast(contrast));
    }
    let near = |d: &&Duel| d.position() > 0.5;
    let edges: Vec<Pair> = duels.iter().filter(near).map(|d| d.pair).collect();
    let groups = components(cores, &edges);
    // Each pair has to be on the side that its group says, and far from the middle.
    let certain = duels.iter().map(|d| {
        let together = groups
            .iter()
            .any(|g| g.contains(&d.pair.0) && g.contains(&d.pair.1));
        let side = if together {
            d.position() - 0.5
        } else {
            0.5 - d.position()
        };
        (2.0 * side).clamp(0.0, 1.0) * d.repeated
    });
    let sum: f64 = certain.clone().sum();
    let least = certain.clone().fold(1.0, f64::min);
    let mean = sum / duels.len().max(1) as f64;
    // One pair that contradicts its group halves it.
    let confidence = if least > 0.0 { mean } else { mean / 2.0 };
    Ok((groups, confidence * ((contrast - 1.0) * 2.0).min(1.0)))
}

/// Groups of cores that take bandwidth from each other, from the bandwidth of a core in each pair over that alone. A pair suffers if its
/// share is below 1 by more than `noise` and more than 5 %; shares within 10 % are alike.
#[must_use]
pub fn contention(pairs: &[(Pair, f64)], noise: f64) -> Vec<Contention> {
    let limit = 1.0 - noise.max(0.05);
    let suffer: Vec<&(Pair, f64)> = pairs.iter().filter(|(_, share)| *share < limit).collect();
    let shares: Vec<f64> = suffer.iter().map(|(_, share)| *share).collect();
    let one = |group: &Vec<usize>| {
        let edges: Vec<Pair> = group.iter().map(|at| suffer[*at].0).collect();
        let mut cores: Vec<u32> = edges.iter().flat_map(|(a, b)| [*a, *b]).collect();
        cores.sort_unstable();
        cores.dedup();
        Contention {
            share: mean(group, &shares),
            groups: components(&cores, &edges),
        }
    };
    similar(&shares, 0.1).iter().map(one).collect()
}

/// How far groups are apart: the least ratio of a value to one of the group below, 1 or more; infinite for one group.
#[must_use]
pub fn separation(groups: &[Vec<usize>], values: &[f64]) -> f64 {
    let ratio = |pair: &[Vec<usize>]| {
        let low = pair[0].iter().map(|at| values[*at]).fold(0.0, f64::max);
        let high = pair[1].iter().map(|at| values[*at]);
        high.fold(f64::INFINITY, f64::min) / low
    };
    groups.windows(2).map(ratio).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Numbers from 0 to 1.
    pub(crate) fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    pub(crate) fn pairs(cores: u32) -> Vec<Pair> {
        (0..cores)
            .flat_map(|a| (a + 1..cores).map(move |b| (a, b)))
            .collect()
    }

    #[test]
    fn connected_cores() {
        let found = components(&[0, 1, 2, 3, 4], &[(3, 4), (0, 2), (2, 4)]);
        assert_eq!(found, [vec![0, 2, 3, 4], vec![1]]);
        // The example of the paper.
        let found = components(&[0, 1, 2, 3, 4, 5], &[(0, 1), (0, 2), (3, 4), (3, 5)]);
        assert_eq!(found, [vec![0, 1, 2], vec![3, 4, 5]]);
    }

    #[test]
    fn alike() {
        let values = [1.0, 2.0, 1.05, 2.1, 5.0, 0.97];
        let groups = similar(&values, 0.15);
        assert_eq!(groups, [vec![5, 0, 2], vec![1, 3], vec![4]]);
        assert!((separation(&groups, &values) - 2.0 / 1.05).abs() < 1e-12);
        assert!(similar(&[], 0.1).is_empty());
        assert_eq!(separation(&[vec![0]], &values), f64::INFINITY);
    }

    fn machine(share: impl Fn(u32, u32) -> bool, kept: f64, seed: u64) -> Vec<Duel> {
        let mut random = noise(seed);
        let duel = |pair: Pair| {
            // Hyperthreads slow each other down by a third, whatever they share.
            let control = if pair.0 / 2 == pair.1 / 2 { 1.33 } else { 1.0 };
            let at = if share(pair.0, pair.1) { kept } else { 0.05 };
            let clean = 14.0 + at * (70.0 - 14.0);
            Duel {
                pair,
                fast: 14.0 * (1.0 + 0.05 * random()),
                slow: 70.0 * (1.0 + 0.1 * random()),
                both: clean * control * (1.0 + 0.1 * random()),
                control: control * (1.0 + 0.05 * random()),
                repeated: 1.0,
            }
        };
        pairs(8).into_iter().map(duel).collect()
    }

    #[test]
    fn sharing_is_told_from_slower_clocks() {
        let cores: Vec<u32> = (0..8).collect();
        for seed in 1..100 {
            let none = machine(|_, _| false, 1.0, seed);
            let (groups, confidence) = shared(&cores, &none).unwrap();
            assert_eq!(groups.len(), 8, "hyperthreads are no sharers: {seed}");
            assert!(confidence > 0.5);
            // A replacement that keeps a part of both arrays.
            let some = machine(|a, b| a / 2 == b / 2, 0.8, seed);
            let (groups, confidence) = shared(&cores, &some).unwrap();
            assert_eq!(groups, [[0, 1], [2, 3], [4, 5], [6, 7]].map(Vec::from));
            assert!(confidence > 0.5, "{confidence}");
        }
    }

    #[test]
    fn neighbours_lower_the_confidence() {
        let cores: Vec<u32> = (0..8).collect();
        let mut duels = machine(|a, b| a / 4 == b / 4, 1.0, 3);
        let (_, calm) = shared(&cores, &duels).unwrap();
        // Another program slows down what is private, up to the middle.
        for (at, duel) in duels.iter_mut().enumerate() {
            duel.both += if at % 2 == 0 { 30.0 } else { 0.0 };
            duel.repeated = 0.6;
        }
        let (_, busy) = shared(&cores, &duels).unwrap();
        assert!(busy < 0.5 && busy < calm / 1.5, "{calm} {busy}");
        // A level whose end the virtual machine does not see.
        duels.iter_mut().for_each(|d| d.slow = 1.1 * d.fast);
        let error = shared(&cores, &duels).unwrap_err().to_string();
        assert!(error.contains("cannot be told"), "{error}");
    }

    #[test]
    fn buses_and_cells() {
        // The paper's Finis Terrae: pairs on a bus, cells of two buses, two cells.
        let mut random = noise(5);
        let share = |(a, b): Pair, r: f64| {
            let level = match () {
                () if a / 4 == b / 4 => 0.55,
                () if a / 8 == b / 8 => 0.75,
                () => 1.0,
            };
            ((a, b), level * (1.0 + 0.04 * (r - 0.5)))
        };
        let table: Vec<(Pair, f64)> = pairs(16).into_iter().map(|p| share(p, random())).collect();
        let found = contention(&table, 0.03);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[0].share - 0.55).abs() < 0.02);
        assert_eq!(found[0].groups.len(), 4);
        assert_eq!(
            found[1].groups,
            [(0..8).collect(), (8..16).collect::<Vec<u32>>()]
        );
        assert!(
            contention(&[((0, 1), 0.97)], 0.0).is_empty(),
            "within noise"
        );
        assert!(contention(&[((0, 1), 0.9)], 0.2).is_empty(), "within noise");
    }
}
