//! Predicted against measured times; errors by number of clusters.

use crate::plot::axis::Scale;
use crate::plot::frame::{AREA, Axis, END, begin, escape};
use cere_predict::subset::validate::ByK;
use std::fmt::Write;

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

fn ticks(scale: Scale, wanted: usize, label: impl Fn(f64, usize) -> String) -> Vec<(f64, String)> {
    let (ticks, decimals) = scale.ticks(wanted);
    ticks.into_iter().map(|t| (t, label(t, decimals))).collect()
}

/// Seconds of an axis.
fn seconds(value: f64, decimals: usize) -> String {
    match decimals {
        0 if value < 1.0 => format!("{value}"),
        _ => format!("{value:.decimals$}"),
    }
}

/// Predicted against measured seconds; the diagonal is a perfect prediction. Empty without pairs.
pub fn pairs(pairs: &[Pair], title: &str) -> String {
    let ends = pairs.iter().flat_map(|p| {
        let interval = p.interval.into_iter().flat_map(|(low, high)| [low, high]);
        [p.predicted, p.measured].into_iter().chain(interval)
    });
    let least = ends.clone().fold(f64::INFINITY, f64::min);
    let most = ends.fold(0.0, f64::max);
    if pairs.is_empty() || least <= 0.0 {
        return String::new();
    }
    let (left, top, right, bottom) = AREA;
    let range = (least * 0.9, most * 1.1);
    let (across, up) = (
        Scale::new(range, (left, right), true),
        Scale::new(range, (bottom, top), true),
    );
    let x = Axis {
        scale: across,
        ticks: ticks(across, 6, seconds),
        title: "measured seconds".to_owned(),
    };
    let y = Axis {
        scale: up,
        ticks: ticks(up, 5, seconds),
        title: "predicted seconds".to_owned(),
    };
    let mut svg = begin(&x, &y, title);
    let _ = write!(
        svg,
        "<path class=\"guide\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
        across.at(range.0),
        up.at(range.0),
        across.at(range.1),
        up.at(range.1)
    );
    for pair in pairs {
        let (at, height) = (across.at(pair.measured), up.at(pair.predicted));
        if let Some((low, high)) = pair.interval {
            let _ = write!(
                svg,
                "<line class=\"whisker k{}\" x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\"/>",
                pair.colour,
                up.at(low),
                up.at(high)
            );
        }
        let _ = write!(
            svg,
            "<circle class=\"dot k{}\" cx=\"{at:.1}\" cy=\"{height:.1}\" r=\"4\"><title>{}: predicted {:.4} s, measured {:.4} s</title></circle>",
            pair.colour,
            escape(&pair.name),
            pair.predicted,
            pair.measured
        );
    }
    svg + END
}

/// Median errors by number of clusters, with the band of random partitions, from their best to nine tenths of them.
pub fn errors(all: &[ByK], chosen: usize) -> String {
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return String::new();
    };
    let (left, top, right, bottom) = AREA;
    let most = all
        .iter()
        .flat_map(|e| [e.points.median, e.random[3]])
        .fold(0.01, f64::max);
    let across = Scale::new((first.k as f64, last.k as f64), (left, right), false);
    let up = Scale::new((0.0, most * 1.05), (bottom, top), false);
    let x = Axis {
        scale: across,
        ticks: ticks(across, 8, |k, _| format!("{k:.0}")),
        title: "clusters".to_owned(),
    };
    let y = Axis {
        scale: up,
        ticks: ticks(up, 5, |e, decimals| {
            format!("{:.*} %", decimals.saturating_sub(2), 100.0 * e)
        }),
        title: "median error of points".to_owned(),
    };
    let mut svg = begin(
        &x,
        &y,
        "Median error of points by number of clusters, with random partitions",
    );
    let path = |value: &dyn Fn(&ByK) -> f64, all: &mut dyn Iterator<Item = &ByK>| {
        let mut path = String::new();
        for e in all {
            let _ = write!(path, "L{:.1} {:.1}", across.at(e.k as f64), up.at(value(e)));
        }
        path
    };
    let band =
        path(&|e| e.random[0], &mut all.iter()) + &path(&|e| e.random[3], &mut all.iter().rev());
    let _ = write!(svg, "<path class=\"band\" d=\"M{}Z\"/>", &band[1..]);
    let line = path(&|e| e.random[2], &mut all.iter());
    let _ = write!(svg, "<path class=\"curve w10\" d=\"M{}\"/>", &line[1..]);
    let line = path(&|e| e.points.median, &mut all.iter());
    let _ = write!(svg, "<path class=\"curve w1\" d=\"M{}\"/>", &line[1..]);
    let at = across.at(chosen as f64);
    let _ = write!(
        svg,
        "<line x1=\"{at:.1}\" y1=\"{top}\" x2=\"{at:.1}\" y2=\"{bottom}\" class=\"guide\"/>"
    );
    svg + END
}
