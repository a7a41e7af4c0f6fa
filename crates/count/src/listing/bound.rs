//! What a model of a processor bounds: the cycles of an iteration, and what is short.

use super::error::ListingError;
use crate::mca::{self, ITERATIONS, Printed, is_modelled};
use cere_arch::target::Target;
use cere_sandbox::Sandbox;
use cere_toolchain::CompileError;
use cere_toolchain::command::run_with_input;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an iteration waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// A unit of the processor.
    Unit,
    /// The number of operations that begin in a cycle.
    Width,
    /// Results of operations before.
    Dependences,
}

/// What the model says of an iteration; all data is in the first cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// LLVM's name of the processor.
    pub processor: String,
    /// Cycles of an iteration.
    pub cycles: f64,
    /// Of those, as many as would be left if nothing waited for a result.
    pub throughput_cycles: f64,
    /// Micro-operations of an iteration.
    pub uops: f64,
    /// What it waits for.
    pub limit: Limit,
    /// LLVM's name of the unit that is used most, if there is one.
    pub unit: Option<String>,
    /// Share of the cycles that it is used in.
    pub unit_use: f64,
    /// Instructions of the iteration that the model does not know: calls, returns and others.
    pub unknown: usize,
}

/// Share of the cycles that throughput has to explain, or they are waited for.
const EXPLAINED: f64 = 0.9;
/// Share of the cycles in which a unit that is short is used.
const SHORT: f64 = 0.9;

/// Asks the model of `processor` (`native` for this one) about an iteration of `lines`; none if it knows none of them.
pub fn bound(
    lines: &[&str],
    processor: &str,
    sandbox: &Sandbox,
    codelet: &str,
) -> Result<Option<Bound>, ListingError> {
    let known: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| is_modelled(Target::X86_64, line))
        .collect();
    if known.is_empty() {
        return Ok(None);
    }
    let input = mca::piece(Target::X86_64, "iteration", known.iter().copied());
    let ask = |iterations| -> Result<String, ListingError> {
        let line = mca::line(Target::X86_64, processor, iterations, sandbox).arg("-");
        let unknown = |said: &str| said.contains("is not a recognized processor");
        match run_with_input(&line, codelet, &input) {
            Err(CompileError::Compile { message, .. }) if unknown(&message) => {
                Err(ListingError::Processor(processor.to_owned()))
            }
            Ok((_, said)) if unknown(&said) => Err(ListingError::Processor(processor.to_owned())),
            other => Ok(other?.0),
        }
    };
    let [short, long] = [ask(ITERATIONS[0])?, ask(ITERATIONS[1])?];
    read([&short, &long], lines.len()).map_err(ListingError::Model)
}

/// Reads what was printed for the two numbers of [`ITERATIONS`] of an iteration of so many instructions.
fn read(printed: [&str; 2], all: usize) -> Result<Option<Bound>, String> {
    let parse = |text: &str| serde_json::from_str::<Printed>(text).map_err(|e| e.to_string());
    let (short, long) = (parse(printed[0])?, parse(printed[1])?);
    let one = |printed: &Printed| printed.code_regions.len() == 1;
    if !one(&short) || !one(&long) {
        return Err("it has no piece of code, or several".to_owned());
    }
    let region = &long.code_regions[0];
    let known = region.instructions.len();
    if known == 0 {
        return Ok(None);
    }
    let summary = &region.summary_view;
    let more = f64::from(ITERATIONS[1] - ITERATIONS[0]);
    let cycles = (summary.cycles - short.code_regions[0].summary_view.cycles).max(0.0) / more;
    let uops = summary.uops / f64::from(ITERATIONS[1]);
    let (unit, used) = busiest(&long, known);
    let unit_use = match cycles > 0.0 {
        true => (used / cycles).min(1.0),
        false => 0.0,
    };
    let limit = match () {
        () if summary.throughput < EXPLAINED * cycles => Limit::Dependences,
        () if unit_use >= SHORT => Limit::Unit,
        () if summary.width > 0.0 && uops / summary.width >= SHORT * cycles => Limit::Width,
        () => Limit::Unit,
    };
    Ok(Some(Bound {
        processor: long.target_info.processor.clone(),
        cycles,
        throughput_cycles: summary.throughput,
        uops,
        limit,
        unit,
        unit_use,
        unknown: all.saturating_sub(known),
    }))
}

/// The unit that an iteration uses longest, and how long. Several of one kind (`Zn4FP45.0`, `Zn4FP45.1`) count as one.
fn busiest(printed: &Printed, known: usize) -> (Option<String>, f64) {
    let name = |index: usize| {
        let name = printed.target_info.resources.get(index)?;
        Some(name.split('.').next().unwrap_or(name).to_owned())
    };
    let mut units: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for index in 0..printed.target_info.resources.len() {
        units.entry(name(index).unwrap_or_default()).or_default().1 += 1.0;
    }
    let usages = &printed.code_regions[0].resource_pressure_view;
    for usage in &usages.resource_pressure_info {
        // The entries of the number of instructions are those of all together.
        if usage.instruction_index == known
            && let Some(unit) = name(usage.resource_index).and_then(|name| units.get_mut(&name))
        {
            unit.0 += usage.resource_usage;
        }
    }
    let each = units
        .into_iter()
        .map(|(name, (used, number))| (name, used / number));
    let most = each.max_by(|a, b| a.1.total_cmp(&b.1));
    let (name, used) = most.filter(|(_, used)| *used > 0.0).unzip();
    (name, used.unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::{Limit, read};

    /// As llvm-mca prints it, with one use of each of two units of a kind, and of another one.
    fn printed(cycles: u32, throughput: f64, uses: [f64; 3]) -> String {
        let usages: Vec<String> = (uses.iter().enumerate())
            .map(|(unit, used)| {
                format!("{{\"InstructionIndex\": 2, \"ResourceIndex\": {unit}, \"ResourceUsage\": {used}}}")
            })
            .collect();
        format!(
            "{{\"CodeRegions\": [{{\"Name\": \"iteration\", \"Instructions\": [\"a\", \"b\"], \"SummaryView\": \
             {{\"BlockRThroughput\": {throughput}, \"TotalCycles\": {cycles}, \"TotaluOps\": 1200, \"DispatchWidth\": 4}}, \
             \"ResourcePressureView\": {{\"ResourcePressureInfo\": [{}]}}}}], \
             \"TargetInfo\": {{\"CPUName\": \"znver9\", \"Resources\": [\"Load.0\", \"Load.1\", \"FP\"]}}}}",
            usages.join(",")
        )
    }

    fn limit(cycles: u32, throughput: f64, uses: [f64; 3]) -> (f64, Limit, Option<String>) {
        let texts = [
            printed(20, throughput, uses),
            printed(20 + 200 * cycles, throughput, uses),
        ];
        let found = read([&texts[0], &texts[1]], 3).unwrap().unwrap();
        assert_eq!((found.unknown, found.uops), (1, 4.0));
        (found.cycles, found.limit, found.unit)
    }

    #[test]
    fn what_is_short() {
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(
            limit(2, 2.0, [2.0, 2.0, 0.5]),
            (2.0, Limit::Unit, some("Load"))
        );
        assert_eq!(
            limit(2, 2.0, [2.0, 0.0, 1.9]),
            (2.0, Limit::Unit, some("FP"))
        );
        assert_eq!(
            limit(1, 1.0, [0.5, 0.5, 0.6]),
            (1.0, Limit::Width, some("FP"))
        );
        assert_eq!(
            limit(8, 2.0, [2.0, 2.0, 0.5]),
            (8.0, Limit::Dependences, some("Load"))
        );
    }

    #[test]
    fn what_cannot_be_read() {
        for text in [
            "",
            "{}",
            "{\"CodeRegions\": [], \"TargetInfo\": {\"Resources\": []}}",
        ] {
            assert!(read([text, text], 1).is_err());
        }
    }
}
