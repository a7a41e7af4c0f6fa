//! What came of performance tests, as text and JSON.

use cere_guard::Checked;
use cere_guard::output::{change, time};
use cere_system::console::color::{self, Tone};
use cere_system::console::print;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// For scripts: one entry for each region.
pub fn json(all: &[Checked]) -> Value {
    let each = all.iter().map(|c| {
        json!({
            "name": c.name,
            "file": c.file,
            "line": c.line,
            "codelets": c.codelets,
            "result": c.state.name(),
            "reason": c.reason,
            "verdict": c.verdict.map(|v| v.name()),
            "limits": c.limits,
            "ratio": c.gain.map(|g| g.ratio),
            "interval": c.gain.map(|g| [g.low, g.high]),
            "confidence": c.gain.map(|g| g.level),
            "seconds": c.seconds,
            "counts": c.counts,
            "grown": c.grown,
            "notes": c.notes,
        })
    });
    Value::Array(each.collect())
}

/// A table, and below it why regions failed.
pub fn text(all: &[Checked]) -> String {
    let row = |c: &Checked| {
        vec![
            c.name.clone(),
            match c.state.is_good() {
                true => c.state.name().to_owned(),
                false => color::paint(Tone::Bad, c.state.name()),
            },
            c.verdict.map_or("-".to_owned(), color::verdict),
            time(c),
            change(c, "instructions"),
            change(c, "memory bytes"),
        ]
    };
    let heading = [
        "region",
        "<result",
        "<verdict",
        "time",
        "instructions",
        "memory",
    ];
    let mut text = print::table_of_names(&heading, all.iter().map(row).collect());
    for checked in all.iter().filter(|c| !c.reason.is_empty()) {
        text += &format!(
            "\n{} ({}:{}): {}",
            checked.name,
            checked.file.display(),
            checked.line,
            checked.reason
        );
    }
    let mut noted = BTreeMap::<&str, Vec<&str>>::new();
    for checked in all {
        for note in &checked.notes {
            noted.entry(note).or_default().push(&checked.name);
        }
    }
    for (note, of) in noted {
        let more = match of.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        text += &format!("\n{}{more}: {note}", of[0]);
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
