//! What came of edited sources, as text and JSON.

use cere_measure::edits::Tried;
use cere_measure::edits::captured::Region;
use cere_measure::edits::kept::Fastest;
use cere_replay::SameCode;
use cere_replay::wrong::{First, Step, Wrong};
use cere_system::console::print;
use serde_json::{Value, json};

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
                "baseline_ratio": tried.over_baseline.map(|g| g.ratio),
                "baseline_interval": tried.over_baseline.map(|g| [g.low, g.high]),
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
    let over_baseline = regions
        .iter()
        .flat_map(|r| &r.tried)
        .any(|t| t.over_baseline.is_some());
    let mut rows = Vec::new();
    let (mut below, mut reasons, mut notes) = (String::new(), Vec::new(), Vec::new());
    for region in regions {
        for tried in &region.tried {
            let mut row = vec![region.name.clone()];
            row.extend(named.then(|| tried.variant.clone()));
            row.push(super::verdict(tried.verdict));
            row.extend(over_baseline.then(|| super::gain(tried.over_baseline)));
            row.push(super::gain(tried.gain));
            row.push(program(tried, region.share));
            row.push(code(tried).to_owned());
            rows.push(row);
            let what = match named {
                true => format!("{}, {}", region.name, tried.variant),
                false => region.name.clone(),
            };
            if verdict(tried) != "exact" {
                add(&mut reasons, &tried.reason, &what);
                if let Some(wrong) = &tried.wrong {
                    add(&mut reasons, &wrong.to_string(), &what);
                }
            }
            for note in &tried.notes {
                add(&mut notes, note, &what);
            }
        }
    }
    for (note, of) in reasons.into_iter().chain(notes) {
        let more = match of.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        below.push_str(&format!("\n{}{more}: {note}", of[0]));
    }
    let mut heading = vec!["region"];
    heading.extend(named.then_some("<variant"));
    heading.push("<verdict");
    heading.extend(over_baseline.then_some("of baseline"));
    heading.extend([if over_baseline { "of captured" } else { "time" }]);
    heading.extend(["program", "<code"]);
    let table = print::table_of_names(&heading, rows);
    match below.is_empty() {
        true => table,
        false => format!("{table}{below}\n"),
    }
}

/// Adds that `text` is said of `what`.
fn add(to: &mut Vec<(String, Vec<String>)>, text: &str, what: &str) {
    match to.iter_mut().find(|(said, _)| *said == text) {
        Some((_, of)) => of.push(what.to_owned()),
        None => to.push((text.to_owned(), vec![what.to_owned()])),
    }
}

/// A renewal of `cere try --watch` for scripts.
pub fn watched(regions: &[Region], error: Option<&str>, best: &[Fastest]) -> Value {
    let best = best
        .iter()
        .map(|best| json!({ "region": best.region, "ratio": best.ratio, "option": best.option }));
    json!({ "tried": json(regions), "error": error, "best": best.collect::<Vec<_>>() })
}

/// The fastest right variants so far, and what tries them again.
pub fn best(best: &[Fastest], flags: &[String]) -> String {
    let flags = match flags {
        [] => String::new(),
        flags => format!(" --flags {}", shell_words::quote(&shell_words::join(flags))),
    };
    let line = |best: &Fastest| {
        let of = best.region.as_deref().unwrap_or("the whole run");
        format!(
            "best so far: {:.3} of the time as captured, {of}: cere try {}{flags}\n",
            best.ratio, best.option
        )
    };
    let lines: String = best.iter().map(line).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\n{lines}"),
    }
}

/// What the whole run gains or loses.
fn program(tried: &Tried, share: Option<f64>) -> String {
    of_program(tried, share).map_or_else(
        || "-".to_owned(),
        |ratio| format!("{:+.1} %", 100.0 * (ratio - 1.0)),
    )
}
