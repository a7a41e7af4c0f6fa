//! Probes of caches: line, sizes, ways, latencies. What they read off is in [`super::levels`] and [`super::fit`].

use super::levels;
use super::target::{Target, pages, pairs};
use crate::Error;
use crate::analysis::{Step, biggest_step};
use cere_timing::area::lines;
use cere_timing::area::{Pages, SMALL};

/// How much is measured.
pub struct Effort<'a> {
    /// Repetitions of a short measurement; the least counts. Long ones are repeated less.
    pub repeats: usize,
    /// Draws of the pages of a working set, at most.
    pub draws: usize,
    /// Working sets for each doubling.
    pub per_octave: u32,
    /// Bytes of the largest working set.
    pub limit: usize,
    /// Loads of one measurement, at least.
    pub loads: usize,
    /// Whether time is over: what is not measured yet is left out.
    pub over: &'a dyn Fn() -> bool,
}

/// Nanoseconds of a load in `order`: the least of some repetitions.
pub fn least(target: &mut dyn Target, order: &[u32], effort: &Effort) -> f64 {
    // Working sets of many passes average over noise, and take long.
    let times = effort.repeats.min(1 + (1 << 20) / order.len().max(1));
    let runs = (0..times.max(1)).map(|_| target.chase(order, effort.loads));
    runs.fold(f64::INFINITY, f64::min)
}

/// Bytes of a block that holds a pair of loads, and of the areas: one beyond every first cache, and what memory serves.
const BLOCK: usize = 512;
const NEAR: usize = 256 << 10;

/// The line: loads in pairs, a random one and one `D - 8` bytes behind it (BlackjackBench 3.1.1).
pub struct Line {
    /// Time by D, in an area that the second cache holds.
    pub near: Vec<(f64, f64)>,
    /// Likewise beyond the caches.
    pub far: Vec<(f64, f64)>,
}

/// Measures the line's curves; the far area has `effort.limit` bytes.
pub fn line(target: &mut dyn Target, effort: &Effort) -> Result<Line, Error> {
    let mut curve = |bytes: usize, count: usize| -> Result<Vec<(f64, f64)>, Error> {
        target.take(bytes, Pages::Huge)?;
        let extents = [16usize, 32, 64, 128, 256, 512].into_iter();
        let time = |extent: usize| {
            let order = pairs(bytes, BLOCK, count, 3, |_| [0, extent - 8]);
            (extent as f64, least(target, &order, effort))
        };
        Ok(extents.map(time).collect())
    };
    let near = curve(NEAR, NEAR / BLOCK)?;
    let far = curve(effort.limit.max(4 * NEAR), 1 << 14)?;
    Ok(Line { near, far })
}

impl Line {
    /// Bytes of a line, and of what memory brings at once: both with the step they were read off.
    ///
    /// The paper reports what memory brings. Some processors bring two lines; a store or a flush still concerns one. So the line is
    /// read where no such prefetcher works, between the first two caches.
    #[must_use]
    pub fn read(&self) -> Option<(u64, Step, u64)> {
        let near = biggest_step(&self.near)?;
        let far = biggest_step(&self.far).map_or(0, |step| self.far[step.before].0 as u64);
        Some((self.near[near.before].0 as u64, near, far))
    }
}

/// Working sets by rising size up to `limit`, whole pages.
fn working_sets(limit: usize, per_octave: u32) -> Vec<usize> {
    let mut found: Vec<usize> = (0..)
        .map(|i| SMALL as f64 * 2f64.powf(f64::from(i) / f64::from(per_octave)))
        .take_while(|x| *x <= limit as f64 * 1.001)
        .map(|x| (x / SMALL as f64).round() as usize * SMALL)
        .collect();
    found.dedup();
    found
}

/// Working sets added to each rise.
const REFINED: usize = 10;

/// Draws of the pages of a working set: as many as give so many bytes, within a limit. The more pages, the nearer is each draw to the
/// mean.
const DRAWN: usize = 16 << 20;

/// Time of a load by working set: all lines of some pages, at random within a page, one page after the other (BlackjackBench 3.1.2),
/// coarse, then finer where it rises. Pages are small ones, as a program's own, and the mean of several draws of them counts: one
/// draw's sets are fuller than the mean, or emptier.
pub fn sizes(
    target: &mut dyn Target,
    line: usize,
    effort: &Effort,
) -> Result<Vec<(f64, f64)>, Error> {
    target.take(effort.limit, Pages::Small)?;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut add = |sets: Vec<usize>, points: &mut Vec<(f64, f64)>| {
        for bytes in sets {
            if (effort.over)() && bytes > NEAR {
                break;
            }
            let x = bytes as f64;
            if points.iter().all(|p| p.0 != x) {
                let draws = (DRAWN / bytes).clamp(1, effort.draws) as u64;
                let times = (0..draws)
                    .map(|seed| least(target, &pages(effort.limit, bytes, line, seed), effort));
                points.push((x, times.sum::<f64>() / draws as f64));
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    };
    add(working_sets(effort.limit, effort.per_octave), &mut points);
    let finer = levels::plateaus(&points)
        .windows(2)
        .flat_map(|p| levels::between(&p[0], &p[1], REFINED, SMALL))
        .collect();
    add(finer, &mut points);
    Ok(points)
}

/// Ways, by addresses that fall into one set.
#[derive(Debug, Clone, PartialEq)]
pub struct Ways {
    /// Lines that stay in the cache, by their stride in bytes.
    pub held: Vec<(usize, u32)>,
    /// Ways, and bytes of a way.
    pub found: Option<(u32, usize)>,
}

/// Lines at a stride, at most.
const MOST: u32 = 66;
/// Draws of the sets that are tried. What disturbs a set only takes lines away: the most counts.
const DRAWS: u64 = 4;

/// Which level's ways are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Nanoseconds of a hit in it, and of one in the level behind.
    pub times: (f64, f64),
    /// Ways and bytes of a way of the level before; `None` for the first level.
    pub before: Option<(u32, usize)>,
    /// Strides in bytes, from and to: powers of two.
    pub strides: (usize, usize),
}

/// Share of misses among the lines of a set from which they do not all stay.
const MISSES: f64 = 0.05;
/// Share of a time by which another is surely longer, if both are the least of some repetitions.
const SURELY: f64 = 0.03;
/// Attempts to show that lines stay: what disturbs a measurement lasts longer than its repetitions.
const ATTEMPTS: usize = 3;

/// Ways of a level: the stride grows; the lines that stay become fewer until the stride is a way, and then stay as many.
///
/// The paper takes the cache's size for the stride, and needs to know it. Two sets at once, so that a victim cache of a few lines
/// does not count. What the level before holds never reaches this one: other lines of the same set there are read in between, which
/// lie in other sets here.
pub fn ways(
    target: &mut dyn Target,
    line: usize,
    wanted: &Wanted,
    effort: &Effort,
) -> Result<Ways, Error> {
    let (mut stride, last) = wanted.strides;
    let (hit, miss) = wanted.times;
    let evicting = wanted
        .before
        .map_or((0, 0), |(ways, way)| (2 * ways as usize, way));
    target.take(
        last * MOST as usize + 2 * (evicting.0 + 1) * evicting.1,
        Pages::Huge,
    )?;
    let mut held = Vec::new();
    while stride <= last && !(effort.over)() {
        let order = |count: u32, draw: u64| {
            // Two neighbouring lines, and not those at the beginning of a page, which the stack and others like.
            let first = (7 + 11 * draw as usize) * line % stride.min(SMALL);
            let word = |at: usize, set: usize| {
                (((first + set * line) % stride.min(SMALL) + at) / 8) as u32
            };
            let lines =
                (0..count as usize).flat_map(|i| [word(i * stride, 0), word(i * stride, 1)]);
            // Odd multiples of the way before: never one of the stride, which is at least two of them.
            let others = (0..evicting.0).flat_map(|i| {
                [0, 1].map(|set| word(last * MOST as usize + (2 * i + 1) * evicting.1, set))
            });
            shuffled(lines.chain(others).collect(), draw)
        };
        let most = |target: &mut dyn Target, draw: u64| {
            // One line stays for sure: its time is that of the moment.
            let one = least(target, &order(1, draw), effort);
            let stays = |count: &u32| {
                let share = f64::from(*count) / (*count as usize + evicting.0) as f64;
                let bound = one + (MISSES * (miss - hit) * share).max(SURELY * one);
                let order = order(*count, draw);
                (0..ATTEMPTS).any(|_| least(target, &order, effort) <= bound)
            };
            (1..=MOST).take_while(stays).last().unwrap_or(0)
        };
        let lines = (0..DRAWS).map(|draw| most(target, draw)).max().unwrap_or(0);
        held.push((stride, lines));
        stride *= 2;
    }
    let found = held
        .windows(2)
        .find(|two| two[0].1 == two[1].1 && two[0].1 < MOST && two[0].1 > 0);
    // The strides before have twice as many each, as far as that was measured: else the index is not of bits of the address.
    let regular = |way: &(usize, u32)| {
        let before = held.iter().filter(|h| h.0 < way.0);
        let mut doubled = before.map(|h| {
            (
                h.1,
                (way.1 as usize * way.0 / h.0).min(MOST as usize) as u32,
            )
        });
        doubled.all(|(lines, expected)| lines.abs_diff(expected) <= 1 + expected / 16)
    };
    let found = found
        .map(|two| two[0])
        .filter(regular)
        .map(|(stride, lines)| (lines, stride));
    Ok(Ways { held, found })
}

fn shuffled(mut order: Vec<u32>, seed: u64) -> Vec<u32> {
    use rand::{SeedableRng, seq::SliceRandom};
    order.shuffle(&mut rand::rngs::SmallRng::seed_from_u64(seed));
    order
}

/// Nanoseconds of a dependent load from a level that holds between `from` and `to` bytes.
pub fn latency(
    target: &mut dyn Target,
    line: usize,
    (from, to): (usize, usize),
    effort: &Effort,
) -> Result<f64, Error> {
    // Half of the first level; well beyond the one before and well within the level otherwise.
    let from = if from == 0 { to / 4 } else { from };
    let bytes = ((from as f64 * to as f64).sqrt() as usize)
        .clamp(2 * line, effort.limit)
        .next_multiple_of(line);
    if bytes <= NEAR {
        target.take(bytes, Pages::Huge)?;
        return Ok(least(target, &lines(bytes, line, 5), effort));
    }
    without_pages(bytes / line, line, &mut |order, area| {
        target.take(area, Pages::Huge)?;
        Ok(Some(least(target, order, effort)))
    })
    .map(|found| found.unwrap_or(f64::NAN))
}

/// Lines of the probe of memory's latency.
const COLD: usize = 1 << 15;

/// Nanoseconds of a dependent load from memory; `None` where lines cannot be flushed.
pub fn memory_latency(
    target: &mut dyn Target,
    line: usize,
    effort: &Effort,
) -> Result<Option<f64>, Error> {
    without_pages(COLD, line, &mut |order, area| {
        target.take(area, Pages::Huge)?;
        let times = (0..effort.repeats).map(|_| target.cold(order));
        Ok(times
            .collect::<Option<Vec<f64>>>()
            .and_then(|t| t.into_iter().reduce(f64::min)))
    })
}

/// Nanoseconds of a load in an order, in an area of some bytes; `None` where that cannot be measured.
type Timing<'a> = dyn FnMut(&[u32], usize) -> Result<Option<f64>, Error> + 'a;

/// What `time` gives for `count` lines, less what their pages cost: one line a page, and two, where that cost falls by half.
fn without_pages(count: usize, line: usize, time: &mut Timing) -> Result<Option<f64>, Error> {
    let half = SMALL / 2;
    let inside = move |r: u32, part: usize| part * half + r as usize % (half / line) * line;
    let one: Vec<u32> = pairs(count * SMALL, SMALL, count, 5, |r| {
        [inside(r, (r >> 31) as usize), 0]
    });
    let one: Vec<u32> = one.into_iter().step_by(2).collect();
    let two = pairs(count / 2 * SMALL, SMALL, count / 2, 5, |r| {
        [inside(r, 0), inside(r >> 16, 1)]
    });
    let (Some(one), Some(two)) = (time(&one, count * SMALL)?, time(&two, count / 2 * SMALL)?)
    else {
        return Ok(None);
    };
    Ok(Some((2.0 * two - one).clamp(two / 2.0, two)))
}
