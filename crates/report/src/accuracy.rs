//! How accurate the replays are: the last section.

use super::curve::{self, Curve, share_at};
use super::data::{Compared, Data, warmup_title};
use super::format::{bytes, count, name, percent, share};
use super::ids::Ids;
use super::section::ErrorCell;
use super::verdict;
use cere_format::replay::Verdict;
use cere_measure::matching::{LEVELS, Row as Matched};
use std::collections::HashMap;

/// A figure.
pub struct Total {
    pub label: String,
    pub value: String,
    /// An explanation.
    pub note: &'static str,
}

/// A warm-up in the table under the curve.
pub struct Share {
    pub name: &'static str,
    /// Number of its colour.
    pub colour: usize,
    /// Shares at 5, 10, 15 and 30 %.
    pub at: Vec<String>,
    /// Time covered by codelets with the original's result.
    pub coverage: String,
}

/// A region that was compared.
pub struct Row {
    pub id: Option<String>,
    pub name: String,
    /// Errors, a warm-up each.
    pub errors: Vec<ErrorCell>,
    /// In words, and the class of its colour.
    pub verdict: (&'static str, &'static str),
    /// `accepted`, or why not.
    pub state: String,
    pub accepted: bool,
}

/// The section.
pub struct Accuracy {
    pub totals: Vec<Total>,
    /// The picture; empty if nothing was compared.
    pub curve: String,
    pub shares: Vec<Share>,
    pub warmups: Vec<&'static str>,
    pub rows: Vec<Row>,
    /// The largest error that predictions use.
    pub max_error: String,
}

/// Of the comparisons in `data`.
pub fn accuracy(data: &Data, ids: &Ids) -> Accuracy {
    Accuracy {
        totals: totals(data),
        curve: match data.compared.is_empty() {
            true => String::new(),
            false => curve::plot(&curves(data)),
        },
        shares: data.compared.iter().map(of_warmup).collect(),
        warmups: data
            .compared
            .iter()
            .map(|c| warmup_title(c.warmup))
            .collect(),
        rows: rows(data, ids),
        max_error: format!("{:.0} %", data.max_error * 100.0),
    }
}

fn curves(data: &Data) -> Vec<Curve> {
    let curve = |c: &Compared| Curve {
        name: warmup_title(c.warmup),
        colour: c.colour,
        steps: c.matching.curve.clone(),
    };
    // The default comes last, above the others.
    data.compared.iter().rev().map(curve).collect()
}

fn of_warmup(compared: &Compared) -> Share {
    let at = [0.05, 0.10, 0.15, 0.30].iter();
    Share {
        name: warmup_title(compared.warmup),
        colour: compared.colour,
        at: at
            .map(|level| share(share_at(&compared.matching.curve, *level)))
            .collect(),
        coverage: share(compared.matching.coverage),
    }
}

fn totals(data: &Data) -> Vec<Total> {
    let total = |label: &str, value: String, note| Total {
        label: label.to_owned(),
        value,
        note,
    };
    let Some(compared) = data.compared.first() else {
        return Vec::new();
    };
    let matching = &compared.matching;
    let size = data.codelets.iter().map(|c| c.bytes).sum();
    let mut totals = vec![
        total(
            "Codelets",
            format!("{}, {}", count(data.codelets.len() as u64), bytes(size)),
            "captured invocations of regions",
        ),
        total(
            "Result right",
            share(matching.coverage),
            match matching.of_all_threads {
                Some(_) => "of the processor time of all threads",
                None => "of the run time",
            },
        ),
    ];
    for (level, accurate) in LEVELS.iter().zip(matching.accurate) {
        totals.push(total(
            &format!("Time within {:.0}\u{a0}%", level * 100.0),
            share(accurate),
            "of the run time",
        ));
    }
    if let Some(reduction) = matching.reduction {
        totals.push(total(
            "Quicker than the run",
            format!("{reduction:.1}×"),
            "one run of each accepted codelet",
        ));
    }
    totals
}

/// Rows of a comparison by the names of their regions.
type ByName<'a> = HashMap<&'a str, &'a Matched>;

/// The regions with codelets.
fn rows(data: &Data, ids: &Ids) -> Vec<Row> {
    let by_name: Vec<ByName> = data
        .compared
        .iter()
        .map(|c| {
            let rows = c.matching.rows.iter();
            rows.map(|r| (r.name.as_str(), r)).collect()
        })
        .collect();
    let regions = data.profile.regions.iter().enumerate();
    let row = |(place, region): (usize, &cere_format::profile::RegionProfile)| {
        let first = *by_name.first()?.get(region.name.as_str())?;
        let error = |all: &ByName| {
            let ratio = all.get(region.name.as_str()).and_then(|r| r.ratio);
            ErrorCell::new(ratio.map(|r| r - 1.0), data.max_error)
        };
        (first.verdict.is_some() || data.codelets_of(&region.key).next().is_some()).then(|| Row {
            id: ids.of(place),
            name: name(&region.name),
            errors: by_name.iter().map(error).collect(),
            verdict: (
                verdict::short(first.verdict),
                first.verdict.map_or("", Verdict::name),
            ),
            state: match first.accepted {
                true => "accepted".to_owned(),
                false => first.reason.clone().unwrap_or_default(),
            },
            accepted: first.accepted,
        })
    };
    regions.filter_map(row).collect()
}

/// The share of the run that codelets with the right result cover, in words; none if nothing was compared.
pub fn sentence(data: &Data) -> Option<String> {
    let matching = &data.compared.first()?.matching;
    Some(format!(
        "{} of the time is in regions that run alone with the right result; {} also takes the right time, within {:.0} %.",
        percent(matching.coverage.min(1.0)),
        percent(share_at(&matching.curve, data.max_error).min(1.0)),
        data.max_error * 100.0
    ))
}
