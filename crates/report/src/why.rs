//! Why regions take their time: what `cere explain` kept, and its words.

use super::codelet::Codelet;
use super::format::{brief, percent};
use cere_format::explain::{Cause, EXPLANATION_VERSION, Explanation, Way};
use cere_format::profile::RegionKey;
use cere_format::store::Store;
use cere_store::state;
use std::path::PathBuf;

/// What is known of a region.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// The explanation of one of the report's codelets.
    Known(Box<Explanation>),
    /// It is of an older codelet.
    Older,
    /// Nobody has looked.
    Unknown,
}

/// Where the explanation of a region is kept.
fn kept_at(store: &Store, key: &RegionKey) -> PathBuf {
    let name = state::hash(&format!("{}\0{}", key.unit, key.index));
    store.explanations().join(format!("{name}.json"))
}

/// The explanation of the region `key` with these codelets. A file that cannot be read becomes a note.
pub fn kept(store: &Store, key: &RegionKey, codelets: &[&Codelet], notes: &mut Vec<String>) -> Why {
    let path = kept_at(store, key);
    if !path.exists() {
        return Why::Unknown;
    }
    let found: Explanation = match state::read_json(&path) {
        Ok(found) => found,
        Err(error) => {
            notes.push(format!(
                "an explanation cannot be read: {error:#}: `cere explain` makes it again"
            ));
            return Why::Unknown;
        }
    };
    let own = found.version == EXPLANATION_VERSION
        && found.unit == key.unit
        && found.index == key.index
        && codelets.iter().any(|c| c.sha256 == found.sha256);
    match own {
        true => Why::Known(Box::new(found)),
        false => Why::Older,
    }
}

impl Why {
    /// The explanation, if it is known.
    pub fn known(&self) -> Option<&Explanation> {
        match self {
            Self::Known(found) => Some(found),
            _ => None,
        }
    }

    /// What takes the time, in two or three words; empty if it is not known.
    pub fn cause(&self) -> &'static str {
        self.known().map_or("", |found| cause(found.cause))
    }
}

/// A cause in two or three words.
pub fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Bandwidth => "memory bandwidth",
        Cause::Latency => "waiting for memory",
        Cause::Translations => "address translation",
        Cause::Chain => "chain of operations",
        Cause::Divisions => "divisions",
        Cause::Branches => "mispredicted branches",
        Cause::FrontEnd => "fetching instructions",
        Cause::Scalar => "no vectors",
        Cause::Stores => "stores",
        Cause::Forwarding => "reading fresh stores",
        Cause::PageFaults => "page faults",
        Cause::Imbalance => "uneven threads",
        Cause::Waiting => "waiting",
        Cause::Units => "a busy unit",
        Cause::Instructions => "much to do",
        Cause::Unknown => "not found",
    }
}

/// A time if one thing were otherwise, as a bar.
pub struct Bar {
    /// What would be otherwise.
    pub change: String,
    /// The time, or a dash.
    pub time: String,
    /// What would be saved, or why the time is not known.
    pub saved: String,
    /// Length, per cent of the longest.
    pub width: String,
    /// How it was found.
    pub how: String,
}

/// The time as measured and the times if one thing were otherwise.
pub fn bars(found: &Explanation) -> Vec<Bar> {
    let times = found.what_if.iter().filter_map(|w| w.seconds);
    let longest = times.fold(found.seconds, f64::max).max(f64::MIN_POSITIVE);
    let width = |seconds: f64| format!("{:.1}", 100.0 * (seconds / longest).clamp(0.0, 1.0));
    let measured = Bar {
        change: "as it is".to_owned(),
        time: brief(found.seconds),
        saved: String::new(),
        width: width(found.seconds),
        how: "replayed".to_owned(),
    };
    let others = found.what_if.iter().map(|what| Bar {
        change: what.change.clone(),
        time: what.seconds.map_or("–".to_owned(), brief),
        saved: what
            .seconds
            .map_or_else(String::new, |s| saved(s, found.seconds)),
        width: what.seconds.map_or("0".to_owned(), width),
        how: match (what.seconds, what.found) {
            (None, _) => what.how.clone(),
            (_, Way::Replayed) => format!("replayed: {}", what.how),
            (_, Way::Modelled) => format!("by a model: {}", what.how),
        },
    });
    std::iter::once(measured).chain(others).collect()
}

/// What another time saves of the measured one, in words.
fn saved(seconds: f64, measured: f64) -> String {
    match 1.0 - seconds / measured.max(f64::MIN_POSITIVE) {
        less if less >= 0.005 => format!("{} less", percent(less)),
        less if less <= -0.005 => format!("{} more", percent(-less)),
        _ => "no difference".to_owned(),
    }
}
