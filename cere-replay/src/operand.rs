//! What of a codelet's memory can be named, and where it lies: operands whose place in the caches a replay decides.

use crate::ReplayError;
use crate::memory::{Captured, Found};
use crate::names::demangle;
use cere_format::build::LiveIn;
use cere_format::package::{Manifest, Variable};
use cere_format::replay::{CacheState, Operand, OperandMemory, PlacedOperand};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// A part of a codelet's memory that can be named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The shortest name that means it alone.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// First address.
    pub address: u64,
    /// Bytes of it in the program.
    pub size: u64,
    /// Of those, bytes that were in memory at entry on pages that the invocation touched: the others have no place in the caches.
    pub bytes: u64,
}

/// An operand that was put into its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// As it was named.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The state.
    pub state: CacheState,
    /// Bytes in that state.
    pub bytes: u64,
}

/// A name, and what says more exactly which thing of this name is meant.
#[derive(Debug, Clone)]
struct Candidate {
    spellings: Vec<String>,
    exact: String,
    kind: Kind,
    range: (u64, u64),
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
    let mut seen = std::collections::HashSet::new();
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
        at = at.next_multiple_of(align);
        found.push(at);
        at = at.checked_add(size)?;
        most = most.max(align);
    }
    Some((found, at.next_multiple_of(most)))
}

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
                .map(|(l, at)| Some((l.name.as_str(), memory.word(start + at)?)))
                .collect::<Option<Vec<_>>>()
        };
        (all == size).then(values).flatten()
    };
    let mut found: Vec<Vec<(&str, u64)>> = (8..=size).step_by(8).filter_map(read).collect();
    found.dedup();
    match found.len() {
        1 => found.remove(0),
        _ => Vec::new(),
    }
}

/// Everything that has a name.
fn candidates(manifest: &Manifest, memory: &Captured<'_>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    let own =
        |v: &&Variable| v.size > 0 && !v.name.starts_with("cere.") && !v.name.starts_with(".L");
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
        if let Some(found) = memory.around(value).filter(|_| !name.is_empty()) {
            all.push(Candidate {
                spellings: vec![name.to_owned()],
                exact: format!("argument:{name}"),
                kind: Kind::Argument,
                range: found.range,
            });
        }
    }
    all
}

/// A name, or the exact one where others share it.
fn shortest(all: &[Candidate]) -> impl Fn(&Candidate) -> String {
    let mut meant: BTreeMap<&str, u32> = BTreeMap::new();
    let spelt = all.iter().flat_map(|c| &c.spellings);
    spelt.for_each(|s| *meant.entry(s).or_default() += 1);
    let alone: std::collections::BTreeSet<String> = meant
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

/// Parses `NAME=STATE`, states as [`CacheState::name`], and `l3` where that is the last level of this machine.
pub fn parse(text: &str) -> Result<Operand, String> {
    let states = "warm, l2, llc or cold";
    let (name, state) = text
        .rsplit_once('=')
        .ok_or_else(|| format!("{text} has no state: NAME=STATE, with {states}"))?;
    let last = || cere_format::caches::of(0).last().map(|c| c.level);
    let known = CacheState::ALL.into_iter().find(|s| s.name() == state);
    let state = match known {
        Some(state) => state,
        None if state == "l3" && last() == Some(3) => CacheState::Llc,
        None => return Err(format!("{state} is no state of {name}: {states}")),
    };
    match name.trim() {
        "" => Err(format!("{text} names no operand: NAME=STATE")),
        name => Ok(Operand {
            name: name.to_owned(),
            state,
        }),
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
fn find(
    wanted: &str,
    all: &[Candidate],
    memory: &Captured<'_>,
) -> Result<(Kind, (u64, u64)), String> {
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
        [] => Err(format!(
            "it has no operand {wanted}{}: --operand list prints what can be named",
            near(all, wanted)
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|c| c.exact.as_str()).collect();
            Err(format!(
                "{wanted} names {} operands: say which with {}",
                several.len(),
                names.join(" or ")
            ))
        }
    }
}

/// Bytes of a cache line where operands meet. The replay's own processor decides what is flushed.
const LINE: u64 = 64;

/// The lines of `range`.
fn lines(range: (u64, u64)) -> (u64, u64) {
    (range.0 & !(LINE - 1), range.1.next_multiple_of(LINE))
}

/// Sentences about lines that operands with different states share at their ends. Fails if operands overlap, or if one has
/// no line of its own.
fn apart(found: &[(&Operand, (u64, u64))]) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    for (number, (one, range)) in found.iter().enumerate() {
        for (other, second) in &found[number + 1..] {
            let (a, b) = (lines(*range), lines(*second));
            let shared = (a.0.max(b.0), a.1.min(b.1));
            if one.state == other.state || shared.0 >= shared.1 {
                continue;
            }
            let names = format!("{} and {}", one.name, other.name);
            let how = match range.0 < second.1 && second.0 < range.1 {
                true => "overlap",
                false if shared == a || shared == b => "lie on the same cache line",
                // The order of the replay decides: see `cere-runtime/src/operand.rs`.
                false => {
                    let state = match [one.state, other.state].contains(&CacheState::Cold) {
                        true => CacheState::Cold,
                        false => one.state.min(other.state),
                    };
                    notes.push(format!(
                        "{names} share a cache line, which is {}",
                        state.name()
                    ));
                    continue;
                }
            };
            return Err(format!(
                "{names} {how}, and a line is in one state only: give both the same, or name one of them"
            ));
        }
    }
    Ok(notes)
}

/// Bytes of `ranges`.
fn size(ranges: &[(u64, u64)]) -> u64 {
    ranges.iter().map(|r| r.1 - r.0).sum()
}

/// Operands for the plan, and what a report says of them. The bytes of `data` and `code` are known to the replay alone.
pub struct Resolved {
    /// For [`cere_format::replay::ReplayPlan::operands`].
    pub plan: Vec<PlacedOperand>,
    /// One for each.
    pub placed: Vec<Placed>,
    /// What people should know, one sentence each.
    pub notes: Vec<String>,
}

/// Finds the memory of `operands` in an unpacked package.
pub fn resolve(
    package: &Path,
    manifest: &Manifest,
    operands: &[Operand],
) -> Result<Resolved, ReplayError> {
    let mut resolved = Resolved {
        plan: Vec::new(),
        placed: Vec::new(),
        notes: Vec::new(),
    };
    if operands.is_empty() {
        return Ok(resolved);
    }
    let wrong = |why: String| ReplayError::Operand {
        codelet: manifest.name.clone(),
        why,
    };
    let memory = Captured::open(package, manifest)?;
    let all = candidates(manifest, &memory);
    let mut named = Vec::new();
    for operand in operands {
        let twice = |p: &Placed| p.name == operand.name;
        if resolved.placed.iter().any(twice) {
            return Err(wrong(format!("{} is named twice", operand.name)));
        }
        let (kind, part) = match operand.name.as_str() {
            Operand::DATA => (Kind::Data, OperandMemory::Data),
            Operand::CODE => (Kind::Code, OperandMemory::Code),
            name => {
                let (kind, range) = find(name, &all, &memory).map_err(wrong)?;
                let parts = memory.present(range);
                if parts.is_empty() {
                    return Err(wrong(format!(
                        "{name} was not in memory at entry, or the invocation did not touch its pages: it is in no cache, and \
                         the region does not need it; leave it out"
                    )));
                }
                let (bytes, all) = (size(&parts), range.1 - range.0);
                resolved.notes.extend((bytes < all).then(|| {
                    format!(
                        "{name}: {bytes} of {all} bytes, those in memory at entry on pages that the invocation touched"
                    )
                }));
                resolved.notes.extend(beside(name, range, operand.state));
                named.push((operand, range));
                (kind, OperandMemory::Ranges(parts))
            }
        };
        resolved.placed.push(Placed {
            name: operand.name.clone(),
            kind,
            state: operand.state,
            bytes: 0,
        });
        resolved.plan.push(PlacedOperand {
            memory: part,
            state: operand.state,
        });
    }
    resolved.notes.extend(apart(&named).map_err(wrong)?);
    Ok(resolved)
}

/// A sentence about what lies beside a cold operand on its first and last lines.
fn beside(name: &str, range: (u64, u64), state: CacheState) -> Option<String> {
    let (start, end) = lines(range);
    let bytes = (range.0 - start) + (end - range.1);
    (state != CacheState::Warm && bytes > 0).then(|| {
        format!(
            "{bytes} bytes beside {name} are on its cache lines, and as it {}",
            state.name()
        )
    })
}

/// What of an unpacked package can be named, the largest first.
pub fn list(package: &Path, manifest: &Manifest) -> Result<Vec<Known>, ReplayError> {
    let memory = Captured::open(package, manifest)?;
    let all = candidates(manifest, &memory);
    let name = shortest(&all);
    let known = all.iter().map(|c| Known {
        name: name(c),
        kind: c.kind,
        address: c.range.0,
        size: c.range.1 - c.range.0,
        bytes: size(&memory.present(c.range)),
    });
    let mut known: Vec<Known> = known.filter(|k| k.bytes > 0).collect();
    known.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
    Ok(known)
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

    #[test]
    fn operands_as_they_are_written() {
        let parsed = parse("mesh::cell=l2").unwrap();
        assert_eq!(
            (parsed.name.as_str(), parsed.state),
            ("mesh::cell", CacheState::L2)
        );
        for (text, part) in [
            ("a", "no state"),
            ("=cold", "names no operand"),
            ("a=hot", "hot is no state of a: warm, l2, llc or cold"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn lines_of_two_states() {
        let operand = |name: &str, state| Operand {
            name: name.to_owned(),
            state,
        };
        let (a, b) = (
            operand("a", CacheState::Cold),
            operand("b", CacheState::Warm),
        );
        let ends = apart(&[(&a, (0, 96)), (&b, (96, 256))]).unwrap();
        assert_eq!(ends, ["a and b share a cache line, which is cold"]);
        let beside = apart(&[(&a, (0, 96)), (&b, (96, 128))]).unwrap_err();
        assert!(
            beside.starts_with("a and b lie on the same cache line"),
            "{beside}"
        );
        let inside = apart(&[(&a, (0, 128)), (&b, (8, 16))]).unwrap_err();
        assert!(inside.starts_with("a and b overlap"), "{inside}");
        let again = operand("c", CacheState::Cold);
        assert_eq!(apart(&[(&a, (0, 96)), (&again, (96, 128))]), Ok(Vec::new()));
        assert_eq!(apart(&[(&a, (0, 128)), (&b, (128, 256))]), Ok(Vec::new()));
    }
}
