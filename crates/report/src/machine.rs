//! A measured machine as a page: its curves, with what was read off them, and how each value was found.

use crate::plot::axis::Scale;
use crate::plot::frame::{AREA, Axis, END, begin, escape};
use anyhow::{Context, Result};
use askama::Template;
use cere_format::machine::{Curve, Machine};
use std::fmt::Write;

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
    let range = |of: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(of);
        (
            values.clone().fold(f64::INFINITY, f64::min),
            values.fold(f64::NEG_INFINITY, f64::max),
        )
    };
    if points.len() < 2 {
        return None;
    }
    let (across, up) = (range(|p| p.0), range(|p| p.1));
    let (left, top, right, bottom) = AREA;
    let wide = |(low, high): (f64, f64)| low > 0.0 && high / low > 8.0;
    let x = Scale::new(across, (left, right), wide(across));
    let up = if wide(up) {
        (up.0 * 0.9, up.1 * 1.1)
    } else {
        (up.0.min(0.0), up.1 * 1.05)
    };
    let y = Scale::new(up, (bottom, top), wide(up));
    let bytes = curve.x.contains("bytes");
    let ticks = |scale: Scale, wanted: usize, bytes: bool| {
        let (ticks, decimals) = scale.ticks(wanted);
        let ticks = ticks.into_iter().map(|t| (t, label(t, decimals, bytes)));
        ticks.collect::<Vec<_>>()
    };
    let axis_x = Axis {
        scale: x,
        ticks: if bytes && wide(across) {
            powers(across)
        } else {
            ticks(x, 8, bytes)
        },
        title: curve.x.clone(),
    };
    let axis_y = Axis {
        scale: y,
        ticks: ticks(y, 5, false),
        title: curve.y.clone(),
    };
    let mut svg = begin(&axis_x, &axis_y, &curve.name);
    let place = |p: &(f64, f64)| format!("{:.1} {:.1}", x.at(p.0), y.at(p.1));
    let path: Vec<String> = points.iter().map(place).collect();
    let _ = write!(svg, "<path class=\"curve w1\" d=\"M{}\"/>", path.join("L"));
    for (at, (value, word)) in curve.marks.iter().enumerate() {
        let mark = x.at(*value);
        if !(left..=right).contains(&mark) {
            continue;
        }
        let height = top + 12.0 + 14.0 * (at % 3) as f64;
        let _ = write!(
            svg,
            "<path class=\"guide\" d=\"M{mark:.1} {top}L{mark:.1} {bottom}\"/><text x=\"{:.1}\" y=\"{height:.1}\">{}</text>",
            (mark + 4.0).min(right - 60.0),
            escape(word)
        );
    }
    Some(svg + END)
}
