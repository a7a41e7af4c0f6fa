//! The page of one region.

use super::codelet::Codelet;
use super::data::{Data, warmup_title};
use super::first::ask;
use super::flags::Best;
use super::format::{
    Cell, brief, bytes, count, error, marked, name, percent, share, time, whole_name,
};
use super::listing::Shown;
use super::source::{self, Excerpt, Room};
use super::trace;
use super::verdict;
use super::why::{self, Bar, Why};
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

/// Why a region takes its time.
pub struct Explained {
    /// HTML.
    pub sentence: String,
    /// HTML; may be empty.
    pub advice: String,
    /// What, value, source.
    pub evidence: Vec<[String; 3]>,
    /// Times if one thing were otherwise, the time as it is first; none if nothing was tried.
    pub bars: Vec<Bar>,
    /// HTML.
    pub notes: Vec<String>,
    /// Which codelet was looked at, under which flags, where.
    pub of: String,
}

impl Explained {
    fn of(found: &cere_format::explain::Explanation) -> Self {
        let evidence = found.evidence.iter();
        let flags = match found.flags.as_str() {
            "" => String::new(),
            flags => format!(" under {flags}"),
        };
        Self {
            sentence: marked(&found.sentence),
            advice: marked(&found.advice),
            evidence: evidence
                .map(|e| [e.what.clone(), e.value.clone(), e.source.clone()])
                .collect(),
            bars: match found.what_if.is_empty() {
                true => Vec::new(),
                false => why::bars(found),
            },
            notes: found.notes.iter().map(|note| marked(note)).collect(),
            of: format!("{}{flags} on {}", name(&found.codelet), found.cpu),
        }
    }
}

/// A region's page.
pub struct Section {
    /// Anchor.
    pub id: String,
    /// The whole name.
    pub name: String,
    /// Why it takes its time.
    pub why: Option<Explained>,
    /// HTML: why that is not known, and how to find out.
    pub ask: String,
    /// The best known flags: words, gain, where they come from.
    pub best: Option<(String, String, &'static str)>,
    /// Where the fastest right edit is kept.
    pub edit: Option<String>,
    /// HTML: what a replay of it is worth.
    pub verdict: String,
    /// Class of the verdict's colour.
    pub verdict_class: &'static str,
    /// Facts: label and value.
    pub facts: Vec<(&'static str, String)>,
    /// The trace, or why there is none.
    pub trace: Result<trace::Trace>,
    /// Whether it is one of many small ones that were not captured.
    pub small: bool,
    /// In place of the trace, if it would show nothing: what all invocations take.
    pub alike: String,
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
}

/// The page of the region that is number `rank` of the profile, from 0.
pub fn section(data: &Data, rank: usize, id: String, row: Option<&Matched>) -> Section {
    let region = &data.profile.regions[rank];
    let hz = data.profile.tsc_hz;
    let codelets: Vec<_> = data.codelets_of(&region.key).collect();
    let found = cere_capture::classes::of(region);
    let facts = facts(region, found.as_ref().ok(), &codelets, hz);
    let classes = found
        .as_ref()
        .map_or_else(|_| Vec::new(), |c| classes(c, &codelets, hz));
    let plot = match &found {
        Ok(found) => trace::plot(region, found, hz, rank)
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
    let short = name(&region.name);
    let why = data.why.get(&region.key);
    let best = data.best.get(&region.key);
    let refused = data.refused.get(&region.name).map(String::as_str);
    let place = data.places.get(&region.key);
    let costs = place.map(|place| source::costs(listing, &place.file));
    let small = rank >= trace::MARKED && codelets.is_empty();
    let room = if small { Room::NARROW } else { Room::WIDE };
    let alike = small && classes.len() == 1;
    Section {
        id,
        name: whole_name(&region.name),
        why: why.and_then(Why::known).map(Explained::of),
        ask: marked(&ask(why, &short, codelets.len())),
        best: best.map(|best| (best.words(), best.gained(), Best::source(best))),
        edit: data.edits.get(&region.key).map(|e| e.display().to_string()),
        verdict: marked(&verdict::sentence(row, codelets.len(), refused)),
        verdict_class: row.and_then(|r| r.verdict).map_or("", |v| v.name()),
        facts,
        trace: plot,
        small,
        alike: match alike {
            true => format!(
                "All invocations take alike: {} to {}.",
                brief(region.cycles_min as f64 / hz),
                brief(region.cycles_max as f64 / hz)
            ),
            false => String::new(),
        },
        trace_note,
        classes,
        captured: codelets.iter().map(|c| captured(c)).collect(),
        replays: records.iter().take(RECORDS).map(replay).collect(),
        energy: records.iter().any(|record| record.energy.is_some()),
        more_replays: records.len().saturating_sub(RECORDS),
        code: listing.map(Shown::of),
        source: source::excerpt(place, &costs.unwrap_or_default(), room),
    }
}

/// The facts on a region: label and value.
fn facts(
    region: &RegionProfile,
    found: Option<&Classes>,
    codelets: &[&Codelet],
    hz: f64,
) -> Vec<(&'static str, String)> {
    let seconds = |cycles: f64| brief(cycles / hz);
    let mut facts = vec![
        ("Share of run time, self", share(region.share)),
        ("Self time", brief(region.self_seconds)),
        ("Inclusive time", brief(region.inclusive_seconds)),
        ("Invocations", count(region.invocations)),
        (
            "Shortest, mean, longest",
            format!(
                "{}, {}, {}",
                seconds(region.cycles_min as f64),
                seconds(region.cycles_mean),
                seconds(region.cycles_max as f64)
            ),
        ),
    ];
    if let Some(found) = found {
        facts.push(("Performance classes", found.classes.len().to_string()));
    }
    if !codelets.is_empty() {
        let size: u64 = codelets.iter().map(|c| c.bytes).sum();
        facts.push((
            "Codelets, on disk",
            format!("{}, {}", codelets.len(), bytes(size)),
        ));
    }
    facts
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

fn classes(found: &Classes, codelets: &[&Codelet], hz: f64) -> Vec<Class> {
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

fn captured(codelet: &Codelet) -> Captured {
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
