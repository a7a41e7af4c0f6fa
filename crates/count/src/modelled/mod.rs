//! The time of a codelet on a processor that is not there, by llvm-mca's model of it: a stand-in, no measurement.
//!
//! What is executed is exact: on x86-64 by counted code, on AArch64 by counters in the code itself, which an emulator runs. What each
//! piece takes is modelled: as a loop of its own under way, with all data in the first cache, branches that are foreseen, and nothing
//! for what is called outside of the codelet.
//!
//! | module | what |
//! |---|---|
//! | [`processor`] | what is modelled, at which frequency |
//! | `counters` | counters in assembly of AArch64 |
//! | `cost` | pieces of code to cycles |
//! | `error` | why there is no time |

mod cost;
mod counters;
mod error;
pub mod processor;

pub use error::ModelError;
pub use processor::Processor;

use crate::assembly::Blocks;
use crate::codelet::Counted;
use crate::metrics::model;
use cere_arch::target::Target;
use cere_format::replay::{Repetitions, Verdict, Warmup};
use cere_replay::Options;
use cere_toolchain::io;
use cost::{Code, Piece};
use std::collections::HashSet;
use std::path::Path;

/// Cycles between two calls of code that the codelet does not hold, at least: such a call takes tens of cycles.
const BETWEEN_CALLS: f64 = 2000.0;
/// Share of the executed instructions that the model has to know.
const ENOUGH: f64 = 0.9;

/// What the model says of one invocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Modelled {
    /// Cycles.
    pub cycles: f64,
    /// Seconds, at the processor's frequency.
    pub seconds: f64,
    /// Share of the executed instructions that the model knows.
    pub coverage: f64,
    /// Functions outside of the codelet that it calls, too rarely to matter, and their calls.
    pub calls: Vec<(String, u64)>,
}

/// Models the codelet in the unpacked package `package`. `options` say how its code is made: for the architecture of `processor`,
/// and with an emulator if this machine is of another one.
///
/// # Errors
/// The codelet cannot be replayed so, or its result is another; it has several threads; the model does not know its code, or it often
/// calls code that is not its own.
pub fn model(
    package: &Path,
    processor: &Processor,
    options: &Options,
) -> Result<Modelled, ModelError> {
    let manifest = cere_replay::manifest(package)?;
    let threads = cere_replay::plan::threads(&manifest, options.settings.team.threads);
    if let Some(threads) = threads.filter(|threads| *threads > 1) {
        return Err(ModelError::Threads(threads));
    }
    let mut options = options.clone();
    std::fs::create_dir_all(&options.cache).map_err(io("create", &options.cache))?;
    options.settings.repetitions = Repetitions::exactly(1);
    options.settings.warmup = Some(Warmup::Cold);
    let scratch = tempfile::tempdir_in(&options.cache).map_err(io("write into", &options.cache))?;
    let code = match processor.target {
        Target::X86_64 => counted(package, &options)?,
        _ => {
            let (mut replay, mut code) = counters::run(package, scratch.path(), &options)?;
            if let Some(cross) = options
                .settings
                .cross
                .as_mut()
                .filter(|_| !replay.verdict.is_right())
            {
                // Contracted operations may round too far from what was captured, e.g. where numbers cancel.
                cross.split = true;
                (replay, code) = counters::run(package, scratch.path(), &options)?;
            }
            right(replay.verdict, &replay.reason)?;
            code
        }
    };
    if code.pieces.is_empty() {
        return Err(ModelError::Nothing);
    }
    let sandbox = &options.settings.sandbox;
    let cost = cost::cost(&code, processor, scratch.path(), sandbox, &manifest.name)?;
    if cost.coverage < ENOUGH {
        return Err(ModelError::Unknown {
            processor: processor.name.clone(),
            percent: 100.0 * cost.coverage,
        });
    }
    // As if the rest were like what is known.
    let cycles = cost.cycles / cost.coverage / code.invocations;
    let calls = code.calls(processor.target);
    let all: u64 = calls.iter().map(|(_, times)| times).sum();
    let between = cycles * code.invocations / all.max(1) as f64;
    if all > 0 && between < BETWEEN_CALLS {
        let names: Vec<&str> = calls
            .iter()
            .take(3)
            .map(|(name, _)| name.as_str())
            .collect();
        return Err(ModelError::Calls {
            names: names.join(", "),
            cycles: between,
        });
    }
    Ok(Modelled {
        cycles,
        seconds: cycles / processor.hertz,
        coverage: cost.coverage,
        calls,
    })
}

/// Fails if the result of what was counted is not the original's.
fn right(verdict: Verdict, reason: &str) -> Result<(), ModelError> {
    match verdict.is_right() {
        true => Ok(()),
        false => Err(ModelError::Result {
            verdict: verdict.name(),
            reason: reason.to_owned(),
        }),
    }
}

/// What runs of code for x86-64.
fn counted(package: &Path, options: &Options) -> Result<Code, ModelError> {
    let counted = Counted::new(package, options)?;
    let counts = &counted.counts;
    right(counts.verdict, &counts.reason)?;
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let assembly = cere_replay::compile::assembly(&package, &counted.manifest, options)?;
    let functions: HashSet<&str> = (counted.code.functions.iter())
        .map(|f| f.name.as_str())
        .collect();
    let mut blocks = Blocks::default();
    for text in &assembly {
        blocks.add(text, |name| functions.contains(name));
    }
    let pieces = model::pieces(&counted.code, &counted.tally.segments, &blocks);
    let piece = |piece: &model::Piece| {
        let lines = piece.lines.iter().flat_map(|text| text.lines());
        Piece::new(lines.map(str::to_owned).collect(), piece.times)
    };
    Ok(Code {
        pieces: pieces.iter().map(piece).collect(),
        executed: counted.tally.instructions(&counted.code) as f64,
        invocations: 1.0,
        functions: functions.into_iter().map(str::to_owned).collect(),
    })
}
