//! What the probes of the memory hierarchy run on: this machine's memory, or a simulated one in tests.

use crate::Error;
use crate::session::Session;
use cere_arch::loops;
use cere_timing::area::{Area, Pages, SMALL, flush};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// Bytes of a word of memory: offsets are in words.
pub const WORD: usize = 8;

/// Memory whose loads can be timed.
pub trait Target {
    /// Takes `bytes` of memory in pages of the wanted size, in place of what it had; the share that lies in huge pages.
    fn take(&mut self, bytes: usize, pages: Pages) -> Result<f64, Error>;

    /// Nanoseconds of a load when loads go through `order` again and again, each depending on the one before: after at least one
    /// pass, over at least `loads` loads. `order` holds offsets in words, each once.
    fn chase(&mut self, order: &[u32], loads: usize) -> f64;

    /// Likewise once, with none of them in a cache; `None` where lines cannot be flushed.
    fn cold(&mut self, order: &[u32]) -> Option<f64>;
}

/// Loads in one round of the loop.
const UNROLLED: usize = 128;

/// This machine.
pub struct Live<'a> {
    session: &'a Session<'a>,
    area: Area,
}

impl<'a> Live<'a> {
    /// Prepares; no memory yet but a page.
    pub fn new(session: &'a Session<'a>) -> Result<Self, Error> {
        Ok(Self {
            session,
            area: Area::new(SMALL, Pages::Small)?,
        })
    }

    /// Writes the chain; its first address.
    fn link(&mut self, order: &[u32]) -> u64 {
        let base = self.area.address();
        let address = |at: usize| base + WORD as u64 * u64::from(order[at % order.len()]);
        let words = self.area.words();
        for (at, offset) in order.iter().enumerate() {
            words[*offset as usize] = address(at + 1);
        }
        address(0)
    }

    fn run(&self, from: u64, rounds: usize) -> u64 {
        // SAFETY: the chain stays inside the area: `chase` wrote every pointer of its cycle.
        unsafe { loops::chase::<UNROLLED>(from, rounds as u64) }
    }
}

impl Target for Live<'_> {
    fn take(&mut self, bytes: usize, pages: Pages) -> Result<f64, Error> {
        // The one before goes first, or both have to fit.
        self.area = Area::new(SMALL, Pages::Small)?;
        let mut area = Area::untouched(bytes, pages)?;
        // Small pages are touched in an order that gives them frames apart: neighbours could share an entry of a TLB.
        let mut order: Vec<usize> = (0..area.len()).step_by(SMALL).collect();
        if pages == Pages::Small {
            order.shuffle(&mut SmallRng::seed_from_u64(1));
        }
        let words = area.words();
        order.into_iter().for_each(|page| words[page / WORD] = 1);
        let huge = area.huge();
        self.area = area;
        Ok(huge)
    }

    fn chase(&mut self, order: &[u32], loads: usize) -> f64 {
        let start = self.link(order);
        // Written is not loaded: a pass goes first.
        let reached = self.run(start, order.len().div_ceil(UNROLLED));
        let rounds = loads.max(order.len()).div_ceil(UNROLLED);
        let nanoseconds = self.session.time(|| {
            std::hint::black_box(self.run(reached, rounds));
        });
        nanoseconds / (rounds * UNROLLED) as f64
    }

    fn cold(&mut self, order: &[u32]) -> Option<f64> {
        let start = self.link(order);
        let words = self.area.words();
        order
            .iter()
            .for_each(|offset| flush(&words[*offset as usize]));
        // Whole rounds, so that no load comes twice.
        let rounds = order.len() / UNROLLED;
        let nanoseconds = self.session.time(|| {
            std::hint::black_box(self.run(start, rounds));
        });
        (rounds > 0).then(|| nanoseconds / (rounds * UNROLLED) as f64)
    }
}

/// The first lines of pages that are drawn out of the first `pool` bytes, `bytes` in all: at random within a page, one page after
/// the other. Pages lie in physical memory at random then, whatever the system does.
#[must_use]
pub fn pages(pool: usize, bytes: usize, line: usize, seed: u64) -> Vec<u32> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut drawn: Vec<usize> = (0..pool).step_by(SMALL).collect();
    drawn.shuffle(&mut random);
    drawn.truncate(bytes.div_ceil(SMALL));
    let last = bytes - (bytes - 1) / SMALL * SMALL;
    let page = |(at, page): (usize, usize)| {
        let whole = if at == 0 { last } else { SMALL };
        let mut inside: Vec<u32> = (page..page + whole)
            .step_by(line)
            .map(|at| (at / WORD) as u32)
            .collect();
        inside.shuffle(&mut random);
        inside
    };
    drawn.into_iter().enumerate().flat_map(page).collect()
}

/// `count` different blocks of `block` bytes out of the first `bytes`, at random; two words of each by `pair`, given a random number
/// below 2^32.
#[must_use]
pub fn pairs(
    bytes: usize,
    block: usize,
    count: usize,
    seed: u64,
    pair: impl Fn(u32) -> [usize; 2],
) -> Vec<u32> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut blocks: Vec<usize> = (0..bytes / block).collect();
    blocks.shuffle(&mut random);
    blocks.truncate(count);
    let both = |at: usize| {
        pair(random.random::<u32>()).map(|inside| ((at * block + inside) / WORD) as u32)
    };
    blocks.into_iter().flat_map(both).collect()
}
