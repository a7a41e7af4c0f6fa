//! Probes of TLBs: page, levels, entries (BlackjackBench 3.2).

use super::caches::{Effort, least};
use super::fit::Placement;
use super::levels::{self, Plateau, Size};
use super::target::{Target, WORD, pages, pairs};
use crate::Error;
use cere_timing::area::{Pages, SMALL};

/// Blocks of a pair, from 512 bytes to 4 MiB.
const BLOCKS: std::ops::RangeInclusive<u32> = 9..=22;
/// Pairs: more pages than a TLB holds, and fewer lines than a second cache does.
const PAIRS: usize = 4096;

/// Time by block: pairs of loads, one in each half of a random block, over that of the same loads paired with those of another
/// block. While a block fits a page, the second load finds the page of the first. (The paper's stride walks an array in order, which
/// prefetchers and large caches flatten; and its time rises with the span of the array too.)
pub fn page(
    target: &mut dyn Target,
    line: usize,
    effort: &Effort,
) -> Result<Vec<(f64, f64)>, Error> {
    let bytes = effort.limit.min(256 << 20);
    target.take(bytes, Pages::Plain)?;
    let blocks = BLOCKS
        .map(|power| 1usize << power)
        .filter(|block| bytes / block >= PAIRS);
    let often = Effort {
        repeats: 3 * effort.repeats,
        ..*effort
    };
    let mut ratio = |block: usize| {
        let half = block / 2;
        let paired = pairs(bytes, block, PAIRS, 3, |r| {
            let at = r as usize % (half / line).max(1) * line;
            [at, at + half]
        });
        // The second loads of half a round later: the page has long left the TLB.
        let other = |at: usize| paired[(at + at % 2 * PAIRS) % paired.len()];
        let apart: Vec<u32> = (0..paired.len()).map(other).collect();
        (
            block as f64,
            least(target, &paired, &often) / least(target, &apart, &often),
        )
    };
    Ok(blocks.map(&mut ratio).collect())
}

/// The page with its confidence: the last block before the ratio leaves that of small blocks towards 1. `None` where pairs gain
/// nothing in small blocks either: nothing is to be seen of TLBs.
///
/// (The paper takes the biggest scaled step of a time that rises with the span of the array as well.)
#[must_use]
pub fn read_page(curve: &[(f64, f64)]) -> Option<(u64, f64)> {
    let ratios: Vec<f64> = curve.iter().map(|p| p.1.min(1.0)).collect();
    let base = cere_timing::stats::median(ratios.get(..3)?)?;
    let bound = base + 0.3 * (1.0 - base);
    let inside = ratios.iter().take_while(|ratio| **ratio < bound).count();
    if inside == 0 || base > 0.93 {
        return None;
    }
    let beyond = cere_timing::stats::median(&ratios[inside..]).unwrap_or(1.0);
    let spread = ratios[..inside]
        .iter()
        .map(|r| (r - base).abs())
        .fold(0.0, f64::max);
    let confidence = 1.0 - spread / (beyond - base).max(f64::MIN_POSITIVE);
    Some((curve[inside - 1].0 as u64, confidence.clamp(0.0, 1.0)))
}

/// Numbers of pages added to each rise.
const REFINED: usize = 11;
/// Pages that are tried, at most.
const MOST: usize = 16 << 10;

/// Times by number of lines.
pub struct Entries {
    /// Each in a page of its own, at a random place there.
    pub apart: Vec<(f64, f64)>,
    /// As many in as few pages as they fit.
    pub together: Vec<(f64, f64)>,
}

/// Measures [`Entries`]. The same lines close together show what the caches add: the paper's one curve has their steps too. `held`:
/// bytes of the second cache, whose own rise would hide what pages add.
pub fn entries(
    target: &mut dyn Target,
    line: usize,
    held: usize,
    effort: &Effort,
) -> Result<Entries, Error> {
    let most = MOST.min(effort.limit / SMALL).min(held / line);
    target.take(most * SMALL, Pages::Small)?;
    let mut apart: Vec<(f64, f64)> = Vec::new();
    let mut together: Vec<(f64, f64)> = Vec::new();
    let mut add =
        |counts: Vec<usize>, apart: &mut Vec<(f64, f64)>, together: &mut Vec<(f64, f64)>| {
            for count in counts {
                let x = count as f64;
                if (effort.over)() || apart.iter().any(|p| p.0 == x) {
                    continue;
                }
                let spread = spread(count, line);
                apart.push((x, least(target, &spread, effort)));
                together.push((
                    x,
                    least(target, &pages(count * line, count * line, line, 3), effort),
                ));
            }
            apart.sort_by(|a, b| a.0.total_cmp(&b.0));
            together.sort_by(|a, b| a.0.total_cmp(&b.0));
        };
    let steps = (0..).map(|i| 8.0 * 2f64.powf(f64::from(i) / f64::from(effort.per_octave)));
    let mut counts: Vec<usize> = steps
        .take_while(|n| *n <= most as f64)
        .map(|n| n as usize)
        .collect();
    counts.dedup();
    add(counts, &mut apart, &mut together);
    let coarse = Entries { apart, together };
    let rises = levels::plateaus(&coarse.added());
    let finer = rises
        .windows(2)
        .flat_map(|p| levels::between(&p[0], &p[1], REFINED, 1))
        .collect();
    let Entries {
        mut apart,
        mut together,
    } = coarse;
    add(finer, &mut apart, &mut together);
    Ok(Entries { apart, together })
}

/// One line in each of `count` pages, as many at each place of a page as at any other, so that the first cache is used evenly.
fn spread(count: usize, line: usize) -> Vec<u32> {
    let places = SMALL / line;
    let pages = pairs(count * SMALL, SMALL, count, 3, |_| [0, 0])
        .into_iter()
        .step_by(2)
        .enumerate();
    pages
        .map(|(at, page)| page + (at % places * line / WORD) as u32)
        .collect()
}

/// A level of TLBs, read off.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Pages that it holds.
    pub entries: Size,
    /// Nanoseconds that a miss in it adds.
    pub miss: f64,
}

impl Entries {
    /// What pages add to a hit in everything.
    #[must_use]
    pub fn added(&self) -> Vec<(f64, f64)> {
        let base = self.together.first().map_or(0.0, |p| p.1);
        let both = self.apart.iter().zip(&self.together);
        both.map(|(apart, together)| (apart.0, base + (apart.1 - together.1).max(0.0)))
            .collect()
    }

    /// The levels.
    #[must_use]
    pub fn read(&self) -> Vec<Level> {
        let added = self.added();
        let found = levels::plateaus(&added);
        let level = |p: &[Plateau]| {
            let entries = levels::size(
                &added,
                &p[0],
                &p[1],
                1.0,
                &[Placement::Even, Placement::Random],
            )?;
            Some(Level {
                entries,
                miss: p[1].time - p[0].time,
            })
        };
        // Two levels are built; what rises behind them are the tables of pages that leave the caches.
        found.windows(2).take(2).filter_map(level).collect()
    }
}
