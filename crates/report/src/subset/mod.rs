//! A subset as one page: dendrogram, clusters, errors by number of clusters, programs on machines.

mod dendrogram;
mod plots;

use crate::plot::picture::{PLAIN, Picture as Drawing};
use anyhow::{Context, Result};
use askama::Template;
use cere_predict::machines::{self, OnMachine};
use cere_predict::subset::document::replay_seconds;
use cere_predict::subset::model::{self, DISAGREE};
use cere_predict::subset::validate::{ByK, Known, Ratios};
use cere_predict::subset::vectors::Vector;
use cere_predict::subset::{Measurement, Subset, archive, choose};
use cere_system::console::print::{short, time};
use plots::Pair;
use std::path::Path;

/// What the page shows.
pub struct SubsetData {
    /// The subset.
    pub subset: Subset,
    /// Its programs on machines.
    pub machines: Vec<OnMachine>,
    /// For each machine: predicted and measured seconds of its points, by their names.
    pub points: Vec<Vec<(String, f64, f64)>>,
    /// Errors by number of clusters, if machines measured all codelets.
    pub by_k: Vec<ByK>,
}

/// A picture with its file name.
pub struct Picture {
    /// File name without extension.
    pub name: String,
    /// The SVG.
    pub svg: String,
}

struct Row {
    representative: String,
    colour: usize,
    members: String,
    count: usize,
    share: String,
    replay: String,
    checks: String,
}

struct Machine {
    label: String,
    machine: String,
    programs: Vec<ProgramRow>,
    refused: Vec<String>,
    facts: Vec<String>,
    plot: String,
}

struct ProgramRow {
    name: String,
    reference: String,
    cells: [String; 3],
    covered: String,
    reason: String,
}

#[derive(Template)]
#[template(path = "subset.html")]
struct Page {
    css: &'static str,
    script: &'static str,
    version: &'static str,
    title: String,
    summary: String,
    dendrogram: String,
    rows: Vec<Row>,
    errors: String,
    by_k: Vec<[String; 10]>,
    machines: Vec<Machine>,
    metrics: String,
    dropped: Vec<(String, String)>,
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The plot of a machine: its programs if they were run there, else its points; none if neither was measured.
fn pairs(machine: &OnMachine, points: &[(String, f64, f64)]) -> Option<Drawing> {
    let programs: Vec<Pair> = machine
        .programs
        .iter()
        .filter_map(|p| {
            Some(Pair {
                name: p.name.clone(),
                predicted: p.outcome.predicted_seconds?,
                interval: p.outcome.low.zip(p.outcome.high),
                measured: p.outcome.measured_seconds?,
                colour: 1,
            })
        })
        .collect();
    if !programs.is_empty() {
        let title = format!("Predicted against measured programs on {}", machine.label);
        return plots::pairs(&programs, &title);
    }
    let points: Vec<Pair> = points
        .iter()
        .map(|(name, predicted, measured)| Pair {
            name: name.clone(),
            predicted: *predicted,
            interval: None,
            measured: *measured,
            colour: 1,
        })
        .collect();
    let title = format!("Predicted against measured points on {}", machine.label);
    plots::pairs(&points, &title)
}

/// Most numbers of clusters that errors are shown for.
const MOST: usize = 40;

impl SubsetData {
    /// Reads the archive in `file`, and what it says of `machines`. `seed`: of the random partitions.
    ///
    /// # Errors
    /// The archive cannot be read; a machine measured another subset.
    pub fn read(file: &Path, machines: &[Measurement], seed: u64) -> Result<Self> {
        let (subset, vectors) = archive::read(file)?;
        let mut predicted = Vec::new();
        let mut points = Vec::new();
        let mut whole: Vec<Ratios> = Vec::new();
        for measurement in machines {
            predicted.push(machines::predict(measurement, Some(&subset), DISAGREE)?);
            let ratios = measurement.ratios(&subset.codelets, &subset.points);
            let found = model::predict(&subset, &ratios, DISAGREE);
            let pair = |point: usize| {
                let of = &subset.points[point];
                let predicted = of.seconds * found.ratios[point]?.0;
                let measured = of.seconds * ratios[point]?.value;
                Some((subset.point_name(point), predicted, measured))
            };
            points.push((0..subset.points.len()).filter_map(pair).collect());
            let measured = ratios.iter().flatten().count();
            if measured > subset.clusters.len() {
                whole.push(ratios.iter().map(|r| Some(r.as_ref()?.value)).collect());
            }
        }
        let by_k = match whole.is_empty() {
            true => Vec::new(),
            false => by_k(&subset, &vectors, &whole, seed)?,
        };
        Ok(Self {
            subset,
            machines: predicted,
            points,
            by_k,
        })
    }

    /// All pictures, for files of their own.
    #[must_use]
    pub fn pictures(&self) -> Vec<Picture> {
        let style = style();
        let dendrogram = Some(dendrogram::plot(&self.subset));
        let errors = plots::errors(&self.by_k, self.subset.clusters.len());
        let machines = (1..).zip(self.machines.iter().zip(&self.points));
        let machines =
            machines.map(|(number, (of, points))| (format!("machine{number}"), pairs(of, points)));
        [("dendrogram", dendrogram), ("errors", errors)]
            .map(|(name, plot)| (name.to_owned(), plot))
            .into_iter()
            .chain(machines)
            .filter_map(|(name, plot)| {
                let svg = plot?.file(&style, true);
                Some(Picture { name, svg })
            })
            .collect()
    }

    fn row(&self, number: usize) -> Row {
        let subset = &self.subset;
        let cluster = &subset.clusters[number];
        let all: f64 = subset.programs.iter().map(|p| p.seconds).sum();
        let own: f64 = cluster
            .members
            .iter()
            .map(|p| subset.points[*p].seconds)
            .sum();
        let names = |points: &[usize]| {
            let names: Vec<String> = points.iter().map(|p| subset.point_name(*p)).collect();
            names.join(", ")
        };
        let replays = subset.points[cluster.representative].members.iter();
        Row {
            representative: subset.point_name(cluster.representative),
            colour: number % 10 + 1,
            members: names(&cluster.members[1..]),
            count: cluster.members.len(),
            share: percent(own / all),
            replay: time(replays.map(|m| subset.reference_seconds(m.0)).sum()),
            checks: names(&cluster.checks),
        }
    }
}

fn machine(of: &OnMachine, points: &[(String, f64, f64)]) -> Machine {
    let mut facts = Vec::new();
    if let Some(noise) = of.noise {
        facts.push(format!("noise while it measured {}", percent(noise)));
    }
    if let Some(deviation) = of.deviation {
        facts.push(format!(
            "members deviate from their representatives by {} ({} checks)",
            percent(deviation),
            of.checks
        ));
    }
    if let Some(e) = &of.point_errors {
        facts.push(format!(
            "points: median error {}, 90th percentile {}",
            percent(e.median),
            percent(e.p90)
        ));
    }
    if let Some(reduction) = of.reduction {
        facts.push(format!("reduction {reduction:.1}"));
    }
    Machine {
        label: of.label.clone(),
        machine: of.machine.describe(),
        programs: of
            .programs
            .iter()
            .map(|p| ProgramRow {
                name: p.name.clone(),
                reference: time(p.reference_seconds),
                cells: p.outcome.cells(),
                covered: percent(p.outcome.covered),
                reason: p.outcome.reason.clone().unwrap_or_default(),
            })
            .collect(),
        refused: of
            .refused
            .iter()
            .map(|r| {
                format!(
                    "{}, {} of the programs: {}",
                    r.representative,
                    time(r.seconds),
                    r.reason
                )
            })
            .collect(),
        facts,
        plot: in_page(pairs(of, points)),
    }
}

/// The page, which needs no network.
///
/// # Errors
/// The template cannot be filled.
pub fn html(data: &SubsetData) -> Result<String> {
    let subset = &data.subset;
    let names: Vec<&str> = subset.programs.iter().map(|p| p.name.as_str()).collect();
    let by_k = data.by_k.iter().map(|e| {
        [
            e.k.to_string(),
            percent(e.points.median),
            percent(e.points.p90),
            percent(e.thesis.median),
            percent(e.programs.median),
            percent(e.random[0]),
            percent(e.random[2]),
            percent(e.random_as_good),
            e.means.map_or("-".to_owned(), percent),
            format!("{:.1}", e.reduction),
        ]
    });
    let page = Page {
        css: include_str!("../../templates/report.css"),
        script: include_str!("../../templates/report.js"),
        version: env!("CARGO_PKG_VERSION"),
        title: short(&names.join(", "), 120),
        summary: format!(
            "{} points of {} programs in {} clusters; {} of {} codelets are measured; reduction {:.1} on {}",
            subset.points.len(),
            subset.programs.len(),
            subset.clusters.len(),
            subset.measured().len(),
            subset.codelets.len(),
            subset.reduction(),
            subset.machine.describe()
        ),
        dendrogram: dendrogram::plot(subset).in_page(),
        rows: (0..subset.clusters.len()).map(|c| data.row(c)).collect(),
        errors: in_page(plots::errors(&data.by_k, subset.clusters.len())),
        by_k: by_k.collect(),
        machines: data
            .machines
            .iter()
            .zip(&data.points)
            .map(|(of, points)| machine(of, points))
            .collect(),
        metrics: subset.choice.metrics.join(", "),
        dropped: subset.choice.dropped.clone(),
    };
    page.render().context("the page")
}

/// Rules of pictures in files of their own.
fn style() -> String {
    const STYLE: &str = ".strong{font-weight:700}.guide{stroke:#777;stroke-dasharray:2 4;fill:none}\
        .branch,.curve{fill:none;stroke-width:1.5}.above{stroke:#888}.band{fill:#ddd;stroke:none}.w1{stroke:#1f6feb}.w10{stroke:#888}\
        .dot{fill:#1f6feb}.whisker{stroke:#1f6feb;opacity:.5}";
    const COLOURS: [&str; 10] = [
        "#2a66c8", "#d2690a", "#1b8a55", "#8a46c4", "#c62f45", "#0c8796", "#85622f", "#c04490",
        "#6d7a12", "#55637a",
    ];
    let rule = |(number, colour)| {
        format!(".branch.k{number}{{stroke:{colour}}}text.k{number}{{fill:{colour}}}")
    };
    let rules = (1..).zip(COLOURS).map(rule);
    PLAIN.to_owned() + STYLE + &rules.collect::<String>()
}

/// A plot in the page; empty without one.
fn in_page(plot: Option<Drawing>) -> String {
    plot.map_or_else(String::new, Drawing::in_page)
}

/// Errors for at most [`MOST`] numbers of clusters.
fn by_k(subset: &Subset, vectors: &[Vector], machines: &[Ratios], seed: u64) -> Result<Vec<ByK>> {
    let names: Vec<&str> = subset.choice.metrics.iter().map(String::as_str).collect();
    let space = choose::space(&choose::rows(vectors, &names), subset.choice.scaling())?;
    let replays = replay_seconds(&subset.points, &subset.codelets);
    let known = Known {
        points: &subset.points,
        programs: subset.programs.len(),
        program_seconds: subset.programs.iter().map(|p| p.seconds).sum(),
        replay_seconds: &replays,
        machines,
    };
    let points = subset.points.len();
    let step = points.div_ceil(MOST);
    let mut all = Vec::new();
    for k in (1..=points).filter(|k| k % step == 0 || *k == 1 || *k == subset.clusters.len()) {
        all.extend(known.by_k(&space, k, seed)?);
    }
    Ok(all)
}
