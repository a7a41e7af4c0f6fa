//! Two listings of a codelet, compared: which instructions of each line went, came and stayed.

use super::{Instruction, Listing};
use serde::Serialize;
use std::collections::BTreeMap;

/// What became of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is in both.
    Same,
    /// It is in the first one alone.
    Removed,
    /// It is in the second one alone.
    Added,
}

/// An instruction of either listing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// What became of it.
    pub change: Change,
    /// Its text; of the second listing if it is in both.
    pub text: String,
    /// Executions in the first; none if it is not there.
    pub before: Option<u64>,
    /// In the second.
    pub after: Option<u64>,
}

/// A line of source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LineDiff {
    /// The function.
    pub function: String,
    /// Its file; none for instructions without a line.
    pub file: Option<String>,
    /// Its number.
    pub line: Option<u32>,
    /// Its text, if it is known.
    pub text: Option<String>,
    /// Executed instructions in the first.
    pub before: u64,
    /// In the second.
    pub after: u64,
    /// Its instructions that ran.
    pub instructions: Vec<Changed>,
}

/// Instructions of a line above which those of two listings are not matched: it would take too long.
const MOST: usize = 3000;

type Key = (String, bool, Option<String>, Option<u32>);

/// The instructions that ran, by function and line, in the order of the code.
fn by_line(listing: &Listing) -> BTreeMap<Key, Vec<&Instruction>> {
    let mut found: BTreeMap<Key, Vec<&Instruction>> = BTreeMap::new();
    for function in &listing.functions {
        for (_, instruction) in function.instructions().filter(|(_, i)| i.executions > 0) {
            let name = match function.region {
                // Before all others.
                true => String::new(),
                false => function.name.clone(),
            };
            let file = instruction.file.clone();
            let key = (name, file.is_none(), file, instruction.line);
            found.entry(key).or_default().push(instruction);
        }
    }
    found
}

/// The text by which instructions are the same: labels are numbered anew in each compile.
fn normal(text: &str) -> String {
    let words = text
        .split_whitespace()
        .map(|word| match word.starts_with(".L") {
            true => word
                .split('(')
                .nth(1)
                .map_or("LABEL".to_owned(), |rest| format!("LABEL({rest}")),
            false => word.to_owned(),
        });
    words.collect::<Vec<_>>().join(" ")
}

/// The listings' lines, each with what changed.
#[must_use]
pub fn diff(before: &Listing, after: &Listing) -> Vec<LineDiff> {
    let (mut old, mut new) = (by_line(before), by_line(after));
    let mut keys: Vec<Key> = old.keys().chain(new.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    let text = |key: &Key| {
        let lines = before.lines.iter().chain(&after.lines);
        let mut lines = lines.filter(|l| l.file == key.2 && l.line == key.3);
        lines.find_map(|l| l.text.clone())
    };
    let one = |key: Key| {
        let (old, new) = (old.remove(&key), new.remove(&key));
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let sum = |all: &[&Instruction]| {
            all.iter()
                .fold(0u64, |sum, i| sum.saturating_add(i.executions))
        };
        LineDiff {
            text: text(&key),
            function: if key.0.is_empty() {
                "the region".to_owned()
            } else {
                key.0
            },
            file: key.2,
            line: key.3,
            before: sum(&old),
            after: sum(&new),
            instructions: compare(&old, &new),
        }
    };
    keys.into_iter().map(one).collect()
}

/// What changed between two runs of instructions: their longest common sequence stays.
fn compare(old: &[&Instruction], new: &[&Instruction]) -> Vec<Changed> {
    let texts = |all: &[&Instruction]| all.iter().map(|i| normal(&i.text)).collect::<Vec<_>>();
    let (a, b) = (texts(old), texts(new));
    let same = match a.len().max(b.len()) > MOST {
        true => Vec::new(),
        false => common(&a, &b),
    };
    let removed = |i: &Instruction| Changed {
        change: Change::Removed,
        text: i.text.clone(),
        before: Some(i.executions),
        after: None,
    };
    let added = |i: &Instruction| Changed {
        change: Change::Added,
        text: i.text.clone(),
        before: None,
        after: Some(i.executions),
    };
    let mut found = Vec::new();
    let (mut at, mut to) = (0, 0);
    for (x, y) in same {
        found.extend(old[at..x].iter().map(|i| removed(i)));
        found.extend(new[to..y].iter().map(|i| added(i)));
        found.push(Changed {
            change: Change::Same,
            text: new[y].text.clone(),
            before: Some(old[x].executions),
            after: Some(new[y].executions),
        });
        (at, to) = (x + 1, y + 1);
    }
    found.extend(old[at..].iter().map(|i| removed(i)));
    found.extend(new[to..].iter().map(|i| added(i)));
    found
}

/// The positions of a longest common sequence.
fn common(a: &[String], b: &[String]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    // The length for what begins at each pair of positions.
    let mut lengths = vec![0u16; (a.len() + 1) * width];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            lengths[x * width + y] = match a[x] == b[y] {
                true => lengths[(x + 1) * width + y + 1] + 1,
                false => lengths[(x + 1) * width + y].max(lengths[x * width + y + 1]),
            };
        }
    }
    let mut found = Vec::new();
    let (mut x, mut y) = (0, 0);
    while x < a.len() && y < b.len() {
        if a[x] == b[y] {
            found.push((x, y));
            (x, y) = (x + 1, y + 1);
        } else if lengths[(x + 1) * width + y] >= lengths[x * width + y + 1] {
            x += 1;
        } else {
            y += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Instruction;
    use super::{Change, compare};

    fn instruction(text: &str, executions: u64) -> Instruction {
        Instruction {
            text: text.to_owned(),
            name: String::new(),
            file: None,
            line: None,
            executions,
            share: 0.0,
            spill: false,
        }
    }

    fn changes(old: &[&str], new: &[&str]) -> String {
        let [old, new] = [(old, 5), (new, 7)].map(|(texts, times)| {
            let texts = texts.iter();
            texts
                .map(|text| instruction(text, times))
                .collect::<Vec<_>>()
        });
        let all = compare(
            &old.iter().collect::<Vec<_>>(),
            &new.iter().collect::<Vec<_>>(),
        );
        let sign = |change: Change| match change {
            Change::Same => ' ',
            Change::Removed => '-',
            Change::Added => '+',
        };
        let rows = all.iter().map(|c| format!("{}{}", sign(c.change), c.text));
        rows.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn what_changed() {
        assert_eq!(changes(&["a", "b", "c"], &["a", "x", "c"]), " a|-b|+x| c");
        assert_eq!(changes(&[], &["a"]), "+a");
        assert_eq!(changes(&["a"], &[]), "-a");
        // Labels have other numbers.
        assert_eq!(
            changes(
                &["jne\t.LBB0_2", "addsd .LCPI0_1(%rip), %xmm0"],
                &["jne\t.LBB0_9", "addsd .LCPI3_1(%rip), %xmm0"]
            ),
            " jne\t.LBB0_9| addsd .LCPI3_1(%rip), %xmm0"
        );
        assert_eq!(
            changes(
                &["addsd .LCPI0_1(%rip), %xmm0"],
                &["addsd .LCPI3_1(%rip), %xmm1"]
            )
            .matches('+')
            .count(),
            1
        );
    }

    #[test]
    fn long_runs_are_not_matched() {
        let many = vec!["a"; 3001];
        let found = changes(&many, &["a"]);
        assert_eq!(found.matches('-').count(), 3001);
        assert!(found.ends_with("+a"));
    }
}
