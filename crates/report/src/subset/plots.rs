//! Predicted against measured times; errors by number of clusters.

use crate::plot::axis::{Axis, Scale, extent};
use crate::plot::frame::{AREA, Plot};
use crate::plot::picture::{Picture, through};
use cere_predict::subset::validate::ByK;

/// A time that was predicted and measured.
pub struct Pair {
    /// Name, for the tooltip.
    pub name: String,
    /// Predicted seconds.
    pub predicted: f64,
    /// Ends of the interval, if they are known.
    pub interval: Option<(f64, f64)>,
    /// Measured seconds.
    pub measured: f64,
    /// Number of the colour, from 1.
    pub colour: usize,
}

/// Seconds of an axis.
fn seconds(value: f64, decimals: usize) -> String {
    match decimals {
        0 if value < 1.0 => format!("{value}"),
        _ => format!("{value:.decimals$}"),
    }
}

/// Predicted against measured seconds; the diagonal is a perfect prediction. `None` without pairs.
pub fn pairs(pairs: &[Pair], title: &str) -> Option<Picture> {
    let ends = pairs.iter().flat_map(|p| {
        let interval = p.interval.into_iter().flat_map(|(low, high)| [low, high]);
        [p.predicted, p.measured].into_iter().chain(interval)
    });
    let (least, most) = extent(ends);
    if pairs.is_empty() || least <= 0.0 {
        return None;
    }
    let (left, top, right, bottom) = AREA;
    let range = (least * 0.9, most * 1.1);
    let across = Scale::new(range, (left, right), true);
    let up = Scale::new(range, (bottom, top), true);
    let x = Axis::new(across, 6, "measured seconds", seconds);
    let y = Axis::new(up, 5, "predicted seconds", seconds);
    let mut plot = Plot::new(&x, &y, title);
    let diagonal = through([range.0, range.1].map(|end| plot.at(end, end)));
    plot.picture.path("guide", &diagonal);
    for pair in pairs {
        if let Some((low, high)) = pair.interval {
            let whisker = format!("whisker k{}", pair.colour);
            let ends = (plot.at(pair.measured, low), plot.at(pair.measured, high));
            plot.picture.line(whisker.as_str(), ends.0, ends.1);
        }
        let dot = format!("dot k{}", pair.colour);
        let title = format!(
            "{}: predicted {:.4} s, measured {:.4} s",
            pair.name, pair.predicted, pair.measured
        );
        let at = plot.at(pair.measured, pair.predicted);
        plot.picture.circle(dot.as_str(), at, 4.0, &title);
    }
    Some(plot.picture)
}

/// Median errors by number of clusters, with the band of random partitions, from their best to nine tenths of them.
pub fn errors(all: &[ByK], chosen: usize) -> Option<Picture> {
    let (first, last) = (all.first()?, all.last()?);
    let (left, top, right, bottom) = AREA;
    let most = all.iter().flat_map(|e| [e.points.median, e.random[3]]);
    let most = most.fold(0.01, f64::max);
    let across = Scale::new((first.k as f64, last.k as f64), (left, right), false);
    let up = Scale::new((0.0, most * 1.05), (bottom, top), false);
    let x = Axis::new(across, 8, "clusters", |k, _| format!("{k:.0}"));
    let y = Axis::new(up, 5, "median error of points", |e, decimals| {
        format!("{:.*} %", decimals.saturating_sub(2), 100.0 * e)
    });
    let title = "Median error of points by number of clusters, with random partitions";
    let mut plot = Plot::new(&x, &y, title);
    let at = |e: &ByK, error| plot.at(e.k as f64, error);
    let below = all.iter().map(|e| at(e, e.random[0]));
    let above = all.iter().rev().map(|e| at(e, e.random[3]));
    let band = through(below.chain(above)) + "Z";
    let random = through(all.iter().map(|e| at(e, e.random[2])));
    let found = through(all.iter().map(|e| at(e, e.points.median)));
    plot.picture.path("band", &band);
    plot.picture.path("curve w10", &random);
    plot.picture.path("curve w1", &found);
    plot.guide(chosen as f64);
    Some(plot.picture)
}
