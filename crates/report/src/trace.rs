//! The invocation trace of a region as a scatter plot, its performance classes in colour.

use super::format::{count, time};
use crate::plot::axis::{Axis, Scale, extent};
use crate::plot::frame::{AREA, Plot};
use crate::plot::picture::{Anchor, Picture};
use cere_cluster::Classes;
use cere_format::profile::RegionProfile;
use std::collections::HashSet;
use std::fmt::Write;

/// Maximum number of points of the region that takes most.
const MOST: usize = 1500;
/// Maximum number of points of any other, at least.
const FEW: usize = 60;
/// Largest over smallest time from which on the scale is logarithmic.
const WIDE: f64 = 12.0;

/// A plot and the numbers of points that it shows and does not show.
pub struct Trace {
    /// The picture.
    pub svg: String,
    /// Points drawn.
    pub drawn: usize,
    /// Invocations whose time the profile kept.
    pub kept: usize,
}

/// A point: invocation, x, seconds, class.
#[derive(Clone, Copy)]
struct Point {
    invocation: u64,
    x: f64,
    y: f64,
    class: usize,
}

fn points(region: &RegionProfile, classes: &Classes, hz: f64, timed: bool) -> Vec<Point> {
    let trace = &region.trace;
    let first = (1..).zip(trace.first.iter().copied());
    first
        .chain(trace.sampled.iter().copied())
        .filter(|(_, cycles)| *cycles > 0 && *cycles < u64::MAX)
        .map(|(invocation, cycles)| Point {
            invocation,
            x: match trace.start(invocation) {
                Some(start) if timed => start as f64 / hz,
                _ => invocation as f64,
            },
            y: cycles as f64 / hz,
            class: classes.of(cycles),
        })
        .collect()
}

/// Rank of the first region whose plot has few ticks and no marks.
pub const MARKED: usize = 50;

/// Maximum number of points of the region with this rank, from 0: a page of many regions stays small.
fn most(rank: usize) -> usize {
    (MOST / (1 + rank / 4)).max(FEW)
}

/// Thins the points: of those in one cell, one of each class is drawn. Cells grow until few enough points are left.
fn thin(placed: &[(f64, f64, usize)], most: usize) -> Vec<usize> {
    let mut cell = 1.0;
    loop {
        let mut seen = HashSet::new();
        let left: Vec<usize> = (0..placed.len())
            .filter(|i| {
                let (x, y, class) = placed[*i];
                seen.insert(((x / cell) as i64, (y / cell) as i64, class))
            })
            .collect();
        if left.len() <= most || cell > 512.0 {
            return left;
        }
        cell *= 1.25;
    }
}

/// Seconds in one unit for all ticks of a linear scale.
fn unit(most: f64) -> (f64, &'static str) {
    match most {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    }
}

fn y_axis(low: f64, high: f64, wanted: usize) -> Axis {
    let (_, top, _, bottom) = AREA;
    if low > 0.0 && high / low >= WIDE {
        let scale = Scale::new((low / 1.15, high * 1.15), (bottom, top), true);
        let title = "time of one invocation (log scale)";
        return Axis::new(scale, wanted, title, |t, _| short(t));
    }
    let (factor, name) = unit(high);
    let scale = Scale::new((0.0, high * factor * 1.08), (bottom, top), false);
    let (ticks, decimals) = scale.ticks(wanted);
    let ticks = ticks
        .into_iter()
        .map(|t| (t / factor, format!("{t:.decimals$}")))
        .collect();
    Axis {
        scale: Scale::new((0.0, high * 1.08), (bottom, top), false),
        ticks,
        title: format!("time of one invocation ({name})"),
    }
}

/// A round time, as short as can be.
fn short(seconds: f64) -> String {
    let (factor, name) = unit(seconds * 1.000_001);
    format!("{} {name}", (seconds * factor * 1e3).round() / 1e3)
}

fn x_axis(low: f64, high: f64, timed: bool, wanted: usize) -> Axis {
    let (left, _, right, _) = AREA;
    let margin = (high - low) * 0.02;
    let scale = Scale::new((low - margin, high + margin), (left, right), false);
    let (ticks, decimals) = scale.ticks(wanted);
    if timed {
        let ticks = ticks.into_iter().filter(|t| *t >= 0.0);
        return Axis {
            scale,
            ticks: ticks.map(|t| (t, format!("{t:.decimals$}"))).collect(),
            title: "time since the program's start (s)".to_owned(),
        };
    }
    let whole = |t: &f64| *t >= 1.0 && t.fract().abs() < 1e-9;
    let mut ticks: Vec<f64> = ticks.into_iter().filter(whole).collect();
    if ticks.is_empty() {
        ticks = vec![low];
    }
    Axis {
        scale,
        ticks: ticks.into_iter().map(|t| (t, count(t as u64))).collect(),
        title: "invocation".to_owned(),
    }
}

/// The plot of the region with this rank, from 0; `None` if no invocation's time was kept.
pub fn plot(region: &RegionProfile, classes: &Classes, hz: f64, rank: usize) -> Option<Trace> {
    let trace = &region.trace;
    // The x axis shows start times only if all invocations have one.
    let timed = !trace.first.is_empty()
        && trace.first_starts.len() == trace.first.len()
        && trace.sampled_starts.len() == trace.sampled.len()
        && trace.first_starts.last() > trace.first_starts.first();
    let points = points(region, classes, hz, timed);
    if points.is_empty() {
        return None;
    }
    let (x_low, x_high) = extent(points.iter().map(|p| p.x));
    let (y_low, y_high) = extent(points.iter().map(|p| p.y));
    let (across, up) = if rank < MARKED { (7, 5) } else { (4, 3) };
    let x = x_axis(x_low, x_high, timed, across);
    let y = y_axis(y_low, y_high, up);
    let placed: Vec<(f64, f64, usize)> = points
        .iter()
        .map(|p| (x.scale.at(p.x), y.scale.at(p.y), p.class))
        .collect();
    let left = thin(&placed, most(rank));
    let label = format!(
        "{} of {} invocations, from {} to {}, in {} classes",
        left.len(),
        region.invocations,
        time(y_low),
        time(y_high),
        classes.classes.len()
    );
    let mut plot = Plot::new(&x, &y, &label);
    for class in 0..classes.classes.len() {
        let path = dots(left.iter().map(|i| placed[*i]).filter(|p| p.2 == class));
        let dots = format!("dots k{}", class + 1);
        plot.picture.path(dots.as_str(), &path);
    }
    let medoids: Vec<_> = (1..)
        .zip(&classes.classes)
        .filter_map(|(number, class)| {
            let point = points
                .iter()
                .position(|p| p.invocation == class.invocation)?;
            Some((number, class.invocation, placed[point]))
        })
        .collect();
    if rank < MARKED {
        mark(&mut plot.picture, &medoids);
    }
    Some(Trace {
        svg: plot.picture.in_page(),
        drawn: left.len(),
        kept: points.len(),
    })
}

/// The commands that draw a dot each: whole units, each from the one before.
fn dots(points: impl Iterator<Item = (f64, f64, usize)>) -> String {
    let mut path = String::new();
    let mut before = None;
    for (x, y, _) in points {
        let (x, y) = (x.round() as i64, y.round() as i64);
        let _ = match before {
            None => write!(path, "M{x} {y}h0"),
            Some((a, b)) => write!(path, "m{} {}h0", x - a, y - b),
        };
        before = Some((x, y));
    }
    path
}

/// Marks the medoids with the numbers of their classes, moved aside where two would overlap.
fn mark(picture: &mut Picture, medoids: &[(usize, u64, (f64, f64, usize))]) {
    const SIZE: f64 = 20.0;
    let (left, top, right, bottom) = AREA;
    let steps = [0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0];
    let offsets: Vec<(f64, f64)> = steps
        .iter()
        .flat_map(|dy| steps.iter().map(move |dx| (dx * SIZE, dy * SIZE)))
        .filter(|(dx, dy)| (*dx, *dy) != (0.0, 0.0))
        .collect();
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for (number, invocation, (x, y, _)) in medoids {
        let free = |px: f64, py: f64| {
            (left + 8.0..=right - 8.0).contains(&px)
                && (top..=bottom - 10.0).contains(&py)
                && taken.iter().all(|(a, b)| (a - px).hypot(b - py) >= SIZE)
        };
        let near = |(dx, dy): &&(f64, f64)| free(x + dx, y + dy);
        let mut sorted: Vec<&(f64, f64)> = offsets.iter().collect();
        sorted.sort_by(|a, b| a.0.hypot(a.1).total_cmp(&b.0.hypot(b.1)));
        let (dx, dy) = sorted
            .into_iter()
            .find(near)
            .copied()
            .unwrap_or((SIZE, 0.0));
        taken.push((x + dx, y + dy));
        let class = format!("medoid k{number}");
        let title = format!("class {number}: invocation {invocation} represents it");
        picture.group(class.as_str(), &title, |picture| {
            let aside = (x + dx, y + dy);
            picture.circle("ring", (*x, *y), 5.0, "");
            picture.circle("badge", aside, 8.5, "");
            let number = number.to_string();
            picture.text("", Anchor::middle(aside).half_height(), &number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_every_class_and_the_outliers() {
        let mut placed: Vec<(f64, f64, usize)> = (0..200_000)
            .map(|i| (f64::from(i % 600), f64::from(i % 240), 0))
            .collect();
        placed.push((300.0, 100.0, 1));
        placed.push((699.0, 255.0, 2));
        let left = thin(&placed, MOST);
        assert!(left.len() <= MOST && left.len() > 300, "{}", left.len());
        for class in [1, 2] {
            assert!(left.iter().any(|i| placed[*i].2 == class));
        }
    }

    #[test]
    fn times_of_ticks() {
        assert_eq!(short(1e-6), "1 µs");
        assert_eq!(short(0.05), "50 ms");
        assert_eq!(short(20.0), "20 s");
    }
}
