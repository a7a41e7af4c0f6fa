//! A measured machine as a page: its curves, with what was read off them, and how each value was found.

use crate::plot::axis::{Axis, Scale, extent};
use crate::plot::frame::{AREA, Plot};
use crate::plot::picture::{Anchor, through};
use anyhow::{Context, Result};
use askama::Template;
use cere_format::machine::{Curve, Machine};

#[derive(Template)]
#[template(path = "machine.html")]
struct Page<'a> {
    css: &'static str,
    script: &'static str,
    version: &'a str,
    machine: &'a Machine,
    plots: Vec<(String, String)>,
    found: Vec<(String, String, String)>,
}

/// The page.
pub fn page(machine: &Machine) -> Result<String> {
    let plots = machine
        .curves
        .iter()
        .filter_map(|c| Some((c.name.clone(), plot(c)?)));
    let found = machine.found.iter();
    let page = Page {
        css: include_str!("../templates/report.css"),
        script: include_str!("../templates/report.js"),
        version: env!("CARGO_PKG_VERSION"),
        machine,
        plots: plots.collect(),
        found: found
            .map(|f| {
                (
                    f.what.clone(),
                    format!("{:.2}", f.confidence),
                    f.how.clone(),
                )
            })
            .collect(),
    };
    page.render().context("the page of the machine")
}

/// A number of an axis: bytes by their unit where the title says bytes.
fn label(value: f64, decimals: usize, bytes: bool) -> String {
    match bytes {
        true if value >= 1e6 => format!("{:.0}M", value / f64::from(1 << 20)),
        true if value >= 1e3 => format!("{:.0}K", value / 1024.0),
        _ if value >= 1e9 => format!("{:.0}G", value / 1e9),
        _ if value >= 1e6 => format!("{:.0}M", value / 1e6),
        _ => format!("{value:.decimals$}"),
    }
}

/// Powers of two that a logarithmic axis of bytes shows.
fn powers((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let (first, last) = (low.log2().ceil() as i32, high.log2().floor() as i32);
    let step = ((last - first) / 8).max(1);
    let all = (first..=last)
        .step_by(step as usize)
        .map(|power| 2f64.powi(power));
    all.map(|x| (x, label(x, 0, true))).collect()
}

/// A curve with its marks; `None` with fewer than two points.
fn plot(curve: &Curve) -> Option<String> {
    let finite = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite();
    let points: Vec<(f64, f64)> = curve.points.iter().filter(finite).copied().collect();
    if points.len() < 2 {
        return None;
    }
    let (left, top, right, bottom) = AREA;
    let wide = |(low, high): (f64, f64)| low > 0.0 && high / low > 8.0;
    let across = extent(points.iter().map(|p| p.0));
    let scale = Scale::new(across, (left, right), wide(across));
    let bytes = curve.x.contains("bytes");
    let mut x = Axis::new(scale, 8, &curve.x, |t, decimals| label(t, decimals, bytes));
    if bytes && wide(across) {
        x.ticks = powers(across);
    }
    let up = match extent(points.iter().map(|p| p.1)) {
        (low, high) if wide((low, high)) => (low * 0.9, high * 1.1),
        (low, high) => (low.min(0.0), high * 1.05),
    };
    let scale = Scale::new(up, (bottom, top), wide(up));
    let y = Axis::new(scale, 5, &curve.y, |t, decimals| label(t, decimals, false));
    let mut plot = Plot::new(&x, &y, &curve.name);
    let line = through(points.iter().map(|p| plot.at(p.0, p.1)));
    plot.picture.path("curve w1", &line);
    for (number, (value, word)) in curve.marks.iter().enumerate() {
        let at = plot.x.at(*value);
        if !(left..=right).contains(&at) {
            continue;
        }
        plot.guide(*value);
        let height = top + 12.0 + 14.0 * (number % 3) as f64;
        let beside = Anchor::start(((at + 4.0).min(right - 60.0), height));
        plot.picture.text("", beside, word);
    }
    Some(plot.picture.in_page())
}
