//! What came of edited sources, as text and JSON.

use cere_measure::edits::Tried;
use cere_measure::edits::captured::Region;
use cere_replay::SameCode;
use cere_replay::wrong::{First, Step, Wrong};
use cere_system::console::print;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The verdict in one word.
fn verdict(tried: &Tried) -> &'static str {
    tried.verdict.map_or("failed", |verdict| verdict.name())
}

/// The run's time over that before, if the region takes this `share` of it.
fn of_program(tried: &Tried, share: Option<f64>) -> Option<f64> {
    Some(1.0 - share? * (1.0 - tried.gain?.ratio))
}

fn code(tried: &Tried) -> &'static str {
    match tried.same_code {
        SameCode::Yes => "identical",
        SameCode::No => "other",
        SameCode::Unknown => "unknown",
    }
}

/// For scripts: one entry for each region and variant.
pub fn json(regions: &[Region]) -> Value {
    let each = regions.iter().flat_map(|region| {
        region.tried.iter().map(|tried| {
            json!({
                "name": region.name,
                "variant": tried.variant,
                "codelets": region.codelets,
                "verdict": verdict(tried),
                "reason": tried.reason,
                "ratio": tried.gain.map(|g| g.ratio),
                "interval": tried.gain.map(|g| [g.low, g.high]),
                "confidence": tried.gain.map(|g| g.level),
                "share": region.share,
                "program_ratio": of_program(tried, region.share),
                "code": code(tried),
                "notes": tried.notes,
                "wrong": tried.wrong.as_ref().map(wrong),
            })
        })
    });
    Value::Array(each.collect())
}

/// Which store made a result wrong.
fn wrong(wrong: &Wrong) -> Value {
    let (kind, first, expected) = match &wrong.first {
        Some(First::Other(step, expected)) => ("other", Some(step), Some(expected)),
        Some(First::More(step)) => ("more", Some(step), None),
        Some(First::Missing(step)) => ("missing", Some(step), None),
        None => ("unknown", None, None),
    };
    json!({
        "text": wrong.to_string(),
        "last": wrong.last.as_ref().map(step),
        "first": first.map(step),
        "kind": kind,
        "expected": expected,
    })
}

fn step(step: &Step) -> Value {
    let loops = step.site.loops.iter().zip(&step.iterations);
    json!({
        "file": step.site.file,
        "line": step.site.line,
        "function": step.site.function,
        "value": step.value,
        "iterations": loops.map(|(line, number)| json!({ "line": line, "number": number })).collect::<Vec<_>>(),
    })
}

/// A table, and below it why results are not exact.
pub fn text(regions: &[Region]) -> String {
    let named = regions
        .iter()
        .flat_map(|r| &r.tried)
        .any(|t| !t.variant.is_empty());
    let mut rows = Vec::new();
    let (mut below, mut noted) = (String::new(), BTreeMap::<&str, Vec<String>>::new());
    for region in regions {
        for tried in &region.tried {
            let mut row = vec![region.name.clone()];
            row.extend(named.then(|| tried.variant.clone()));
            row.push(verdict(tried).to_owned());
            row.extend(times(tried, region.share));
            row.push(code(tried).to_owned());
            rows.push(row);
            let what = match named {
                true => format!("{}, {}", region.name, tried.variant),
                false => region.name.clone(),
            };
            if verdict(tried) != "exact" {
                below.push_str(&format!("\n{what}: {}", tried.reason));
                if let Some(wrong) = &tried.wrong {
                    below.push_str(&format!("\n{what}: {wrong}"));
                }
            }
            for note in &tried.notes {
                noted.entry(note).or_default().push(what.clone());
            }
        }
    }
    for (note, of) in noted {
        let more = match of.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        below.push_str(&format!("\n{}{more}: {note}", of[0]));
    }
    let mut heading = vec!["region"];
    heading.extend(named.then_some("variant"));
    heading.extend(["verdict", "time", "interval", "program", "code"]);
    let table = print::table_of_names(&heading, rows);
    match below.is_empty() {
        true => table,
        false => format!("{table}{below}\n"),
    }
}

/// Time over that as captured, its interval, and that of the program.
fn times(tried: &Tried, share: Option<f64>) -> [String; 3] {
    let Some(gain) = tried.gain else {
        return ["-"; 3].map(str::to_owned);
    };
    let program = of_program(tried, share);
    [
        format!("{:.3}", gain.ratio),
        match gain.level >= 0.95 {
            true => format!("{:.3} to {:.3}", gain.low, gain.high),
            false => format!(
                "{:.3} to {:.3} ({:.0} %)",
                gain.low,
                gain.high,
                100.0 * gain.level
            ),
        },
        program.map_or_else(
            || "-".to_owned(),
            |ratio| format!("{:+.1} %", 100.0 * (ratio - 1.0)),
        ),
    ]
}
