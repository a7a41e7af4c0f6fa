//! Levels of a hierarchy from a curve of times by working set: pure functions.

use super::fit::{self, Fit, Placement};
use crate::analysis::{monotone, quality_threshold};

/// Diameter of a cluster over its mean (BlackjackBench, figure 10).
const DIAMETER: f64 = 0.25;
/// Ratio of the x of two points that are clustered.
const APART: f64 = 1.06;
/// A plateau's last x is at least this often its first one.
const LONG: f64 = 1.4;
/// Points of a plateau, at least; of the first one, whose beginning is not seen, and the last, whose end is not, one less.
const POINTS: usize = 3;
/// Rise within a plateau for each doubling of x, at most, over its mean: a broad rise has clusters too.
const SLOPE: f64 = 0.2;
/// What a confidence is multiplied with if another size with another replacement would do.
const AMBIGUOUS: f64 = 0.6;
/// Miss rate up to which a working set counts as held.
const HELD: f64 = 0.1;

/// A level: working sets whose accesses take the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Plateau {
    /// Its least x.
    pub from: f64,
    /// Its greatest x.
    pub to: f64,
    /// Its time: the median of its points.
    pub time: f64,
}

/// Points whose x are at least [`APART`]: a rise that was measured in more points would count more.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if kept.last().is_none_or(|last| point.0 >= APART * last.0) {
            kept.push(*point);
        }
    }
    kept
}

/// The plateaus of a curve, the nearest first. Points between them are transitions.
#[must_use]
pub fn plateaus(points: &[(f64, f64)]) -> Vec<Plateau> {
    let points = &thinned(points);
    let smooth = monotone(points);
    let clusters = quality_threshold(&smooth, DIAMETER).into_iter();
    let plateau = |cluster: Vec<usize>| {
        let (first, last) = (*cluster.first()?, *cluster.last()?);
        let (from, to) = (smooth[first].0, smooth[last].0);
        let times: Vec<f64> = cluster.iter().map(|at| points[*at].1).collect();
        let time = cere_timing::stats::median(&times)?;
        let ends = last + 1 == smooth.len();
        let rise =
            (smooth[last].1 - smooth[first].1) / time / (to / from).log2().max(f64::MIN_POSITIVE);
        let enough = cluster.len() + usize::from(first == 0 || ends) >= POINTS;
        let long = ends || to >= LONG * from && rise <= SLOPE;
        Some(Plateau { from, to, time }).filter(|_| enough && long)
    };
    let mut found: Vec<Plateau> = clusters.filter_map(plateau).collect();
    found.sort_by(|a, b| a.from.total_cmp(&b.from));
    found
}

/// `count` values of x at most in the rise from one plateau to the next, as multiples of `unit` apart.
#[must_use]
pub fn between(near: &Plateau, far: &Plateau, count: usize, unit: usize) -> Vec<usize> {
    let (from, to) = (near.to.min(far.from), far.from.max(near.to));
    let steps = ((to - from) / (count + 1) as f64 / unit as f64).ceil();
    let step = steps.max(1.0) as usize * unit;
    (from as usize..to as usize).step_by(step).skip(1).collect()
}

/// The size of a level, read off the rise behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// Units of x that it holds.
    pub size: f64,
    /// What explains the rise best; `None` where the rise is one step between neighbouring points.
    pub fit: Option<Fit>,
    /// 0 to 1: how well the fit describes the rise, and how far the fits that describe it alike agree.
    pub confidence: f64,
}

/// The size of the level `near` before `far`, with pages of `unit` in x that lie in one of `placements`.
#[must_use]
pub fn size(
    points: &[(f64, f64)],
    near: &Plateau,
    far: &Plateau,
    unit: f64,
    placements: &[Placement],
) -> Option<Size> {
    let smooth = monotone(points);
    let low = smooth.iter().find(|p| p.0 >= near.from)?.1;
    let high = far.time.max(low * 1.01);
    let rate = |y: f64| ((y - low) / (high - low)).max(0.0);
    let window = smooth
        .iter()
        .filter(|p| p.0 >= near.to / 2.0 && p.0 <= 2.0 * far.from);
    let rates: Vec<(u64, f64)> = window
        .map(|p| ((p.0 / unit).round().max(1.0) as u64, rate(p.1)))
        .collect();
    let held = rates
        .iter()
        .take_while(|r| r.1 <= HELD)
        .last()
        .map_or(near.to, |r| r.0 as f64 * unit);
    let between = rates
        .iter()
        .filter(|r| r.1 > HELD && r.1 < 1.0 - HELD)
        .count();
    let fits = fit::fits(&rates, placements);
    let pages = fit::size(&fits)?;
    let heavy = |a: &(&Fit, f64), b: &(&Fit, f64)| a.1.total_cmp(&b.1);
    let best = *fit::alike(&fits)
        .filter(|(fit, _)| fit.pages() == pages)
        .max_by(heavy)?
        .0;
    let close = |fit: &Fit| (fit.pages() as f64 / pages as f64 - 1.0).abs() <= 0.125;
    let weight = |near: bool| -> f64 {
        fit::alike(&fits)
            .filter(|(f, _)| !near || close(f))
            .map(|(_, w)| w)
            .sum()
    };
    let alike = weight(true) / weight(false).max(f64::MIN_POSITIVE);
    let size = match between {
        // Nothing between: the step says more than any model of it.
        0 => held,
        _ => pages as f64 * unit,
    };
    let confidence = (1.0 - best.residual / 0.15).clamp(0.0, 1.0) * alike;
    let confidence = match between > 0 && fit::is_ambiguous(&fits, pages) {
        true => AMBIGUOUS * confidence,
        false => confidence,
    };
    Some(Size {
        size,
        fit: Some(best).filter(|_| between > 0),
        confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A curve of four levels with 32 KiB, 1 MiB (random pages) and 16 MiB.
    fn curve() -> Vec<(f64, f64)> {
        let xs = (0..60)
            .map(|i| ((4096.0 * 2f64.powf(f64::from(i) / 4.0) / 4096.0).round() * 4096.0) as u64);
        let time = |x: u64| {
            let pages = x / 4096;
            let first = fit::misses(pages, 1, 8, Placement::Even, fit::Policy::Lru);
            let second = fit::misses(pages, 32, 8, Placement::Random, fit::Policy::Lru);
            let third = fit::misses(pages, 256, 16, Placement::Random, fit::Policy::Lru);
            1.0 + 3.0 * first + 12.0 * second * first + 60.0 * third
        };
        let mut points: Vec<(f64, f64)> = xs.map(|x| (x as f64, time(x))).collect();
        points.dedup_by(|a, b| a.0 == b.0);
        points
    }

    #[test]
    fn four_levels() {
        let points = curve();
        let found = plateaus(&points);
        let times: Vec<f64> = found.iter().map(|p| p.time.round()).collect();
        assert_eq!(times, [1.0, 4.0, 16.0, 76.0]);
        let sizes: Vec<f64> = found
            .windows(2)
            .map(|p| {
                size(&points, &p[0], &p[1], 4096.0, &[Placement::Random])
                    .unwrap()
                    .size
            })
            .collect();
        assert_eq!(sizes, [32768.0, 1048576.0, 16777216.0]);
    }
}
