//! What all plots have: size, grid, ticks, axis titles. Colours and fonts are the style sheet's.

use crate::plot::axis::Scale;
use cere_format::untrusted::visible;
use std::fmt::Write;

/// Width of a plot in its own units.
pub const WIDTH: f64 = 720.0;
/// Height.
pub const HEIGHT: f64 = 306.0;
/// Left, top, right and bottom edge of the drawing area.
pub const AREA: (f64, f64, f64, f64) = (84.0, 16.0, 700.0, 256.0);

/// An axis: scale, labelled ticks, title with its unit.
pub struct Axis {
    /// Scale.
    pub scale: Scale,
    /// Values with their labels.
    pub ticks: Vec<(f64, String)>,
    /// Title.
    pub title: String,
}

/// Size of a plot and of the drawing area in it.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Width in its own units.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Left, top, right and bottom edge of the drawing area.
    pub area: (f64, f64, f64, f64),
}

/// The start of a plot up to its grid; what is drawn and [`END`] follow. `label` describes it to those who cannot see it.
pub fn begin(x: &Axis, y: &Axis, label: &str) -> String {
    let frame = Frame {
        width: WIDTH,
        height: HEIGHT,
        area: AREA,
    };
    begin_in(frame, x, y, label)
}

/// The same in a frame of another size.
pub fn begin_in(frame: Frame, x: &Axis, y: &Axis, label: &str) -> String {
    let Frame {
        width,
        height,
        area: (left, top, right, bottom),
    } = frame;
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(label)
    );
    for (place, (value, text)) in x.ticks.iter().enumerate() {
        let at = x.scale.at(*value);
        let odd = if place % 2 == 1 { " class=\"odd\"" } else { "" };
        let _ = write!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{bottom}\" x2=\"{at:.1}\" y2=\"{:.1}\" class=\"tick\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\"{odd}>{}</text>",
            bottom + 5.0,
            bottom + 21.0,
            escape(text)
        );
    }
    for (value, text) in &y.ticks {
        let at = y.scale.at(*value);
        let _ = write!(
            svg,
            "<line x1=\"{left}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" class=\"grid\"/>\
             <text x=\"{:.1}\" y=\"{at:.1}\" dy=\".35em\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            escape(text)
        );
    }
    let _ = write!(
        svg,
        "<line x1=\"{left}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\" class=\"axis\"/>\
         <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\" class=\"title\">{}</text>\
         <text x=\"14\" y=\"{:.1}\" transform=\"rotate(-90 14 {:.1})\" text-anchor=\"middle\" class=\"title\">{}</text>",
        height - 8.0,
        escape(&x.title),
        (top + bottom) / 2.0,
        (top + bottom) / 2.0,
        escape(&y.title)
    );
    svg
}

/// The end of a plot.
pub const END: &str = "</svg>";

/// `text` for element content and attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
