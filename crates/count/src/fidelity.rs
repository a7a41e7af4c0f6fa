//! Compares what a codelet executes with what the invocation executed inside the program, without a clock.

use crate::codelet::{Counted, Settings};
use crate::counts::{Counts, plain};
use crate::error::CountError;
use crate::vivo::Found;
use cere_format::count::Code;
use cere_memory::{Counters, Geometry};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A piece of code that is not the same, or ran a different number of times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Function.
    pub function: String,
    /// Source file; empty if not known.
    pub file: String,
    /// Line of the block's first instruction, 0 if not known.
    pub line: u32,
    /// Executions in the program.
    pub in_vivo: u64,
    /// Executions in the replay.
    pub in_vitro: u64,
}

/// Misses of a level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelMisses {
    /// Level.
    pub name: String,
    /// In the program.
    pub in_vivo: u64,
    /// In the replay, for each state of the caches at entry.
    pub in_vitro: BTreeMap<&'static str, u64>,
}

/// How a codelet compares with its invocation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fidelity {
    /// Codelet.
    pub codelet: String,
    /// Verdict on the state that the counted replay left.
    pub verdict: cere_format::replay::Verdict,
    /// Instructions in the program.
    pub in_vivo_instructions: u64,
    /// Instructions in the replay.
    pub in_vitro_instructions: u64,
    /// Whether every block has the same instructions and ran as often.
    pub same_blocks: bool,
    /// Blocks that did not, at most [`SHOWN`].
    pub differences: Vec<Difference>,
    /// Caches, nearest first.
    pub levels: Vec<LevelMisses>,
}

/// Differences that are kept.
pub const SHOWN: usize = 10;

/// Executions of each segment, and its index, by unit, function, block and number in the block.
type Blocks<'a> = BTreeMap<(&'a str, &'a str, u32, u32), (u64, usize)>;

fn blocks<'a>(code: &'a Code, counts: &[u64]) -> Blocks<'a> {
    let mut found: Blocks = BTreeMap::new();
    let mut last = (u32::MAX, u32::MAX, 0);
    for (at, (segment, times)) in code.segments.iter().zip(counts).enumerate() {
        let number = match (last.0, last.1) == (segment.function, segment.block) {
            true => last.2 + 1,
            false => 0,
        };
        last = (segment.function, segment.block, number);
        if *times > 0 {
            let function = &code.functions[segment.function as usize];
            let name = plain(&function.name);
            let key = (function.unit.as_str(), name, segment.block, number);
            let entry = found.entry(key).or_insert((0, at));
            entry.0 = entry.0.saturating_add(*times);
        }
    }
    found
}

/// Whether two segments are the same instructions.
fn same_code(a: (&Code, usize), b: (&Code, usize)) -> bool {
    let names = |(code, at): (&'_ Code, usize)| -> Vec<String> {
        let instructions = code.segments[at].instructions.iter();
        instructions.map(|i| code.name(i.name).to_owned()).collect()
    };
    names(a) == names(b)
}

/// Pieces of code that are not the same, or ran a different number of times.
#[must_use]
pub fn differences(vivo: (&Code, &[u64]), vitro: (&Code, &[u64])) -> Vec<Difference> {
    let (a, b) = (blocks(vivo.0, vivo.1), blocks(vitro.0, vitro.1));
    let keys: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let mut found = Vec::new();
    for key in keys {
        let times = |blocks: &Blocks| blocks.get(key).map_or(0, |(times, _)| *times);
        let (in_vivo, in_vitro) = (times(&a), times(&b));
        let same = match (a.get(key), b.get(key)) {
            (Some((_, x)), Some((_, y))) => same_code((vivo.0, *x), (vitro.0, *y)),
            _ => false,
        };
        if in_vivo == in_vitro && same {
            continue;
        }
        let place = match (a.get(key), b.get(key)) {
            (Some((_, at)), _) => Some((vivo.0, *at)),
            (_, Some((_, at))) => Some((vitro.0, *at)),
            _ => None,
        };
        let segment = place.map(|(code, at)| (code, &code.segments[at]));
        found.push(Difference {
            function: key.1.to_owned(),
            file: segment.map_or_else(String::new, |(code, s)| {
                code.functions[s.function as usize].file.clone()
            }),
            line: segment.map_or(0, |(_, s)| {
                s.instructions
                    .iter()
                    .map(|i| i.line)
                    .find(|l| *l > 0)
                    .unwrap_or(0)
            }),
            in_vivo,
            in_vitro,
        });
    }
    found
}

/// Compares a counted codelet with the invocation that was found in the program, whose code is `vivo`. With a geometry the
/// misses of each level as well.
///
/// # Errors
/// Two runs of the codelet differ; a count exceeds 64 bits.
pub fn compare(
    codelet: &Counted,
    vivo: &Code,
    found: &Found,
    geometry: Option<&Geometry>,
    settings: &Settings,
) -> Result<Fidelity, CountError> {
    let name = &codelet.manifest.name;
    let counts = Counts::of(name, vivo, &found.tally, &found.dynamic)?;
    let mut differences = differences(
        (vivo, &found.tally.segments),
        (&codelet.code, &codelet.tally.segments),
    );
    let same_blocks = differences.is_empty() && counts.instructions == codelet.counts.instructions;
    differences.truncate(SHOWN);
    let mut levels = Vec::new();
    if let (Some(geometry), Some(before), Some(after)) = (geometry, &found.before, &found.after) {
        let warmups = codelet.warmups(geometry, settings)?;
        let misses = |c: &Counters, at: usize| c.levels.get(at).map_or(0, |l| l.misses());
        for (at, level) in geometry.levels.iter().enumerate() {
            levels.push(LevelMisses {
                name: level.name.clone(),
                in_vivo: misses(after, at).saturating_sub(misses(before, at)),
                in_vitro: warmups
                    .iter()
                    .map(|(warmup, counters)| (*warmup, misses(counters, at)))
                    .collect(),
            });
        }
    }
    Ok(Fidelity {
        codelet: name.clone(),
        verdict: codelet.counts.verdict,
        in_vivo_instructions: counts.instructions,
        in_vitro_instructions: codelet.counts.instructions,
        same_blocks,
        differences,
        levels,
    })
}
