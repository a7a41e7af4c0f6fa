//! Rooflines as text.

use cere_report::roofline::{Document, Point, Roof};

/// `value` with a prefix of SI.
fn scaled(value: f64, unit: &str) -> String {
    let (value, prefix) = match value {
        v if v >= 1e12 => (v / 1e12, "T"),
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    format!("{value:.3} {prefix}{unit}")
}

fn roof(roof: &Roof) -> String {
    let height = match (roof.flops_per_second, roof.bytes_per_second) {
        (Some(flops), _) => scaled(flops, "flop/s"),
        (_, Some(bytes)) => scaled(bytes, "byte/s"),
        _ => String::new(),
    };
    format!("  {:<32}{height:>18}\n", roof.name)
}

fn point(point: &Point, levels: &[String]) -> String {
    let flags = match point.flags.as_str() {
        "" => String::new(),
        flags => format!(" {flags}"),
    };
    let size = point.size.map_or(String::new(), |n| format!(", n = {n}"));
    let threads = match point.threads {
        1 => String::new(),
        n => format!(", {n} threads"),
    };
    let mut text = format!("{}{flags}, {}{size}{threads}\n", point.codelet, point.state);
    let quartiles = point
        .seconds_box
        .map(|s| format!("{:.3}", s * 1e6))
        .join(" to ");
    text += &format!(
        "  {} in {:.3} us (box {quartiles} us): {}\n",
        scaled(point.flops as f64, "flop"),
        point.seconds * 1e6,
        scaled(point.flops_per_second, "flop/s")
    );
    let intensity = |level: &String| match point.intensity.get(level) {
        Some(Some(value)) => format!("{level} {value:.4}"),
        _ => format!("{level} -"),
    };
    let all: Vec<String> = levels.iter().map(intensity).collect();
    text += &format!("  flop per byte: {}\n", all.join(", "));
    if let (Some(by), Some(share)) = (&point.bound_by, point.share_of_roof) {
        text += &format!("  bound by {by}: {:.1} % of that roof\n", share * 100.0);
    }
    for note in &point.notes {
        text += &format!("  {note}\n");
    }
    text
}

/// A roofline for people.
pub fn text(document: &Document) -> String {
    let mut text = format!(
        "roofs of {}, caches {}\n",
        document.machine.cpu, document.geometry
    );
    document.roofs.iter().for_each(|r| text += &roof(r));
    let levels = document.levels();
    document
        .points
        .iter()
        .for_each(|p| text += &point(p, &levels));
    for apart in document.apart.iter().filter(|a| !a.failed) {
        text += &format!("{}: no point: {}\n", apart.codelet, apart.reason);
    }
    for note in &document.notes {
        text += &format!("{note}\n");
    }
    text
}
