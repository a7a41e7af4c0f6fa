//! What the order of execution shows of a counted run: which pages hold nothing but floating-point values, chains of loads, branches
//! that a predictor gets wrong, and the work of each thread.

use cere_count::accesses::Accesses;
use cere_count::class::{self, Kind};
use cere_count::stream::{Ran, Sink};
use cere_format::PAGE;
use cere_format::count::{CONDITIONAL, Code, LOAD, Shape};
use cere_memory::Access;
use rustc_hash::FxHashMap;

/// What is done to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Accesses.
    pub times: u64,
    /// Whether it is written.
    pub written: bool,
    /// Whether each access is one of floating-point values.
    pub float: bool,
}

/// Of a page that was not accessed.
const NOTHING: Use = Use {
    times: 0,
    written: false,
    float: true,
};

impl Use {
    fn add(&mut self, more: Self) {
        self.times += more.times;
        self.written |= more.written;
        self.float &= more.float;
    }
}

/// What an instruction is to the order.
#[derive(Debug, Clone)]
struct Op {
    /// Whether values that it loads or stores are floating-point ones.
    float: bool,
    /// Whether it does nothing but load.
    loads: bool,
    reads: Vec<u16>,
    writes: Vec<u16>,
}

/// A branch predictor: a perceptron over the thread's history of directions (Jimenez and Lin, "Dynamic branch prediction with perceptrons",
/// HPCA 2001), one for each branch, with 62 directions as in recent processors.
#[derive(Debug, Clone)]
struct Perceptron {
    weights: [i16; HISTORY + 1],
}

/// Directions that a prediction rests on.
const HISTORY: usize = 62;
/// Below this sum it learns although it was right: 1.93 h + 14 (there, 5.2).
const SURE: i32 = 133;
/// Branches that are looked at, at most; then the share that was wrong stands for the others.
const LOOKED_AT: u64 = 30_000_000;
/// Weights stay within this.
const HEAVIEST: i16 = 127;

impl Perceptron {
    fn sum(&self, history: u64) -> i32 {
        let along = self.weights[1..].iter().enumerate();
        along.fold(i32::from(self.weights[0]), |sum, (at, weight)| {
            match history >> at & 1 {
                0 => sum - i32::from(*weight),
                _ => sum + i32::from(*weight),
            }
        })
    }

    /// Whether it was wrong.
    fn learn(&mut self, history: u64, taken: bool) -> bool {
        let sum = self.sum(history);
        let wrong = (sum >= 0) != taken;
        if wrong || sum.abs() <= SURE {
            let move_by = |weight: &mut i16, same: bool| {
                *weight = (*weight + if same { 1 } else { -1 }).clamp(-HEAVIEST, HEAVIEST);
            };
            move_by(&mut self.weights[0], taken);
            for (at, weight) in self.weights[1..].iter_mut().enumerate() {
                move_by(weight, (history >> at & 1 == 1) == taken);
            }
        }
        wrong
    }
}

/// A thread.
#[derive(Debug, Clone, Default)]
struct Thread {
    instructions: u64,
    /// Loads on the way to the value of each register.
    depth: Vec<u64>,
    deepest: u64,
    history: u64,
    /// The last segment.
    last: Option<u32>,
}

/// Looks at a counted run.
#[derive(Debug)]
pub struct Order {
    accesses: Accesses,
    ops: Vec<Vec<Op>>,
    registers: usize,
    /// By segment.
    predictors: Vec<Option<Box<Perceptron>>>,
    threads: Vec<Thread>,
    pages: FxHashMap<u64, Use>,
    wrong: u64,
    branches: u64,
}

/// Whether what an instruction moves to or from memory are floating-point values: moves between registers of vectors count by their names.
fn is_float(name: &str, class: class::Class) -> bool {
    let moves = [
        "MOVSS",
        "MOVSD",
        "MOVUPS",
        "MOVUPD",
        "MOVAPS",
        "MOVAPD",
        "MOVLP",
        "MOVHP",
        "MOVNTP",
        "BROADCASTS",
        "MOVDDUP",
    ];
    match class.kind {
        Kind::Float(..) | Kind::FloatOther => true,
        Kind::Move | Kind::Shuffle | Kind::Convert => {
            moves.iter().any(|part| name.contains(part))
                || name.starts_with("CVTSD2")
                || name.starts_with("CVTSS2")
                || name.starts_with("VCVTSD2")
                || name.starts_with("VCVTSS2")
        }
        _ => false,
    }
}

impl Order {
    /// Of this code.
    #[must_use]
    pub fn new(code: &Code) -> Self {
        let op = |segment: &cere_format::count::Segment, at: usize| {
            let instruction = &segment.instructions[at];
            let name = code.name(instruction.name);
            let class = class::class(name);
            let own = segment.accesses.iter();
            let mut own = own.filter(|a| usize::from(a.instruction) == at);
            Op {
                float: is_float(name, class),
                loads: class.kind == Kind::Move
                    && !class.vector
                    && own.any(|a| a.is(LOAD) && a.shape == Shape::Plain),
                reads: instruction.read.clone(),
                writes: instruction.written.clone(),
            }
        };
        let ops = code.segments.iter().map(|segment| {
            let all = 0..segment.instructions.len();
            all.map(|at| op(segment, at)).collect()
        });
        let ops: Vec<Vec<Op>> = ops.collect();
        let all = ops
            .iter()
            .flatten()
            .flat_map(|op| op.reads.iter().chain(&op.writes));
        let registers = all.max().map_or(0, |most| usize::from(*most) + 1);
        Self {
            accesses: Accesses::of(code),
            predictors: vec![None; ops.len()],
            ops,
            registers,
            threads: Vec::new(),
            pages: FxHashMap::default(),
            wrong: 0,
            branches: 0,
        }
    }

    /// The longest chain of loads each of which needs the value of one before for its address.
    #[must_use]
    pub fn load_chain(&self) -> u64 {
        self.threads.iter().map(|t| t.deepest).max().unwrap_or(0)
    }

    /// Branches that the predictor gets wrong.
    #[must_use]
    pub fn mispredicted(&self) -> f64 {
        let looked_at = self.branches.clamp(1, LOOKED_AT);
        self.wrong as f64 * (self.branches as f64 / looked_at as f64)
    }

    /// What is done to each page, by rising address.
    #[must_use]
    pub fn pages(&self) -> Vec<(u64, Use)> {
        let mut all: Vec<(u64, Use)> = self.pages.iter().map(|(at, how)| (*at, *how)).collect();
        all.sort_unstable_by_key(|(at, _)| *at);
        all
    }

    /// Instructions of each thread that ran.
    #[must_use]
    pub fn work(&self) -> Vec<u64> {
        let all = self.threads.iter().map(|t| t.instructions);
        all.filter(|n| *n > 0).collect()
    }

    fn branch(&mut self, code: &Code, number: usize, index: u32) {
        let thread = &mut self.threads[number];
        let Some(before) = thread.last.replace(index) else {
            return;
        };
        if !code.segments[before as usize].is(CONDITIONAL) {
            return;
        }
        let taken = before + 1 != index;
        self.branches += 1;
        if self.branches > LOOKED_AT {
            return;
        }
        let fresh = || {
            Box::new(Perceptron {
                weights: [0; HISTORY + 1],
            })
        };
        let predictor = self.predictors[before as usize].get_or_insert_with(fresh);
        self.wrong += u64::from(predictor.learn(thread.history, taken));
        thread.history = thread.history << 1 | u64::from(taken);
    }
}

impl Sink for Order {
    fn segment(&mut self, code: &Code, index: u32, ran: Ran) {
        let number = ran.thread as usize;
        if self.threads.len() <= number {
            let fresh = Thread {
                depth: vec![0; self.registers],
                ..Thread::default()
            };
            self.threads.resize(number + 1, fresh);
        }
        self.branch(code, number, index);
        let ops = &self.ops[index as usize];
        let thread = &mut self.threads[number];
        thread.instructions += ops.len() as u64;
        for op in ops {
            let of = op.reads.iter().map(|r| thread.depth[usize::from(*r)]);
            let depth = of.max().unwrap_or(0) + u64::from(op.loads);
            thread.deepest = thread.deepest.max(depth);
            for register in &op.writes {
                thread.depth[usize::from(*register)] = depth;
            }
        }
        let described = &code.segments[index as usize].accesses;
        let pages = &mut self.pages;
        self.accesses
            .each(index, ran.control, ran.words, |at, access: Access| {
                let op = described.get(at).map(|a| usize::from(a.instruction));
                let float = op.and_then(|op| ops.get(op)).is_some_and(|op| op.float);
                let written = !matches!(
                    access.kind,
                    cere_memory::Kind::Load | cere_memory::Kind::Prefetch
                );
                let end = access
                    .address
                    .saturating_add(u64::from(access.size.max(1)) - 1);
                for page in (access.address / PAGE..=end / PAGE).take(1 << 20) {
                    pages.entry(page * PAGE).or_insert(NOTHING).add(Use {
                        times: 1,
                        written,
                        float,
                    });
                }
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of wrong predictions of a branch that goes as `direction` says.
    fn wrong(direction: impl FnMut(u64) -> bool) -> f64 {
        let mut predictor = Perceptron {
            weights: [0; HISTORY + 1],
        };
        let (mut history, mut wrong) = (0u64, 0);
        for taken in (0..20_000).map(direction) {
            wrong += u32::from(predictor.learn(history, taken));
            history = history << 1 | u64::from(taken);
        }
        f64::from(wrong) / 20_000.0
    }

    #[test]
    fn rules_are_learned_and_chance_is_not() {
        assert!(wrong(|_| true) < 0.01);
        assert!(wrong(|n| n % 2 == 0) < 0.01);
        assert!(wrong(|n| n % 17 != 0) < 0.02);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let chance = wrong(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 40 & 1 == 1
        });
        assert!((0.4..0.6).contains(&chance), "{chance}");
    }
}
