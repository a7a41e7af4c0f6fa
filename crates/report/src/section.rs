//! The page of one region.

use super::data::{Data, warmup_title};
use super::format::{Cell, bytes, count, error, percent, time};
use super::listing::Shown;
use super::source::{self, Excerpt};
use super::trace;
use anyhow::{Context, Result, anyhow};
use cere_cluster::Classes;
use cere_count::listing::Listing;
use cere_format::profile::RegionProfile;
use cere_measure::matching::Row as Matched;
use cere_store::results::Record;
use cere_system::console::print;

/// Maximum number of listed records.
const RECORDS: usize = 200;

/// A performance class.
pub struct Class {
    /// Number, from 1.
    pub number: usize,
    pub invocations: String,
    /// Their share of the region's time.
    pub share: String,
    /// The invocation that represents it.
    pub medoid: String,
    /// Time of the representative.
    pub time: String,
    /// Minimum and maximum time.
    pub range: String,
    /// Whether it was captured.
    pub captured: bool,
}

/// A replay.
pub struct Replay {
    /// Invocation and class.
    pub codelet: String,
    /// The class that it represents, or 0.
    pub class: u32,
    pub warmup: &'static str,
    /// Time in the program.
    pub in_vivo: Cell,
    /// Time in the replay.
    pub in_vitro: Cell,
    /// Confidence interval of that.
    pub interval: String,
    /// Joules and watts of an invocation.
    pub energy: Cell,
    pub error: ErrorCell,
    /// Repetitions that count.
    pub samples: Cell,
    pub verdict: &'static str,
    /// Why.
    pub reason: String,
    /// The machine, if it is another one.
    pub elsewhere: bool,
    /// Date.
    pub when: String,
}

/// An error with a bar.
pub struct ErrorCell {
    /// The error.
    pub cell: Cell,
    /// `within`, `near` (up to twice the limit), `beyond` or empty.
    pub class: &'static str,
    /// Start and length of the bar, per cent of its cell.
    pub bar: Option<(String, String)>,
}

impl ErrorCell {
    /// `value` against the largest error that is accepted.
    pub fn new(value: Option<f64>, most: f64) -> Self {
        let class = match value.map(f64::abs) {
            Some(error) if error <= most => "within",
            Some(error) if error <= 2.0 * most => "near",
            Some(_) => "beyond",
            None => "",
        };
        // The bar's whole width is twice 30 %.
        let bar = value.map(|value| {
            let half = (value / 0.3).clamp(-1.0, 1.0) * 50.0;
            (
                format!("{:.1}", 50.0 + half.min(0.0)),
                format!("{:.1}", half.abs()),
            )
        });
        Self {
            cell: Cell::known(value, error),
            class,
            bar,
        }
    }
}

/// A captured invocation.
pub struct Captured {
    pub invocation: String,
    /// The class that it represents, or 0.
    pub class: u32,
    /// Captured pages.
    pub pages: String,
    /// Their bytes.
    pub memory: String,
    /// Bytes of the file.
    pub package: String,
    /// Pages of the trace before it.
    pub trace: String,
}

/// A region's page.
pub struct Section {
    /// Anchor.
    pub id: String,
    pub name: String,
    /// Facts: label and value.
    pub facts: Vec<(&'static str, String)>,
    /// Whether predictions may use it and if not, why; `None` if it was not compared.
    pub state: Option<(bool, String)>,
    /// The trace, or why there is none.
    pub trace: Result<trace::Trace>,
    /// What the trace does not show.
    pub trace_note: String,
    pub classes: Vec<Class>,
    /// Codelets.
    pub captured: Vec<Captured>,
    /// Replays, the newest first.
    pub replays: Vec<Replay>,
    /// Whether one of them measured energy.
    pub energy: bool,
    /// Number of older ones that are not listed.
    pub more_replays: usize,
    pub source: Excerpt,
    /// Its machine code, if it was listed.
    pub code: Option<Shown>,
    /// Anchors of the pages before and after, with the regions' names.
    pub neighbours: [Option<(String, String)>; 2],
}

/// The page of `region`.
pub fn section(data: &Data, region: &RegionProfile, id: String, row: Option<&Matched>) -> Section {
    let hz = data.profile.tsc_hz;
    let seconds = |cycles: f64| time(cycles / hz);
    let codelets: Vec<_> = data
        .codelets
        .iter()
        .filter(|c| c.manifest.key == region.key)
        .collect();
    let found = cere_capture::classes::of(region);
    let mut facts = vec![
        ("Share of run time, self", percent(region.share)),
        ("Self time", time(region.self_seconds)),
        ("Inclusive time", time(region.inclusive_seconds)),
        ("Invocations", count(region.invocations)),
        ("Shortest", seconds(region.cycles_min as f64)),
        ("Mean", seconds(region.cycles_mean)),
        ("Longest", seconds(region.cycles_max as f64)),
    ];
    if let Ok(found) = &found {
        facts.push(("Performance classes", found.classes.len().to_string()));
    }
    let size: u64 = codelets.iter().map(|c| c.bytes).sum();
    if !codelets.is_empty() {
        facts.push((
            "Codelets, on disk",
            format!("{}, {}", codelets.len(), bytes(size)),
        ));
    }
    let classes = found
        .as_ref()
        .map_or_else(|_| Vec::new(), |c| classes(c, &codelets, hz));
    let plot = match &found {
        Ok(found) => trace::plot(region, found, hz)
            .context("the profile kept no time of a single invocation"),
        Err(error) => Err(anyhow!("{error}")),
    };
    let trace_note = plot
        .as_ref()
        .map_or_else(|_| String::new(), |p| trace_note(p, region));
    let records: Vec<&Record> = data
        .records
        .iter()
        .filter(|r| r.unit == region.key.unit && r.index == region.key.index)
        .rev()
        .collect();
    let replay = |record: &&Record| replay(data, record);
    let of_region = |l: &&Listing| l.unit == region.key.unit && l.index == region.key.index;
    let listing = data.listings.iter().find(of_region);
    Section {
        id,
        name: match region.name.as_str() {
            "" => super::format::name(""),
            name => name.to_owned(),
        },
        facts,
        state: row.map(|row| {
            let reason = row.reason.clone().unwrap_or_default();
            (row.accepted, reason)
        }),
        trace: plot,
        trace_note,
        classes,
        captured: codelets.iter().map(|c| captured(c)).collect(),
        replays: records.iter().take(RECORDS).map(replay).collect(),
        energy: records.iter().any(|record| record.energy.is_some()),
        more_replays: records.len().saturating_sub(RECORDS),
        code: listing.map(Shown::of),
        source: source::excerpt(data.places.iter().find(|p| p.key == region.key)),
        neighbours: [None, None],
    }
}

fn trace_note(plot: &trace::Trace, region: &RegionProfile) -> String {
    let mut note = String::new();
    if (plot.kept as u64) < region.invocations {
        note = format!(
            "The profile kept the times of {} of {} invocations: the first, then a sample. ",
            count(plot.kept as u64),
            count(region.invocations)
        );
    }
    if plot.drawn < plot.kept {
        note.push_str(&format!(
            "{} points are drawn: of those of a class that nearly cover each other, one. ",
            count(plot.drawn as u64)
        ));
    }
    note
}

fn classes(found: &Classes, codelets: &[&super::data::Codelet], hz: f64) -> Vec<Class> {
    let total: f64 = found.classes.iter().map(|c| c.total).sum();
    let seconds = |cycles: u64| time(cycles as f64 / hz);
    (1..)
        .zip(&found.classes)
        .map(|(number, class)| Class {
            number,
            invocations: count(class.count),
            share: percent(class.total / total.max(f64::MIN_POSITIVE)),
            medoid: count(class.invocation),
            time: seconds(class.cycles),
            range: match class.least == class.most {
                true => seconds(class.least),
                false => format!("{} – {}", seconds(class.least), seconds(class.most)),
            },
            captured: codelets
                .iter()
                .any(|c| c.manifest.invocation == class.invocation),
        })
        .collect()
}

fn captured(codelet: &super::data::Codelet) -> Captured {
    let manifest = &codelet.manifest;
    Captured {
        invocation: count(manifest.invocation),
        class: manifest.represents.map_or(0, |r| r.class),
        pages: count(manifest.pages),
        memory: bytes(manifest.pages * manifest.page_size),
        package: bytes(codelet.bytes),
        trace: match &manifest.trace {
            Some(trace) => format!("{} pages", count(trace.pages)),
            None => "–".to_owned(),
        },
    }
}

fn replay(data: &Data, record: &Record) -> Replay {
    let codelet = data.codelets.iter().find(|c| c.sha256 == record.sha256);
    let represents = codelet.and_then(|c| c.manifest.represents);
    let times = record.times.as_ref();
    Replay {
        codelet: count(record.invocation),
        class: represents.map_or(0, |r| r.class),
        warmup: warmup_title(record.setting.warmup),
        in_vivo: Cell::known(record.in_vivo_seconds, time),
        in_vitro: Cell::known(times.map(|t| t.seconds_median), time),
        interval: times
            .and_then(|t| t.interval)
            .map_or(String::new(), |(low, high)| {
                format!("{} – {}", time(low), time(high))
            }),
        energy: Cell::known(record.energy.map(|e| e.joules), |joules| {
            let seconds = record.energy.map_or(0.0, |e| e.seconds);
            format!("{}, {:.1} W", print::joules(joules), joules / seconds)
        }),
        error: ErrorCell::new(record.ratio().map(|r| r - 1.0), data.max_error),
        samples: Cell::known(times.map(|t| t.samples as f64), |n| count(n as u64)),
        verdict: match times {
            Some(_) => record.verdict.name(),
            None => "failed",
        },
        reason: record.reason.clone(),
        elsewhere: data
            .machine
            .as_ref()
            .is_some_and(|m| m.id != record.machine.id),
        when: record
            .when
            .replace('T', " ")
            .trim_end_matches('Z')
            .to_owned(),
    }
}
