//! The picture: roofs as lines on logarithmic axes, points with boxes and whiskers, series joined.

mod ceilings;
mod sheet;

use crate::plot::axis::{Axis, Scale, extent};
use crate::plot::frame::Plot as Axes;
use crate::plot::picture::{Anchor, Look, Picture, Place, through};
use crate::roofline::document::{Document, Point};
use ceilings::number;
use cere_machine::roofs::MEMORY;
use sheet::{FRAME, Plot, STRIP, peak};

/// Colours have names where a page gives them, and these values elsewhere.
const STYLE: &str = ".roofline text{font:12px sans-serif;fill:var(--ink,#333)}.roofline .title{font-weight:600}\
    .roofline .name{paint-order:stroke;stroke:var(--sheet,#fff);stroke-width:3px;stroke-linejoin:round}\
    .roofline .axis,.roofline .tick{stroke:var(--soft,#333)}.roofline .grid{stroke:var(--line,#e4e4e4)}\
    .roofline .roof{stroke:var(--ink,#333);stroke-width:1.6;fill:none}.roofline .low{stroke-width:.8;opacity:.55}\
    .roofline .series{fill:none;stroke-width:1.4}.roofline .equal{fill:none;stroke:var(--soft,#777);stroke-dasharray:3 4}\
    .roofline .whisker{stroke-width:1.2}.roofline .box{fill-opacity:.25;stroke-width:1}.roofline .mark{stroke-width:1.6}\
    .roofline .far{fill:var(--line,#f0f0f0);opacity:.5}";

const COLOURS: [&str; 8] = [
    "#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#0a7ea4", "#57606a",
];

/// Characters of a name in the legend.
const NAME: usize = 34;

/// Names in the legend, at most.
const NAMES: usize = 18;
/// Distance of its lines.
const LINE: f64 = 20.0;
/// Colour of the marks in the legend.
const INK: &str = "var(--ink,#333)";

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

fn axis(range: (f64, f64), at: (f64, f64), wanted: usize, title: &str) -> Axis {
    let scale = Scale::new(range, at, true);
    Axis::new(scale, wanted, title, |t, _| number(t))
}

/// Least and greatest of `values` above zero, `spare` times farther.
fn range(values: impl Iterator<Item = f64>, spare: f64) -> (f64, f64) {
    let (low, high) = extent(values.filter(|v| v.is_finite() && *v > 0.0));
    match low <= high {
        true => (low / spare, high * spare),
        false => (0.1, 10.0),
    }
}

/// `names` in their order, each once.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The colour of a number.
fn colour(number: usize) -> String {
    let number = number % COLOURS.len();
    format!("var(--k{},{})", number + 1, COLOURS[number])
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
        let x = axis(range(placed.chain(ridge), 3.0), (left, edge), 8, &title);
        let high = points.iter().map(|p| p.flops_per_second);
        let high = range(high.chain(peak(document)), 2.0);
        let y = axis(high, (bottom, top), 7, "operations per second (flop/s)");
        let cpu = &document.machine.cpu;
        let label = format!("Roofline of {cpu}: {} points", points.len());
        Self {
            document,
            level,
            axes: Axes::in_frame(FRAME, "plot roofline", &x, &y, &label),
            strip,
            variants: distinct(points.iter().map(variant)),
        }
    }

    fn place(&self, point: &Point) -> Place {
        let x = match intensity(point, self.level) {
            Some(value) => self.axes.x.at(value),
            None => FRAME.area.2 - STRIP / 2.0,
        };
        (x, self.axes.y.at(point.flops_per_second))
    }

    fn colour(&self, point: &Point) -> String {
        let name = variant(point);
        colour(self.variants.iter().position(|v| *v == name).unwrap_or(0))
    }

    fn lines(&mut self) {
        let points = &self.document.points;
        let path = |plot: &Self, of: &[usize]| through(of.iter().map(|n| plot.place(&points[*n])));
        for equal in &self.document.equal {
            let path = path(self, &equal.points);
            self.axes.picture.path("equal", &path);
        }
        for series in self.document.series.iter().filter(|s| s.points.len() > 1) {
            let path = path(self, &series.points);
            let look = Look {
                class: "series",
                style: &format!("stroke:{}", self.colour(&points[series.points[0]])),
            };
            self.axes.picture.path(look, &path);
        }
    }

    fn point(&mut self, point: &Point) {
        let (x, y) = self.place(point);
        let colour = self.colour(point);
        let at = |seconds: f64| self.axes.y.at(point.flops as f64 / seconds);
        let (upper, lower) = (at(point.seconds_box[0]), at(point.seconds_box[1]));
        let top = at(point.seconds_whiskers[0]);
        let end = at(point.seconds_whiskers[1]).min(FRAME.area.3);
        let look = Look {
            class: "",
            style: &format!("stroke:{colour};fill:{colour}"),
        };
        let title = format!("{} {}", point.codelet, point.state);
        let picture = &mut self.axes.picture;
        picture.group(look, &title, |picture| {
            picture.line("whisker", (x, top), (x, end));
            for y in [top, end] {
                picture.line("whisker", (x - 4.0, y), (x + 4.0, y));
            }
            let height = (lower - upper).max(0.5);
            picture.rectangle("box", (x - 7.0, upper), (14.0, height));
        });
        mark(picture, (x, y), &point.state, &colour);
    }

    fn legend(&mut self) {
        let (_, top, right, _) = FRAME.area;
        let (x, mut y) = (right + 16.0, top + 8.0);
        let picture = &mut self.axes.picture;
        let points = self.document.points.iter();
        for state in distinct(points.map(|p| p.state.clone())) {
            mark(picture, (x + 8.0, y - 4.0), &state, INK);
            let text = state.replace(',', ", ").replace('=', " ");
            picture.text("", Anchor::start((x + 22.0, y)), &text);
            y += LINE;
        }
        y += LINE / 2.0;
        for (number, name) in self.variants.iter().enumerate().take(NAMES) {
            let look = Look {
                class: "",
                style: &format!("stroke:{};stroke-width:3", colour(number)),
            };
            picture.line(look, (x, y - 4.0), (x + 16.0, y - 4.0));
            picture.text("", Anchor::start((x + 22.0, y)), &short(name));
            y += LINE;
        }
        if let Some(more @ 1..) = self.variants.len().checked_sub(NAMES) {
            let text = format!("and {more} more");
            picture.text("", Anchor::start((x + 22.0, y)), &text);
        }
    }

    fn strip(&mut self) {
        if !self.strip {
            return;
        }
        let (_, top, right, bottom) = FRAME.area;
        let x = right - STRIP;
        let picture = &mut self.axes.picture;
        picture.rectangle("far", (x, top), (STRIP, bottom - top));
        let anchor = Anchor::middle((x + STRIP / 2.0, bottom - 6.0));
        picture.text("", anchor, "no traffic");
    }
}

/// The mark of a state: round where data are warm, square where they are cold; filled where code is warm.
fn mark(picture: &mut Picture, (x, y): Place, state: &str, colour: &str) {
    let fill = match state.contains("code=warm") {
        true => colour,
        false => "var(--sheet,#fff)",
    };
    let look = Look {
        class: "mark",
        style: &format!("stroke:{colour};fill:{fill}"),
    };
    match state.contains("data=warm") {
        true => picture.circle(look, (x, y), 4.5, ""),
        false => picture.rectangle(look, (x - 4.0, y - 4.0), (8.0, 8.0)),
    }
}

fn draw(document: &Document, level: &str) -> Picture {
    let mut plot = Plot::new(document, level);
    plot.strip();
    plot.roofs();
    plot.lines();
    document.points.iter().for_each(|point| plot.point(point));
    plot.legend();
    plot.axes.picture
}

/// The plot of `document` over the intensity at `level`, as part of a page.
#[must_use]
pub fn plot(document: &Document, level: &str) -> String {
    draw(document, level).in_page_with(STYLE)
}

/// The same as a file.
#[must_use]
pub fn file(document: &Document, level: &str) -> String {
    draw(document, level).file(STYLE, false)
}
