//! How large an area must be that pushes everything out of a cache: it grows until a chase through flushed memory takes
//! no longer (Whaley and Castaldo, section 3).

use crate::aligned::Aligned;
use crate::clock::Clock;
use crate::error::TimerError;
use crate::memory::{Area, LINE};
use std::hint::black_box;

/// An area and how its size was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FlushArea {
    /// Level of the cache that it flushes, from 1.
    pub level: u32,
    /// Bytes of the area.
    pub bytes: usize,
    /// Sizes tried, in bytes, with the time of an access to flushed memory after each, in seconds.
    pub tried: Vec<(usize, f64)>,
}

/// The time grows no more when it grows by less than this part.
const GROWTH: f64 = 1.05;
/// The first area over the cache: of a cache that replaces any line, a walk over x times its size leaves exp(-x). Smaller areas
/// are not tried: while another user of the cache, such as a tenant's thread on the same core, empties it, each looks large enough.
const FIRST: usize = 4;
/// Caches from here on are larger than what a virtual machine gets of them, and walks over several times their size take seconds:
/// their first area is as large as they are.
const LARGE: usize = 64 << 20;
/// Bytes that the chase visits, at most.
const PROBE: usize = 1 << 20;

/// A cycle through all lines of a piece of memory, in an order that no prefetcher follows.
struct Chase {
    memory: Aligned,
    lines: usize,
}

impl Chase {
    fn new(bytes: usize) -> Result<Self, TimerError> {
        let lines = (bytes / LINE).max(2);
        let mut memory = Aligned::new(lines * LINE, LINE, 0)?;
        let mut order: Vec<usize> = (0..lines).collect();
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for last in (1..lines).rev() {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            order.swap(last, (state >> 33) as usize % (last + 1));
        }
        for (at, &line) in order.iter().enumerate() {
            let next = order[(at + 1) % lines] * LINE;
            memory.bytes_mut()[line * LINE..][..8].copy_from_slice(&next.to_le_bytes());
        }
        Ok(Self { memory, lines })
    }

    /// Seconds of one access, over one cycle.
    fn time(&mut self) -> f64 {
        let first = self.memory.as_ptr();
        let from = Clock::Wall.start();
        let mut at = 0usize;
        for _ in 0..self.lines {
            // SAFETY: every offset in the cycle is that of a line of the memory, which begins with an offset.
            at = unsafe { first.add(at).cast::<usize>().read_volatile() };
        }
        black_box(at);
        (Clock::Wall.stop() - from) as f64 * Clock::Wall.unit() / self.lines as f64
    }
}

/// Finds the size of the area that flushes the cache of `bytes` at `level`: [`FIRST`] times the cache, then twice the last one until
/// the accesses take no longer, at most `most` bytes. From [`LARGE`] on the first is the cache's size.
pub(crate) fn size(
    level: u32,
    bytes: usize,
    most: usize,
    area: &mut Area,
) -> Result<FlushArea, TimerError> {
    let mut chase = Chase::new((bytes / 2).min(PROBE))?;
    let (first, tries) = if bytes > LARGE { (1, 3) } else { (FIRST, 9) };
    let mut after = |size: usize, so_far: &mut f64| {
        area.write(size);
        chase.time();
        area.walk(size);
        *so_far = so_far.min(chase.time());
    };
    let mut at = bytes.saturating_mul(first).min(most);
    let mut tried = vec![(at, f64::INFINITY)];
    loop {
        // In turns: the machine may change its speed meanwhile.
        let (mut here, mut twice) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..tries {
            after(at, &mut here);
            if at <= most / 2 {
                after(2 * at, &mut twice);
            }
        }
        let last = tried.len() - 1;
        tried[last].1 = here.min(tried[last].1);
        if at > most / 2 {
            break;
        }
        tried.push((2 * at, twice));
        if twice < GROWTH * here {
            break;
        }
        at *= 2;
    }
    Ok(FlushArea {
        level,
        bytes: at,
        tried,
    })
}
