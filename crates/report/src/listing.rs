//! Machine code that `cere asm` listed: kept for the page, and described in words.

use super::format::count;
use anyhow::{Context, Result};
use cere_count::listing::bound::Limit;
use cere_count::listing::remarks::Outcome;
use cere_count::listing::{Bound, Function, HotLoop, Instruction, Listing};
use cere_format::store::Store;
use cere_store::state;
use cere_system::console::print::number;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the listing of a region is kept.
fn kept_at(store: &Store, unit: &str, index: u32) -> PathBuf {
    // A package may give its unit any name.
    let name = state::hash(&format!("{unit}\0{index}"));
    store.cache().join("asm").join(format!("{name}.json"))
}

/// Keeps a listing in `store`, in place of the region's last one.
///
/// # Errors
/// It cannot be written.
pub fn keep(store: &Store, listing: &Listing) -> Result<()> {
    let path = kept_at(store, &listing.unit, listing.index);
    state::write_json(&path, listing).context("the listing cannot be kept for the report")
}

/// The region's listing that was kept last; none if there is none that this version reads.
#[must_use]
pub fn kept(store: &Store, unit: &str, index: u32) -> Option<Listing> {
    let found: Listing = state::read_json(&kept_at(store, unit, index)).ok()?;
    (found.unit == unit && found.index == index).then_some(found)
}

/// `12.3 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `solve.c:12`; empty without a line.
#[must_use]
pub fn place(file: Option<&str>, line: Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
        _ => String::new(),
    }
}

/// What is said of a whole listing, as rows of a label and a value.
#[must_use]
pub fn summary(listing: &Listing) -> Vec<(&'static str, String)> {
    let mut rows = vec![("instructions", number(listing.instructions))];
    rows.push(match &listing.hottest {
        Some(hottest) => ("hottest loop", hot_loop(hottest)),
        None => ("hottest loop", "none: nothing ran in a loop".to_owned()),
    });
    if let Some(hottest) = &listing.hottest {
        rows.push(("bound", bound(hottest)));
    }
    rows.push(("vectors", vectors(listing)));
    rows.push(("spills", spills(listing)));
    rows
}

fn hot_loop(hottest: &HotLoop) -> String {
    let place = place(hottest.file.as_deref(), hottest.line);
    let place = match place.as_str() {
        "" => String::new(),
        place => format!("{place}, "),
    };
    format!(
        "{place}b{} of {}: {} iterations of {:.1} instructions, {} of all",
        hottest.header,
        hottest.function,
        number(hottest.iterations),
        hottest.per_iteration,
        percent(hottest.share)
    )
}

fn bound(hottest: &HotLoop) -> String {
    let Some(bound) = &hottest.bound else {
        return "llvm-mca knows no instruction of it".to_owned();
    };
    let path = match hottest.paths {
        true => " on the path that most take",
        false => "",
    };
    let unknown = match bound.unknown {
        0 => String::new(),
        1 => "; 1 instruction (a call, say) has no cost in the model".to_owned(),
        n => format!("; {n} instructions (calls, say) have no cost in the model"),
    };
    format!(
        "{:.2} cycles an iteration{path}, {}{unknown} (llvm-mca, {}, data in the first cache)",
        bound.cycles,
        limit(bound),
        bound.processor
    )
}

/// What an iteration waits for.
fn limit(bound: &Bound) -> String {
    match (bound.limit, &bound.unit) {
        (Limit::Dependences, _) => format!(
            "limited by waiting for results of earlier operations ({:.2} without)",
            bound.throughput_cycles
        ),
        (Limit::Unit, Some(unit)) => format!(
            "limited by the unit {unit}{}, in use {} of the time",
            unit_words(unit),
            percent(bound.unit_use)
        ),
        (Limit::Width, _) | (Limit::Unit, None) => format!(
            "limited by how many operations can begin in a cycle: an iteration has {:.1}",
            bound.uops
        ),
    }
}

/// What units do, by a part of LLVM's name of them; the first that fits counts.
const UNITS: &[(&str, &str)] = &[
    ("Div", "division"),
    ("Load", "loads"),
    ("AGU", "addresses of loads and stores"),
    ("LSU", "loads and stores"),
    ("FP45", "loads and stores of vectors"),
    ("St", "stores"),
    ("ALU", "integers"),
    ("BRU", "branches"),
    ("FP", "floating point and vectors"),
    ("Port23", "loads"),
    ("Port2", "loads"),
    ("Port3", "loads"),
    ("Port02", "loads"),
    ("Port03", "loads"),
    ("Port11", "loads"),
    ("Port4", "stores"),
    ("Port7", "addresses of stores"),
    ("Port8", "addresses of stores"),
    ("Port9", "stores"),
    ("Port", "arithmetic"),
];

/// ` (loads)`; empty for a unit that is not known.
fn unit_words(unit: &str) -> String {
    let known = UNITS.iter().find(|(part, _)| unit.contains(part));
    known.map_or_else(String::new, |(_, words)| format!(" ({words})"))
}

fn vectors(listing: &Listing) -> String {
    let vectors = &listing.vectors;
    let flops = vectors
        .flops_share
        .map(|share| format!("{} of the floating-point operations", percent(share)));
    let all = listing.instructions.max(1) as f64;
    let widths = [
        (512, vectors.bits_512),
        (256, vectors.bits_256),
        (128, vectors.bits_128),
    ];
    let widths = widths.into_iter().filter(|(_, n)| *n > 0);
    let widths: Vec<String> = widths
        .map(|(bits, n)| format!("{bits} bits {}", percent(n as f64 / all)))
        .collect();
    let registers = match widths.is_empty() {
        true => "no instruction uses whole vector registers".to_owned(),
        false => format!(
            "{} of the instructions use whole vector registers ({})",
            percent(vectors.share),
            widths.join(", ")
        ),
    };
    let parts: Vec<String> = flops.into_iter().chain([registers]).collect();
    parts.join("; ")
}

fn spills(listing: &Listing) -> String {
    let spills = &listing.spills;
    match spills.loads + spills.stores {
        0 => "none".to_owned(),
        _ => format!(
            "{} loads, {} stores: {} of the instructions",
            number(spills.loads),
            number(spills.stores),
            percent(spills.share)
        ),
    }
}

/// Rows of code that the page shows, at most.
const MOST: usize = 400;
/// Smallest share of all instructions that an instruction has which it shows.
const LEAST: f64 = 0.0005;

/// An instruction on the page.
pub struct Code {
    /// How often it ran.
    pub executions: String,
    /// Its share of all.
    pub share: String,
    /// Whether it is in the hottest loop.
    pub hottest: bool,
    /// Its text.
    pub text: String,
}

/// A line of source on the page, with its instructions.
pub struct Line {
    /// Its function and file, where they are not those of the line before.
    pub heading: Option<String>,
    /// Its number; empty without one.
    pub number: String,
    /// Its text.
    pub text: String,
    /// Whether no line executed more.
    pub hottest: bool,
    /// Its instructions that ran.
    pub code: Vec<Code>,
}

/// A remark on the page.
pub struct Said {
    /// Whether something was done.
    pub done: bool,
    /// Where.
    pub place: String,
    /// What.
    pub text: String,
}

/// A region's machine code on the page.
pub struct Shown {
    /// Label and value.
    pub summary: Vec<(&'static str, String)>,
    /// What the optimiser says.
    pub remarks: Vec<Said>,
    /// Lines with their instructions.
    pub lines: Vec<Line>,
    /// Whether lines are left out.
    pub more: bool,
}

/// Instructions by their lines, with whether they are in the hottest loop; those without a line come last.
type Lines<'a> = BTreeMap<(bool, Option<&'a str>, Option<u32>), Vec<(bool, &'a Instruction)>>;

impl Shown {
    /// What the page shows of a listing.
    #[must_use]
    pub fn of(listing: &Listing) -> Self {
        let said = listing.remarks.iter().map(|r| Said {
            done: r.outcome == Outcome::Done,
            place: place(r.file.as_deref(), r.line),
            text: r.text.clone(),
        });
        let mut shown = Self {
            summary: summary(listing),
            remarks: said.collect(),
            lines: Vec::new(),
            more: false,
        };
        let mut rows = 0;
        for function in &listing.functions {
            shown.add(listing, function, &mut rows);
        }
        shown
    }

    /// Adds the lines of a function; `rows` is how many rows there are.
    fn add(&mut self, listing: &Listing, function: &Function, rows: &mut usize) {
        let mut lines: Lines = BTreeMap::new();
        for (block, instruction) in function.instructions() {
            if instruction.share < LEAST {
                self.more |= instruction.executions > 0;
                continue;
            }
            let file = instruction.file.as_deref();
            let line = (file.is_none(), file, instruction.line);
            let own = lines.entry(line).or_default();
            own.push((block.hottest, instruction));
        }
        let mut before = None;
        for ((_, file, line), instructions) in lines {
            if *rows >= MOST {
                self.more = true;
                continue;
            }
            *rows += instructions.len() + 1;
            let known = listing
                .lines
                .iter()
                .find(|l| l.file.as_deref() == file && l.line == line);
            let heading = format!("{}, {}", function.name, file.unwrap_or("no line"));
            self.lines.push(Line {
                heading: (before != Some(file)).then_some(heading),
                number: line.map_or_else(String::new, |line| line.to_string()),
                text: known.and_then(|l| l.text.clone()).unwrap_or_default(),
                hottest: known.is_some_and(|l| l.hottest),
                code: instructions
                    .iter()
                    .map(|(hottest, i)| Code {
                        executions: count(i.executions),
                        share: percent(i.share),
                        hottest: *hottest,
                        text: i.text.clone(),
                    })
                    .collect(),
            });
            before = Some(file);
        }
    }
}
