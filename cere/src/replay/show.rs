//! A replay as text and JSON.

use crate::print;
use cere_format::replay::Verdict;
use cere_replay::{Replay, SameCode};

/// The verdict in one word.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Exact => "exact",
        Verdict::Tolerance => "tolerance",
        Verdict::Different => "different",
        Verdict::Unchecked => "unchecked",
    }
}

/// Whether the machine code is the one that ran in vivo, if that is known.
fn identical(replay: &Replay) -> Option<bool> {
    match replay.same_code {
        SameCode::Yes => Some(true),
        SameCode::No => Some(false),
        SameCode::Unknown => None,
    }
}

/// The quartiles' distance over the median.
fn spread(replay: &Replay) -> f64 {
    let cycles: Vec<f64> = replay.cycles.iter().map(|c| *c as f64).collect();
    cere_cluster::Spread::of(&cycles).map_or(0.0, |s| s.relative())
}

/// Some lines for people.
pub fn text(replay: &Replay) -> String {
    let mut text = format!("{}\n", replay.codelet);
    text.push_str(&format!(
        "  verdict  {}: {}\n",
        word(replay.verdict),
        replay.reason
    ));
    text.push_str(&format!(
        "  time     min {}, median {}, spread {:.1} % of {} repetitions\n",
        print::time(replay.seconds_min),
        print::time(replay.seconds_median),
        spread(replay) * 100.0,
        replay.cycles.len()
    ));
    text.push_str(&match replay.in_vivo_seconds {
        Some(seconds) => format!(
            "  in vivo  {}, in vitro / in vivo {:.3}\n",
            print::time(seconds),
            replay.seconds_median / seconds
        ),
        None => "  in vivo  unknown\n".to_owned(),
    });
    let code = match identical(replay) {
        Some(true) => "identical to the one in vivo",
        Some(false) => "other than in vivo",
        None => "not compared",
    };
    text.push_str(&format!("  code     {code}\n"));
    text
}

/// The replay for scripts.
pub fn json(replay: &Replay, flags: &str) -> serde_json::Value {
    serde_json::json!({
        "codelet": replay.codelet,
        "flags": flags,
        "verdict": replay.verdict,
        "reason": replay.reason,
        "seconds": {"min": replay.seconds_min, "median": replay.seconds_median},
        "spread": spread(replay),
        "cycles": replay.cycles,
        "in_vivo_seconds": replay.in_vivo_seconds,
        "ratio": replay.in_vivo_seconds.map(|s| replay.seconds_median / s),
        "identical_code": identical(replay),
        "repeatable": replay.repeatable,
        "comparison": replay.comparison,
        "executable": replay.executable,
    })
}

/// A codelet that could not be replayed, for scripts.
pub fn failure(codelet: &str, flags: &str, error: &anyhow::Error) -> serde_json::Value {
    let error = format!("{error:#}");
    serde_json::json!({"codelet": codelet, "flags": flags, "verdict": Verdict::Unchecked, "reason": error,
        "error": error, "seconds": null, "in_vivo_seconds": null})
}
