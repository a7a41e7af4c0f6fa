//! Two sides, region by region, as text and JSON.

use cere_guard::compare::Compared;
use cere_system::console::print;
use serde_json::{Value, json};

fn code(compared: &Compared) -> &'static str {
    match compared.same_code {
        Some(true) => "identical",
        Some(false) => "other",
        None => "unknown",
    }
}

fn verdict(compared: &Compared, side: usize) -> &'static str {
    compared.verdicts[side].map_or("failed", |v| v.name())
}

/// For scripts: one entry for each region.
pub fn json(all: &[Compared]) -> Value {
    let each = all.iter().map(|c| {
        json!({
            "name": c.name,
            "other": c.other,
            "codelets": c.codelets,
            "verdicts": [verdict(c, 0), verdict(c, 1)],
            "reasons": c.reasons,
            "seconds": c.seconds,
            "ratio": c.gain.map(|g| g.ratio),
            "interval": c.gain.map(|g| [g.low, g.high]),
            "confidence": c.gain.map(|g| g.level),
            "counts": c.counts,
            "code": code(c),
            "notes": c.notes,
        })
    });
    Value::Array(each.collect())
}

/// A table, and below it why results are not exact.
pub fn text(all: &[Compared]) -> String {
    let time = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), print::time);
    let row = |c: &Compared| {
        let count = |side: usize| c.counts[side].as_ref()?.0.get("instructions").copied();
        let instructions = match (count(0), count(1)) {
            (Some(first), Some(second)) if first > 0 => {
                format!("{:.3}", second as f64 / first as f64)
            }
            _ => "-".to_owned(),
        };
        vec![
            c.name.clone(),
            match verdict(c, 0) == verdict(c, 1) {
                true => super::verdict(c.verdicts[0]),
                false => c.verdicts.map(super::verdict).join(", "),
            },
            time(c.seconds[0]),
            time(c.seconds[1]),
            super::gain(c.gain),
            instructions,
            code(c).to_owned(),
        ]
    };
    let heading = [
        "region",
        "<verdict",
        "A",
        "B",
        "B / A",
        "instructions",
        "<code",
    ];
    let mut text = print::table_of_names(&heading, all.iter().map(row).collect());
    for c in all {
        for (side, letter) in ["A", "B"].into_iter().enumerate() {
            if verdict(c, side) != "exact" {
                text += &format!("\n{}, {letter}: {}", c.name, c.reasons[side]);
            }
        }
        if c.other != c.name {
            text += &format!("\n{}: is {} in B", c.name, c.other);
        }
        for note in &c.notes {
            text += &format!("\n{}: {note}", c.name);
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
