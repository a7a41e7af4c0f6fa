//! What of a codelet's memory can be named, and where it lies: operands whose place in the caches a replay decides.

use crate::memory::Captured;
pub use crate::named::Kind;
use crate::named::{candidates, find, shortest};
use crate::{OperandError, ReplayError};
use cere_format::package::Manifest;
use cere_format::replay::{CacheState, Operand, OperandMemory, PlacedOperand};
use serde::{Deserialize, Serialize};
use std::path::Path;

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

/// Parses `NAME=STATE`, states as [`CacheState::name`], and `l3` where that is the last level of this machine.
pub fn parse(text: &str) -> Result<Operand, OperandError> {
    let (name, state) = text
        .rsplit_once('=')
        .ok_or_else(|| OperandError::NoState(text.to_owned()))?;
    let last = || cere_format::caches::of(0).last().map(|c| c.level);
    let known = CacheState::ALL.into_iter().find(|s| s.name() == state);
    let state = match known {
        Some(state) => state,
        None if state == "l3" && last() == Some(3) => CacheState::Llc,
        None => {
            let (name, state) = (name.to_owned(), state.to_owned());
            return Err(OperandError::State { name, state });
        }
    };
    match name.trim() {
        "" => Err(OperandError::NoName(text.to_owned())),
        name => Ok(Operand {
            name: name.to_owned(),
            state,
        }),
    }
}

/// Bytes of a cache line where operands meet. The replay's own processor decides what is flushed.
const LINE: u64 = 64;

/// The lines of `range`.
fn lines(range: (u64, u64)) -> (u64, u64) {
    (
        range.0 & !(LINE - 1),
        range.1.saturating_add(LINE - 1) & !(LINE - 1),
    )
}

/// Sentences about lines that operands with different states share at their ends. Fails if operands overlap, or if one has
/// no line of its own.
fn apart(found: &[(&Operand, (u64, u64))]) -> Result<Vec<String>, OperandError> {
    let mut notes = Vec::new();
    for (number, (one, range)) in found.iter().enumerate() {
        for (other, second) in &found[number + 1..] {
            let (a, b) = (lines(*range), lines(*second));
            let shared = (a.0.max(b.0), a.1.min(b.1));
            if one.state == other.state || shared.0 >= shared.1 {
                continue;
            }
            let how = match range.0 < second.1 && second.0 < range.1 {
                true => "overlap",
                false if shared == a || shared == b => "lie on the same cache line",
                // The order of the replay decides: see `cere-replay/runtime/src/operand.rs`.
                false => {
                    let state = match [one.state, other.state].contains(&CacheState::Cold) {
                        true => CacheState::Cold,
                        false => one.state.min(other.state),
                    };
                    notes.push(format!(
                        "{} and {} share a cache line, which is {}",
                        one.name,
                        other.name,
                        state.name()
                    ));
                    continue;
                }
            };
            return Err(OperandError::Shared {
                one: one.name.clone(),
                other: other.name.clone(),
                how,
            });
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
    let wrong = |why| ReplayError::Operand {
        codelet: manifest.name.clone(),
        why,
    };
    let memory = Captured::open(package, manifest)?;
    let all = candidates(manifest, &memory);
    let mut named = Vec::new();
    for operand in operands {
        let twice = |p: &Placed| p.name == operand.name;
        if resolved.placed.iter().any(twice) {
            return Err(wrong(OperandError::Twice(operand.name.clone())));
        }
        let (kind, part) = match operand.name.as_str() {
            Operand::DATA => (Kind::Data, OperandMemory::Data),
            Operand::CODE => (Kind::Code, OperandMemory::Code),
            name => {
                let (kind, range) = find(name, &all, &memory).map_err(wrong)?;
                let parts = memory.present(range);
                if parts.is_empty() {
                    return Err(wrong(OperandError::Untouched(name.to_owned())));
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

/// A sentence about what lies beside an operand on its first and last lines.
fn beside(name: &str, range: (u64, u64), state: CacheState) -> Option<String> {
    let (start, end) = lines(range);
    let bytes = (range.0 - start) + end.saturating_sub(range.1);
    (state != CacheState::Warm && bytes > 0).then(|| {
        format!(
            "{bytes} bytes beside {name} are on its cache lines: they are {} as well",
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
            let message = parse(text).unwrap_err().to_string();
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
        let beside = apart(&[(&a, (0, 96)), (&b, (96, 128))])
            .unwrap_err()
            .to_string();
        assert!(
            beside.starts_with("a and b lie on the same cache line"),
            "{beside}"
        );
        let inside = apart(&[(&a, (0, 128)), (&b, (8, 16))])
            .unwrap_err()
            .to_string();
        assert!(inside.starts_with("a and b overlap"), "{inside}");
        let again = operand("c", CacheState::Cold);
        assert_eq!(apart(&[(&a, (0, 96)), (&again, (96, 128))]), Ok(Vec::new()));
        assert_eq!(apart(&[(&a, (0, 128)), (&b, (128, 256))]), Ok(Vec::new()));
    }
}
