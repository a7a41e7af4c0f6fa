//! How often each segment ran, and which way branches went.

use cere_format::count::{CALL, CONDITIONAL, Code, ENTRY, Segment};

/// What a stream says of the code that ran.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Executions of each segment, by its index.
    pub segments: Vec<u64>,
    /// Of those, which ended with a conditional branch that was taken.
    pub taken: Vec<u64>,
    /// Changes of direction of each segment's branch from one execution to the next.
    pub turns: Vec<u64>,
    /// Calls of addresses after which code ran that is not counted.
    pub uncounted: u64,
    /// The last segment of each thread, plus 1.
    last: Vec<u32>,
    /// The way that each segment's branch went last, for each thread; 2: none.
    ways: Vec<Vec<u8>>,
}

impl Tally {
    /// Nothing ran.
    #[must_use]
    pub fn new(code: &Code) -> Self {
        let none = vec![0; code.segments.len()];
        Self {
            segments: none.clone(),
            taken: none.clone(),
            turns: none,
            ..Self::default()
        }
    }

    /// Machine instructions.
    #[must_use]
    pub fn instructions(&self, code: &Code) -> u64 {
        let all = code.segments.iter().zip(&self.segments);
        let each = all.map(|(s, n)| (s.instructions.len() as u64).saturating_mul(*n));
        each.fold(0, u64::saturating_add)
    }

    /// Forgets what ran.
    pub fn reset(&mut self) {
        for counts in [&mut self.segments, &mut self.taken, &mut self.turns] {
            counts.fill(0);
        }
        self.ways.clear();
        self.uncounted = 0;
        self.last.clear();
    }

    /// Threads that ran counted code.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.last.iter().filter(|last| **last != 0).count() as u32
    }

    /// A segment ran in `thread`.
    #[inline]
    pub fn add(&mut self, code: &Code, thread: u32, index: u32, segment: &Segment) {
        let count = &mut self.segments[index as usize];
        *count = count.saturating_add(1);
        let thread = thread as usize;
        if self.last.len() <= thread {
            self.last.resize(thread + 1, 0);
            self.ways.resize(thread + 1, Vec::new());
        }
        let before = std::mem::replace(&mut self.last[thread], index + 1);
        if let Some(before) = before.checked_sub(1) {
            let last = &code.segments[before as usize];
            if last.is(CONDITIONAL) {
                let way = u8::from(before + 1 != index);
                self.taken[before as usize] += u64::from(way);
                let ways = &mut self.ways[thread];
                ways.resize(code.segments.len(), 2);
                let known = &mut ways[before as usize];
                self.turns[before as usize] += u64::from(*known != way && *known != 2);
                *known = way;
            }
            let indirect = last.is(CALL) && code.name(last.callee).is_empty();
            if indirect && !segment.is(ENTRY) {
                self.uncounted += 1;
            }
        }
    }
}
