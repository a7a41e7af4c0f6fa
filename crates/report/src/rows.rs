//! The table of regions.

use super::data::Data;
use super::format::{Cell, brief, count, marked, name, share};
use super::ids::Ids;
use super::verdict;
use super::why::Why;
use cere_format::profile::RegionProfile;
use cere_measure::matching::Row as Matched;

/// Rows, at most.
const MOST: usize = 500;

/// A region in the table.
pub struct Row {
    /// Anchor of its page, if it has one.
    pub id: Option<String>,
    pub name: String,
    /// Share of the run time, self.
    pub share: Cell,
    /// Self time.
    pub own: Cell,
    /// Time with what it calls.
    pub inclusive: Cell,
    pub invocations: Cell,
    /// Performance classes.
    pub classes: Cell,
    /// The verdict in words, and the class of its colour.
    pub verdict: (&'static str, &'static str),
    /// What takes its time, in few words.
    pub cause: &'static str,
    /// Gain of the best known flags.
    pub gain: Cell,
    /// These.
    pub flags: String,
}

/// The table, and the regions that it leaves out.
pub struct Rows {
    pub rows: Vec<Row>,
    /// HTML: what is left out; empty if nothing is.
    pub more: String,
    /// Whether a cause is known.
    pub causes: bool,
}

/// The largest regions.
pub fn rows<'a>(
    data: &'a Data,
    ids: &Ids,
    classes: impl Fn(&str) -> Option<usize>,
    matched: impl Fn(&RegionProfile) -> Option<&'a Matched>,
) -> Rows {
    let regions = &data.profile.regions;
    let one = |(place, region): (usize, &RegionProfile)| {
        let id = ids.of(place);
        let classes = id.as_deref().and_then(&classes);
        row(data, region, id, classes, matched(region))
    };
    let mut largest: Vec<_> = regions.iter().enumerate().collect();
    largest.sort_by(|a, b| b.1.share.total_cmp(&a.1.share));
    let hidden = largest.split_off(largest.len().min(MOST));
    let rows: Vec<Row> = largest.into_iter().map(one).collect();
    Rows {
        more: more(&hidden),
        causes: rows.iter().any(|r| !r.cause.is_empty()),
        rows,
    }
}

fn more(hidden: &[(usize, &RegionProfile)]) -> String {
    let shares = || hidden.iter().map(|(_, region)| region.share);
    let Some(largest) = shares().max_by(f64::total_cmp) else {
        return String::new();
    };
    let least = match largest * 100.0 {
        tiny if tiny < 0.001 => "0.001".to_owned(),
        most => format!("{most:.3}"),
    };
    marked(&format!(
        "{} more regions, each of {least} % of the run time at most, take {} together: `cere regions` lists them.",
        count(hidden.len() as u64),
        share(shares().sum())
    ))
}

fn row(
    data: &Data,
    region: &RegionProfile,
    id: Option<String>,
    classes: Option<usize>,
    matched: Option<&Matched>,
) -> Row {
    let best = data.best.get(&region.key);
    let verdict = matched.and_then(|m| m.verdict);
    Row {
        id,
        name: name(&region.name),
        share: Cell::new(region.share, share),
        own: Cell::new(region.self_seconds, brief),
        inclusive: Cell::new(region.inclusive_seconds, brief),
        invocations: Cell::new(region.invocations as f64, |n| count(n as u64)),
        classes: Cell::known(classes.map(|n| n as f64), |n| format!("{n:.0}")),
        verdict: (verdict::short(verdict), verdict.map_or("", |v| v.name())),
        cause: data.why.get(&region.key).map_or("", Why::cause),
        gain: Cell::known(best.map(|b| b.gain), |g| format!("{g:.2}×")),
        flags: best.map_or_else(String::new, super::flags::Best::words),
    }
}
