//! Codelets as a table, for `cere codelets` and `cere capture`.

use cere_capture::capture::Forecast;
use cere_store::codelets::Listed;
use cere_store::commands;
use cere_system::console::{color, print};

/// Codelets as a table.
pub fn table(codelets: &[Listed]) -> String {
    let rows: Vec<Vec<String>> = codelets
        .iter()
        .map(|c| {
            vec![
                c.name.clone(),
                c.pages.to_string(),
                format!("{:.1} KiB", c.bytes as f64 / 1024.0),
                c.in_vivo_seconds.map_or("-".into(), print::time),
                c.verdict.map_or("-".to_owned(), color::verdict),
                match c.current {
                    Some(true) => "current",
                    Some(false) => "older",
                    None => "-",
                }
                .to_owned(),
                c.command.as_deref().map_or("-".into(), commands::shown),
            ]
        })
        .collect();
    print::table_of_names(
        &[
            "codelet",
            "pages",
            "size",
            "in vivo",
            "<last verdict",
            "<build",
            "<command",
        ],
        rows,
    )
}

/// A number of things.
fn several(count: usize, what: &str) -> String {
    let more = if count == 1 { "" } else { "s" };
    format!("{count} {what}{more}")
}

/// What is to be captured.
pub fn planned(plan: &Forecast) -> String {
    if plan.codelets == 0 {
        return "nothing is to be captured".to_owned();
    }
    format!(
        "{} of {} to be captured in {} or more",
        several(plan.codelets, "invocation"),
        several(plan.regions, "region"),
        several(plan.runs, "run")
    )
}

/// What a capture would do, in a line.
pub fn plan(plan: &Forecast) -> String {
    let seconds = print::time(plan.program_seconds);
    match plan.codelets {
        0 => format!("the program takes {seconds}; the store has all codelets that can be had\n"),
        _ => format!(
            "the program takes {seconds}; {}: about {:.1} s\n",
            planned(plan),
            plan.seconds
        ),
    }
}
