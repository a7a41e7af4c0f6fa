//! A data TLB. Least recently used by the time of each entry's last use: a hit at a known place costs one comparison,
//! also among the many ways of a fully associative TLB.

use crate::cache::Divider;
use crate::counters::TlbCounters;

/// No page.
const EMPTY: u64 = u64::MAX;

/// One level.
pub struct Tlb {
    keys: Box<[u64]>,
    /// Time of the last use, 0 for empty entries.
    used: Box<[u64]>,
    ways: usize,
    sets: Divider,
    now: u64,
    pub tally: TlbCounters,
}

impl Tlb {
    /// Empty.
    pub fn new(entries: u32, ways: u32) -> Self {
        Self {
            keys: vec![EMPTY; entries as usize].into(),
            used: vec![0; entries as usize].into(),
            ways: ways as usize,
            sets: Divider::new(u64::from(entries / ways)),
            now: 0,
            tally: TlbCounters::default(),
        }
    }

    /// First entry of a page's set: both sizes of pages are indexed by their number, which is half the key.
    #[inline]
    fn set(&self, key: u64) -> usize {
        self.sets.rest(key >> 1) as usize * self.ways
    }

    #[inline]
    fn note(&mut self, at: usize) {
        self.now += 1;
        self.used[at] = self.now;
    }

    /// Looks a page up, first where it is thought to be; counts, and returns where it is.
    #[inline]
    pub fn look_up(&mut self, key: u64, thought: usize) -> Option<usize> {
        let at = match self.keys.get(thought) {
            Some(&there) if there == key => thought,
            _ => match self.search(key) {
                Some(at) => at,
                None => {
                    self.tally.misses += 1;
                    return None;
                }
            },
        };
        self.tally.hits += 1;
        self.note(at);
        Some(at)
    }

    fn search(&self, key: u64) -> Option<usize> {
        let from = self.set(key);
        let keys = &self.keys[from..from + self.ways];
        Some(from + keys.iter().position(|&k| k == key)?)
    }

    /// Puts a page in, which is not there, in place of the least recently used one; returns where it is.
    pub fn insert(&mut self, key: u64) -> usize {
        let from = self.set(key);
        let (mut at, mut least) = (from, u64::MAX);
        for (index, &used) in self.used[from..from + self.ways].iter().enumerate() {
            if used < least {
                (at, least) = (from + index, used);
            }
        }
        self.keys[at] = key;
        self.note(at);
        at
    }
}
