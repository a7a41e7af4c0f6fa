//! What only the order of execution shows: reads the stream of a counted run.

use crate::accesses::Accesses;
use crate::class::{Class, Float, Kind};
use crate::counts::classes;
use crate::metrics::footprint::{Footprint, LINE};
use crate::metrics::parallelism::{self, Parallelism, Step, Touch};
use crate::metrics::reuse::{self, Reuse};
use crate::metrics::strides::{self, Strides};
use crate::metrics::values::Values;
use crate::stream::{Ran, Sink};
use cere_format::count::Code;
use cere_memory::Access;
use std::collections::HashMap;
use std::ops::Range;

/// Lines of a sample, at least.
const FEWEST: u64 = 4096;

/// How much of a codelet is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// One of so many pieces of instructions.
    pub pieces: u64,
    /// One of two to the power of so many lines.
    pub line_bits: u32,
}

impl Sampling {
    /// For a codelet of so many instructions, accesses, and distinct lines. Of instructions and accesses at most `budget` are
    /// looked at, but no sample has fewer than [`FEWEST`] lines.
    #[must_use]
    pub fn of(instructions: u64, accesses: u64, lines: u64, budget: u64) -> Self {
        let budget = budget.max(1);
        let bits = |of: u64| of.next_power_of_two().trailing_zeros();
        let enough = (lines / FEWEST).max(1).ilog2();
        Self {
            pieces: instructions.div_ceil(budget).max(1),
            line_bits: bits(accesses.div_ceil(budget).max(1)).min(enough).min(31),
        }
    }
}

/// Stands for the stack of the x87 unit among the registers.
const X87: u16 = u16::MAX;

/// Whether an instruction works on the stack of the x87 unit.
fn is_x87(name: &str, class: Class) -> bool {
    let moves = ["LD_F", "ST_F", "IST_F", "ILD_F", "CHS_F", "ABS_F", "XCH_F"];
    matches!(class.kind, Kind::Float(Float::F80, _)) || moves.iter().any(|m| name.starts_with(m))
}

/// An instruction of a segment.
#[derive(Debug)]
struct Op {
    reads: Range<usize>,
    writes: Range<usize>,
    float: bool,
}

/// What is known of the code before it runs.
#[derive(Debug)]
struct Plan {
    /// By segment.
    ops: Vec<Vec<Op>>,
    /// Registers of all instructions, by small numbers.
    registers: Vec<u16>,
    distinct: usize,
    /// Number of the first access of each segment among all.
    first: Vec<usize>,
    /// Accesses of all segments.
    accesses: usize,
}

impl Plan {
    fn of(code: &Code) -> Self {
        let classes = classes(code);
        let mut numbers: HashMap<u16, u16> = HashMap::new();
        let mut registers = Vec::new();
        let mut ops = Vec::new();
        let (mut first, mut accesses) = (Vec::new(), 0);
        for segment in &code.segments {
            let mut put = |of: &[u16]| {
                let start = registers.len();
                for register in of {
                    let next = numbers.len() as u16;
                    registers.push(*numbers.entry(*register).or_insert(next));
                }
                start..registers.len()
            };
            let op = |i: &cere_format::count::Instruction| {
                let class = classes[i.name as usize];
                // Which of its slots an instruction of the x87 unit works on is not known.
                let stack = is_x87(code.name(i.name), class).then_some(X87);
                let with = |of: &[u16]| -> Vec<u16> { of.iter().copied().chain(stack).collect() };
                Op {
                    reads: put(&with(&i.read)),
                    writes: put(&with(&i.written)),
                    float: matches!(class.kind, Kind::Float(..)),
                }
            };
            ops.push(segment.instructions.iter().map(op).collect());
            first.push(accesses);
            accesses += segment.accesses.len();
        }
        Self {
            ops,
            registers,
            distinct: numbers.len(),
            first,
            accesses,
        }
    }
}

/// What is known of a thread.
#[derive(Debug)]
struct Thread {
    parallelism: Parallelism,
    reuse: Reuse,
    strides: Strides,
}

/// Looks at a counted run.
#[derive(Debug)]
pub struct Trace {
    sampling: Sampling,
    accesses: Accesses,
    plan: Plan,
    threads: Vec<Option<Box<Thread>>>,
    footprint: Footprint,
    /// Accesses of the segment that runs, each with the number of its instruction.
    touches: Vec<(usize, Touch)>,
    own: Vec<Touch>,
}

impl Trace {
    /// Of this code.
    #[must_use]
    pub fn new(code: &Code, sampling: Sampling) -> Self {
        Self {
            sampling,
            accesses: Accesses::of(code),
            plan: Plan::of(code),
            threads: Vec::new(),
            footprint: Footprint::new(sampling.line_bits),
            touches: Vec::new(),
            own: Vec::new(),
        }
    }

    /// Writes the metrics of all groups that need the order of execution.
    pub fn fill(&mut self, values: &mut Values) {
        let mut parallelism = parallelism::Sums::default();
        let mut reuse = reuse::Sums::default();
        let mut strides = strides::Sums::default();
        for thread in self.threads.iter_mut().flatten() {
            thread.parallelism.finish(&mut parallelism);
            thread.reuse.finish(&mut reuse);
            thread.strides.finish(&mut strides);
        }
        parallelism.fill(values);
        reuse.fill(self.sampling.line_bits, values);
        strides.fill(values);
        self.footprint.fill(values);
    }
}

/// Calls `each` with the lines that an access reaches, and which bytes of them.
#[inline]
fn lines(address: u64, size: u32, mut each: impl FnMut(u64, u64, u64)) {
    let end = address.saturating_add(u64::from(size.max(1)));
    let mut at = address;
    while at < end {
        let line = at / LINE;
        let next = end.min((line + 1).saturating_mul(LINE));
        each(line, at % LINE, next - line * LINE);
        at = next;
    }
}

impl Sink for Trace {
    fn segment(&mut self, code: &Code, index: u32, ran: Ran) {
        let number = ran.thread as usize;
        if self.threads.len() <= number {
            self.threads.resize_with(number + 1, || None);
        }
        let (plan, sampling) = (&self.plan, self.sampling);
        let thread = self.threads[number].get_or_insert_with(|| {
            Box::new(Thread {
                parallelism: Parallelism::new(plan.distinct, sampling.pieces),
                reuse: Reuse::new(sampling.line_bits),
                strides: Strides::new(plan.accesses),
            })
        });
        let (touches, footprint) = (&mut self.touches, &mut self.footprint);
        let first = plan.first[index as usize];
        let described = &code.segments[index as usize];
        touches.clear();
        self.accesses
            .each(index, ran.control, ran.words, |at, access: Access| {
                let (load, store) = match access.kind {
                    cere_memory::Kind::Load => (true, false),
                    cere_memory::Kind::Store | cere_memory::Kind::NonTemporal => (false, true),
                    cere_memory::Kind::ReadModifyWrite => (true, true),
                    cere_memory::Kind::Prefetch => return,
                };
                let touch = Touch {
                    address: access.address,
                    size: access.size,
                    load,
                    store,
                };
                match touches.last_mut() {
                    // Neighbouring lanes are one access.
                    Some((before, last)) if *before == at && last.continues(&touch) => {
                        last.size += touch.size;
                    }
                    _ => touches.push((at, touch)),
                }
            });
        for (at, touch) in &mut *touches {
            for (does, kind) in [(touch.load, false), (touch.store, true)] {
                if does {
                    thread.strides.touch(first + *at, kind, touch.address);
                }
            }
            lines(touch.address, touch.size, |line, from, to| {
                thread.reuse.touch(line);
                footprint.touch(line, from, to, touch.store);
            });
            *at = described.accesses[*at].instruction.into();
        }
        let ops = &plan.ops[index as usize];
        if thread.parallelism.looks() {
            let mut rest = &touches[..];
            for (at, op) in ops.iter().enumerate() {
                let mine = rest.iter().take_while(|(of, _)| *of == at).count();
                self.own.clear();
                self.own
                    .extend(rest[..mine].iter().map(|(_, touch)| *touch));
                rest = &rest[mine..];
                let step = Step {
                    reads: &plan.registers[op.reads.clone()],
                    writes: &plan.registers[op.writes.clone()],
                    float: op.float,
                };
                thread.parallelism.step(at as u64, step, &self.own);
            }
        }
        thread.parallelism.advance(ops.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_over_lines() {
        let mut found = Vec::new();
        lines(60, 8, |line, from, to| found.push((line, from, to)));
        assert_eq!(found, [(0, 60, 64), (1, 0, 4)]);
        found.clear();
        lines(128, 128, |line, from, to| found.push((line, from, to)));
        assert_eq!(found, [(2, 0, 64), (3, 0, 64)]);
        // The end of the address space.
        found.clear();
        lines(u64::MAX - 3, 8, |line, from, to| {
            found.push((line, from, to))
        });
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn how_much_is_looked_at() {
        let all = Sampling::of(1000, 1000, 1 << 20, 1000);
        assert_eq!((all.pieces, all.line_bits), (1, 0));
        let part = Sampling::of(2001, 9000, 1 << 20, 1000);
        assert_eq!((part.pieces, part.line_bits), (3, 4));
        // Few lines are all looked at.
        assert_eq!(Sampling::of(2001, 9000, 8191, 1000).line_bits, 0);
        assert_eq!(Sampling::of(2001, 9000, 8192, 1000).line_bits, 1);
        let none = Sampling::of(0, 0, 0, 0);
        assert_eq!((none.pieces, none.line_bits), (1, 0));
    }
}
