//! Bytes that the captured code copies though nobody has set them: the rest of an enumeration of Rust's behind its tag, say, or a gap
//! in a structure. What they hold lay on the stack before: in vivo left by the program and its allocator, in vitro by those of the
//! replay. Two replays of the captured code with another content there show which bytes they are; a third compares all others.
//!
//! Only copies count. What the code computes of such bytes is a result, and stays one.

use crate::objects::{self, Built};
use crate::{Code, Options, Replay, ReplayError, plan, run};
use cere_format::package::{MEMBER_MANIFEST, Manifest};
use cere_format::replay::{Comparison, Differing, Repetitions, Unset, Verdict, Warmup, left_out};
use cere_toolchain::command::hash;
use cere_toolchain::io;
use std::collections::BTreeMap;
use std::path::Path;

/// What the stack holds in one run and in the other: no bit is the same.
const FILLS: [u8; 2] = [0x5a, 0xa5];

/// Compares again without the bytes that nobody set, where something differs.
pub fn judge(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    replay: &mut Replay,
    options: &Options,
) -> Result<(), ReplayError> {
    let several = plan::threads(manifest, options.settings.team.threads).is_some_and(|n| n > 1);
    let differs = |c: &Comparison| c.same_end && c.different_words > 0 && !c.typed;
    if several
        || replay.verdict != Verdict::Different
        || !replay.comparison.as_ref().is_some_and(differs)
    {
        return Ok(());
    }
    let words = match found(package, manifest, built, options) {
        Ok(words) if words.is_empty() => return Ok(()),
        Ok(words) => words,
        // The verdict stays.
        Err(error) => {
            replay.notes.push(unknown(&error));
            return Ok(());
        }
    };
    let unset = Unset { fill: None, words };
    // As it was run before: what later repetitions leave counts as well.
    let alone = Options {
        keep: None,
        keepers: None,
        ..options.clone()
    };
    let again = match run::run_unset(package, manifest, built, unset, &alone) {
        Ok((again, _)) => again,
        Err(error) => {
            replay.notes.push(unknown(&error));
            return Ok(());
        }
    };
    let right = again.verdict == Verdict::Exact;
    let Some(comparison) = again.comparison.filter(|_| right) else {
        return Ok(());
    };
    replay.repeatable = again.repeatable;
    replay.verdict = again.verdict;
    replay.reason = again.reason;
    let bytes: u64 = comparison
        .masked
        .iter()
        .filter(|m| m.reason == left_out::UNSET)
        .map(|m| m.bytes)
        .sum();
    replay.notes.push(format!(
        "{bytes} bytes hold what was never set: the captured code copies there what lay on the stack before"
    ));
    replay.comparison = Some(comparison);
    Ok(())
}

fn unknown(error: &ReplayError) -> String {
    format!("whether only bytes differ that nobody set is not known: {error}")
}

fn once(options: &Options) -> Options {
    let mut once = Options {
        keep: None,
        keepers: None,
        ..options.clone()
    };
    once.settings.repetitions = Repetitions::exactly(1);
    once.settings.warmup = Some(Warmup::Cold);
    once.settings.operands.clear();
    once.settings.compare = true;
    once
}

/// The words in which the captured code leaves such bytes.
fn found(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    options: &Options,
) -> Result<Vec<(u64, u8)>, ReplayError> {
    let mut captured = once(options);
    captured.edited.clear();
    captured.settings.flags.clear();
    captured.settings.passes = None;
    let own = built.other_code || !options.edited.is_empty();
    let here = match own {
        true => objects::build(package, manifest, &captured)?,
        false => built.clone(),
    };
    // A search meets the same question many times.
    let file = package.join(MEMBER_MANIFEST);
    let content = std::fs::read(&file).map_err(io("read", &file))?;
    let place = package.as_os_str().as_encoded_bytes();
    let executable = here.executable.as_os_str().as_encoded_bytes();
    let known = options
        .cache
        .join(format!("{}.unset", hash(&[&content, place, executable])));
    if let Some(words) = read(&known) {
        return Ok(words);
    }
    let elsewhere = Options {
        elsewhere: true,
        ..captured.clone()
    };
    let there = objects::objects(package, manifest, Code::Timed, &elsewhere)?
        .link(package, manifest, &elsewhere)?;
    let mut runs = Vec::new();
    for (built, fill) in [&here, &there].into_iter().zip(FILLS) {
        let unset = Unset {
            fill: Some(fill),
            words: Vec::new(),
        };
        let (_, differing) = run::run_unset(package, manifest, built, unset, &captured)?;
        let Some(differing) = differing else {
            return Ok(Vec::new());
        };
        runs.push(differing);
    }
    let words = copies(&runs[0], &runs[1]);
    // Without it the next question takes as long.
    let _ = serde_json::to_vec(&words).map(|text| std::fs::write(&known, text));
    Ok(words)
}

fn read(file: &Path) -> Option<Vec<(u64, u8)>> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// The bytes that are copies of what lay on the stack, by the words that differ from in vivo in two runs. None if something else differs
/// in one of them: then the captured code does not do again what it did, and nothing is known.
fn copies(first: &[Differing], second: &[Differing]) -> Vec<(u64, u8)> {
    let mut words = BTreeMap::<u64, [Option<Differing>; 2]>::new();
    for (run, all) in [first, second].into_iter().enumerate() {
        for word in all {
            words.entry(word.address).or_default()[run] = Some(*word);
        }
    }
    let masks = words.iter().map(|(address, runs)| match runs {
        [Some(a), Some(b)] => explained(a, b).map(|mask| (*address, mask)),
        _ => None,
    });
    masks.collect::<Option<_>>().unwrap_or_default()
}

/// The bytes of a word that are such copies; none if others differ too.
fn explained(a: &Differing, b: &Differing) -> Option<u8> {
    let was = a.in_vivo.to_le_bytes();
    let (x, y) = (a.in_vitro.to_le_bytes(), b.in_vitro.to_le_bytes());
    let differs = |byte: usize| x[byte] != was[byte] || y[byte] != was[byte];
    let filled = |byte: usize| x[byte] == FILLS[0] && y[byte] == FILLS[1];
    // A return address that was left there, and what has been written over its lowest bytes.
    let lowest = (0..8).find(|byte| x[*byte] != y[*byte]).unwrap_or(8);
    let moved = |byte: usize| a.code && b.code && byte >= lowest;
    let mut mask = 0;
    for byte in (0..8).filter(|byte| differs(*byte)) {
        if !(filled(byte) || moved(byte)) {
            return None;
        }
        mask |= 1 << byte;
    }
    Some(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(in_vitro: u64, code: bool) -> Differing {
        Differing {
            address: 0x1000,
            in_vivo: 3,
            in_vitro,
            code,
        }
    }

    #[test]
    fn only_copies_count() {
        let of = |a: Differing, b: Differing| copies(&[a], &[b]);
        // A tag, and what lay behind it.
        let rest = of(
            word(0x5a5a_5a5a_5a5a_5a03, false),
            word(0xa5a5_a5a5_a5a5_a503, false),
        );
        assert_eq!(rest, [(0x1000, 0xfe)]);
        // What is computed of it.
        assert!(of(word(0x5b, false), word(0xa6, false)).is_empty());
        // The same in both runs.
        assert!(of(word(7, false), word(7, false)).is_empty());
        // A return address without its lowest byte.
        let left = of(word(0x5555_5580_1203, true), word(0x5555_58b3_6c03, true));
        assert_eq!(left, [(0x1000, 0x3e)]);
        // Where one word is not explained, none is.
        let other = Differing {
            address: 0x2000,
            ..word(7, false)
        };
        let copy = [FILLS[0], FILLS[1]].map(|fill| word(u64::from_le_bytes([fill; 8]), false));
        assert!(copies(&[copy[0], other], &[copy[1], other]).is_empty());
        assert_eq!(copies(&copy[..1], &copy[1..]), [(0x1000, 0xff)]);
        assert!(of(word(0x5555_5580_1203, true), word(0x5555_58b3_6c03, false)).is_empty());
    }
}
