//! The results of counting.

use crate::accesses::{self, Dynamic, Memory};
use crate::class::{self, Class, Float, Kind, Operation, Width};
use crate::error::CountError;
use crate::hardware::Hardware;
use crate::tally::Tally;
use cere_format::count::{BLOCK, CALL, Code, NON_TEMPORAL, SPILL, Segment, Shape};
use cere_format::replay::Verdict;
use cere_memory::Counters;
use cere_memory::counters::LevelCounters;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// Floating-point operations; an FMA is two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Flops {
    /// Of 16 bits.
    pub f16: u64,
    /// Of 32 bits.
    pub f32: u64,
    /// Of 64 bits.
    pub f64: u64,
    /// Of 80 bits.
    pub f80: u64,
    /// All.
    pub total: u64,
}

/// Instructions of one kind of floating-point work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Type of the elements.
    pub float: Float,
    /// What is done.
    pub operation: Operation,
    /// Width of the registers.
    pub width: Width,
    /// Instructions.
    pub instructions: u64,
    /// Those of them with a mask, whose lanes all count.
    pub masked: u64,
    /// Floating-point operations.
    pub flops: u64,
}

/// Instructions of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Mix {
    /// Kind: `float`, `integer`, `move` and so on.
    pub kind: &'static str,
    /// Width of the registers.
    pub width: Width,
    /// Whether they are vector registers.
    pub vector: bool,
    /// Instructions.
    pub instructions: u64,
}

/// A function that was called and has no counted code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Called {
    /// Its symbol.
    pub name: String,
    /// Calls.
    pub calls: u64,
}

/// A level of the simulated caches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// Name.
    pub name: String,
    /// Demand misses.
    pub misses: u64,
    /// Demand misses over accesses; none without accesses.
    pub miss_rate: Option<f64>,
    /// Bytes that came in.
    pub fills: u64,
    /// Bytes that went out because they had been written.
    pub write_backs: u64,
    /// Both: the traffic to the next level, in bytes.
    pub bytes: u64,
    /// The same, had each set replaced a random line.
    pub bytes_random: Option<u64>,
    /// Standard error of `misses` where sets were sampled.
    pub misses_error: Option<f64>,
}

/// A simulation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Simulation {
    /// Name of the geometry.
    pub geometry: String,
    /// State of the caches at entry.
    pub warmup: &'static str,
    /// One of so many groups of lines was simulated.
    pub sampled: u32,
    /// Caches, nearest first.
    pub levels: Vec<Level>,
    /// Bytes read from memory.
    pub memory_read: u64,
    /// Bytes written to memory.
    pub memory_written: u64,
    /// Look-ups and misses of each level of translations, and page walks.
    pub tlb: Tlb,
    /// Bytes of the distinct lines that were touched.
    pub footprint_bytes: u64,
    /// Bytes of the distinct pages.
    pub footprint_page_bytes: u64,
    /// Floating-point operations over bytes from and to memory; none without such bytes.
    pub intensity: Option<f64>,
}

/// Translations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tlb {
    /// Misses of each level, nearest first.
    pub misses: Vec<u64>,
    /// Walks of the page table.
    pub walks: u64,
}

/// What a run of counted code did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counts {
    /// Name of the codelet or region.
    pub codelet: String,
    /// Flags after those of the build.
    pub flags: String,
    /// Verdict on the state that the counted code left.
    pub verdict: Verdict,
    /// Why, for people.
    pub reason: String,
    /// Threads that ran counted code.
    pub threads: u32,
    /// Machine instructions.
    pub instructions: u64,
    /// Basic blocks of machine code.
    pub blocks: u64,
    /// Conditional branches and jumps; calls and returns are not among them.
    pub branches: u64,
    /// Conditional branches that were taken.
    pub taken: u64,
    /// Floating-point work.
    pub flops: Flops,
    /// The same by type, operation and width.
    pub work: Vec<Work>,
    /// Instructions by kind.
    pub mix: Vec<Mix>,
    /// Accesses of the code, those to the stack included.
    #[serde(flatten)]
    pub memory: Memory,
    /// Those of them that the register allocator made.
    pub spills: Memory,
    /// Those of them that pass the caches by.
    pub non_temporal: Memory,
    /// What calls of memcpy, memmove and memset read and wrote, by their arguments.
    pub library: Memory,
    /// Functions without counted code.
    pub calls: Vec<Called>,
    /// Calls of addresses that led to code without counts.
    pub uncounted_calls: u64,
    /// Pieces of inline assembly, each counted as one instruction without accesses.
    pub assembly: u64,
    /// The simulated memory; none if it was not asked for.
    #[serde(skip)]
    pub simulation: Option<Simulation>,
    /// What the processor's counters say; none if they were not asked for.
    pub hardware: Option<Hardware>,
    /// What people should know: a sentence each.
    pub notes: Vec<String>,
}

/// Classes of all instructions of the code, by their names.
pub fn classes(code: &Code) -> Vec<Class> {
    code.names.iter().map(|name| class::class(name)).collect()
}

/// A function's name without what makes it unique in a replay.
pub fn plain(name: &str) -> &str {
    let rest = name
        .strip_prefix("cere.u")
        .and_then(|rest| rest.split_once('.'))
        .filter(|(number, _)| number.bytes().all(|b| b.is_ascii_digit()))
        .map_or(name, |(_, rest)| rest);
    rest.strip_prefix("at.").unwrap_or(rest)
}

/// How a kind is written.
fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Float(..) => "float",
        Kind::FloatOther => "float-other",
        Kind::Convert => "convert",
        Kind::Integer => "integer",
        Kind::IntegerMul => "integer-mul",
        Kind::IntegerDiv => "integer-div",
        Kind::VectorAdd => "vector-add",
        Kind::VectorMul => "vector-mul",
        Kind::VectorLogic => "vector-logic",
        Kind::Shuffle => "shuffle",
        Kind::Move => "move",
        Kind::Branch => "branch",
        Kind::Jump => "jump",
        Kind::Call => "call",
        Kind::Return => "return",
        Kind::Atomic => "atomic",
        Kind::Nothing => "nothing",
        Kind::Assembly => "assembly",
        Kind::Other => "other",
    }
}

/// Kinds of instructions that change the flow of control.
const BRANCHES: [&str; 4] = ["branch", "jump", "call", "return"];

impl Counts {
    /// The exact count of what the hardware event `name` counts; none if it was not counted or nothing is the same.
    #[must_use]
    pub fn beside(&self, name: &str) -> Option<u64> {
        let simulation = self.simulation.as_ref();
        match name {
            "instructions" => Some(self.instructions),
            "branches" => {
                let branches = self.mix.iter().filter(|m| BRANCHES.contains(&m.kind));
                Some(branches.map(|m| m.instructions).sum())
            }
            "l1d_loads" => Some(self.memory.loads),
            "l1d_stores" => Some(self.memory.stores),
            "l1d_load_misses" => simulation?.levels.first().map(|l| l.misses),
            "llc_load_misses" => simulation?.levels.last().map(|l| l.misses),
            "dtlb_load_misses" => simulation.map(|s| s.tlb.walks),
            _ => None,
        }
    }

    /// Whether the region ended in another state when it was counted, or measured.
    #[must_use]
    pub fn is_different(&self) -> bool {
        let measured = self.hardware.as_ref().map(|found| found.verdict);
        self.verdict == Verdict::Different || measured == Some(Verdict::Different)
    }

    /// The counts of what `tally` says, without verdict and simulation.
    ///
    /// # Errors
    /// A count exceeds 64 bits.
    pub fn of(
        codelet: &str,
        code: &Code,
        tally: &Tally,
        dynamic: &Dynamic,
    ) -> Result<Self, CountError> {
        let mut counts = Self::begin(codelet, tally, dynamic);
        let mut sums = Sums::default();
        let classes = classes(code);
        let defined: HashSet<&str> = code.functions.iter().map(|f| plain(&f.name)).collect();
        for (segment, &times) in code.segments.iter().zip(&tally.segments) {
            if times == 0 {
                continue;
            }
            if times == u64::MAX {
                return Err(counts.overflow("executions of a block"));
            }
            counts.blocks += if segment.is(BLOCK) { times } else { 0 };
            for instruction in &segment.instructions {
                let class = &classes[instruction.name as usize];
                counts.add_instruction(class, times, &mut sums)?;
            }
            counts.add_accesses(code, segment, times);
            let callee = code.name(segment.callee);
            if segment.is(CALL) && !callee.is_empty() && !defined.contains(plain(callee)) {
                *sums.calls.entry(segment.callee).or_default() += times;
            }
        }
        counts.end(sums, code)?;
        Ok(counts)
    }

    /// What the tally says at once; nothing that follows from the code.
    fn begin(codelet: &str, tally: &Tally, dynamic: &Dynamic) -> Self {
        Self {
            codelet: codelet.to_owned(),
            flags: String::new(),
            verdict: Verdict::Unchecked,
            reason: String::new(),
            threads: tally.threads(),
            instructions: 0,
            blocks: 0,
            branches: 0,
            taken: tally.taken.iter().sum(),
            flops: Flops::default(),
            work: Vec::new(),
            mix: Vec::new(),
            memory: dynamic.code,
            spills: Memory::default(),
            non_temporal: dynamic.non_temporal,
            library: dynamic.library,
            calls: Vec::new(),
            uncounted_calls: tally.uncounted,
            assembly: 0,
            simulation: None,
            hardware: None,
            notes: Vec::new(),
        }
    }

    fn overflow(&self, what: &'static str) -> CountError {
        CountError::Overflow {
            codelet: self.codelet.clone(),
            what,
        }
    }

    fn add_instruction(
        &mut self,
        class: &Class,
        times: u64,
        sums: &mut Sums,
    ) -> Result<(), CountError> {
        let all = class.instructions.saturating_mul(times);
        self.instructions = self
            .instructions
            .checked_add(all)
            .ok_or_else(|| self.overflow("instructions"))?;
        *sums
            .mix
            .entry((kind_name(class.kind), class.width, class.vector))
            .or_default() += all;
        match class.kind {
            Kind::Float(float, operation) => {
                let entry = sums.work.entry((float, operation, class.width));
                let (instructions, masked) = entry.or_default();
                *instructions += times;
                *masked += if class.masked { times } else { 0 };
            }
            Kind::Branch | Kind::Jump => self.branches += times,
            Kind::Assembly => self.assembly += times,
            _ => {}
        }
        Ok(())
    }

    fn add_accesses(&mut self, code: &Code, segment: &Segment, times: u64) {
        for access in &segment.accesses {
            if !matches!(access.shape, Shape::Plain | Shape::Push | Shape::Pop) {
                continue;
            }
            let instruction = &segment.instructions[usize::from(access.instruction)];
            let size = accesses::size(access, code.name(instruction.name)).into();
            self.memory.add(times, access.flags, size);
            if access.is(SPILL) {
                self.spills.add(times, access.flags, size);
            }
            if access.is(NON_TEMPORAL) {
                self.non_temporal.add(times, access.flags, size);
            }
        }
    }

    /// Adds what the sums over all segments give.
    fn end(&mut self, sums: Sums, code: &Code) -> Result<(), CountError> {
        for ((float, operation, width), (instructions, masked)) in sums.work {
            let each = width.lanes(float.bits()) * operation.flops();
            let flops = instructions
                .checked_mul(each)
                .ok_or_else(|| self.overflow("floating-point operations"))?;
            self.work.push(Work {
                float,
                operation,
                width,
                instructions,
                masked,
                flops,
            });
            let of = match float {
                Float::F16 => &mut self.flops.f16,
                Float::F32 => &mut self.flops.f32,
                Float::F64 => &mut self.flops.f64,
                Float::F80 => &mut self.flops.f80,
            };
            *of += flops;
            self.flops.total += flops;
        }
        let mix = |((kind, width, vector), instructions)| Mix {
            kind,
            width,
            vector,
            instructions,
        };
        self.mix = sums.mix.into_iter().map(mix).collect();
        let called = |(name, calls)| Called {
            name: code.name(name).to_owned(),
            calls,
        };
        self.calls = sums.calls.into_iter().map(called).collect();
        self.calls.sort_by_key(|c| std::cmp::Reverse(c.calls));
        if self.memory.load_bytes == u64::MAX || self.memory.store_bytes == u64::MAX {
            return Err(self.overflow("bytes of accesses"));
        }
        Ok(())
    }
}

/// Sums over the segments of counted code.
#[derive(Default)]
struct Sums {
    /// Instructions of floating-point work, and those of them with a mask.
    work: BTreeMap<(Float, Operation, Width), (u64, u64)>,
    /// Instructions by kind, width, and whether the registers are vectors.
    mix: BTreeMap<(&'static str, Width, bool), u64>,
    /// Calls of functions without counted code, by the indices of their names.
    calls: BTreeMap<u32, u64>,
}

impl Simulation {
    /// What the caches counted.
    #[must_use]
    pub fn of(
        geometry: &str,
        warmup: &'static str,
        found: &Counters,
        random: Option<&Counters>,
        flops: u64,
    ) -> Self {
        let level = |(at, level): (usize, &LevelCounters)| Level {
            name: level.name.clone(),
            misses: level.misses(),
            miss_rate: level.miss_rate(),
            fills: level.bytes_filled(),
            write_backs: level.bytes_written_back(),
            bytes: level.traffic(),
            bytes_random: random
                .and_then(|r| r.levels.get(at))
                .map(LevelCounters::traffic),
            misses_error: found
                .sampling
                .as_ref()
                .and_then(|s| s.levels.get(at))
                .map(|errors| errors.misses),
        };
        let traffic = found.memory.traffic();
        Self {
            geometry: geometry.to_owned(),
            warmup,
            sampled: found
                .sampling
                .as_ref()
                .map_or(1, |s| s.of / s.simulated.max(1)),
            levels: found.levels.iter().enumerate().map(level).collect(),
            memory_read: found.memory.bytes_read,
            memory_written: found.memory.bytes_written,
            tlb: Tlb {
                misses: found.tlbs.iter().map(|t| t.misses).collect(),
                walks: found.page_walks,
            },
            footprint_bytes: found.footprint.bytes(),
            footprint_page_bytes: found.footprint.pages * 4096,
            intensity: (traffic > 0).then(|| flops as f64 / traffic as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_without_prefixes() {
        assert_eq!(plain("cere.u0.cere.outlined.3"), "cere.outlined.3");
        assert_eq!(plain("cere.u12.at.helper"), "helper");
        assert_eq!(plain("cere.user"), "cere.user");
        assert_eq!(plain("solve"), "solve");
    }
}
