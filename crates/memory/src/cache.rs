//! The tags of one cache, and its replacement.
//!
//! A set is a run of `u64`, one per way: the line's number above three flags. With least recently used replacement a
//! set is kept in the order of use, most recent first. The other policies leave lines where they are and note the way
//! used last, so that using it again is one comparison.

use crate::geometry::Replacement;

/// The line differs from what lies behind it.
pub const DIRTY: u64 = 1;
/// A prefetch put the line in, and no demand has used it.
pub const PREFETCHED: u64 = 2;
/// The footprint may not have the line yet. Used in the first level.
pub const UNSEEN: u64 = 4;
/// Bits below a line's number.
pub const FLAG_BITS: u32 = 3;
/// An empty way. Numbers of lines have 60 bits at most.
pub const EMPTY: u64 = u64::MAX;

/// Numbers that look random (SplitMix64).
#[derive(Debug, Clone)]
pub struct Generator(u64);

impl Generator {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// The next number, below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

/// A bijection of 64 bits in which every bit of the result depends on every bit given.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Remainders by one divisor without a division (Granlund and Montgomery), of numbers of 62 bits.
#[derive(Debug, Clone, Copy)]
pub struct Divider {
    divisor: u64,
    /// 0 for a power of two.
    magic: u64,
    shift: u32,
}

impl Divider {
    /// By 1 to 2^32.
    pub fn new(divisor: u64) -> Self {
        if divisor.is_power_of_two() {
            return Self {
                divisor,
                magic: 0,
                shift: 0,
            };
        }
        // 3 at least, so `bits` is 2 at least. The product is shifted by 62 + bits, 64 of it by taking the upper half.
        let bits = u64::BITS - (divisor - 1).leading_zeros();
        Self {
            divisor,
            magic: ((1u128 << (62 + bits)) / u128::from(divisor)) as u64 + 1,
            shift: bits - 2,
        }
    }

    /// `number` modulo the divisor.
    #[inline(always)]
    pub fn rest(self, number: u64) -> u64 {
        if self.magic == 0 {
            return number & (self.divisor - 1);
        }
        let upper = (u128::from(number) * u128::from(self.magic)) >> 64;
        number - (upper as u64 >> self.shift) * self.divisor
    }
}

/// What one cache counts, in lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub load_hits: u64,
    pub load_misses: u64,
    pub store_hits: u64,
    pub store_misses: u64,
    pub fills: u64,
    pub prefetch_fills: u64,
    pub prefetch_hits: u64,
    pub write_backs: u64,
    pub invalidations: u64,
    pub coherence_invalidations: u64,
}

impl Tally {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.load_hits, other.load_hits),
            (&mut self.load_misses, other.load_misses),
            (&mut self.store_hits, other.store_hits),
            (&mut self.store_misses, other.store_misses),
            (&mut self.fills, other.fills),
            (&mut self.prefetch_fills, other.prefetch_fills),
            (&mut self.prefetch_hits, other.prefetch_hits),
            (&mut self.write_backs, other.write_backs),
            (&mut self.invalidations, other.invalidations),
            (
                &mut self.coherence_invalidations,
                other.coherence_invalidations,
            ),
        ];
        for (mine, theirs) in pairs {
            *mine = mine.saturating_add(theirs);
        }
    }
}

/// One cache.
pub struct Cache {
    entries: Box<[u64]>,
    ways: usize,
    sets: Divider,
    policy: Replacement,
    /// The way used last, by set; empty for least recently used.
    recent: Box<[u32]>,
    /// The tree's bits, by set; for tree-PLRU.
    trees: Box<[u64]>,
    generator: Generator,
    pub tally: Tally,
}

impl Cache {
    /// Empty, with `sets` and `ways` of at least 1.
    pub fn new(sets: u64, ways: u32, policy: Replacement, seed: u64) -> Self {
        let filled = |wanted: bool| if wanted { sets as usize } else { 0 };
        Self {
            entries: vec![EMPTY; sets as usize * ways as usize].into(),
            ways: ways as usize,
            sets: Divider::new(sets),
            policy,
            recent: vec![0; filled(policy != Replacement::Lru)].into(),
            trees: vec![0; filled(policy == Replacement::TreePlru)].into(),
            generator: Generator::new(seed),
            tally: Tally::default(),
        }
    }

    /// The set of a line.
    #[inline(always)]
    fn set(&self, line: u64) -> usize {
        self.sets.rest(line) as usize
    }

    #[inline(always)]
    fn lines(&mut self, set: usize) -> &mut [u64] {
        let from = set * self.ways;
        &mut self.entries[from..from + self.ways]
    }

    /// The entry used last in the line's set, of whatever line. Using it again changes no order.
    #[inline(always)]
    pub fn latest(&mut self, line: u64) -> &mut u64 {
        let set = self.set(line);
        let way = match self.policy {
            Replacement::Lru => 0,
            _ => self.recent[set] as usize,
        };
        &mut self.entries[set * self.ways + way]
    }

    #[inline(always)]
    fn way(&self, set: usize, line: u64) -> Option<usize> {
        let from = set * self.ways;
        let lines = &self.entries[from..from + self.ways];
        lines.iter().position(|e| e >> FLAG_BITS == line)
    }

    /// The entry of a line, if it is there; its use is not noted.
    pub fn find(&mut self, line: u64) -> Option<&mut u64> {
        let set = self.set(line);
        let way = self.way(set, line)?;
        Some(&mut self.entries[set * self.ways + way])
    }

    /// The entry of a line, if it is there; it is used.
    #[inline]
    pub fn touch(&mut self, line: u64) -> Option<&mut u64> {
        let set = self.set(line);
        let way = self.way(set, line)?;
        Some(self.note(set, way))
    }

    /// Notes that a way is used.
    #[inline]
    fn note(&mut self, set: usize, way: usize) -> &mut u64 {
        match self.policy {
            Replacement::Lru => {
                let lines = self.lines(set);
                let entry = lines[way];
                for at in (0..way).rev() {
                    lines[at + 1] = lines[at];
                }
                lines[0] = entry;
                return &mut lines[0];
            }
            Replacement::TreePlru => {
                let (mut node, mut tree) = (1usize, self.trees[set]);
                for bit in (0..self.ways.trailing_zeros()).rev() {
                    let right = (way >> bit) & 1;
                    tree = tree & !(1 << node) | ((1 - right as u64) << node);
                    node = 2 * node + right;
                }
                self.trees[set] = tree;
            }
            Replacement::Random => {}
        }
        self.recent[set] = way as u32;
        &mut self.entries[set * self.ways + way]
    }

    /// The way that the tree points to.
    fn pointed(&self, set: usize) -> usize {
        let (mut node, tree) = (1usize, self.trees[set]);
        while node < self.ways {
            node = 2 * node + ((tree >> node) & 1) as usize;
        }
        node - self.ways
    }

    /// Puts a line in, which is not there, as used; `flags` are its flags. Returns the entry that had to leave, or
    /// [`EMPTY`]. Empty ways are filled first, from the first on.
    #[inline]
    pub fn insert(&mut self, line: u64, flags: u64) -> u64 {
        let set = self.set(line);
        let entry = line << FLAG_BITS | flags;
        if self.policy == Replacement::Lru {
            let lines = self.lines(set);
            let last = lines.len() - 1;
            let left = lines[last];
            lines.copy_within(0..last, 1);
            lines[0] = entry;
            return left;
        }
        let empty = self.lines(set).iter().position(|&e| e == EMPTY);
        let way = empty.unwrap_or_else(|| match self.policy {
            Replacement::TreePlru => self.pointed(set),
            _ => self.generator.below(self.ways as u64) as usize,
        });
        std::mem::replace(self.note(set, way), entry)
    }

    /// Takes a line out and returns its entry, or [`EMPTY`] if it is not there.
    pub fn remove(&mut self, line: u64) -> u64 {
        let set = self.set(line);
        let Some(way) = self.way(set, line) else {
            return EMPTY;
        };
        let lru = self.policy == Replacement::Lru;
        let lines = self.lines(set);
        let entry = lines[way];
        match lru {
            true => {
                lines.copy_within(way + 1.., way);
                lines[lines.len() - 1] = EMPTY;
            }
            false => lines[way] = EMPTY,
        }
        entry
    }

    /// Marks every line as [`UNSEEN`].
    pub fn mark_unseen(&mut self) {
        let there = self.entries.iter_mut().filter(|e| **e != EMPTY);
        there.for_each(|e| *e |= UNSEEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders() {
        let mut generator = Generator::new(7);
        let divisors = (1..200).chain([(1 << 32) - 5, 114_688, 28 * 2048, 1 << 32]);
        for divisor in divisors {
            let fast = Divider::new(divisor);
            let edges = [
                0,
                1,
                divisor - 1,
                divisor,
                (1 << 62) - 1,
                (1 << 62) / divisor * divisor - 1,
            ];
            for n in edges
                .into_iter()
                .chain((0..1000).map(|k| generator.next() >> (2 + k % 60)))
            {
                assert_eq!(fast.rest(n), n % divisor, "{n} mod {divisor}");
            }
        }
    }

    #[test]
    fn the_tree_points_away_from_what_was_used() {
        let mut cache = Cache::new(1, 4, Replacement::TreePlru, 0);
        for line in 0..4 {
            assert_eq!(cache.insert(line, 0), EMPTY);
        }
        cache.touch(0);
        // The root points right, its right child to the way not used last there: 2.
        assert_eq!(cache.insert(4, 0) >> FLAG_BITS, 2);
        assert_eq!(cache.insert(5, 0) >> FLAG_BITS, 1);
    }
}
