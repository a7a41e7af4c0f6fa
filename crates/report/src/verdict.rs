//! Verdicts on replays in plain words.

use cere_format::replay::Verdict;
use cere_measure::matching::Row as Matched;

/// What a replay's result is, in few words; empty without a verdict.
pub fn short(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Exact) => "same result",
        Some(Verdict::Tolerance) => "same but for rounding",
        Some(Verdict::Partly) => "same where compared",
        Some(Verdict::Different) => "wrong result",
        Some(Verdict::Unchecked) => "not compared",
        None => "",
    }
}

/// What is known of a region that is replayed alone, as a sentence; `refused` is why it was not captured.
pub fn sentence(matched: Option<&Matched>, captured: usize, refused: Option<&str>) -> String {
    let Some(verdict) = matched.and_then(|m| m.verdict) else {
        return match (captured, refused, matched.and_then(|m| m.reason.as_deref())) {
            (0, Some(reason), _) => format!("It cannot run alone: {reason}."),
            (0, None, _) => "It was not captured: `cere capture` takes it.".to_owned(),
            (_, _, Some(reason)) => format!("Captured, but not compared: {reason}."),
            (_, _, None) => "Captured, not replayed yet: `cere check` does.".to_owned(),
        };
    };
    let result = match verdict {
        Verdict::Exact => "It runs alone with the same result, bit for bit",
        Verdict::Tolerance => "It runs alone with the same result but for rounding",
        Verdict::Partly => "It runs alone; what was compared of its result is the same",
        Verdict::Different => "Run alone it computes something else: do not use its times",
        Verdict::Unchecked => "It runs alone; its result was not compared",
    };
    let ratio = matched.and_then(|m| m.ratio);
    let pace = match ratio.map(|ratio| 100.0 * (ratio - 1.0)) {
        Some(more) if more >= 0.5 => format!(", and takes {more:.0} % longer than in the program"),
        Some(more) if more <= -0.5 => {
            format!(", and takes {:.0} % less time than in the program", -more)
        }
        Some(_) => ", and takes the time that it takes in the program".to_owned(),
        None => String::new(),
    };
    let trust = match matched {
        Some(m) if !m.accepted => m.reason.as_deref().map_or_else(String::new, |reason| {
            format!(" Predictions do without it: {reason}.")
        }),
        _ => String::new(),
    };
    format!("{result}{pace}.{trust}")
}
