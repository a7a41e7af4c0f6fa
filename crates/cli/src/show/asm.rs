//! Machine code beside its source, as text and JSON.

use cere_count::listing::diff::{Change, Changed, LineDiff};
use cere_count::listing::remarks::Outcome;
use cere_count::listing::{Block, Function, Instruction, Listing, Remark, SourceLine};
use cere_report::listing::{percent, place, summary};
use cere_system::console::print::number;
use cere_system::console::{color, screen};
use std::collections::BTreeMap;

/// A codelet's listing, and what it is compared with.
pub struct Compared {
    pub before: Listing,
    /// The same under other flags, if they were given.
    pub after: Option<Listing>,
    /// What changed.
    pub changes: Option<Vec<LineDiff>>,
    /// Whether instructions that never ran are shown.
    pub all: bool,
}

/// Whether a replay ended in another state.
pub fn is_different(compared: &Compared) -> bool {
    compared.before.is_different() || compared.after.as_ref().is_some_and(Listing::is_different)
}

/// The listings for programs.
pub fn json(compared: &Compared) -> serde_json::Value {
    serde_json::json!({
        "codelet": compared.before.codelet,
        "listing": compared.before,
        "against": compared.after,
        "diff": compared.changes,
    })
}

/// The listings for people.
pub fn text(compared: &Compared) -> String {
    let listing = &compared.before;
    let mut text = format!(
        "{}: {} ({})\n",
        listing.codelet,
        color::verdict(listing.verdict),
        listing.reason
    );
    match (&compared.after, &compared.changes) {
        (Some(after), Some(changes)) => text += &differences(listing, after, changes),
        _ => text += &alone(listing, compared.all),
    }
    let after = compared.after.iter().flat_map(|after| &after.notes);
    let after = after.filter(|note| !listing.notes.contains(note));
    for note in listing.notes.iter().chain(after) {
        text += &format!("  {note}\n");
    }
    text
}

/// What it was compiled with.
fn variant(listing: &Listing) -> String {
    let flags = match listing.flags.as_str() {
        "" => "as built",
        flags => flags,
    };
    match &listing.passes {
        Some(passes) => format!("{flags}, passes {passes}"),
        None => flags.to_owned(),
    }
}

/// `  label          value` as the other commands write it.
fn line(label: &str, value: &str) -> String {
    format!("  {label:<16}{value}\n")
}

/// A remark: the place, then what was done or not.
fn remark(remark: &Remark) -> String {
    let place = place(remark.file.as_deref(), remark.line);
    let sign = match remark.outcome {
        Outcome::Done => "+",
        Outcome::Missed => "-",
    };
    format!("{sign} {place:<16} {}", remark.text)
}

/// Remarks with a heading.
fn remarks(listing: &Listing) -> String {
    if listing.remarks.is_empty() {
        return line("remarks", "none");
    }
    let rows = listing.remarks.iter();
    let rows = rows.map(|r| format!("    {}\n", remark(r)));
    "  remarks\n".to_owned() + &rows.collect::<String>()
}

/// One listing.
fn alone(listing: &Listing, all: bool) -> String {
    let mut text = line("compiled", &variant(listing));
    for (label, value) in summary(listing) {
        text += &line(label, &value);
    }
    text += &remarks(listing);
    let texts = Texts::of(&[listing]);
    for function in &listing.functions {
        text += &format!(
            "\n  {} ({}): {} of the instructions\n",
            function.name,
            function.symbol,
            percent(function.share)
        );
        text += &lines_of(function, &texts, all);
    }
    text
}

/// Columns that an instruction with its counts takes, about.
const CODE: usize = 66;
/// Minimum and maximum columns of source.
const SOURCE: (usize, usize) = (36, 72);

/// Source lines by file and number.
struct Texts<'a> {
    lines: BTreeMap<(&'a str, u32), &'a SourceLine>,
    /// Columns of source beside the code.
    width: usize,
    /// Whether there is no room beside the code, so that the source is above it.
    above: bool,
}

impl<'a> Texts<'a> {
    fn of(listings: &[&'a Listing]) -> Self {
        let lines = listings.iter().flat_map(|listing| &listing.lines);
        let key = |line: &'a SourceLine| Some(((line.file.as_deref()?, line.line?), line));
        let columns = screen::columns().unwrap_or(CODE + SOURCE.1);
        let above = columns < CODE + SOURCE.0;
        Self {
            lines: lines.filter_map(key).collect(),
            width: match above {
                true => columns,
                false => (columns - CODE).min(SOURCE.1),
            },
            above,
        }
    }

    /// The column of source for a line: number and text.
    fn cell(&self, file: Option<&str>, line: Option<u32>) -> String {
        let (Some(file), Some(number)) = (file, line) else {
            return screen::fit("      (no line)", self.width);
        };
        let known = self.lines.get(&(file, number));
        let text = known.and_then(|line| line.text.as_deref()).unwrap_or("");
        let mark = if known.is_some_and(|line| line.hottest) {
            ">"
        } else {
            " "
        };
        screen::fit(&format!("{mark}{number:>5} {text}"), self.width)
    }

    /// A row: source, then code. The source is empty in all rows of a line but the first.
    fn row(&self, source: &str, code: &str) -> String {
        let blank = self.width - screen::width(source);
        let code = code.trim_end();
        match (self.above, source.is_empty()) {
            (false, _) => format!("{source}{:blank$} | {code}\n", ""),
            (true, false) => format!("{}\n{code}\n", source.trim_end()),
            (true, true) => format!("{code}\n"),
        }
    }
}

type Line<'a> = (bool, Option<&'a str>, Option<u32>);

/// The instructions of a function by their lines.
fn lines_of(function: &Function, texts: &Texts, all: bool) -> String {
    let mut lines: BTreeMap<Line, Vec<(&Block, &Instruction)>> = BTreeMap::new();
    for (block, instruction) in function.instructions() {
        let file = instruction.file.as_deref();
        let line = (file.is_none(), file, instruction.line);
        lines.entry(line).or_default().push((block, instruction));
    }
    let mut text = String::new();
    let mut heading: Option<&str> = None;
    for ((_, file, line), instructions) in lines {
        if let Some(file) = file.filter(|file| heading != Some(*file)) {
            text += &format!("  {file}\n");
            heading = Some(file);
        }
        let mut source = texts.cell(file, line);
        for code in rows_of(&instructions, all) {
            text += &texts.row(&source, &code);
            source.clear();
        }
    }
    text
}

/// The rows of a line's instructions; those that never ran are one row in place of each run of them.
fn rows_of(instructions: &[(&Block, &Instruction)], all: bool) -> Vec<String> {
    let mut rows = Vec::new();
    let mut idle = 0;
    for (block, instruction) in instructions {
        if instruction.executions == 0 && !all {
            idle += 1;
            continue;
        }
        let mark = if block.hottest { "*" } else { " " };
        let spill = if instruction.spill { "  (spill)" } else { "" };
        rows.push(format!(
            "{:>14} {:>7} {mark} {:<4} {}{spill}",
            number(instruction.executions),
            percent(instruction.share),
            format!("b{}", block.number),
            instruction.text
        ));
    }
    if idle > 0 {
        let what = if idle == 1 {
            "instruction"
        } else {
            "instructions"
        };
        rows.push(format!("{:>14}         {idle} {what} never ran", ""));
    }
    rows
}

/// Two listings.
fn differences(before: &Listing, after: &Listing, changes: &[LineDiff]) -> String {
    let mut text = line("- compiled", &variant(before));
    text += &line("+ compiled", &variant(after));
    if after.verdict != before.verdict || after.reason != before.reason {
        let verdict = format!("{} ({})", after.verdict.name(), after.reason);
        text += &line("+ verdict", &verdict);
    }
    for (a, b) in pairs(before, after) {
        match a.1 == b.1 {
            true => text += &line(a.0, &a.1),
            false => {
                text += &line(&format!("- {}", a.0), &a.1);
                text += &line(&format!("+ {}", b.0), &b.1);
            }
        }
    }
    text += &changed_remarks(before, after);
    let texts = Texts::of(&[after, before]);
    let mut heading = ("", None);
    for change in changes.iter().filter(|c| !c.instructions.is_empty()) {
        let own = (change.function.as_str(), change.file.as_deref());
        // Instructions without a line follow those with one.
        if heading.0 != own.0 || heading.1 != own.1 && own.1.is_some() {
            let file = own.1.map_or_else(String::new, |file| format!(", {file}"));
            text += &format!("\n  {}{file}\n", own.0);
        }
        heading = own;
        let mut source = texts.cell(change.file.as_deref(), change.line);
        for code in changed_rows(change) {
            text += &texts.row(&source, &code);
            source.clear();
        }
    }
    text
}

type Row = (&'static str, String);

/// The summaries' rows, each with the other's of the same label.
fn pairs(before: &Listing, after: &Listing) -> Vec<(Row, Row)> {
    let mut after = summary(after);
    let mut pairs = Vec::new();
    for row in summary(before) {
        let other = after.iter().position(|(label, _)| *label == row.0);
        let other = other.map(|at| after.remove(at));
        let none = (row.0, "none".to_owned());
        pairs.push((row, other.unwrap_or(none)));
    }
    let left = after
        .into_iter()
        .map(|row| ((row.0, "none".to_owned()), row));
    pairs.extend(left);
    pairs
}

/// The remarks of each side that the other one lacks.
fn changed_remarks(before: &Listing, after: &Listing) -> String {
    let texts = |listing: &Listing| -> Vec<String> {
        let all = listing.remarks.iter();
        all.map(|r| format!("{} {}", place(r.file.as_deref(), r.line), r.text))
            .collect()
    };
    let (old, new) = (texts(before), texts(after));
    let gone = old.iter().filter(|text| !new.contains(text));
    let come = new.iter().filter(|text| !old.contains(text));
    let rows = gone.map(|text| format!("    - {text}\n"));
    let rows: String = rows
        .chain(come.map(|text| format!("    + {text}\n")))
        .collect();
    match rows.as_str() {
        "" => String::new(),
        rows => format!("  remarks\n{rows}"),
    }
}

/// The rows of a line; one if nothing of it changed.
fn changed_rows(line: &LineDiff) -> Vec<String> {
    let stays = |c: &Changed| c.change == Change::Same && c.before == c.after;
    if line.instructions.iter().all(stays) {
        let count = line.instructions.len();
        let what = if count == 1 {
            "instruction"
        } else {
            "instructions"
        };
        return vec![format!("  {count} {what}, the same")];
    }
    let times = |n: Option<u64>| n.map_or_else(String::new, number);
    let row = |c: &Changed| {
        let sign = match c.change {
            Change::Same => " ",
            Change::Removed => "-",
            Change::Added => "+",
        };
        format!(
            "{sign} {:>14} {:>14}  {}",
            times(c.before),
            times(c.after),
            c.text
        )
    };
    line.instructions.iter().map(row).collect()
}
