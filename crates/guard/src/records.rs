//! Records of replays, of any machine: the same codelets by their checksums.

use crate::compare::Compared;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::replay::Verdict;
use cere_format::store::Store;
use cere_store::results::Database;
use cere_store::state;
use cere_timing::stats::Gain;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A record as `cere results --json` writes it.
#[derive(Debug, Clone, Deserialize)]
pub struct Record {
    codelet: String,
    region: String,
    sha256: String,
    setting: serde_json::Value,
    machine: Machine,
    times: Option<Times>,
    verdict: String,
    reason: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Machine {
    cpu: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Times {
    seconds_median: f64,
    interval: Option<(f64, f64)>,
}

/// The records in a file.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let bytes =
        state::read_record(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| {
        format!(
            "{} is not what `cere results --json` writes",
            path.display()
        )
    })
}

/// The records of a store.
pub fn of_store(store: &Store) -> Result<Vec<Record>> {
    let all = match Database::existing(store)? {
        Some(database) => database.all()?,
        None => Vec::new(),
    };
    Ok(serde_json::from_value(serde_json::to_value(all)?)?)
}

/// The last record of each codelet and setting.
fn last(records: &[Record]) -> BTreeMap<(String, String), &Record> {
    let key = |r: &Record| (r.sha256.clone(), r.setting.to_string());
    records.iter().map(|r| (key(r), r)).collect()
}

/// The last replays that both sides have of the same codelet files with the same setting. All regions if `what` is empty.
pub fn compare(sides: [&[Record]; 2], what: &[String]) -> Result<Vec<Compared>> {
    let [first, second] = sides.map(last);
    let wanted = |r: &Record| {
        let meant = |pattern: &String| {
            [&r.codelet, &r.region].into_iter().any(|name| {
                name.starts_with(pattern.as_str()) || cere_store::names::glob(pattern, name)
            })
        };
        what.is_empty() || what.iter().any(meant)
    };
    let both = first.iter().filter(|(_, record)| wanted(record));
    let both = both.filter_map(|(key, record)| Some((*record, *second.get(key)?)));
    let mut found: Vec<Compared> = both.map(|(a, b)| compared([a, b])).collect();
    if found.is_empty() {
        bail!(
            E6118,
            "the two have no replay in common: replay the same .codelet files with the same options on both machines (`cere replay`)"
        );
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The second time over the first: medians in seconds, each with the ends of its 95 % interval. None where that is no number.
pub fn ratio(first: (f64, (f64, f64)), second: (f64, (f64, f64))) -> Option<Gain> {
    let (a, b) = (first.1, second.1);
    // Each holds its median with 95 %, independently.
    let gain = Gain {
        ratio: second.0 / first.0,
        low: b.0 / a.1,
        high: b.1 / a.0,
        level: 0.9,
    };
    [gain.ratio, gain.low, gain.high]
        .iter()
        .all(|r| r.is_finite() && *r > 0.0)
        .then_some(gain)
}

fn compared(records: [&Record; 2]) -> Compared {
    let name = &records[0].codelet;
    let seconds = records.map(|r| r.times.as_ref().map(|t| t.seconds_median));
    let verdict = |r: &Record| Verdict::ALL.into_iter().find(|v| v.name() == r.verdict);
    let gain = || {
        let [first, second] = records.map(|r| r.times.as_ref());
        let (first, second) = (first?, second?);
        ratio(
            (first.seconds_median, first.interval?),
            (second.seconds_median, second.interval?),
        )
    };
    let mut notes = Vec::new();
    let [a, b] = records.map(|r| &r.machine.cpu);
    if a != b {
        notes.push(format!("replayed on {a} and on {b}"));
    }
    if let Some(flags) = records[0].setting["flags"]
        .as_array()
        .filter(|f| !f.is_empty())
    {
        let words: Vec<&str> = flags.iter().filter_map(|f| f.as_str()).collect();
        notes.push(format!("with flags {}", shell_words::join(words)));
    }
    Compared {
        codelets: [vec![name.clone()], vec![records[1].codelet.clone()]],
        verdicts: records.map(|r| verdict(r).filter(|_| r.times.is_some())),
        reasons: records.map(|r| r.reason.clone()),
        seconds,
        gain: gain(),
        notes,
        ..Compared::open(name, &records[1].codelet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(sha256: &str, flags: &[&str], seconds: f64) -> Record {
        serde_json::from_value(json!({
            "codelet": "f@a.c:1:1", "region": "f@a.c:1", "sha256": sha256,
            "setting": {"flags": flags}, "machine": {"cpu": format!("cpu {seconds}")},
            "times": {"seconds_median": seconds, "interval": [0.9 * seconds, 1.1 * seconds]},
            "verdict": "exact", "reason": "",
        }))
        .unwrap()
    }

    #[test]
    fn the_last_replays_of_the_same_file_and_setting() {
        let a = [
            record("x", &[], 5.0),
            record("x", &[], 1.0),
            record("y", &[], 1.0),
        ];
        let b = [record("x", &[], 2.0), record("x", &["-O3"], 3.0)];
        let found = compare([&a, &b], &[]).unwrap();
        assert_eq!(found.len(), 1);
        let gain = found[0].gain.unwrap();
        assert!(
            (gain.ratio - 2.0).abs() < 1e-9 && gain.low < 1.7 && gain.high > 2.4,
            "{gain:?}"
        );
        assert!(found[0].is_right() && found[0].notes[0].contains("cpu 2"));
        assert!(compare([&a[2..], &b], &[]).is_err());
        assert!(compare([&a, &b], &["g".to_owned()]).is_err());
    }
}
