//! Pages: where they lie in physical memory, and which of their lines were touched.

use crate::cache::mix;
use crate::geometry::{HUGE_PAGE, PAGE};
use crate::options::{Frames, Options};
use std::ops::Range;

/// Pages whose translation is at hand.
const NEAR: usize = 256;
/// No place in the table.
const NONE: u32 = u32::MAX;
/// Bits of a page's number.
const PAGE_BITS: u32 = 52;
/// Bits of a huge page's number.
const HUGE_BITS: u32 = 43;

/// A page and its translation.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Its number, `u64::MAX` for none.
    number: u64,
    /// Its frame: fewer than 2^53.
    pub frame: u64,
    /// Twice the number that TLBs know it by, and 1 more for huge pages.
    pub key: u64,
    /// Its place in the table of the footprint.
    place: u32,
    /// Where the nearest TLB had it last.
    entry: u32,
}

const NO_PAGE: Page = Page {
    number: u64::MAX,
    frame: 0,
    key: 0,
    place: NONE,
    entry: NONE,
};

/// The pages of a simulation.
pub struct Pages {
    near: Box<[Page; NEAR]>,
    random: Option<u64>,
    /// Whole huge pages, by rising numbers, apart from each other.
    huge: Box<[Range<u64>]>,
    footprint: Footprint,
    /// Touches are not noted while this is set.
    pub warming: bool,
}

impl Pages {
    /// `line` is the footprint's, in bytes.
    pub fn new(options: &Options, line: u32) -> Self {
        let mut huge: Vec<Range<u64>> = Vec::new();
        let mut wanted = options.huge.clone();
        wanted.sort_by_key(|r| r.start);
        // Ranges that touch become one, which may then cover a page that neither covers alone.
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in wanted.into_iter().filter(|r| r.start < r.end) {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        for range in joined {
            let whole = range.start.div_ceil(HUGE_PAGE)..range.end / HUGE_PAGE;
            if whole.start < whole.end {
                huge.push(whole);
            }
        }
        Self {
            near: Box::new([NO_PAGE; NEAR]),
            random: (options.frames == Frames::Random).then_some(options.seed),
            huge: huge.into(),
            footprint: Footprint::new(options.footprint_pages, line),
            warming: false,
        }
    }

    /// The place of an address's page among those at hand, which this puts there if need be.
    #[inline(always)]
    pub fn at(&mut self, address: u64) -> usize {
        let number = address / PAGE;
        // Multiplied, so that arrays whose starts differ by a power of two do not drive each other out.
        let at = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % NEAR;
        if self.near[at].number != number {
            self.near[at] = self.translate(number);
        }
        at
    }

    /// Where a page's entry in the nearest TLB may be.
    #[inline(always)]
    pub fn entry(&mut self, at: usize) -> &mut u32 {
        &mut self.near[at % NEAR].entry
    }

    /// The page at a place that [`at`](Self::at) gave for the latest address.
    #[inline(always)]
    pub fn get(&self, at: usize) -> Page {
        self.near[at % NEAR]
    }

    #[cold]
    #[inline(never)]
    fn translate(&self, number: u64) -> Page {
        let huge = number / (HUGE_PAGE / PAGE);
        let below = self.huge.partition_point(|r| r.end <= huge);
        let is_huge = self.huge.get(below).is_some_and(|r| r.contains(&huge));
        let (frame, key) = match (is_huge, self.random) {
            (false, None) => (number, 2 * number),
            (true, None) => (number, 2 * huge + 1),
            (false, Some(seed)) => (shuffle(number, PAGE_BITS, seed), 2 * number),
            (true, Some(seed)) => {
                let frame = shuffle(huge, HUGE_BITS, !seed);
                let inside = number % (HUGE_PAGE / PAGE);
                // Apart from the frames of small pages.
                let frame = (1 << PAGE_BITS) + frame * (HUGE_PAGE / PAGE) + inside;
                (frame, 2 * huge + 1)
            }
        };
        Page {
            number,
            frame,
            key,
            place: NONE,
            entry: NONE,
        }
    }

    /// Notes that a line of a page at hand was touched: `line` counts from the page's start.
    #[inline]
    pub fn note_line(&mut self, at: usize, line: u64) {
        if self.warming {
            return;
        }
        if let Some(place) = self.place(at) {
            self.footprint.note(place, line);
        }
    }

    /// Notes that a page at hand was touched.
    #[inline]
    pub fn note_page(&mut self, at: usize) {
        if !self.warming {
            self.place(at);
        }
    }

    #[inline]
    fn place(&mut self, at: usize) -> Option<u32> {
        let page = &mut self.near[at % NEAR];
        if page.place == NONE {
            page.place = self.footprint.place(page.number);
        }
        (page.place != NONE).then_some(page.place)
    }

    /// Forgets which pages are at hand.
    pub fn forget_near(&mut self) {
        self.near.fill(NO_PAGE);
    }

    /// Empties the footprint.
    pub fn reset(&mut self) {
        self.forget_near();
        self.footprint.reset();
    }

    /// Makes room for more pages; `false` if that is too many.
    pub fn reserve(&mut self, pages: usize, most: usize) -> bool {
        let wanted = self.footprint.pages.saturating_add(pages);
        if wanted > most {
            return false;
        }
        if wanted > self.footprint.room {
            self.footprint.grow(wanted);
            self.forget_near();
        }
        true
    }

    /// Lines, pages, and whether that is all of them.
    pub fn footprint(&self) -> (u64, u64, bool) {
        let f = &self.footprint;
        (f.lines, f.pages as u64, f.complete)
    }
}

/// A permutation of the numbers of `bits` bits: a Feistel network of four rounds over one bit more if they are odd,
/// followed until it leads back.
fn shuffle(number: u64, bits: u32, seed: u64) -> u64 {
    let half = bits.div_ceil(2);
    let mask = (1 << half) - 1;
    let mut at = number;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..4 {
            let next = left ^ (mix(right ^ mix(seed.wrapping_add(round))) & mask);
            (left, right) = (right, next);
        }
        at = left << half | right;
        if at >> bits == 0 {
            return at;
        }
    }
}

/// Which lines of which pages were touched: an open hash table of pages, with a bit per line. Full, it forgets what is
/// new.
struct Footprint {
    /// A page's number and 1; 0 is free. Zeros, so that what is never used takes no memory.
    keys: Box<[u64]>,
    /// `words` for each key.
    bits: Box<[u64]>,
    words: usize,
    room: usize,
    pages: usize,
    lines: u64,
    complete: bool,
}

impl Footprint {
    fn new(room: usize, line: u32) -> Self {
        let words = (PAGE as usize / line as usize).div_ceil(64);
        let places = Self::places(room);
        Self {
            keys: vec![0; places].into(),
            bits: vec![0; places * words].into(),
            words,
            room,
            pages: 0,
            lines: 0,
            complete: true,
        }
    }

    /// A third more than the room at least, so that searches stay short.
    fn places(room: usize) -> usize {
        (room + room / 3 + 1).next_power_of_two()
    }

    /// The place of a page, a new one if need be; [`NONE`] if there is no room.
    fn place(&mut self, page: u64) -> u32 {
        let mask = self.keys.len() - 1;
        let mut at = mix(page) as usize & mask;
        loop {
            let key = self.keys[at];
            if key == page + 1 {
                return at as u32;
            }
            if key == 0 {
                break;
            }
            at = (at + 1) & mask;
        }
        if self.pages == self.room {
            self.complete = false;
            return NONE;
        }
        self.keys[at] = page + 1;
        self.pages += 1;
        at as u32
    }

    #[inline]
    fn note(&mut self, place: u32, line: u64) {
        let word = &mut self.bits[place as usize * self.words + line as usize / 64];
        let bit = 1 << (line % 64);
        self.lines += u64::from(*word & bit == 0);
        *word |= bit;
    }

    fn reset(&mut self) {
        if self.pages > 0 {
            self.keys.fill(0);
            self.bits.fill(0);
        }
        (self.pages, self.lines, self.complete) = (0, 0, true);
    }

    fn grow(&mut self, room: usize) {
        let places = Self::places(room);
        let keys = std::mem::replace(&mut self.keys, vec![0; places].into());
        let bits = std::mem::replace(&mut self.bits, vec![0; places * self.words].into());
        (self.room, self.pages) = (room, 0);
        let words = self.words;
        for (index, &key) in keys.iter().enumerate().filter(|(_, k)| **k != 0) {
            let at = self.place(key - 1) as usize * words;
            let old = &bits[index * words..(index + 1) * words];
            self.bits[at..at + words].copy_from_slice(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_frame_of_its_own() {
        for bits in [8, 9, 12] {
            let frames: std::collections::BTreeSet<u64> =
                (0..1 << bits).map(|n| shuffle(n, bits, 3)).collect();
            assert_eq!(frames.len(), 1 << bits);
            assert_eq!(frames.last(), Some(&((1 << bits) - 1)));
        }
        assert_ne!(shuffle(5, 52, 1), shuffle(5, 52, 2));
    }

    #[test]
    fn huge_pages_lie_together() {
        let options = Options {
            frames: Frames::Random,
            // The second page is covered by two ranges together.
            huge: vec![HUGE_PAGE..HUGE_PAGE + 5, HUGE_PAGE + 5..3 * HUGE_PAGE + 7],
            ..Options::default()
        };
        let mut pages = Pages::new(&options, 64);
        let mut of = |address| {
            let at = pages.at(address);
            pages.get(at)
        };
        let (first, next) = (of(HUGE_PAGE), of(HUGE_PAGE + 3 * PAGE + 17));
        assert_eq!((next.key, next.frame), (first.key, first.frame + 3));
        assert_eq!(first.key, 3);
        assert_eq!(of(2 * HUGE_PAGE).key, 5);
        assert_eq!(of(3 * HUGE_PAGE).key, 2 * 3 * 512);
        assert_ne!(of(3 * HUGE_PAGE).frame + 1, of(3 * HUGE_PAGE + PAGE).frame);
    }

    #[test]
    fn a_full_footprint_says_so_and_can_grow() {
        let options = Options {
            footprint_pages: 3,
            ..Options::default()
        };
        let mut pages = Pages::new(&options, 32);
        let touch = |pages: &mut Pages, address: u64| {
            let at = pages.at(address);
            pages.note_line(at, address % PAGE / 32);
        };
        for page in [5, 600, 5 + 256, 5] {
            touch(&mut pages, page * PAGE + 4064);
            touch(&mut pages, page * PAGE);
        }
        assert_eq!(pages.footprint(), (6, 3, true));
        assert!(pages.reserve(2, 10));
        touch(&mut pages, 5 * PAGE);
        touch(&mut pages, 7 * PAGE);
        assert_eq!(pages.footprint(), (7, 4, true));
        touch(&mut pages, 8 * PAGE);
        touch(&mut pages, 9 * PAGE);
        assert_eq!(pages.footprint(), (8, 5, false));
        assert!(!pages.reserve(6, 10));
        pages.reset();
        assert_eq!(pages.footprint(), (0, 0, true));
    }
}
