//! llvm-mca, LLVM's model of processors: how it is asked about straight code, and what it prints. It knows no caches: all data
//! is in L1, and no load waits for a store.

use cere_sandbox::Sandbox;
use cere_toolchain::command::Line;
use cere_toolchain::unit::MCA;
use serde::Deserialize;

/// Iterations of each piece: what the second run has more of than the first takes the time that a loop takes when it is
/// under way.
pub const ITERATIONS: [u32; 2] = [100, 300];

/// The call that models a processor for so many iterations of each piece, without its input.
#[must_use]
pub fn line(processor: &str, iterations: u32, sandbox: &Sandbox) -> Line {
    Line::new(MCA)
        .confined(sandbox)
        .args(["-mtriple=x86_64", "--json", "-instruction-info=0"])
        .arg("-skip-unsupported-instructions=any")
        .arg(format!("-mcpu={processor}"))
        .arg(format!("-iterations={iterations}"))
}

/// `lines` as a piece of its own in llvm-mca's input.
#[must_use]
pub fn piece<'a>(name: &str, lines: impl Iterator<Item = &'a str>) -> String {
    let lines: String = lines.map(|line| format!("\t{line}\n")).collect();
    format!("# LLVM-MCA-BEGIN {name}\n{lines}# LLVM-MCA-END\n")
}

/// Whether the model can say something of an instruction: it has no cost for calls and returns.
#[must_use]
pub fn is_modelled(line: &str) -> bool {
    let mnemonic = line.split_whitespace().next().unwrap_or_default();
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
    pub target_info: Target,
}

/// The modelled processor.
#[derive(Debug, Deserialize)]
pub struct Target {
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

    #[test]
    fn what_has_no_cost() {
        assert!(!is_modelled("callq\tmemcpy@PLT"));
        assert!(!is_modelled("retq"));
        assert!(is_modelled("jmp\tfoo"));
        assert!(is_modelled("vaddpd\t%ymm0, %ymm1, %ymm1"));
    }
}
