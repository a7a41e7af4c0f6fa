//! Share of the run time that is accurately replayed against the tolerated error (CERE thesis, figure 3.8).

use super::format::percent;
use crate::plot::axis::{Axis, Scale};
use crate::plot::frame::{AREA, Plot};
use std::fmt::Write;

/// Largest tolerated error on the plot.
const MOST: f64 = 0.3;

/// A warm-up's curve: its name, its colour's number, and where it rises: (error, share from there on), rising.
pub struct Curve {
    pub name: &'static str,
    /// Number of the colour.
    pub colour: usize,
    pub steps: Vec<(f64, f64)>,
}

/// The picture.
pub fn plot(curves: &[Curve]) -> String {
    let (left, top, right, bottom) = AREA;
    let axis = |range, edges, wanted, title| {
        let scale = Scale::new(range, edges, false);
        Axis::new(scale, wanted, title, |t, _| format!("{:.0} %", t * 100.0))
    };
    let x = axis((0.0, MOST), (left, right), 6, "tolerated error of the time");
    let y = axis((0.0, 1.0), (bottom, top), 5, "share of run time");
    let describe = |c: &Curve| format!("{} {}", c.name, percent(share_at(&c.steps, 0.15)));
    let all: Vec<String> = curves.iter().map(describe).collect();
    let label = format!(
        "Share of run time accurately replayed against tolerated error; at 15 %: {}",
        all.join(", ")
    );
    let mut plot = Plot::new(&x, &y, &label);
    for level in [0.05, 0.10, 0.15] {
        plot.guide(level);
    }
    for curve in curves {
        let mut path = format!("M{left} {bottom}");
        for (error, share) in curve.steps.iter().filter(|s| s.0 <= MOST) {
            let (x, y) = plot.at(*error, *share);
            let _ = write!(path, "H{x:.1}V{y:.1}");
        }
        let _ = write!(path, "H{right}");
        let class = format!("curve w{}", curve.colour);
        plot.picture.path(class.as_str(), &path);
    }
    plot.picture.in_page()
}

/// The share at a tolerated error.
pub fn share_at(steps: &[(f64, f64)], error: f64) -> f64 {
    let reached = steps.iter().rfind(|s| s.0 <= error);
    reached.map_or(0.0, |s| s.1)
}
