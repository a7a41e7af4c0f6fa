//! Roofs in the plot, with labels where there is room.

use super::sheet::{FRAME, Plot, STRIP, peak};
use crate::plot::picture::Anchor;
use cere_machine::roofs::Roof;

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

/// The class of a roof: thinner if it is not the one that the axis is about.
fn class(own: bool) -> &'static str {
    match own {
        true => "roof",
        false => "roof low",
    }
}

/// Whether all `labels` are at least `apart` from `height`.
fn is_free(labels: &[f64], height: f64, apart: f64) -> bool {
    labels.iter().all(|other| (other - height).abs() > apart)
}

impl Plot<'_> {
    /// The lowest value of the second axis, and both ends of the first.
    fn ends(&self) -> (f64, f64, f64) {
        let (left, _, right, bottom) = FRAME.area;
        let edge = right - if self.strip { STRIP } else { 0.0 };
        let (x, y) = (self.axes.x, self.axes.y);
        (y.value(bottom), x.value(left), x.value(edge))
    }

    fn slope(&mut self, roof: &Roof, bytes: f64, labels: &mut Vec<f64>) {
        let (low, least, most) = self.ends();
        let top = peak(self.document).unwrap_or(self.axes.y.value(FRAME.area.1));
        let from = least.max(low / bytes);
        let to = (top / bytes).min(most);
        if from >= to {
            return;
        }
        let at = |v: f64| self.axes.at(v, v * bytes);
        let ((x1, y1), (x2, y2)) = (at(from), at(to));
        let class = class(roof.level.as_deref() == Some(self.level));
        // Slopes are parallel: their heights at the left edge tell them apart.
        let height = self.axes.y.at(least * bytes);
        let picture = &mut self.axes.picture;
        picture.line(class, (x1, y1), (x2, y2));
        if is_free(labels, height, LINE * 1.3) {
            labels.push(height);
            let angle = (y2 - y1).atan2(x2 - x1).to_degrees();
            let start = (x1 + 6.0, y1 + 6.0 * (y2 - y1) / (x2 - x1) - 5.0);
            let text = format!("{}: {}B/s", roof.name, number(rounded(bytes)));
            picture.text("name", Anchor::start(start).turned(angle), &text);
        }
    }

    fn flat(&mut self, roof: &Roof, flops: f64, labels: &mut Vec<f64>) {
        let (low, least, most) = self.ends();
        let roofs = self.document.roofs.iter();
        let first = roofs.filter_map(|r| r.bytes_per_second);
        let first = first.max_by(f64::total_cmp);
        let from = first.map_or(least, |bytes| (flops / bytes).max(least));
        if from >= most || flops < low {
            return;
        }
        let ((x1, y), (x2, _)) = (self.axes.at(from, flops), self.axes.at(most, flops));
        let class = class(Some(flops) == peak(self.document));
        let picture = &mut self.axes.picture;
        picture.line(class, (x1, y), (x2, y));
        if is_free(labels, y, LINE) {
            labels.push(y);
            let text = format!("{}: {}flop/s", roof.name, number(rounded(flops)));
            picture.text("name", Anchor::end((x2 - 4.0, y - 4.0)), &text);
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
