//! The sheet that a roofline is drawn on: its frame, its axes, and what it shows.

use crate::plot::frame::{Frame, Plot as Axes};
use crate::roofline::document::Document;

pub const FRAME: Frame = Frame {
    size: (960.0, 560.0),
    area: (84.0, 20.0, 690.0, 506.0),
};

/// Width of the strip at the right edge for points without traffic.
pub const STRIP: f64 = 68.0;

pub struct Plot<'a> {
    pub document: &'a Document,
    pub level: &'a str,
    pub axes: Axes,
    pub strip: bool,
    /// Colours by name.
    pub variants: Vec<String>,
}

pub fn peak(document: &Document) -> Option<f64> {
    let peaks = document.roofs.iter().filter_map(|r| r.flops_per_second);
    peaks.max_by(f64::total_cmp)
}
