//! Reproducible numbers.

/// A generator (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

/// Boundaries of ranges, sizes and formats.
const ENDS: [u64; 28] = [
    0,
    1,
    2,
    7,
    15,
    16,
    255,
    4095,
    4096,
    4097,
    65535,
    65536,
    (1 << 21) - 1,
    1 << 21,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    (1 << 47) - 4096,
    1 << 47,
    (1 << 48) - 1,
    1 << 60,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 4096,
    u64::MAX - 4095,
    u64::MAX - 1,
    u64::MAX,
];

impl Random {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.any() % end as u64) as usize
    }
    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    /// One of `all`.
    pub fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
    /// A number that is a boundary, or near `old`.
    pub fn number(&mut self, old: u64) -> u64 {
        match self.below(8) {
            0..4 => *self.one(&ENDS),
            4 => old.wrapping_add(1),
            5 => old.wrapping_sub(1),
            6 => old ^ 1 << self.below(64),
            _ => self.any() >> self.below(64),
        }
    }
}
