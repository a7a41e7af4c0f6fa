//! Results of commands as text and JSON.

pub mod asm;
pub mod blocking;
pub mod clean;
pub mod codelets;
pub mod compare;
pub mod count;
pub mod counted;
pub mod doctor;
pub mod edits;
pub mod explain;
pub mod guard;
pub mod hybrid;
pub mod machine;
pub mod metrics;
pub mod profile;
pub mod replay;
pub mod roofline;
pub mod subset;
pub mod tune;

use cere_format::replay::Verdict;
use cere_system::console::color::{self, Tone};
use cere_system::console::print;
use cere_timing::stats::Gain;

/// A verdict in one word; `failed` if there is none.
fn verdict(verdict: Option<Verdict>) -> String {
    verdict.map_or_else(|| color::paint(Tone::Bad, "failed"), color::verdict)
}

/// A ratio of times with its interval, and the level of that if it is below 95 %.
fn gain(gain: Option<Gain>) -> String {
    let Some(gain) = gain else {
        return "-".to_owned();
    };
    let text = print::within(gain.ratio, gain.low, gain.high);
    match gain.level >= 0.95 {
        true => text,
        false => format!("{text} at {:.0} %", 100.0 * gain.level),
    }
}
