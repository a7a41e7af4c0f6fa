//! The names of a codelet's memory: variables, arguments of the region, and what pointers lead to.

use crate::OperandError;
use crate::memory::{Captured, Found};
use crate::names::demangle;
use cere_format::build::LiveIn;
use cere_format::package::{Manifest, Variable};
use cere_format::replay::Operand;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use strsim::levenshtein;

/// What an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A variable of the program.
    Variable,
    /// What an argument of the region points to.
    Argument,
    /// What a pointer variable points to, or a block of the heap by address.
    Block,
    /// Captured pages that lie side by side, by an address in one of them, or a range of addresses.
    Range,
    /// All memory of the region.
    Data,
    /// The code that runs.
    Code,
}

impl Kind {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Variable => "variable",
            Self::Argument => "argument",
            Self::Block => "block",
            Self::Range => "range",
            Self::Data => "data",
            Self::Code => "code",
        }
    }
}

/// A name, and what says more exactly which thing of this name is meant.
#[derive(Debug, Clone)]
pub struct Candidate {
    spellings: Vec<String>,
    exact: String,
    /// What it is.
    pub kind: Kind,
    /// [start, end).
    pub range: (u64, u64),
}

/// The names of a variable: the source's with its scopes, without them, and the symbol.
fn spellings(symbol: &str) -> Vec<String> {
    let plain = demangle(symbol);
    let mut names = Vec::new();
    // flang: _QM<module>[F<procedure>]E<variable>, in lower case.
    match plain.strip_prefix("_Q") {
        Some(fortran) => {
            let parts = fortran.split(|c: char| c.is_ascii_uppercase());
            let parts: Vec<&str> = parts.filter(|p| !p.is_empty()).collect();
            names.push(parts.join("::"));
        }
        None => names.push(plain),
    }
    // A static variable of a C function is `function.variable`.
    let last = names[0].rsplit(['.', ':']).next().unwrap_or_default();
    names.push(last.to_owned());
    // A common block ends in an underscore.
    names.extend(symbol.strip_suffix('_').map(str::to_owned));
    names.push(symbol.to_owned());
    let mut seen = HashSet::new();
    names.retain(|n| !n.is_empty() && seen.insert(n.clone()));
    names
}

/// The file name of a variable's unit, or the first digits of its id; empty for a global one.
fn file(manifest: &Manifest, variable: &Variable) -> String {
    let Some(id) = &variable.unit else {
        return String::new();
    };
    let unit = manifest.units.iter().find(|u| u.id == *id);
    let name = unit.and_then(|u| Path::new(&u.source).file_name());
    name.map_or_else(
        || id.chars().take(8).collect(),
        |n| n.to_string_lossy().into_owned(),
    )
}

/// Bytes and alignment of a value of an IR type, as x86-64 lays them out.
fn layout(r#type: &str) -> Option<(u64, u64)> {
    let whole = |n: u64| (n, n);
    if let Some(bits) = r#type.strip_prefix('i') {
        let bytes = bits.parse::<u64>().ok()?.div_ceil(8);
        return (1..=16)
            .contains(&bytes)
            .then(|| whole(bytes.next_power_of_two()));
    }
    if let Some((count, of)) = r#type
        .strip_prefix('<')
        .and_then(|t| t.strip_suffix('>')?.split_once(" x "))
    {
        let bytes = count.parse::<u64>().ok()?.checked_mul(layout(of)?.0)?;
        return bytes.checked_next_power_of_two().map(whole);
    }
    match r#type {
        "ptr" | "double" => Some(whole(8)),
        "float" => Some(whole(4)),
        "half" | "bfloat" => Some(whole(2)),
        "x86_fp80" | "fp128" => Some(whole(16)),
        _ => None,
    }
}

/// Offsets of the arguments in the block of a call, behind a result of `result` bytes, and the block's size.
fn offsets(live_ins: &[LiveIn], result: u64) -> Option<(Vec<u64>, u64)> {
    let (mut at, mut most) = (result, 8);
    let mut found = Vec::new();
    for live_in in live_ins {
        let (size, align) = layout(&live_in.r#type)?;
        at = at.checked_next_multiple_of(align)?;
        found.push(at);
        at = at.checked_add(size)?;
        most = most.max(align);
    }
    Some((found, at.checked_next_multiple_of(most)?))
}

/// Bytes of a result that are considered: the registers that return one, and more.
const MOST: u64 = 1 << 12;

/// The pointers among the region's arguments with their values. The type of the result, which comes first in the block, is
/// not known: its size follows from the block's. None where that leaves a choice.
fn pointers<'a>(manifest: &'a Manifest, memory: &Captured<'_>) -> Vec<(&'a str, u64)> {
    let live_ins = &manifest.region.live_ins;
    let (start, size) = (
        manifest.entry.arguments,
        u64::from(manifest.entry.arguments_size),
    );
    let read = |result| {
        let (offsets, all) = offsets(live_ins, result)?;
        let values = || {
            let pointers = live_ins.iter().zip(&offsets);
            let pointers = pointers.filter(|(l, _)| l.r#type == "ptr" && !l.output);
            pointers
                .map(|(l, at)| Some((l.name.as_str(), memory.word(start.checked_add(*at)?)?)))
                .collect::<Option<Vec<_>>>()
        };
        (all == size).then(values).flatten()
    };
    let mut found: Vec<Vec<(&str, u64)>> =
        (8..=size.min(MOST)).step_by(8).filter_map(read).collect();
    found.dedup();
    match found.len() {
        1 => found.remove(0),
        _ => Vec::new(),
    }
}

/// Everything that has a name.
pub fn candidates(manifest: &Manifest, memory: &Captured<'_>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    let own =
        |v: &&Variable| v.size > 0 && !v.name.starts_with("cere.") && !v.name.starts_with('.');
    for variable in manifest.variables.iter().filter(own) {
        let Some(end) = variable.address.checked_add(variable.size) else {
            continue;
        };
        let spellings = spellings(&variable.name);
        let exact = format!("{}:{}", file(manifest, variable), spellings[0]);
        // A pointer names the block that it leads to as well.
        let target = (variable.size == 8)
            .then(|| memory.word(variable.address))
            .flatten();
        if let Some(Found { range, block: true }) = target.and_then(|at| memory.around(at)) {
            all.push(Candidate {
                spellings: spellings.iter().map(|s| format!("*{s}")).collect(),
                exact: format!("*{exact}"),
                kind: Kind::Block,
                range,
            });
        }
        all.push(Candidate {
            spellings,
            exact,
            kind: Kind::Variable,
            range: (variable.address, end),
        });
    }
    for (name, value) in pointers(manifest, memory) {
        let mut add = |spellings: Vec<String>, at: Option<u64>| {
            let found = at.and_then(|at| memory.around(at));
            if let Some(found) = found.filter(|_| !name.is_empty()) {
                all.push(Candidate {
                    exact: format!("argument:{}", spellings[0]),
                    spellings,
                    kind: Kind::Argument,
                    range: found.range,
                });
            }
        };
        add(vec![name.to_owned()], Some(value));
        // What a parallel region shares it gets by address: of the slot `p.addr` for a parameter `p`.
        let plain = name.strip_suffix(".addr").map(str::to_owned);
        let through = plain.into_iter().chain([format!("*{name}")]);
        add(through.collect(), memory.word(value));
    }
    all
}

/// A name, or the exact one where others share it.
pub fn shortest(all: &[Candidate]) -> impl Fn(&Candidate) -> String {
    let mut meant: BTreeMap<&str, u32> = BTreeMap::new();
    let spelt = all.iter().flat_map(|c| &c.spellings);
    spelt.for_each(|s| *meant.entry(s).or_default() += 1);
    let alone: BTreeSet<String> = meant
        .into_iter()
        .filter(|(name, times)| *times == 1 && ![Operand::DATA, Operand::CODE].contains(name))
        .map(|(name, _)| name.to_owned())
        .collect();
    move |candidate| {
        let name = &candidate.spellings[0];
        match alone.contains(name) {
            true => name.clone(),
            false => candidate.exact.clone(),
        }
    }
}

/// A number as a user writes an address: hexadecimal with 0x.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// An operand by its place: `ADDRESS`, or `ADDRESS+BYTES`.
fn by_address(text: &str, memory: &Captured<'_>) -> Option<(Kind, (u64, u64))> {
    if let Some((start, bytes)) = text.split_once('+') {
        let bytes = address(bytes).or_else(|| bytes.parse().ok())?;
        let start = address(start)?;
        return Some((Kind::Range, (start, start.checked_add(bytes)?)));
    }
    let at = address(text)?;
    let found = memory.around(at);
    let kind = match found {
        Some(Found { block: true, .. }) => Kind::Block,
        _ => Kind::Range,
    };
    Some((kind, found.map_or((at, at), |f| f.range)))
}

/// Up to three names that resemble `wanted`.
fn near(all: &[Candidate], wanted: &str) -> String {
    let score = |c: &Candidate| {
        let each = c.spellings.iter().map(|s| levenshtein(s, wanted));
        each.min()
            .filter(|changes| *changes <= 1 + wanted.chars().count() / 3)
    };
    let name = shortest(all);
    let mut scored: Vec<(usize, String)> = all
        .iter()
        .filter_map(|c| Some((score(c)?, name(c))))
        .collect();
    scored.sort();
    let names: Vec<String> = scored.into_iter().take(3).map(|s| s.1).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" (near: {})", names.join(", ")),
    }
}

/// The thing that `wanted` names; the error says what is wrong.
pub fn find(
    wanted: &str,
    all: &[Candidate],
    memory: &Captured<'_>,
) -> Result<(Kind, (u64, u64)), OperandError> {
    if let Some(found) = by_address(wanted, memory) {
        return Ok(found);
    }
    let exact = all.iter().filter(|c| c.exact == wanted);
    let mut found: Vec<&Candidate> = exact.collect();
    if found.is_empty() {
        found = all
            .iter()
            .filter(|c| c.spellings.iter().any(|s| s == wanted))
            .collect();
    }
    found.dedup_by_key(|c| c.range);
    match &found[..] {
        [only] => Ok((only.kind, only.range)),
        [] => Err(OperandError::Unknown {
            name: wanted.to_owned(),
            near: near(all, wanted),
        }),
        several => Err(OperandError::Several {
            name: wanted.to_owned(),
            exact: several.iter().map(|c| c.exact.clone()).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_the_source_has_them() {
        for (symbol, names) in [
            ("table", &["table"][..]),
            ("_QMgridEfield", &["grid::field", "field", "_QMgridEfield"]),
            (
                "_QMgridFstepEold",
                &["grid::step::old", "old", "_QMgridFstepEold"],
            ),
            ("work_", &["work_", "work"]),
            ("follow.count", &["follow.count", "count"]),
            ("_ZN4mesh4cellE", &["mesh::cell", "cell", "_ZN4mesh4cellE"]),
        ] {
            assert_eq!(spellings(symbol), names);
        }
    }

    fn live_in(r#type: &str) -> LiveIn {
        LiveIn {
            name: String::new(),
            r#type: r#type.to_owned(),
            output: false,
        }
    }

    #[test]
    fn arguments_lie_as_the_compiler_lays_them() {
        let of = |types: &[&str]| types.iter().map(|t| live_in(t)).collect::<Vec<_>>();
        assert_eq!(
            offsets(&of(&["i32", "ptr", "i8", "float"]), 8),
            Some((vec![8, 16, 24, 28], 32))
        );
        assert_eq!(
            offsets(&of(&["<4 x double>", "i1"]), 8),
            Some((vec![32, 64], 96))
        );
        assert_eq!(offsets(&of(&["{ i64, i64 }"]), 8), None);
    }
}
