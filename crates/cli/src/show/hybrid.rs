//! A hybrid binary as text and JSON.

use cere_system::console::print;
use cere_tune::hybrid::decide::Tuned;
use cere_tune::hybrid::make::Made;
use serde_json::{Value, json};

/// Flags and pipeline of a region, in a line.
fn flags(tuned: &Tuned) -> String {
    let mut text = shell_words::join(&tuned.choice.flags);
    if let Some(passes) = &tuned.choice.passes {
        text = format!("{text} [{passes}]").trim_start().to_owned();
    }
    text
}

fn region(tuned: &Tuned) -> Value {
    json!({
        "name": tuned.chosen.name,
        "flags": shell_words::join(&tuned.choice.flags),
        "passes": tuned.choice.passes,
        "threads": tuned.chosen.threads,
        "bind": tuned.chosen.bind,
        "kept": tuned.back.is_none(),
        "reason": tuned.back,
        "plain_seconds": tuned.times.map(|t| t.plain),
        "hybrid_seconds": tuned.times.map(|t| t.other()),
    })
}

/// As JSON; without a decision nothing was run.
pub fn json(made: &Made, notes: &[String]) -> Value {
    let decision = made.decision.as_ref();
    let level = decision.and_then(|d| d.level.as_ref());
    json!({
        "plain_seconds": decision.map(|d| d.plain_seconds),
        "hybrid_seconds": decision.map(|d| d.hybrid_seconds),
        "gain_range": decision.and_then(|d| d.gain.map(|g| [1.0 / g.high, 1.0 / g.low])),
        "best_level": level.map(|l| &l.0),
        "best_level_seconds": level.map(|l| l.1),
        "rest": decision.map(|d| shell_words::join(&d.recipe.rest.flags)),
        "ranks": made.ranks.as_ref().map(|r| json!({"names": r.names, "others": r.others, "apart": r.apart})),
        "regions": made.tuned.iter().map(region).collect::<Vec<_>>(),
        "notes": notes,
    })
}

/// The tables; with `explain` also the contribution of each region.
pub fn text(made: &Made, explain: bool) -> String {
    let (decision, tuned) = (made.decision.as_ref(), &made.tuned);
    let mut text = String::new();
    if explain {
        let time = |s: Option<f64>| s.map_or("-".to_owned(), print::time);
        let row = |t: &Tuned| {
            vec![
                t.chosen.name.clone(),
                time(t.times.map(|t| t.plain)),
                time(t.times.map(|t| t.other())),
                t.times
                    .map_or("-".to_owned(), |t| format!("{:.3}", 1.0 / t.gain.ratio)),
                t.back.clone().unwrap_or_else(|| "kept".into()),
                flags(t),
            ]
        };
        let heading = ["region", "plain", "hybrid", "gain", "<", "<flags"];
        text.push_str(&print::table_of_names(
            &heading,
            tuned.iter().map(row).collect(),
        ));
        let saved: f64 = tuned
            .iter()
            .filter(|t| t.back.is_none())
            .filter_map(|t| t.times)
            .map(|t| t.plain - t.other())
            .sum();
        if saved > 0.0 {
            text.push_str(&format!(
                "\nthe kept regions take {} less\n",
                print::time(saved)
            ));
        }
    }
    let kept = tuned.iter().filter(|t| t.back.is_none()).count();
    text.push_str(&format!(
        "{kept} of {} regions have flags of their own\n",
        tuned.len()
    ));
    if let Some(decision) = decision {
        let (plain, chosen) = (decision.plain_seconds, decision.hybrid_seconds);
        let line = |name: &str, seconds: f64| {
            format!(
                "{name:<12} {:>10}  {:.3} times the plain build's speed\n",
                print::time(seconds),
                plain / seconds
            )
        };
        text.push_str(&line("plain", plain));
        if let Some((name, seconds)) = &decision.level {
            text.push_str(&line(&format!("best {name}"), *seconds));
        }
        if kept == 0 && decision.recipe.rest.flags.is_empty() {
            text.push_str("nothing gains: the flags of the build stay\n");
        } else {
            text.push_str(&line("hybrid", chosen));
        }
    }
    text.extend(made.ranks.as_ref().map(|ranks| format!("{ranks}\n")));
    text
}
