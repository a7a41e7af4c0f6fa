//! How long a line that nobody uses stays in the caches: on a machine of one's own until others take its place, on one whose last
//! level is shared with strangers a few milliseconds.

use crate::area::{Area, NoMemory, Pages, flush, lines};
use std::time::{Duration, Instant};

/// Bytes of a line.
const LINE: usize = 64;
/// Share of the last level that the probe fills.
const SHARE: u64 = 8;
/// Lines that are read again, at most.
const READ: usize = 1 << 12;
/// How often the probe's memory is read before a wait: caches keep what was used again for longer, and programs use theirs in each step.
const USES: usize = 3;
/// The first wait in nanoseconds; each is twice the one before.
const FIRST: u64 = 500_000;
/// Waits.
const WAITS: u32 = 7;
/// Readings after each.
const ROUNDS: usize = 5;
/// Readings after the longest wait, to see whether anything is lost at all.
const FEW: usize = 1;

/// A chain of lines through memory.
struct Chain {
    area: Area,
    order: Vec<u32>,
}

impl Chain {
    fn new(bytes: usize) -> Result<Self, NoMemory> {
        let mut area = Area::new(bytes, Pages::Huge)?;
        let order = lines(bytes, LINE, 1);
        let words = area.words();
        for (at, offset) in order.iter().enumerate() {
            words[*offset as usize] = order[(at + 1) % order.len()].into();
        }
        Ok(Self { area, order })
    }

    /// Nanoseconds of a load after everything was read, and what `between` does.
    fn reading(&mut self, between: impl FnOnce(&[u64], &[u32])) -> f64 {
        let words: &[u64] = self.area.words();
        for _ in 0..USES {
            let sum: u64 = self.order.iter().map(|at| words[*at as usize]).sum();
            std::hint::black_box(sum);
        }
        between(words, &self.order);
        let count = self.order.len().min(READ);
        let begin = Instant::now();
        let mut at = self.order[0] as usize;
        for _ in 0..count {
            at = words[at] as usize;
        }
        std::hint::black_box(at);
        begin.elapsed().as_nanos() as f64 / count as f64
    }

    /// The median of some of them.
    fn median(&mut self, rounds: usize, between: impl Fn(&[u64], &[u32])) -> f64 {
        let mut all: Vec<f64> = (0..rounds).map(|_| self.reading(&between)).collect();
        all.sort_by(f64::total_cmp);
        all[rounds / 2]
    }
}

fn flush_all(words: &[u64], order: &[u32]) {
    let read = order.iter().take(READ + 1);
    read.for_each(|at| flush(&words[*at as usize]));
}

/// The time after which half of `curve` is lost: pairs of nanoseconds and the share that is still there, by rising time. `None`
/// if more than half is there at its end.
fn half(curve: &[(u64, f64)]) -> Option<u64> {
    let lost = curve.iter().position(|(_, there)| *there < 0.5)?;
    let (late, few) = curve[lost];
    let (early, many) = match lost {
        0 => (0, 1.0),
        _ => curve[lost - 1],
    };
    let part = (many - 0.5) / (many - few).max(1e-9);
    Some(early + ((late - early) as f64 * part) as u64)
}

/// Nanoseconds after which half of what a program has read a few times, and does not use, has left a last level of `size` bytes although the
/// program brings in nothing else. `None` if it stays for longer than a few hundredths of a second. Takes up to a third of a
/// second, a twentieth where nothing is lost.
pub fn survival(size: u64) -> Result<Option<u64>, NoMemory> {
    let bytes = (size / SHARE).clamp(1 << 18, 1 << 23) as usize;
    let mut chain = Chain::new(bytes)?;
    let held = chain.median(ROUNDS, |_, _| {});
    let gone = chain.median(ROUNDS, flush_all);
    Ok(find(|wait, rounds| {
        let time = chain.median(rounds, |_, _| {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_nanos(wait) {
                std::hint::spin_loop();
            }
        });
        (gone - time) / (gone - held).max(1e-9)
    }))
}

/// The time after which half is lost, from the share that is there after a wait, the median of some readings.
fn find(mut after: impl FnMut(u64, usize) -> f64) -> Option<u64> {
    // On most machines the longest wait tells all.
    if after(FIRST << (WAITS - 1), FEW) > 0.5 {
        return None;
    }
    let mut curve = Vec::new();
    for wait in (0..WAITS).map(|at| FIRST << at) {
        let there = after(wait, ROUNDS);
        curve.push((wait, there));
        if there < 0.5 {
            break;
        }
    }
    half(&curve)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_read_off_between_two_waits() {
        assert_eq!(half(&[(100, 1.0), (200, 0.75), (400, 0.25)]), Some(300));
        assert_eq!(half(&[(100, 0.0)]), Some(50));
        assert_eq!(half(&[(100, 1.0), (200, 0.6)]), None);
        assert_eq!(half(&[]), None);
    }

    #[test]
    fn a_chain_goes_through_every_line_once() {
        let mut chain = Chain::new(1 << 18).unwrap();
        let words = chain.area.words();
        let mut seen = std::collections::BTreeSet::new();
        let mut at = 0;
        while seen.insert(at) {
            at = words[at] as usize;
        }
        assert_eq!((seen.len(), at), ((1 << 18) / LINE, 0));
        let held = chain.median(ROUNDS, |_, _| {});
        let gone = chain.median(ROUNDS, flush_all);
        assert!(gone > held, "{gone} {held}");
    }

    #[test]
    fn what_decays_is_found_and_what_stays_takes_one_wait() {
        for half_life in [0.4e6, 1e6, 5e6, 20e6] {
            let found = find(|wait, _| 0.5_f64.powf(wait as f64 / half_life)).unwrap() as f64;
            assert!((found / half_life - 1.0).abs() < 0.2, "{found} {half_life}");
        }
        let mut waits = 0;
        let stays = |_, rounds| {
            waits += rounds;
            0.95
        };
        assert_eq!(find(stays), None);
        assert_eq!(waits, FEW);
    }
}
