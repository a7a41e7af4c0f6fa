//! The picture: roofs as lines on logarithmic axes, points with boxes and whiskers, series joined.

mod ceilings;

use crate::plot::axis::Scale;
use crate::plot::frame::{Axis, END, Frame, begin_in, escape};
use crate::roofline::document::{Document, Point};
use crate::roofline::roofs::MEMORY;
use ceilings::number;
use std::fmt::Write;

const FRAME: Frame = Frame {
    width: 960.0,
    height: 560.0,
    area: (84.0, 20.0, 690.0, 506.0),
};

/// Colours have names where a page gives them, and these values elsewhere.
const STYLE: &str = "<style>.roofline text{font:12px sans-serif;fill:var(--ink,#333)}.roofline .title{font-weight:600}\
    .roofline .name{paint-order:stroke;stroke:var(--sheet,#fff);stroke-width:3px;stroke-linejoin:round}\
    .roofline .axis,.roofline .tick{stroke:var(--soft,#333)}.roofline .grid{stroke:var(--line,#e4e4e4)}\
    .roofline .roof{stroke:var(--ink,#333);stroke-width:1.6;fill:none}.roofline .low{stroke-width:.8;opacity:.55}\
    .roofline .series{fill:none;stroke-width:1.4}.roofline .equal{fill:none;stroke:var(--soft,#777);stroke-dasharray:3 4}\
    .roofline .whisker{stroke-width:1.2}.roofline .box{fill-opacity:.25;stroke-width:1}.roofline .mark{stroke-width:1.6}\
    .roofline .far{fill:var(--line,#f0f0f0);opacity:.5}</style>";

const COLOURS: [&str; 8] = [
    "#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#0a7ea4", "#57606a",
];

/// Width of the strip at the right edge for points without traffic.
const STRIP: f64 = 68.0;
/// Characters of a name in the legend.
const NAME: usize = 34;

struct Plot<'a> {
    document: &'a Document,
    level: &'a str,
    x: Axis,
    y: Axis,
    strip: bool,
    /// Colours by name.
    variants: Vec<String>,
    svg: String,
}

fn intensity(point: &Point, level: &str) -> Option<f64> {
    point.intensity.get(level).copied().flatten()
}

/// What has a colour of its own: all but the state.
fn variant(point: &Point) -> String {
    let mut name = point.region.clone();
    if !point.flags.is_empty() {
        name += &format!(" {}", point.flags);
    }
    if point.threads > 1 {
        name += &format!(", {} threads", point.threads);
    }
    name
}

fn short(name: &str) -> String {
    match name.chars().count() > NAME {
        true => name.chars().take(NAME - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

fn axis(range: (f64, f64), at: (f64, f64), wanted: usize, title: String) -> Axis {
    let scale = Scale::new(range, at, true);
    let ticks = scale.ticks(wanted).0;
    Axis {
        scale,
        ticks: ticks.into_iter().map(|t| (t, number(t))).collect(),
        title,
    }
}

/// Least and greatest of `values` above zero, `spare` times farther.
fn range(values: impl Iterator<Item = f64> + Clone, spare: f64) -> (f64, f64) {
    let values = values.filter(|v| v.is_finite() && *v > 0.0);
    let low = values.clone().fold(f64::MAX, f64::min);
    let high = values.fold(0.0, f64::max);
    match low <= high {
        true => (low / spare, high * spare),
        false => (0.1, 10.0),
    }
}

fn peak(document: &Document) -> Option<f64> {
    let peaks = document.roofs.iter().filter_map(|r| r.flops_per_second);
    peaks.max_by(f64::total_cmp)
}

impl<'a> Plot<'a> {
    fn new(document: &'a Document, level: &'a str) -> Self {
        let (left, top, right, bottom) = FRAME.area;
        let points = &document.points;
        let strip = points.iter().any(|p| intensity(p, level).is_none());
        let ridge = document
            .roofs
            .iter()
            .filter(|r| r.level.as_deref() == Some(level))
            .filter_map(|r| Some(peak(document)? / r.bytes_per_second?));
        let placed = points.iter().filter_map(|p| intensity(p, level));
        let edge = right - if strip { STRIP } else { 0.0 };
        let of = match level {
            MEMORY => "memory traffic".to_owned(),
            level => format!("traffic with {level}"),
        };
        let title = format!("operations per byte of {of} (flop/byte)");
        let x = axis(range(placed.chain(ridge), 3.0), (left, edge), 8, title);
        let high = points.iter().map(|p| p.flops_per_second);
        let y = axis(
            range(high.chain(peak(document)), 2.0),
            (bottom, top),
            7,
            "operations per second (flop/s)".to_owned(),
        );
        let label = format!(
            "Roofline of {}: {} points",
            document.machine.cpu,
            points.len()
        );
        let mut variants: Vec<String> = Vec::new();
        for name in points.iter().map(variant) {
            if !variants.contains(&name) {
                variants.push(name);
            }
        }
        let svg = begin_in(FRAME, &x, &y, &label).replacen(
            "class=\"plot\"",
            "class=\"plot roofline\"",
            1,
        );
        Self {
            document,
            level,
            x,
            y,
            strip,
            variants,
            svg: svg.replacen('>', &format!(">{STYLE}"), 1),
        }
    }

    fn place(&self, point: &Point) -> (f64, f64) {
        let x = match intensity(point, self.level) {
            Some(value) => self.x.scale.at(value),
            None => FRAME.area.2 - STRIP / 2.0,
        };
        (x, self.y.scale.at(point.flops_per_second))
    }

    fn colour(&self, point: &Point) -> String {
        let name = variant(point);
        let number = self.variants.iter().position(|v| *v == name).unwrap_or(0) % COLOURS.len();
        format!("var(--k{},{})", number + 1, COLOURS[number])
    }

    fn lines(&mut self) {
        let document = self.document;
        let path = |plot: &Self, points: &[usize]| {
            let places = points.iter().map(|n| plot.place(&document.points[*n]));
            let words: Vec<String> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            words.join(" ")
        };
        for equal in &document.equal {
            let points = path(self, &equal.points);
            let _ = write!(self.svg, "<polyline points=\"{points}\" class=\"equal\"/>");
        }
        for series in document.series.iter().filter(|s| s.points.len() > 1) {
            let (points, colour) = (
                path(self, &series.points),
                self.colour(&document.points[series.points[0]]),
            );
            let _ = write!(
                self.svg,
                "<polyline points=\"{points}\" class=\"series\" style=\"stroke:{colour}\"/>"
            );
        }
    }

    fn point(&mut self, point: &Point) {
        let (x, y) = self.place(point);
        let colour = self.colour(point);
        let at = |seconds: f64| self.y.scale.at(point.flops as f64 / seconds);
        let (upper, lower) = (at(point.seconds_box[0]), at(point.seconds_box[1]));
        let (top, end) = (
            at(point.seconds_whiskers[0]),
            at(point.seconds_whiskers[1]).min(FRAME.area.3),
        );
        let title = escape(&format!("{} {}", point.codelet, point.state));
        let _ = write!(
            self.svg,
            "<g style=\"stroke:{colour};fill:{colour}\"><title>{title}</title>\
             <line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{end:.1}\" class=\"whisker\"/>\
             <line x1=\"{:.1}\" y1=\"{top:.1}\" x2=\"{:.1}\" y2=\"{top:.1}\" class=\"whisker\"/>\
             <line x1=\"{:.1}\" y1=\"{end:.1}\" x2=\"{:.1}\" y2=\"{end:.1}\" class=\"whisker\"/>\
             <rect x=\"{:.1}\" y=\"{upper:.1}\" width=\"14\" height=\"{:.1}\" class=\"box\"/></g>",
            x - 4.0,
            x + 4.0,
            x - 4.0,
            x + 4.0,
            x - 7.0,
            (lower - upper).max(0.5)
        );
        let mark = mark(x, y, &point.state, &colour);
        self.svg.push_str(&mark);
    }

    fn legend(&mut self) {
        let (_, top, right, _) = FRAME.area;
        let x = right + 16.0;
        let mut y = top + 8.0;
        let mut states: Vec<&str> = Vec::new();
        for point in &self.document.points {
            if !states.contains(&point.state.as_str()) {
                states.push(&point.state);
            }
        }
        for state in states {
            let mark = mark(x + 8.0, y - 4.0, state, "var(--ink,#333)");
            let text = escape(&state.replace(',', ", ").replace('=', " "));
            let _ = write!(
                self.svg,
                "{mark}<text x=\"{:.1}\" y=\"{y:.1}\">{text}</text>",
                x + 22.0
            );
            y += 20.0;
        }
        y += 10.0;
        for (number, name) in self.variants.iter().enumerate().take(18) {
            let number = number % COLOURS.len();
            let _ = write!(
                self.svg,
                "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" style=\"stroke:var(--k{},{});stroke-width:3\"/>\
                 <text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
                y - 4.0,
                x + 16.0,
                y - 4.0,
                number + 1,
                COLOURS[number],
                x + 22.0,
                escape(&short(name))
            );
            y += 20.0;
        }
        if self.variants.len() > 18 {
            let _ = write!(
                self.svg,
                "<text x=\"{:.1}\" y=\"{y:.1}\">and {} more</text>",
                x + 22.0,
                self.variants.len() - 18
            );
        }
    }

    fn strip(&mut self) {
        if !self.strip {
            return;
        }
        let (_, top, right, bottom) = FRAME.area;
        let x = right - STRIP;
        let _ = write!(
            self.svg,
            "<rect x=\"{x}\" y=\"{top}\" width=\"{STRIP}\" height=\"{}\" class=\"far\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">no traffic</text>",
            bottom - top,
            x + STRIP / 2.0,
            bottom - 6.0
        );
    }
}

/// The mark of a state: round where data are warm, square where they are cold; filled where code is warm.
fn mark(x: f64, y: f64, state: &str, colour: &str) -> String {
    let fill = match state.contains("code=warm") {
        true => colour,
        false => "var(--sheet,#fff)",
    };
    let style = format!("style=\"stroke:{colour};fill:{fill}\" class=\"mark\"");
    match state.contains("data=warm") {
        true => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" {style}/>"),
        false => format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" {style}/>",
            x - 4.0,
            y - 4.0
        ),
    }
}

/// The plot of `document` over the intensity at `level`, as part of a page.
#[must_use]
pub fn plot(document: &Document, level: &str) -> String {
    let mut plot = Plot::new(document, level);
    plot.strip();
    plot.roofs();
    plot.lines();
    document.points.iter().for_each(|point| plot.point(point));
    plot.legend();
    plot.svg + END
}

/// The same as a file.
#[must_use]
pub fn file(document: &Document, level: &str) -> String {
    let Frame { width, height, .. } = FRAME;
    let head =
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" ");
    let paper = format!("{STYLE}<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>");
    plot(document, level)
        .replacen("<svg ", &head, 1)
        .replacen(STYLE, &paper, 1)
}
