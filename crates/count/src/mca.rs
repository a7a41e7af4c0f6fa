//! llvm-mca, LLVM's model of processors: how it is asked about straight code, and what it prints. It knows no caches: all data
//! is in L1, and no load waits for a store.

use cere_arch::target::Target;
use cere_sandbox::Sandbox;
use cere_toolchain::command::{Line, run};
use cere_toolchain::unit::MCA;
use cere_toolchain::{CompileError, io};
use serde::Deserialize;
use std::cmp::Reverse;
use std::path::Path;

/// Iterations of each piece: what the second run has more of than the first takes the time that a loop takes when it is
/// under way.
pub const ITERATIONS: [u32; 2] = [100, 300];

/// The call that models a processor of an architecture for so many iterations of each piece, without its input.
#[must_use]
pub fn line(target: Target, processor: &str, iterations: u32, sandbox: &Sandbox) -> Line {
    Line::new(MCA)
        .confined(sandbox)
        .arg(format!("-mtriple={}", target.processor()))
        .args(["--json", "-instruction-info=0"])
        .arg("-skip-unsupported-instructions=any")
        .arg(format!("-mcpu={processor}"))
        .arg(format!("-iterations={iterations}"))
}

/// `lines` as a piece of its own in llvm-mca's input.
#[must_use]
pub fn piece<'a>(target: Target, name: &str, lines: impl Iterator<Item = &'a str>) -> String {
    let comment = match target {
        Target::Aarch64 => "//",
        Target::X86_64 | Target::Riscv64 => "#",
    };
    let lines: String = lines.map(|line| format!("\t{line}\n")).collect();
    format!("{comment} LLVM-MCA-BEGIN {name}\n{lines}{comment} LLVM-MCA-END\n")
}

/// Whether the model can say something of an instruction: it has no cost for calls and returns.
#[must_use]
pub fn is_modelled(target: Target, line: &str) -> bool {
    let mnemonic = line.split_whitespace().next().unwrap_or_default();
    if target == Target::Aarch64 {
        return !["bl", "blr", "ret", "retaa", "retab"].contains(&mnemonic);
    }
    !["call", "ret", "lcall", "data16", "rex64"]
        .iter()
        .any(|name| mnemonic.starts_with(name))
}

/// Leaves the pieces that execute the most, until they have `wanted` of the executed instructions, and `most` of them at most.
pub fn keep_most_executed<T>(
    pieces: &mut Vec<T>,
    executed: impl Fn(&T) -> u64,
    wanted: f64,
    most: usize,
) {
    pieces.sort_by_key(|piece| Reverse(executed(piece)));
    let mut seen = 0.0;
    let enough = pieces.iter().position(|piece| {
        seen += executed(piece) as f64;
        seen >= wanted
    });
    pieces.truncate(enough.map_or(most, |last| (last + 1).min(most)));
}

/// What it prints for both numbers of [`ITERATIONS`] of each of `pieces`, which have instructions; `directory` takes the file for it.
///
/// # Errors
/// It cannot be run, or refuses the code.
pub fn ask<'a>(
    (target, processor): (Target, &str),
    pieces: impl Iterator<Item = impl Iterator<Item = &'a str>>,
    directory: &Path,
    sandbox: &Sandbox,
    codelet: &str,
) -> Result<[String; 2], CompileError> {
    let pieces = pieces.enumerate();
    let text: String = pieces
        .map(|(number, lines)| piece(target, &format!("p{number}"), lines))
        .collect();
    let file = directory.join("pieces.s");
    std::fs::write(&file, text).map_err(io("write", &file))?;
    let ask = |iterations: u32| {
        let line = line(target, processor, iterations, sandbox).path(&file);
        run(&line, codelet)
    };
    Ok([ask(ITERATIONS[0])?, ask(ITERATIONS[1])?])
}

/// What both runs say of a piece.
pub struct Both {
    /// Its place among those that were asked about.
    pub place: usize,
    /// Cycles of an iteration that is under way.
    pub cycles: f64,
    /// The longer run.
    pub long: Region,
}

/// Reads what [`ask`] got for `count` pieces: names of the processor's units, and the pieces. The reason if that is not what is expected.
///
/// # Errors
/// See above.
pub fn both(printed: [&str; 2], count: usize) -> Result<(Vec<String>, Vec<Both>), String> {
    let parse = |text: &str| serde_json::from_str::<Printed>(text).map_err(|e| e.to_string());
    let (short, long) = (parse(printed[0])?, parse(printed[1])?);
    if short.code_regions.len() != long.code_regions.len() {
        return Err("two runs of it differ".to_owned());
    }
    let more = f64::from(ITERATIONS[1] - ITERATIONS[0]);
    let pairs = short.code_regions.iter().zip(long.code_regions);
    let pairs = pairs.map(|(short, long)| {
        let number = long.name.strip_prefix('p').and_then(|n| n.parse().ok());
        let place = number.filter(|place| *place < count);
        Ok(Both {
            place: place.ok_or_else(|| format!("a region {}", long.name))?,
            cycles: (long.summary_view.cycles - short.summary_view.cycles).max(0.0) / more,
            long,
        })
    });
    let pairs: Result<Vec<Both>, String> = pairs.collect();
    Ok((long.target_info.resources, pairs?))
}

/// What it prints.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Printed {
    /// The pieces.
    pub code_regions: Vec<Region>,
    /// The processor.
    pub target_info: Processor,
}

/// The modelled processor.
#[derive(Debug, Deserialize)]
pub struct Processor {
    /// Names of its units.
    #[serde(rename = "Resources")]
    pub resources: Vec<String>,
    /// LLVM's name of it.
    #[serde(rename = "CPUName", default)]
    pub processor: String,
}

/// A piece.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Region {
    /// Its name.
    pub name: String,
    /// The instructions that the model knows.
    pub instructions: Vec<String>,
    /// All iterations together.
    pub summary_view: Summary,
    /// Use of units.
    pub resource_pressure_view: Pressure,
}

/// All iterations together.
#[derive(Debug, Deserialize)]
pub struct Summary {
    /// Cycles of an iteration if nothing waits for a result.
    #[serde(rename = "BlockRThroughput")]
    pub throughput: f64,
    /// Cycles.
    #[serde(rename = "TotalCycles")]
    pub cycles: f64,
    /// Micro-operations.
    #[serde(rename = "TotaluOps")]
    pub uops: f64,
    /// Micro-operations that begin in a cycle, at most.
    #[serde(rename = "DispatchWidth", default)]
    pub width: f64,
}

/// Use of units.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Pressure {
    /// By instruction and unit.
    pub resource_pressure_info: Vec<Usage>,
}

/// Cycles that an instruction takes of a unit in each iteration.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Usage {
    /// Index of the instruction; their number stands for all together.
    pub instruction_index: usize,
    /// Index of the unit.
    pub resource_index: usize,
    /// Cycles.
    pub resource_usage: f64,
}

#[cfg(test)]
mod tests {
    use super::is_modelled;
    use cere_arch::target::Target::{Aarch64, X86_64};

    #[test]
    fn what_has_no_cost() {
        assert!(!is_modelled(X86_64, "callq\tmemcpy@PLT"));
        assert!(!is_modelled(X86_64, "retq"));
        assert!(is_modelled(X86_64, "jmp\tfoo"));
        assert!(is_modelled(X86_64, "vaddpd\t%ymm0, %ymm1, %ymm1"));
        assert!(!is_modelled(Aarch64, "bl\texp"));
        assert!(is_modelled(Aarch64, "b.ne\t.LBB0_1"));
    }
}
