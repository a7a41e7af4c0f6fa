//! Compares the search methods on recorded evaluations of ten regions: which one finds good flags with few evaluations.

use crate::journal::{Trial, trials};
use crate::program::{KERNELS, geometric_mean, kernel, least};
use anyhow::{Context, Result, ensure};
use cere_format::machine::{Found, Machine, Peak};
use cere_tests::tools::{cere, json, succeed};
use cere_tune::{Method, Search, Space, Start, starts};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

const SPACE: &str = include_str!("../series/searches.toml");
/// Evaluations of all variants: `region NAME`, then a line a variant with its time over that as built, or `failed`.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/series/searches.txt");
/// Evaluations that a search may make.
const BUDGETS: [usize; 4] = [10, 20, 40, 80];
/// Searches of each kind.
const SEEDS: u64 = 100;

/// The ratio by flags of the variant; `None` if it failed.
type Table = HashMap<String, Option<f64>>;

/// The name of the region that takes the most of the run.
pub fn main_region(store: &Path) -> Result<String> {
    let mut check = cere(store);
    check.args(["check", "--json", "--rounds", "0", "--store", "."]);
    let (profile, _) = json(&mut check)?;
    let name = profile["regions"][0]["name"].as_str();
    Ok(name.context("a region")?.to_owned())
}

/// Evaluates the whole space for the main region of each kernel, and records it.
pub fn record(machine: &str) -> Result<()> {
    let mut text =
        format!("# Time over that as built (-O2) of every variant of searches.toml. {machine}\n");
    for file in KERNELS {
        let directory = tempfile::tempdir()?;
        let home = directory.path();
        kernel(file).instrumented(home, "-O2")?;
        succeed(cere(home).args(["capture", "--", "./program"]))?;
        let region = main_region(&home.join(".cere"))?;
        std::fs::write(home.join("space.toml"), SPACE)?;
        let mut command = cere(home);
        command.args(["tune", &region, "--space", "space.toml"]);
        succeed(command.args(["--search", "random", "--budget", "100000"]))?;
        let trials = trials(&home.join(".cere"))?;
        writeln!(text, "region {region}")?;
        for Trial { flags, ratio, .. } in &trials {
            match ratio {
                Some(ratio) => writeln!(text, "{ratio:.4} {flags}")?,
                None => writeln!(text, "failed {flags}")?,
            }
        }
        eprintln!("{region}: {} variants", trials.len());
    }
    std::fs::write(RECORDED, text).with_context(|| format!("cannot write {RECORDED}"))
}

fn recorded() -> Result<Vec<(String, Table)>> {
    let text =
        std::fs::read_to_string(RECORDED).with_context(|| format!("cannot read {RECORDED}"))?;
    let mut all: Vec<(String, Table)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (first, rest) = line.split_once(' ').context("two words a line")?;
        match (first, all.last_mut()) {
            ("region", _) => all.push((rest.to_owned(), Table::new())),
            (ratio, Some((_, table))) => {
                table.insert(rest.to_owned(), ratio.parse().ok());
            }
            _ => anyhow::bail!("a variant before the first region"),
        }
    }
    ensure!(!all.is_empty(), "{RECORDED} has no region");
    Ok(all)
}

/// The best ratios after each of [`BUDGETS`], over the best of all variants.
fn search(table: &Table, method: Method, starts: &[Start], seed: u64) -> Result<Vec<f64>> {
    let all: Vec<f64> = table.values().flatten().copied().collect();
    // As built is a choice as well.
    let best = least(&all).min(1.0);
    let search = Search::new(Space::parse(SPACE)?, None, method, seed)?;
    let mut search = search.starting_with(starts.iter().map(|s| &s.choices[..]));
    let (mut found, mut after) = (1.0f64, Vec::new());
    for evaluation in 1..=BUDGETS[BUDGETS.len() - 1] {
        if let Some((number, variant)) = search.propose() {
            let flags = variant.flags.join(" ");
            let ratio = *table
                .get(&flags)
                .with_context(|| format!("{flags} was not recorded"))?;
            search.tell(number, ratio);
            found = found.min(ratio.unwrap_or(1.0));
        }
        if BUDGETS.contains(&evaluation) {
            after.push(found / best);
        }
    }
    Ok(after)
}

/// What is known of the machine of the records: its widest vectors, of 256 bits, have the highest peak.
fn recorded_machine() -> Machine {
    let peak = Peak {
        name: "fma".to_owned(),
        element: "f64".to_owned(),
        bits: 256,
        cores: 1,
        flops_per_second: 1.0,
        streams: 1,
    };
    let found = Found {
        what: "peaks[0]".to_owned(),
        confidence: 1.0,
        how: String::new(),
    };
    Machine {
        peaks: vec![peak],
        found: vec![found],
        ..Machine::default()
    }
}

/// Prints the table.
pub fn run() -> Result<()> {
    let regions = recorded()?;
    let variants = regions[0].1.len();
    println!(
        "### Searches\n\nBest time found over the best of all {variants} variants, in per cent above it: geometric mean of {} regions and {SEEDS} seeds; behind it the worst region's.\n",
        regions.len()
    );
    let heads: Vec<String> = BUDGETS.iter().map(|b| format!("{b} evaluations")).collect();
    println!(
        "| search | {} |\n|---|{}",
        heads.join(" | "),
        "--:|".repeat(heads.len())
    );
    let from = starts(&recorded_machine(), &Space::parse(SPACE)?);
    let searches = [
        ("random", Method::Random, &[][..]),
        ("groups", Method::Groups, &[]),
        ("groups, from the machine", Method::Groups, &from),
    ];
    for (name, method, starts) in searches {
        // Of each region the mean after each budget.
        let mut means: Vec<Vec<f64>> = Vec::new();
        for (_, table) in &regions {
            let runs: Vec<Vec<f64>> = (0..SEEDS)
                .map(|seed| search(table, method, starts, seed))
                .collect::<Result<_>>()?;
            let after = |place: usize| runs.iter().map(|run| run[place]).collect::<Vec<f64>>();
            means.push(
                (0..BUDGETS.len())
                    .map(|place| geometric_mean(&after(place)))
                    .collect(),
            );
        }
        let cell = |place: usize| {
            let of: Vec<f64> = means.iter().map(|m| m[place]).collect();
            let worst = of.iter().copied().fold(0.0, f64::max);
            format!(
                "{:.2} ({:.2})",
                100.0 * (geometric_mean(&of) - 1.0),
                100.0 * (worst - 1.0)
            )
        };
        let cells: Vec<String> = (0..BUDGETS.len()).map(cell).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
    Ok(())
}
