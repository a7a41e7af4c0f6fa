//! The section on the machine's roof.

use super::format::{Cell, name, percent};
use crate::roofline::document::{Apart, Document, Point};
use crate::roofline::plot::plot;
use cere_machine::roofs::MEMORY;

/// The section.
pub struct Roof {
    pub plot: String,
    /// Processor whose roofs they are.
    pub machine: String,
    /// A row a point.
    pub points: Vec<Row>,
    /// What has no point, and why.
    pub apart: Vec<String>,
}

/// A point of a roofline.
pub struct Row {
    /// Codelet and flags.
    pub name: String,
    /// State of data and code.
    pub state: String,
    /// Operations per byte of memory traffic.
    pub intensity: Cell,
    /// Operations per second.
    pub speed: Cell,
    /// The roof that binds.
    pub bound: String,
    /// Share of it that is reached.
    pub share: Cell,
}

/// Of the last roofline.
pub fn roof(document: &Document) -> Roof {
    let apart = |a: &Apart| format!("{}: {}", name(&a.codelet), a.reason);
    Roof {
        plot: plot(document, MEMORY),
        machine: document.machine.cpu.clone(),
        points: document.points.iter().map(row).collect(),
        apart: document.apart.iter().map(apart).collect(),
    }
}

fn row(p: &Point) -> Row {
    let codelet = name(&p.codelet);
    Row {
        name: match p.flags.as_str() {
            "" => codelet,
            flags => format!("{codelet} {flags}"),
        },
        state: p.state.replace(',', ", ").replace('=', " "),
        intensity: Cell::known(p.intensity.get(MEMORY).copied().flatten(), |v| {
            format!("{v:.3}")
        }),
        speed: Cell::new(p.flops_per_second, |v| {
            format!("{:.3}\u{a0}Gflop/s", v / 1e9)
        }),
        bound: p.bound_by.clone().unwrap_or_default(),
        share: Cell::known(p.share_of_roof, percent),
    }
}
