//! Reuse distances: how many other lines a thread touched since it touched this one last. Exact, by a tree over the times of
//! the last touches (Bennett and Kruskal 1975); of long codelets a sample of the lines, whose distances are scaled
//! (Waldspurger and others, "Efficient MRC construction with SHARDS", FAST 2015; what the sample has too many or too few of
//! is taken from the smallest distances, as there).

use crate::metrics::values::Values;
use rustc_hash::FxHashMap;

/// Distances, in lines, below which accesses are counted.
const STEPS: [u64; 7] = [8, 64, 512, 4096, 16_384, 65_536, 524_288];
/// Times that the tree has room for at least.
const ROOM: usize = 1 << 16;

/// The lines in the order of their last touch.
#[derive(Debug, Default)]
struct Stack {
    last: FxHashMap<u64, u32>,
    /// Fenwick tree: for each time, 1 if a line was touched then last.
    tree: Vec<u32>,
    now: u32,
}

impl Stack {
    fn add(&mut self, time: u32, more: bool) {
        let mut at = time as usize;
        while at < self.tree.len() {
            let entry = &mut self.tree[at];
            *entry = if more { *entry + 1 } else { *entry - 1 };
            at += at & at.wrapping_neg();
        }
    }

    /// Lines that were touched last at `time` or before.
    fn until(&self, time: u32) -> u64 {
        let (mut at, mut sum) = (time as usize, 0);
        while at > 0 {
            sum += u64::from(self.tree[at]);
            at -= at & at.wrapping_neg();
        }
        sum
    }

    /// Times become 1, 2, ... in their order.
    fn compact(&mut self) {
        let mut lines: Vec<(u32, u64)> = self.last.iter().map(|(line, t)| (*t, *line)).collect();
        lines.sort_unstable();
        for (time, (_, line)) in (1..).zip(&lines) {
            self.last.insert(*line, time);
        }
        self.now = lines.len() as u32;
        self.tree.clear();
        self.tree.resize((2 * lines.len()).max(ROOM) + 1, 0);
        for at in 1..self.tree.len() {
            self.tree[at] += u32::from(at <= lines.len());
            let next = at + (at & at.wrapping_neg());
            if next < self.tree.len() {
                self.tree[next] += self.tree[at];
            }
        }
    }

    /// Distinct lines since the last touch of this one; none if there was none.
    fn touch(&mut self, line: u64) -> Option<u64> {
        if self.now as usize + 1 >= self.tree.len() {
            self.compact();
        }
        self.now += 1;
        let live = self.last.len() as u64;
        let before = self.last.insert(line, self.now);
        let distance = before.map(|time| {
            let distance = live - self.until(time);
            self.add(time, false);
            distance
        });
        self.add(self.now, true);
        distance
    }
}

/// Whether a line is in a sample of one of `2^bits`.
#[inline]
#[must_use]
pub fn sampled(line: u64, bits: u32) -> bool {
    let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    bits == 0 || mixed >> (64 - bits) == 0
}

/// Counts of reuse distances.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    /// All accesses.
    accesses: u64,
    /// Those of them to the line that was touched last.
    same: u64,
    /// Others, to lines of the sample.
    looked: u64,
    /// Of those: without a touch before, and by distance.
    cold: u64,
    below: [u64; STEPS.len()],
    logarithms: f64,
}

/// The distances of one thread.
#[derive(Debug, Default)]
pub struct Reuse {
    bits: u32,
    stack: Stack,
    last: Option<u64>,
    sums: Sums,
}

impl Reuse {
    /// Of one of `2^bits` lines.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self {
            bits,
            ..Self::default()
        }
    }

    /// An access to `line`.
    #[inline]
    pub fn touch(&mut self, line: u64) {
        self.sums.accesses += 1;
        if self.last.replace(line) == Some(line) {
            self.sums.same += 1;
            return;
        }
        if !sampled(line, self.bits) {
            return;
        }
        self.sums.looked += 1;
        let Some(distance) = self.stack.touch(line) else {
            self.sums.cold += 1;
            return;
        };
        let distance = distance << self.bits;
        for (count, step) in self.sums.below.iter_mut().zip(STEPS) {
            *count += u64::from(distance < step);
        }
        self.sums.logarithms += (1.0 + distance as f64).log2();
    }

    /// Adds the counts to `all`.
    pub fn finish(&self, all: &mut Sums) {
        all.accesses += self.sums.accesses;
        all.same += self.sums.same;
        all.looked += self.sums.looked;
        all.cold += self.sums.cold;
        all.logarithms += self.sums.logarithms;
        for (sum, own) in all.below.iter_mut().zip(self.sums.below) {
            *sum += own;
        }
    }
}

impl Sums {
    /// Writes the metrics of the group, of a sample of one of `2^bits` lines.
    pub fn fill(&self, bits: u32, values: &mut Values) {
        let none = "it reaches no memory";
        let (accesses, same) = (self.accesses as f64, self.same as f64);
        let scale = f64::from(1u32 << bits);
        let others = accesses - same;
        if self.looked == 0 && others > 0.0 {
            values.missing_group("reuse", "no line of it is in the sample");
            return;
        }
        values.ratio("reuse_same", same, accesses, none);
        let cold = (self.cold as f64 * scale).min(others);
        values.ratio("reuse_cold", cold, accesses, none);
        // What the sample lacks, or has too many of.
        let lacking = others - self.looked as f64 * scale;
        for (step, below) in STEPS.iter().zip(self.below) {
            let near = (below as f64 * scale + lacking).clamp(0.0, others - cold);
            values.ratio(&format!("reuse_{step}"), same + near, accesses, none);
        }
        let warm = accesses - cold;
        let why = "it touches no line twice";
        values.ratio("reuse_mean", self.logarithms * scale, warm, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn as_a_list_that_moves_to_the_front() {
        for seed in 0..20 {
            let mut random = SmallRng::seed_from_u64(seed);
            let lines = random.random_range(1..400);
            let mut stack = Stack::default();
            let mut list: Vec<u64> = Vec::new();
            for _ in 0..3000 {
                let line = random.random_range(0..lines) * random.random_range(1..3);
                let expected = list.iter().position(|l| *l == line);
                if let Some(at) = expected {
                    list.remove(at);
                }
                list.insert(0, line);
                assert_eq!(stack.touch(line), expected.map(|at| at as u64));
                // As if there were no room.
                if random.random_range(0..100) == 0 {
                    stack.compact();
                }
            }
        }
    }

    #[test]
    fn a_sweep_reuses_at_its_length() {
        // Long enough for the tree to be full several times.
        let mut reuse = Reuse::new(0);
        for _ in 0..300 {
            (0..1000).for_each(|line| reuse.touch(line));
        }
        let (mut sums, mut values) = (Sums::default(), Values::default());
        reuse.finish(&mut sums);
        sums.fill(0, &mut values);
        assert_eq!(values.value("reuse_cold"), Some(1.0 / 300.0));
        assert_eq!(values.value("reuse_512"), Some(0.0));
        assert_eq!(values.value("reuse_4096"), Some(299.0 / 300.0));
        let mean = values.value("reuse_mean").unwrap();
        assert!((mean - 1000f64.log2()).abs() < 1e-9);
    }

    #[test]
    fn a_sample_without_the_hot_lines() {
        // Between lines of a large array the same two are touched.
        let shares = |bits| {
            let mut reuse = Reuse::new(bits);
            for i in 0..200_000 {
                for line in [1, 2, 2, 1000 + i % 50_000] {
                    reuse.touch(line);
                }
            }
            let (mut sums, mut values) = (Sums::default(), Values::default());
            reuse.finish(&mut sums);
            sums.fill(bits, &mut values);
            ["reuse_same", "reuse_8", "reuse_4096", "reuse_cold"]
                .map(|name| values.value(name).unwrap())
        };
        for bits in [2, 4, 6] {
            for (exact, estimate) in shares(0).into_iter().zip(shares(bits)) {
                assert!(
                    (exact - estimate).abs() < 0.03,
                    "{bits}: {exact} {estimate}"
                );
            }
        }
    }

    #[test]
    fn a_sample_estimates() {
        let share = |bits| {
            let mut reuse = Reuse::new(bits);
            for round in 0..20 {
                // A working set of 100,000 lines, and one of 1,000 within it.
                (0..100_000).for_each(|line| reuse.touch(line));
                (0..100_000).for_each(|i| reuse.touch((i + round) % 1000));
            }
            let (mut sums, mut values) = (Sums::default(), Values::default());
            reuse.finish(&mut sums);
            sums.fill(bits, &mut values);
            ["reuse_cold", "reuse_4096", "reuse_524288", "reuse_mean"]
                .map(|name| values.value(name).unwrap())
        };
        for (exact, estimate) in share(0).into_iter().zip(share(4)) {
            assert!(
                (exact - estimate).abs() < 0.05 * exact.max(0.1),
                "{exact} {estimate}"
            );
        }
    }
}
