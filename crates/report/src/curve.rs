//! Share of the run time that is accurately replayed against the tolerated error (CERE thesis, figure 3.8).

use super::format::percent;
use crate::plot::axis::Scale;
use crate::plot::frame::{AREA, Axis, END, begin};
use std::fmt::Write;

/// Largest tolerated error on the plot.
const MOST: f64 = 0.3;

/// A warm-up's curve: its name, its colour's number, and where it rises: (error, share from there on), rising.
pub struct Curve {
    /// Name.
    pub name: &'static str,
    /// Number of the colour.
    pub colour: usize,
    /// Steps.
    pub steps: Vec<(f64, f64)>,
}

/// The picture.
pub fn plot(curves: &[Curve]) -> String {
    let (left, top, right, bottom) = AREA;
    let percents = |scale: Scale, wanted| -> Vec<(f64, String)> {
        let ticks = scale.ticks(wanted).0;
        let label = |t: f64| (t, format!("{:.0} %", t * 100.0));
        ticks.into_iter().map(label).collect()
    };
    let scale = Scale::new((0.0, MOST), (left, right), false);
    let x = Axis {
        scale,
        ticks: percents(scale, 6),
        title: "tolerated error of the time".to_owned(),
    };
    let scale = Scale::new((0.0, 1.0), (bottom, top), false);
    let y = Axis {
        scale,
        ticks: percents(scale, 5),
        title: "share of run time".to_owned(),
    };
    let describe = |c: &Curve| format!("{} {}", c.name, percent(share_at(&c.steps, 0.15)));
    let all: Vec<String> = curves.iter().map(describe).collect();
    let label = format!(
        "Share of run time accurately replayed against tolerated error; at 15 %: {}",
        all.join(", ")
    );
    let mut svg = begin(&x, &y, &label);
    for level in [0.05, 0.10, 0.15] {
        let at = x.scale.at(level);
        let _ = write!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{top}\" x2=\"{at:.1}\" y2=\"{bottom}\" class=\"guide\"/>"
        );
    }
    for curve in curves {
        let mut path = format!("M{left} {bottom}");
        for (error, share) in curve.steps.iter().filter(|s| s.0 <= MOST) {
            let _ = write!(path, "H{:.1}V{:.1}", x.scale.at(*error), y.scale.at(*share));
        }
        let _ = write!(path, "H{right}");
        let _ = write!(
            svg,
            "<path class=\"curve w{}\" d=\"{path}\"/>",
            curve.colour
        );
    }
    svg.push_str(END);
    svg
}

/// The share at a tolerated error.
pub fn share_at(steps: &[(f64, f64)], error: f64) -> f64 {
    let reached = steps.iter().rfind(|s| s.0 <= error);
    reached.map_or(0.0, |s| s.1)
}
