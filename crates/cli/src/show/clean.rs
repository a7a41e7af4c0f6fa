//! What `cere clean` prints.

use cere_store::clean::{Kind, Plan};
use cere_system::console::print;
use serde_json::{Value, json};

/// For scripts. `removed`: not only planned.
pub fn json(plan: &Plan, removed: bool) -> Value {
    json!({
        "removed": removed,
        "bytes": plan.bytes(),
        "left_bytes": plan.before.saturating_sub(plan.bytes()),
        "pieces": plan.pieces,
    })
}

/// A row for each kind, and a sentence.
pub fn text(plan: &Plan, removed: bool) -> String {
    let row = |kind: Kind| {
        let all = plan.pieces.iter().filter(|piece| piece.kind == kind);
        let oldest = all
            .clone()
            .map(|piece| piece.unused_seconds)
            .reduce(f64::max)?;
        Some(vec![
            kind.words().to_owned(),
            all.clone().count().to_string(),
            bytes(all.map(|piece| piece.bytes).sum()),
            age(oldest),
        ])
    };
    let rows: Vec<Vec<String>> = Kind::ALL.into_iter().filter_map(row).collect();
    let left = bytes(plan.before.saturating_sub(plan.bytes()));
    if rows.is_empty() {
        return format!("nothing to remove: the store and the user's cache take {left}\n");
    }
    let table = print::table(&["what", "pieces", "size", "unused for"], &rows);
    let (freed, take) = match removed {
        true => ("freed", "take"),
        false => ("would free", "would take"),
    };
    let of = bytes(plan.bytes());
    format!("{table}{freed} {of}; the store and the user's cache {take} {left}\n")
}

/// `1.5 GiB`.
pub fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        big if big >= 1024f64.powi(3) => format!("{:.1} GiB", big / 1024f64.powi(3)),
        middle if middle >= 1024f64.powi(2) => format!("{:.1} MiB", middle / 1024f64.powi(2)),
        small => format!("{:.0} KiB", (small / 1024.0).ceil()),
    }
}

/// `3 days`.
fn age(seconds: f64) -> String {
    match seconds {
        s if s >= 172_800.0 => format!("{:.0} days", s / 86400.0),
        s if s >= 7200.0 => format!("{:.0} h", s / 3600.0),
        s if s >= 120.0 => format!("{:.0} min", s / 60.0),
        s => format!("{s:.0} s"),
    }
}
