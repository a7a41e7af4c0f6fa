//! The plot of predicted and measured seconds against threads.

use crate::plot::axis::Scale;
use crate::plot::frame::{AREA, Axis, END, HEIGHT, WIDTH, begin};
use cere_predict::model::{Prediction, RunTime};
use std::fmt::Write;

const STYLE: &str = "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:600}.axis,.tick{stroke:#333}\
    .grid{stroke:#ddd}.predicted{stroke:#1f6feb;fill:none;stroke-width:2}.measured{fill:none;stroke:#d1242f;stroke-width:2}\
    .dot{fill:#1f6feb}</style>";

/// The plot as an SVG file.
pub fn svg(prediction: &Prediction) -> String {
    let (left, top, right, bottom) = AREA;
    let seconds = |run: &RunTime| [Some(run.predicted_seconds), run.measured_seconds];
    let most = prediction
        .runs
        .iter()
        .flat_map(seconds)
        .flatten()
        .fold(0.0, f64::max);
    let threads = prediction.runs.iter().map(|r| f64::from(r.threads));
    let least = threads.clone().fold(f64::MAX, f64::min);
    let scale = Scale::new(
        (least, threads.clone().fold(least, f64::max)),
        (left + 30.0, right - 30.0),
        true,
    );
    let x = Axis {
        scale,
        ticks: threads.map(|n| (n, format!("{n}"))).collect(),
        title: "threads".to_owned(),
    };
    let scale = Scale::new((0.0, most * 1.05), (bottom, top), false);
    let (ticks, decimals) = scale.ticks(5);
    let y = Axis {
        scale,
        ticks: ticks
            .into_iter()
            .map(|t| (t, format!("{t:.decimals$}")))
            .collect(),
        title: "seconds".to_owned(),
    };
    let mut svg = begin(&x, &y, "Run time against threads, predicted and measured");
    svg = svg.replacen(
        "<svg ",
        &format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" "
        ),
        1,
    );
    if let Some(end) = svg.find('>') {
        let paper = format!("{STYLE}<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>");
        svg.insert_str(end + 1, &paper);
    }
    let mut path = String::new();
    for run in &prediction.runs {
        let (at, height) = (
            x.scale.at(f64::from(run.threads)),
            y.scale.at(run.predicted_seconds),
        );
        let _ = write!(
            path,
            "{}{at:.1} {height:.1}",
            if path.is_empty() { "M" } else { "L" }
        );
        let _ = write!(
            svg,
            "<circle cx=\"{at:.1}\" cy=\"{height:.1}\" r=\"4\" class=\"dot\"/>"
        );
        if let Some(measured) = run.measured_seconds {
            let height = y.scale.at(measured);
            let _ = write!(
                svg,
                "<circle cx=\"{at:.1}\" cy=\"{height:.1}\" r=\"7\" class=\"measured\"/>"
            );
        }
    }
    let _ = write!(svg, "<path d=\"{path}\" class=\"predicted\"/>");
    let legend = [("dot", "4", "predicted"), ("measured", "7", "measured")];
    let measured = prediction.runs.iter().any(|r| r.measured_seconds.is_some());
    for (line, (class, radius, text)) in legend
        .into_iter()
        .enumerate()
        .take(1 + usize::from(measured))
    {
        let (at, height) = (right - 110.0, top + 14.0 + 20.0 * line as f64);
        let _ = write!(
            svg,
            "<circle cx=\"{at}\" cy=\"{height}\" r=\"{radius}\" class=\"{class}\"/><text x=\"{}\" y=\"{}\">{text}</text>",
            at + 14.0,
            height + 4.0
        );
    }
    svg.push_str(END);
    svg
}
