//! llvm-mca, LLVM's model of processors: how it is asked about straight code, and what it prints. It knows no caches: all data
//! is in L1, and no load waits for a store.

use cere_arch::target::Target;
use cere_sandbox::Sandbox;
use cere_toolchain::command::Line;
use cere_toolchain::unit::MCA;
use serde::Deserialize;

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
