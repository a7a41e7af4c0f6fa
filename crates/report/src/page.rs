//! The whole page: totals, table of regions, tree, a page a region.

use super::curve::{self, Curve, share_at};
use super::data::{Data, warmup_title};
use super::format::{Cell, bytes, count, name, percent, time};
use super::ids::Ids;
use super::ranks::{Ranks, ranks};
use super::section::{ErrorCell, Section, section};
use super::tree;
use crate::roofline::roofs::MEMORY;
use askama::Template;
use cere_format::profile::{Profile, RegionProfile};
use cere_format::replay::Verdict;
use cere_measure::matching::{LEVELS, Row as Matched};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A figure at the top.
pub struct Total {
    pub label: String,
    pub value: String,
    /// An explanation.
    pub note: String,
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

/// A region in the table.
pub struct Row {
    /// Anchor of its page, if it has one.
    pub id: Option<String>,
    pub name: String,
    /// The same, shortened.
    pub short: String,
    /// Share of the run time, self.
    pub share: Cell,
    /// Self time.
    pub own: Cell,
    /// Time with what it calls.
    pub inclusive: Cell,
    pub invocations: Cell,
    /// Performance classes.
    pub classes: Cell,
    /// Bytes of its codelets.
    pub size: Cell,
    /// Errors, a warm-up each.
    pub errors: Vec<ErrorCell>,
    pub verdict: &'static str,
    /// `accepted`, or why not; empty if it was not compared.
    pub state: String,
    /// Whether it is accepted.
    pub accepted: bool,
}

/// The section on the machine's roof.
pub struct Roofline {
    pub plot: String,
    /// Processor whose roofs they are.
    pub machine: String,
    /// A row a point.
    pub points: Vec<RooflinePoint>,
    /// What has no point, and why.
    pub apart: Vec<String>,
}

/// A point of a roofline.
pub struct RooflinePoint {
    /// Codelet and flags.
    pub name: String,
    /// State of data and code.
    pub state: String,
    /// Operations per byte of memory traffic.
    pub intensity: Cell,
    /// Operations per second.
    pub speed: Cell,
    /// The roof that binds.
    pub bound: String,
    /// Share of it that is reached.
    pub share: Cell,
}

fn roofline(document: &crate::roofline::Document) -> Roofline {
    let point = |p: &crate::roofline::Point| RooflinePoint {
        name: match p.flags.as_str() {
            "" => p.codelet.clone(),
            flags => format!("{} {flags}", p.codelet),
        },
        state: p.state.replace(',', ", ").replace('=', " "),
        intensity: Cell::known(p.intensity.get(MEMORY).copied().flatten(), |v| {
            format!("{v:.3}")
        }),
        speed: Cell::new(p.flops_per_second, |v| {
            format!("{:.3}\u{a0}Gflop/s", v / 1e9)
        }),
        bound: p.bound_by.clone().unwrap_or_default(),
        share: Cell::known(p.share_of_roof, percent),
    };
    let apart = |a: &crate::roofline::document::Apart| format!("{}: {}", a.codelet, a.reason);
    Roofline {
        plot: crate::roofline::plot::plot(document, MEMORY),
        machine: document.machine.cpu.clone(),
        points: document.points.iter().map(point).collect(),
        apart: document.apart.iter().map(apart).collect(),
    }
}

/// The template's data.
#[derive(Template)]
#[template(path = "report.html")]
pub struct Page {
    css: &'static str,
    script: &'static str,
    version: &'static str,
    program: String,
    command: String,
    machine: String,
    measured: String,
    max_error: String,
    totals: Vec<Total>,
    notes: Vec<String>,
    curve: String,
    shares: Vec<Share>,
    warmups: Vec<&'static str>,
    rows: Vec<Row>,
    tree: Vec<tree::Row>,
    tree_hidden: usize,
    sections: Vec<Section>,
    pageless: usize,
    roofline: Option<Roofline>,
    ranks: Option<Ranks>,
}

impl Page {
    /// The page of `data`.
    pub fn new(data: &Data) -> Self {
        let profile = &data.profile;
        let ids = ids(data);
        let matched = matched(data);
        let sections = sections(data, &ids, &matched);
        let rows = rows(data, &ids, &matched, &sections);
        let (tree, tree_hidden) = tree::rows(profile, &ids);
        let times = data.records.iter().map(|r| r.when.as_str());
        Self {
            css: include_str!("../templates/report.css"),
            script: include_str!("../templates/report.js"),
            version: env!("CARGO_PKG_VERSION"),
            program: program(profile),
            command: shell_words::join(&profile.command),
            machine: data.machine.as_ref().map_or(String::new(), |m| {
                format!("{}, Linux {}, machine {}", m.cpu, m.kernel, m.id)
            }),
            measured: times
                .max()
                .map_or(String::new(), |t| t.replace('T', " ").replace('Z', " UTC")),
            max_error: format!("{:.0} %", data.max_error * 100.0),
            totals: totals(data),
            notes: data.notes.clone(),
            curve: match data.compared.is_empty() {
                true => String::new(),
                false => curve::plot(&curves(data)),
            },
            shares: shares(data),
            warmups: data
                .compared
                .iter()
                .map(|c| warmup_title(c.warmup))
                .collect(),
            pageless: rows.iter().filter(|r| r.id.is_none()).count(),
            rows,
            tree,
            tree_hidden,
            sections,
            roofline: data.roofline.as_ref().map(roofline),
            ranks: ranks(profile),
        }
    }
}

/// The name of the program: a launcher's is not meant.
fn program(profile: &Profile) -> String {
    let command = profile.command.first().map(Path::new);
    let names = [Some(profile.process.program.as_path()), command];
    let found = names.into_iter().flatten().find_map(Path::file_name);
    found.map_or("program".to_owned(), |n| n.to_string_lossy().into_owned())
}

/// The anchors of the regions' pages: all with codelets have one.
fn ids(data: &Data) -> Ids {
    let with_codelets: HashSet<_> = data.codelets.iter().map(|c| &c.manifest.key).collect();
    let regions = data.profile.regions.iter().enumerate();
    let always = regions.filter(|(_, region)| with_codelets.contains(&region.key));
    Ids::new(&data.profile, &always.map(|(place, _)| place).collect())
}

/// The comparison of each region under the default warm-up, by its name.
fn matched(data: &Data) -> HashMap<&str, &Matched> {
    let rows = data.compared.first().map(|c| &c.matching.rows);
    let rows = rows.into_iter().flatten();
    rows.map(|row| (row.name.as_str(), row)).collect()
}

/// The pages of the regions, each linked to its neighbours.
fn sections(data: &Data, ids: &Ids, matched: &HashMap<&str, &Matched>) -> Vec<Section> {
    let regions = data.profile.regions.iter().enumerate();
    let page = |(place, region): (usize, &RegionProfile)| {
        let matched = matched.get(region.name.as_str()).copied();
        Some(section(data, region, ids.of(place)?, matched))
    };
    let mut sections: Vec<Section> = regions.filter_map(page).collect();
    let link = |s: &Section| (s.id.clone(), s.name.clone());
    let links: Vec<_> = sections.iter().map(link).collect();
    for (place, section) in sections.iter_mut().enumerate() {
        section.neighbours = [
            place.checked_sub(1).and_then(|p| links.get(p).cloned()),
            links.get(place + 1).cloned(),
        ];
    }
    sections
}

/// The table of regions.
fn rows(
    data: &Data,
    ids: &Ids,
    matched: &HashMap<&str, &Matched>,
    sections: &[Section],
) -> Vec<Row> {
    let classes: HashMap<&str, usize> = sections
        .iter()
        .filter(|s| !s.classes.is_empty())
        .map(|s| (s.id.as_str(), s.classes.len()))
        .collect();
    let one = |(place, region): (usize, &RegionProfile)| {
        let id = ids.of(place);
        let classes = id.as_deref().and_then(|id| classes.get(id).copied());
        let matched = matched.get(region.name.as_str()).copied();
        row(data, place, id, classes, matched)
    };
    data.profile.regions.iter().enumerate().map(one).collect()
}

fn curves(data: &Data) -> Vec<Curve> {
    let curve = |c: &super::data::Compared| Curve {
        name: warmup_title(c.warmup),
        colour: c.colour,
        steps: c.matching.curve.clone(),
    };
    // The default comes last, above the others.
    data.compared.iter().rev().map(curve).collect()
}

fn shares(data: &Data) -> Vec<Share> {
    let share = |c: &super::data::Compared| Share {
        name: warmup_title(c.warmup),
        colour: c.colour,
        at: [0.05, 0.10, 0.15, 0.30]
            .iter()
            .map(|level| percent(share_at(&c.matching.curve, *level)))
            .collect(),
        coverage: percent(c.matching.coverage),
    };
    data.compared.iter().map(share).collect()
}

/// What all threads do, if others than the first do much.
fn other_threads(profile: &Profile) -> String {
    let (Some(share), Some(processor)) = (profile.others_at_work(), profile.processor) else {
        return String::new();
    };
    format!(
        " of the first thread; {} of the processor time of all threads inside {} regions; {} is in other threads",
        percent(processor.covered / processor.all),
        profile.over_threads.len(),
        percent(share)
    )
}

fn totals(data: &Data) -> Vec<Total> {
    let total = |label: &str, value: String, note: String| Total {
        label: label.to_owned(),
        value,
        note,
    };
    let profile = &data.profile;
    let mut totals = vec![
        total(
            "Run time",
            time(profile.seconds),
            format!(
                "{} inside {} regions{}",
                percent(profile.coverage),
                profile.regions.len(),
                match profile.mpi_seconds > 0.0 {
                    true => format!(
                        "; {} in MPI, of which shares are not",
                        time(profile.mpi_seconds)
                    ),
                    false => String::new(),
                }
            ) + &other_threads(profile),
        ),
        total(
            "Codelets",
            count(data.codelets.len() as u64),
            bytes(data.codelets.iter().map(|c| c.bytes).sum()),
        ),
    ];
    let Some(compared) = data.compared.first() else {
        return totals;
    };
    let matching = &compared.matching;
    totals.push(total(
        "Coverage",
        percent(matching.coverage),
        match matching.of_all_threads {
            Some(_) => {
                "of the processor time of all threads, by codelets with the original’s result"
            }
            None => "by codelets with the original’s result",
        }
        .to_owned(),
    ));
    for (level, share) in LEVELS.iter().zip(matching.accurate) {
        totals.push(total(
            &format!("Accurate at {:.0}\u{a0}%", level * 100.0),
            percent(share),
            "of the run time".to_owned(),
        ));
    }
    if let Some(reduction) = matching.reduction {
        totals.push(total(
            "Reduction",
            format!("{reduction:.1}×"),
            "run over one run of each accepted codelet".to_owned(),
        ));
    }
    totals
}

fn row(
    data: &Data,
    place: usize,
    id: Option<String>,
    classes: Option<usize>,
    matched: Option<&Matched>,
) -> Row {
    let region = &data.profile.regions[place];
    let codelets = || {
        data.codelets
            .iter()
            .filter(|c| c.manifest.key == region.key)
    };
    let size: u64 = codelets().map(|c| c.bytes).sum();
    let of_warmup = |c: &super::data::Compared| {
        let row = c.matching.rows.iter().find(|r| r.name == region.name);
        ErrorCell::new(row.and_then(|r| r.ratio).map(|r| r - 1.0), data.max_error)
    };
    Row {
        id,
        name: region.name.clone(),
        short: name(&region.name),
        share: Cell::new(region.share, percent),
        own: Cell::new(region.self_seconds, time),
        inclusive: Cell::new(region.inclusive_seconds, time),
        invocations: Cell::new(region.invocations as f64, |n| count(n as u64)),
        classes: Cell::known(classes.map(|n| n as f64), |n| format!("{n:.0}")),
        size: Cell::known(codelets().next().map(|_| size as f64), |n| bytes(n as u64)),
        errors: data.compared.iter().map(of_warmup).collect(),
        verdict: matched.and_then(|m| m.verdict).map_or("", Verdict::name),
        state: match matched {
            Some(m) if m.accepted => "accepted".to_owned(),
            Some(m) => m.reason.clone().unwrap_or_default(),
            None => String::new(),
        },
        accepted: matched.is_some_and(|m| m.accepted),
    }
}
