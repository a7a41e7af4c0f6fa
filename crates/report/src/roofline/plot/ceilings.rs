//! Roofs in the plot, with labels where there is room.

use super::{FRAME, Plot, STRIP, peak};
use crate::plot::frame::escape;
use crate::roofline::roofs::Roof;
use std::fmt::Write;

/// Distance that labels need.
const LINE: f64 = 14.0;

/// A number as a label: `0.05`, `20`, `5k`, `2G`.
pub fn number(value: f64) -> String {
    let (value, prefix) = match value {
        v if v >= 0.999e12 => (v / 1e12, "T"),
        v if v >= 0.999e9 => (v / 1e9, "G"),
        v if v >= 0.999e6 => (v / 1e6, "M"),
        v if v >= 0.999e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = (-(value.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.digits$}{prefix}")
}

/// Two digits of a number.
fn rounded(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor() - 1.0);
    (value / power).round() * power
}

impl Plot<'_> {
    /// The lowest value of the second axis, and both ends of the first.
    fn ends(&self) -> (f64, f64, f64) {
        let (left, _, right, bottom) = FRAME.area;
        let edge = right - if self.strip { STRIP } else { 0.0 };
        (
            self.y.scale.value(bottom),
            self.x.scale.value(left),
            self.x.scale.value(edge),
        )
    }

    fn slope(&mut self, roof: &Roof, bytes: f64, labels: &mut Vec<f64>) {
        let (low, least, most) = self.ends();
        let top = peak(self.document).unwrap_or(self.y.scale.value(FRAME.area.1));
        let from = least.max(low / bytes);
        let to = (top / bytes).min(most);
        if from >= to {
            return;
        }
        let at = |v: f64| (self.x.scale.at(v), self.y.scale.at(v * bytes));
        let ((x1, y1), (x2, y2)) = (at(from), at(to));
        let low = if roof.level.as_deref() == Some(self.level) {
            ""
        } else {
            " low"
        };
        let _ = write!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"roof{low}\"/>"
        );
        // Slopes are parallel: their heights at the left edge tell them apart.
        let height = self.y.scale.at(least * bytes);
        if labels
            .iter()
            .all(|other| (other - height).abs() > LINE * 1.3)
        {
            labels.push(height);
            let angle = (y2 - y1).atan2(x2 - x1).to_degrees();
            let (x, y) = (x1 + 6.0, y1 + 6.0 * (y2 - y1) / (x2 - x1) - 5.0);
            let _ = write!(
                self.svg,
                "<text class=\"name\" x=\"{x:.1}\" y=\"{y:.1}\" transform=\"rotate({angle:.1} {x:.1} {y:.1})\">{}: {}B/s</text>",
                escape(&roof.name),
                number(rounded(bytes))
            );
        }
    }

    fn flat(&mut self, roof: &Roof, flops: f64, labels: &mut Vec<f64>) {
        let (low, least, most) = self.ends();
        let first = self
            .document
            .roofs
            .iter()
            .filter_map(|r| r.bytes_per_second)
            .max_by(f64::total_cmp);
        let from = first.map_or(least, |bytes| (flops / bytes).max(least));
        if from >= most || flops < low {
            return;
        }
        let (x1, x2, y) = (
            self.x.scale.at(from),
            self.x.scale.at(most),
            self.y.scale.at(flops),
        );
        let low = if Some(flops) == peak(self.document) {
            ""
        } else {
            " low"
        };
        let _ = write!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y:.1}\" x2=\"{x2:.1}\" y2=\"{y:.1}\" class=\"roof{low}\"/>"
        );
        if labels.iter().all(|other| (other - y).abs() > LINE) {
            labels.push(y);
            let _ = write!(
                self.svg,
                "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}: {}flop/s</text>",
                x2 - 4.0,
                y - 4.0,
                escape(&roof.name),
                number(rounded(flops))
            );
        }
    }

    /// Draws all roofs.
    pub fn roofs(&mut self) {
        let (mut slopes, mut flats) = (Vec::new(), Vec::new());
        let document = self.document;
        // The level of the axis has its label before the others.
        let own = |r: &&Roof| r.level.as_deref() == Some(self.level);
        let (first, rest): (Vec<&Roof>, Vec<&Roof>) = document.roofs.iter().partition(own);
        for roof in first.into_iter().chain(rest) {
            match (roof.bytes_per_second, roof.flops_per_second) {
                (Some(bytes), _) => self.slope(roof, bytes, &mut slopes),
                (_, Some(flops)) => self.flat(roof, flops, &mut flats),
                _ => {}
            }
        }
    }
}
