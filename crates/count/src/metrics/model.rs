//! Cycles and ports of the executed code under a model of a processor, by llvm-mca. The model is one for all machines, so that
//! vectors of different machines can be compared. It knows straight pieces of code, each in a loop of its own, and no caches:
//! all data is in L1, and no load waits for a store.

use crate::accesses;
use crate::assembly::Blocks;
use crate::class::Float;
use crate::codelet::Counted;
use crate::counts::Work;
use crate::mca::{self, Both, ITERATIONS, is_modelled};
use crate::metrics::error::MetricsError;
use crate::metrics::values::Values;
use cere_arch::target::Target;
use cere_format::count::{BLOCK, CONDITIONAL, Code, LOAD, STORE, Shape};
use cere_sandbox::Sandbox;
use std::collections::HashSet;
use std::path::Path;

/// LLVM's name of the model: Intel Ice Lake. That of Sapphire Rapids does not know that a register combined with itself depends
/// on nothing, so that each conversion and each gather becomes a chain.
pub const PROCESSOR: &str = "icelake-server";
/// Ports of the model.
const PORTS: usize = 10;
/// The unit of floating-point division.
const DIVIDER: &str = "ICXFPDivider";
/// Share of the executed instructions that is looked for.
const WANTED: f64 = 0.999;
/// Share of them that the model has to know, or nothing is said.
const ENOUGH: f64 = 0.9;
/// Share of them that may be arithmetic of the x87 unit, whose dependences its text does not tell.
const MOST_X87: f64 = 0.01;
/// Pieces, at most.
const MOST: usize = 1000;

/// A straight piece of code: a block up to its first conditional branch, or what follows that.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    pub lines: Vec<&'a str>,
    pub times: u64,
    /// Executed instructions, calls and returns among them.
    executed: u64,
    /// Bytes that one execution loads and stores, by accesses of fixed size.
    bytes: [u64; 2],
}

/// The lines of a piece that the model can say something of.
fn modelled<'a>(piece: &'a Piece) -> impl Iterator<Item = &'a str> {
    let lines = piece.lines.iter().flat_map(|text| text.lines());
    lines.filter(|line| is_modelled(Target::X86_64, line))
}

/// The executed pieces whose text is known, as they follow one another.
pub(crate) fn pieces<'a>(code: &Code, times: &[u64], blocks: &'a Blocks) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    for function in &code.functions {
        let (first, end) = function.segments;
        let mut at = first as usize;
        while at < end as usize {
            let block = code.segments[at].block;
            let next = (at + 1..end as usize)
                .find(|i| code.segments[*i].is(BLOCK))
                .unwrap_or(end as usize);
            let text = blocks.get(&function.name, block);
            let size: usize = code.segments[at..next]
                .iter()
                .map(|s| s.instructions.len())
                .sum();
            // Where one instruction is printed as several, which is which is not known.
            let text = text.map(|block| &block.instructions[..]);
            if let Some(text) = text.filter(|text| text.len() == size) {
                let mut rest = text;
                let mut open: Option<Piece> = None;
                for (segment, &times) in code.segments[at..next].iter().zip(&times[at..next]) {
                    let (own, after) = rest.split_at(segment.instructions.len());
                    rest = after;
                    let piece = open.get_or_insert(Piece {
                        lines: Vec::new(),
                        times,
                        executed: 0,
                        bytes: [0; 2],
                    });
                    for access in &segment.accesses {
                        let instruction = &segment.instructions[usize::from(access.instruction)];
                        let name = code.name(instruction.name);
                        let size = u64::from(accesses::size(access, name));
                        let fixed = matches!(access.shape, Shape::Plain | Shape::Push | Shape::Pop);
                        for (of, flag) in piece.bytes.iter_mut().zip([LOAD, STORE]) {
                            *of += if fixed && access.is(flag) { size } else { 0 };
                        }
                    }
                    piece.lines.extend(own.iter().map(|i| i.text.as_str()));
                    piece.executed += own.len() as u64 * times;
                    if segment.is(CONDITIONAL) {
                        pieces.extend(open.take());
                    }
                }
                pieces.extend(open);
            }
            at = next;
        }
    }
    pieces.retain(|piece| piece.executed > 0);
    pieces
}

/// What the model says of all pieces, weighted by their executions.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Modelled {
    /// Cycles.
    cycles: f64,
    /// Of those, which neither ports nor the width of dispatch explain.
    stalled: f64,
    uops: f64,
    ports: [f64; PORTS],
    divider: f64,
    bytes: [f64; 2],
    /// Executed instructions of the pieces.
    executed: u64,
}

/// The number of a port; none of other resources.
fn port(name: &str) -> Option<usize> {
    let number = name.strip_prefix("ICXPort")?.parse().ok()?;
    (number < PORTS).then_some(number)
}

/// Adds up what was printed for the two numbers of [`ITERATIONS`]; pieces of which it left out an instruction do not count.
fn add_up(printed: [&str; 2], pieces: &[Piece]) -> Result<Modelled, MetricsError> {
    let (resources, both) = mca::both(printed, pieces.len()).map_err(MetricsError::Model)?;
    let ports: Vec<Option<usize>> = resources.iter().map(|name| port(name)).collect();
    let divider = resources.iter().position(|name| name == DIVIDER);
    if ports.iter().flatten().count() != PORTS || divider.is_none() {
        return Err(MetricsError::Model(format!(
            "the model of {PROCESSOR} does not have {PORTS} ports and {DIVIDER}"
        )));
    }
    let mut all = Modelled::default();
    for Both {
        place,
        cycles,
        long,
    } in both
    {
        let piece = &pieces[place];
        let known = modelled(piece).count();
        if long.instructions.len() != known {
            continue;
        }
        let times = piece.times as f64;
        let summary = &long.summary_view;
        all.executed += piece.executed;
        all.cycles += times * cycles;
        all.stalled += times * (cycles - summary.throughput).max(0.0);
        all.uops += times * summary.uops / f64::from(ITERATIONS[1]);
        for (sum, bytes) in all.bytes.iter_mut().zip(piece.bytes) {
            *sum += times * bytes as f64;
        }
        for usage in &long.resource_pressure_view.resource_pressure_info {
            // The entries of the number of instructions are those of all together.
            if usage.instruction_index != known {
                continue;
            }
            let taken = times * usage.resource_usage;
            if let Some(port) = ports.get(usage.resource_index).copied().flatten() {
                all.ports[port] += taken;
            } else if divider == Some(usage.resource_index) {
                all.divider += taken;
            }
        }
    }
    Ok(all)
}

/// What the model says of the code that ran; `directory` takes the file for the tool.
///
/// # Errors
/// llvm-mca cannot be run, or prints something else.
pub fn model(
    counted: &Counted,
    assembly: &[String],
    directory: &Path,
    sandbox: &Sandbox,
) -> Result<Modelled, MetricsError> {
    let mut blocks = Blocks::default();
    let functions = counted.code.functions.iter();
    let functions: HashSet<&str> = functions.map(|f| f.name.as_str()).collect();
    for text in assembly {
        blocks.add(text, |name| functions.contains(name));
    }
    let mut pieces = pieces(&counted.code, &counted.tally.segments, &blocks);
    let wanted = WANTED * counted.tally.instructions(&counted.code) as f64;
    mca::keep_most_executed(&mut pieces, |piece| piece.executed, wanted, MOST);
    // A piece of nothing but a call or return takes no time of its own.
    let bare = |piece: &Piece| modelled(piece).next().is_none();
    let free: u64 = pieces.iter().filter(|p| bare(p)).map(|p| p.executed).sum();
    pieces.retain(|piece| !bare(piece));
    if pieces.is_empty() {
        return Ok(Modelled {
            executed: free,
            ..Modelled::default()
        });
    }
    let printed = mca::ask(
        (Target::X86_64, PROCESSOR),
        pieces.iter().map(modelled),
        directory,
        sandbox,
        &counted.counts.codelet,
    )?;
    let mut found = add_up([&printed[0], &printed[1]], &pieces)?;
    found.executed += free;
    Ok(found)
}

impl Modelled {
    /// Writes the metrics of the group.
    pub fn fill(&self, counted: &Counted, values: &mut Values) {
        let counts = &counted.counts;
        let all = counted.tally.instructions(&counted.code);
        let coverage = self.executed as f64 / all.max(1) as f64;
        let of_x87 = |w: &&Work| w.float == Float::F80;
        let x87: u64 = counts
            .work
            .iter()
            .filter(of_x87)
            .map(|w| w.instructions)
            .sum();
        let why = match () {
            () if x87 as f64 > MOST_X87 * all as f64 => {
                Some("the model knows no dependences of the x87 unit".to_owned())
            }
            () if coverage < ENOUGH => Some(format!(
                "the model knows {:.1} % of its code",
                100.0 * coverage
            )),
            () if self.cycles == 0.0 => Some("its code takes no cycles of the model".to_owned()),
            () => None,
        };
        if let Some(why) = why {
            values.missing_group("model", &why);
            values.set("model_coverage", coverage);
            return;
        }
        // As if the rest were like what is known.
        let cycles = self.cycles / coverage;
        values.set("model_coverage", coverage);
        values.set("model_cycles", cycles);
        values.set("model_ipc", all as f64 / cycles);
        values.set("model_uops", self.uops / self.executed as f64);
        values.set("model_flops_per_cycle", counts.flops.total as f64 / cycles);
        values.set("model_load_bytes", self.bytes[0] / self.cycles);
        values.set("model_store_bytes", self.bytes[1] / self.cycles);
        values.set("model_divider", self.divider / self.cycles);
        values.set("model_dependency_stall", self.stalled / self.cycles);
        let mut most = 0f64;
        for (port, taken) in self.ports.iter().enumerate() {
            // Its use is that of all iterations, the cycles are those of later ones.
            let share = (taken / self.cycles).min(1.0);
            values.set(&format!("model_port_{port}"), share);
            most = most.max(share);
        }
        values.set("model_port_most", most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(lines: &'static [&'static str], times: u64) -> Piece<'static> {
        Piece {
            lines: lines.to_vec(),
            times,
            executed: times * lines.len() as u64,
            bytes: [8, 0],
        }
    }

    /// As llvm-mca prints it.
    fn printed(name: &str, instructions: usize, cycles: u32) -> String {
        let resources: Vec<String> = (0..10).map(|n| format!("\"ICXPort{n}\"")).collect();
        let lines = vec!["\"nop\""; instructions].join(",");
        format!(
            "{{\"CodeRegions\": [{{\"Name\": \"{name}\", \"Instructions\": [{lines}], \"SummaryView\": \
             {{\"BlockRThroughput\": 2.0, \"TotalCycles\": {cycles}, \"TotaluOps\": 300, \"IPC\": 1}}, \
             \"ResourcePressureView\": {{\"ResourcePressureInfo\": [\
             {{\"InstructionIndex\": 0, \"ResourceIndex\": 1, \"ResourceUsage\": 0.5}}, \
             {{\"InstructionIndex\": {instructions}, \"ResourceIndex\": 1, \"ResourceUsage\": 1.5}}]}}}}], \
             \"TargetInfo\": {{\"CPUName\": \"icelake-server\", \"Resources\": [{}, \"ICXDivider\", \"ICXFPDivider\"]}}}}",
            resources.join(",")
        )
    }

    #[test]
    fn weights_and_stalls() {
        let pieces = [piece(&["addl %eax, %ebx", "callq f"], 10)];
        let both = |name: &str, instructions| {
            let short = printed(name, instructions, 120);
            add_up([&short, &printed(name, instructions, 1120)], &pieces)
        };
        let found = both("p0", 1).unwrap();
        assert_eq!(
            (found.cycles, found.stalled, found.uops),
            (50.0, 30.0, 10.0)
        );
        assert_eq!((found.ports[1], found.ports[0]), (15.0, 0.0));
        assert_eq!(found.executed, 20);
        // An instruction that the model does not know.
        assert_eq!(both("p0", 0).unwrap(), Modelled::default());
        for bad in ["p1", "x"] {
            assert!(matches!(both(bad, 1), Err(MetricsError::Model(_))));
        }
        assert!(add_up(["{}", "{}"], &pieces).is_err());
    }
}
