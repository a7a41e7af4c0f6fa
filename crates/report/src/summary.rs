//! The first screen as data, for `cere report --json`.

use super::data::Data;
use super::first::top;
use super::why::Why;
use serde::Serialize;

/// One of the largest regions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Top {
    /// Its name.
    pub region: String,
    /// Share of the run time, 0 to 1; above 1 only by the error of the times.
    pub share: f64,
    /// Self seconds in the run.
    pub seconds: f64,
    /// Why it takes them, in a sentence; none: `cere explain` has not looked at its codelets.
    pub sentence: Option<String>,
    /// What one can do about it; none: nothing is known.
    pub advice: Option<String>,
    /// The best known flags after those of the build; none: none that are faster are known.
    pub flags: Option<String>,
    /// How many times faster it is under them.
    pub gain: Option<f64>,
    /// Verdict on its replays; none: it was not replayed.
    pub verdict: Option<&'static str>,
    /// Whether predictions may use it.
    pub accepted: bool,
}

/// The largest regions, at most five.
pub fn top_regions(data: &Data) -> Vec<Top> {
    let matched = data.matched();
    let one = |place: usize| {
        let region = &data.profile.regions[place];
        let known = data.why.get(&region.key).and_then(Why::known);
        let best = data.best.get(&region.key);
        let row = matched.get(region.name.as_str());
        Top {
            region: region.name.clone(),
            share: region.share,
            seconds: region.self_seconds,
            sentence: known.map(|k| k.sentence.clone()),
            advice: known
                .map(|k| k.advice.clone())
                .filter(|advice| !advice.is_empty()),
            flags: best.map(|b| b.words()),
            gain: best.map(|b| b.gain),
            verdict: row.and_then(|r| r.verdict).map(|v| v.name()),
            accepted: row.is_some_and(|r| r.accepted),
        }
    };
    top(&data.profile).into_iter().map(one).collect()
}
