//! Metrics that follow from how often each segment ran: shares of instructions, vectors, branches.

use crate::Counts;
use crate::accesses::size;
use crate::class::{Class, Float, Kind, Operation, Width};
use crate::codelet::Counted;
use crate::counts::classes;
use crate::metrics::values::Values;
use cere_format::count::{Access, CONDITIONAL, Instruction, LOAD, STORE, Segment, Shape};

/// Share of the executed instructions that the hot ones make up.
const HOT: f64 = 0.9;
/// A branch that goes one way less often than this is hard.
const HARD: f64 = 0.9;
/// Bytes from which on an access is one of a vector.
const VECTOR: u64 = 16;

/// Bytes of one direction.
#[derive(Debug, Default, Clone, Copy)]
struct Bytes {
    all: u64,
    vector: u64,
}

/// Instructions by what they do.
#[derive(Debug, Default)]
struct Sums {
    widths: [u64; 3],
    stack: u64,
    loads: Bytes,
    stores: Bytes,
    scalar_double: u64,
}

/// Scalar and vector instructions of a kind.
#[derive(Debug, Default, Clone, Copy)]
struct Ratio {
    scalar: u64,
    vector: u64,
}

impl Ratio {
    fn add(&mut self, class: Class, times: u64) {
        match class.width {
            Width::Scalar => self.scalar += times,
            _ => self.vector += times,
        }
    }

    fn fill(self, values: &mut Values, name: &str, why: &str) {
        values.share(name, self.vector, self.scalar + self.vector, why);
    }
}

/// Vectorisation ratios.
#[derive(Debug, Default)]
struct Ratios {
    add: Ratio,
    mul: Ratio,
    float_mul: Ratio,
    fma: Ratio,
    div: Ratio,
    other_float: Ratio,
    float: Ratio,
    other_integer: Ratio,
}

impl Ratios {
    fn add(&mut self, class: Class, times: u64) {
        match class.kind {
            Kind::Float(_, operation) => {
                self.float.add(class, times);
                let of = match operation {
                    Operation::Add => &mut self.add,
                    Operation::Mul => &mut self.float_mul,
                    Operation::Fma => &mut self.fma,
                    Operation::Div | Operation::Sqrt => &mut self.div,
                };
                of.add(class, times);
                match operation {
                    Operation::Mul => self.mul.add(class, times),
                    _ => self.other_float.add(class, times),
                }
            }
            Kind::IntegerMul | Kind::VectorMul => self.mul.add(class, times),
            Kind::FloatOther | Kind::Convert => self.other_float.add(class, times),
            Kind::Integer | Kind::IntegerDiv | Kind::VectorAdd | Kind::VectorLogic => {
                self.other_integer.add(class, times);
            }
            _ => {}
        }
    }
}

/// Executed instructions by what they do; all together are those of [`Counts::instructions`].
fn kinds(counts: &Counts) -> [(&'static str, u64); 19] {
    let kind = |name: &str| -> u64 {
        let own = counts.mix.iter().filter(|mix| mix.kind == name);
        own.map(|mix| mix.instructions).sum()
    };
    let float = |operation: Operation| -> u64 {
        let own = counts.work.iter().filter(|w| w.operation == operation);
        own.map(|w| w.instructions).sum()
    };
    [
        ("float_add", float(Operation::Add)),
        ("float_mul", float(Operation::Mul)),
        ("float_fma", float(Operation::Fma)),
        ("float_div", float(Operation::Div)),
        ("float_sqrt", float(Operation::Sqrt)),
        ("float_other", kind("float-other")),
        ("convert", kind("convert")),
        ("integer", kind("integer")),
        ("integer_mul", kind("integer-mul")),
        ("integer_div", kind("integer-div")),
        ("vector_integer", kind("vector-add") + kind("vector-mul")),
        ("vector_logic", kind("vector-logic")),
        ("shuffle", kind("shuffle")),
        ("move", kind("move")),
        ("branch", kind("branch")),
        ("jump", kind("jump")),
        ("call", kind("call") + kind("return")),
        ("atomic", kind("atomic")),
        ("other", kind("nothing") + kind("assembly") + kind("other")),
    ]
}

/// Whether an instruction works on one double: arithmetic, comparisons, conversions and moves.
fn is_scalar_double(name: &str, class: Class) -> bool {
    match class.kind {
        Kind::Float(Float::F64, _) => class.width == Width::Scalar,
        Kind::FloatOther | Kind::Convert | Kind::Move => {
            class.vector && class.width == Width::Scalar && name.contains("SD")
        }
        _ => false,
    }
}

/// Whether an instruction that reaches no memory only makes zeroes, by combining a register with itself.
fn is_zeroing(instruction: &Instruction, class: Class) -> bool {
    instruction.read.is_empty() && matches!(class.kind, Kind::FloatOther | Kind::VectorLogic)
}

/// Bits of a choice that goes one way with probability `p`.
fn entropy(p: f64) -> f64 {
    let part = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    part(p) + part(1.0 - p)
}

/// Nothing was executed.
const NONE: &str = "nothing was executed";
const NO_FLOAT: &str = "it has no floating-point arithmetic";
const NO_MUL: &str = "it has no floating-point multiplications";

/// Segments that ran, and how often.
fn ran<'a>(counted: &'a Counted<'_>) -> impl Iterator<Item = (&'a Segment, u64)> {
    let (code, tally) = (&counted.code, &counted.tally);
    let all = code.segments.iter().zip(tally.segments.iter().copied());
    all.filter(|(_, times)| *times > 0)
}

/// Writes the metrics of the groups `work`, `mix` and `vector`, and those of `branch`.
pub fn fill(counted: &Counted, values: &mut Values) {
    let classes = classes(&counted.code);
    let (sums, ratios) = sum(counted, &classes);
    fill_work(counted, &classes, values);
    fill_mix(counted, &sums, values);
    fill_vector(counted, &sums, ratios, values);
    branches(counted, values);
}

fn sum(counted: &Counted, classes: &[Class]) -> (Sums, Ratios) {
    let code = &counted.code;
    let mut sums = Sums::default();
    let mut ratios = Ratios::default();
    for (segment, times) in ran(counted) {
        for (number, instruction) in segment.instructions.iter().enumerate() {
            let class = classes[instruction.name as usize];
            let own = |a: &Access| usize::from(a.instruction) == number;
            let reaches = segment.accesses.iter().any(own);
            let works = reaches || !(class.kind == Kind::Move || is_zeroing(instruction, class));
            match class.width {
                _ if !works => {}
                Width::Scalar => {}
                Width::V128 => sums.widths[0] += times,
                Width::V256 => sums.widths[1] += times,
                Width::V512 => sums.widths[2] += times,
            }
            if is_scalar_double(code.name(instruction.name), class) {
                sums.scalar_double += times;
            }
            if works {
                ratios.add(class, times);
            }
        }
        for access in &segment.accesses {
            match access.shape {
                Shape::Push | Shape::Pop => sums.stack += times,
                Shape::Plain => {
                    let instruction = &segment.instructions[usize::from(access.instruction)];
                    let size = u64::from(size(access, code.name(instruction.name)));
                    for (flag, of) in [(LOAD, &mut sums.loads), (STORE, &mut sums.stores)] {
                        if access.is(flag) {
                            of.all += size * times;
                            of.vector += if size >= VECTOR { size * times } else { 0 };
                        }
                    }
                }
                _ => {}
            }
        }
    }
    (sums, ratios)
}

fn fill_work(counted: &Counted, classes: &[Class], values: &mut Values) {
    let counts = &counted.counts;
    let instructions = counts.instructions;
    let statics = ran(counted).map(|(s, _)| s.instructions.len() as u64);
    values.set("instructions", instructions as f64);
    values.set("static_instructions", statics.sum::<u64>() as f64);
    let (hot, hot_double) = hot(counted, classes);
    values.set("hot_instructions", hot as f64);
    values.set("sd_instructions", hot_double as f64);
    values.share("block_length", instructions, counts.blocks, NONE);
    let flops = counts.flops.total;
    let no_flops = "it has no floating-point operations";
    values.share("flops_per_instruction", flops, instructions, NONE);
    values.share("double_share", counts.flops.f64, flops, no_flops);
    let memory = &counts.memory;
    let bytes = memory.load_bytes.saturating_add(memory.store_bytes);
    let no_memory = "it reaches no memory";
    values.share("flops_per_access_byte", flops, bytes, no_memory);
    values.share("bytes_per_instruction", bytes, instructions, NONE);
    let library = (counts.library.load_bytes).saturating_add(counts.library.store_bytes);
    let moved = bytes.saturating_add(library);
    values.share("library_bytes_share", library, moved, no_memory);
    let calls: u64 = counts.calls.iter().map(|c| c.calls).sum();
    let calls = 1000.0 * (calls + counts.uncounted_calls) as f64;
    values.ratio("uncounted_calls", calls, instructions as f64, NONE);
}

fn fill_mix(counted: &Counted, sums: &Sums, values: &mut Values) {
    let counts = &counted.counts;
    let (instructions, memory) = (counts.instructions, &counts.memory);
    let kinds = kinds(counts);
    for (kind, of) in kinds {
        values.share(&format!("mix_{kind}"), of, instructions, NONE);
    }
    let [(_, add), (_, mul), (_, fma), ..] = kinds;
    let accesses = memory.loads + memory.stores;
    values.share("loads_per_instruction", memory.loads, instructions, NONE);
    values.share("stores_per_instruction", memory.stores, instructions, NONE);
    let no_stores = "it stores nothing";
    values.share("loads_per_store", memory.loads, memory.stores, no_stores);
    let no_loads = "it loads nothing";
    values.share("bytes_per_load", memory.load_bytes, memory.loads, no_loads);
    let (bytes, stores) = (memory.store_bytes, memory.stores);
    values.share("bytes_per_store", bytes, stores, no_stores);
    let no_memory = "it reaches no memory";
    let spills = counts.spills.loads + counts.spills.stores;
    values.share("spill_share", spills, accesses, no_memory);
    values.share("stack_share", sums.stack, accesses, no_memory);
    let past = counts.non_temporal.store_bytes;
    values.share("non_temporal_share", past, bytes, no_stores);
    let masked = counts.work.iter().map(|w| w.masked).sum();
    values.share("masked_share", masked, floats(counts), NO_FLOAT);
    values.share("sd_share", sums.scalar_double, instructions, NONE);
    values.share("add_mul_ratio", add + fma, mul + fma, NO_MUL);
}

/// Instructions of floating-point arithmetic.
fn floats(counts: &Counts) -> u64 {
    counts.work.iter().map(|w| w.instructions).sum()
}

fn fill_vector(counted: &Counted, sums: &Sums, ratios: Ratios, values: &mut Values) {
    let counts = &counted.counts;
    let no_other = "it has no floating-point instructions other than multiplications";
    for (ratio, name, without) in [
        (ratios.mul, "mul", "it has no multiplications"),
        (ratios.float_mul, "float_mul", NO_MUL),
        (ratios.add, "add", "it has no floating-point additions"),
        (ratios.fma, "fma", "it has no fused multiply-adds"),
        (ratios.div, "div", "it has no divisions and square roots"),
        (ratios.other_float, "other_float", no_other),
        (ratios.float, "float", NO_FLOAT),
        (
            ratios.other_integer,
            "other_integer",
            "it has no integer instructions",
        ),
    ] {
        ratio.fill(values, &format!("vector_ratio_{name}"), without);
    }
    let wide = sums.widths.iter().sum();
    values.share("vector_ratio", wide, counts.instructions, NONE);
    for (bits, of) in [128, 256, 512].into_iter().zip(sums.widths) {
        values.share(
            &format!("vector_share_{bits}"),
            of,
            counts.instructions,
            NONE,
        );
    }
    let no_fixed = "it has no such access whose size is fixed";
    for (name, of) in [("load", &sums.loads), ("store", &sums.stores)] {
        values.share(&format!("vector_{name}_share"), of.vector, of.all, no_fixed);
    }
    values.share(
        "flops_per_float_instruction",
        counts.flops.total,
        floats(counts),
        NO_FLOAT,
    );
}

/// Distinct instructions of the most executed segments that make up [`HOT`] of what is executed, and the scalar double ones
/// of them.
fn hot(counted: &Counted, classes: &[Class]) -> (u64, u64) {
    let (code, tally) = (&counted.code, &counted.tally);
    let mut segments: Vec<(u64, usize)> = (0..code.segments.len())
        .map(|at| (tally.segments[at], at))
        .filter(|(times, _)| *times > 0)
        .collect();
    segments.sort_by_key(|(times, at)| (std::cmp::Reverse(*times), *at));
    let wanted = HOT * tally.instructions(code) as f64;
    let (mut seen, mut hot, mut double) = (0.0, 0, 0);
    for (times, at) in segments {
        if seen >= wanted {
            break;
        }
        let instructions = &code.segments[at].instructions;
        seen += instructions.len() as f64 * times as f64;
        hot += instructions.len() as u64;
        let is = |i: &&Instruction| is_scalar_double(code.name(i.name), classes[i.name as usize]);
        double += instructions.iter().filter(is).count() as u64;
    }
    (hot, double)
}

fn branches(counted: &Counted, values: &mut Values) {
    let (code, tally) = (&counted.code, &counted.tally);
    let (mut all, mut taken, mut turns, mut biased, mut hard, mut distinct) = (0, 0, 0, 0, 0, 0);
    let mut bits = 0.0;
    for (at, segment) in code.segments.iter().enumerate() {
        let times = tally.segments[at];
        if !segment.is(CONDITIONAL) || times == 0 {
            continue;
        }
        let way = tally.taken[at].min(times);
        distinct += 1;
        all += times;
        taken += way;
        turns += tally.turns[at];
        let most = way.max(times - way);
        biased += most;
        hard += match (most as f64) < HARD * times as f64 {
            true => times,
            false => 0,
        };
        bits += times as f64 * entropy(way as f64 / times as f64);
    }
    let none = "it has no conditional branches";
    values.set("branch_static", f64::from(distinct));
    values.share("branch_taken", taken, all, none);
    values.share("branch_turns", turns, all, none);
    values.share("branch_bias", biased, all, none);
    values.share("branch_hard", hard, all, none);
    values.ratio("branch_entropy", bits, all as f64, none);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::class;

    #[test]
    fn bits_of_choices() {
        assert_eq!(entropy(0.0), 0.0);
        assert_eq!(entropy(1.0), 0.0);
        assert_eq!(entropy(0.5), 1.0);
        assert!((entropy(0.25) - 0.811_278_124_459_133).abs() < 1e-12);
    }

    #[test]
    fn scalar_doubles() {
        for (name, is) in [
            ("ADDSDrr", true),
            ("VFMADD231SDm", true),
            ("MOVSDrm_alt", true),
            ("UCOMISDrr", true),
            ("CVTSI2SDrr", true),
            ("ADDSSrr", false),
            ("VADDPDYrr", false),
            ("MOVSQ", false),
            ("ADD64rr", false),
        ] {
            assert_eq!(is_scalar_double(name, class(name)), is, "{name}");
        }
    }
}
