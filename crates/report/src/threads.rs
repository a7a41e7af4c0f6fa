//! The plot of predicted and measured seconds against threads.

use crate::plot::axis::{Axis, Scale, decimal, extent};
use crate::plot::frame::{AREA, Plot};
use crate::plot::picture::{Anchor, PLAIN, through};
use cere_predict::model::{Prediction, RunTime};

const STYLE: &str = ".predicted{stroke:#1f6feb;fill:none;stroke-width:2}.measured{fill:none;stroke:#d1242f;stroke-width:2}\
    .dot{fill:#1f6feb}";
/// Radii of predicted and of measured times.
const RADII: (f64, f64) = (4.0, 7.0);

/// The plot as an SVG file.
pub fn svg(prediction: &Prediction) -> String {
    let mut plot = axes(&prediction.runs);
    for run in &prediction.runs {
        let threads = f64::from(run.threads);
        let at = plot.at(threads, run.predicted_seconds);
        plot.picture.circle("dot", at, RADII.0, "");
        if let Some(measured) = run.measured_seconds {
            let at = plot.at(threads, measured);
            plot.picture.circle("measured", at, RADII.1, "");
        }
    }
    let runs = prediction.runs.iter();
    let line = through(runs.map(|r| plot.at(f64::from(r.threads), r.predicted_seconds)));
    plot.picture.path("predicted", &line);
    let measured = prediction.runs.iter().any(|r| r.measured_seconds.is_some());
    legend(&mut plot, measured);
    plot.picture.file(&format!("{PLAIN}{STYLE}"), false)
}

fn axes(runs: &[RunTime]) -> Plot {
    let (left, top, right, bottom) = AREA;
    let threads = runs.iter().map(|r| f64::from(r.threads));
    let across = Scale::new(extent(threads.clone()), (left + 30.0, right - 30.0), true);
    let x = Axis {
        scale: across,
        ticks: threads.map(|n| (n, format!("{n}"))).collect(),
        title: "threads".to_owned(),
    };
    let seconds = |run: &RunTime| [Some(run.predicted_seconds), run.measured_seconds];
    let most = runs.iter().flat_map(seconds).flatten().fold(0.0, f64::max);
    let up = Scale::new((0.0, most * 1.05), (bottom, top), false);
    let y = Axis::new(up, 5, "seconds", decimal);
    Plot::new(&x, &y, "Run time against threads, predicted and measured")
}

fn legend(plot: &mut Plot, measured: bool) {
    let (_, top, right, _) = AREA;
    let lines = [
        ("dot", RADII.0, "predicted"),
        ("measured", RADII.1, "measured"),
    ];
    let mut y = top + 14.0;
    for (class, radius, text) in &lines[..1 + usize::from(measured)] {
        let x = right - 110.0;
        plot.picture.circle(*class, (x, y), *radius, "");
        let beside = Anchor::start((x + 14.0, y + 4.0));
        plot.picture.text("", beside, text);
        y += 20.0;
    }
}
