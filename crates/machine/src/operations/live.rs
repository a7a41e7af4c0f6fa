//! Live ranges: how many variables stay in registers (BlackjackBench 3.5).

use crate::document::curve;
use crate::session::Session;
use cere_arch::feature::{Feature, has};
use cere_format::machine::Curve;

/// Functions that `build.rs` writes: additions of variables, P(i) += P(i + N - N/2), all of them alive.
#[allow(asm_sub_register, clippy::all, clippy::undocumented_unsafe_blocks)]
mod compiled {
    use std::hint::black_box;
    include!(concat!(env!("OUT_DIR"), "/live.rs"));
}

/// Nanoseconds of a window.
const WINDOW: f64 = 10_000.0;

/// What variables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// `i64` in general registers.
    Integer,
    /// `f64` with the instructions that every processor has.
    Float,
    /// `f64` with AVX-512.
    Vector,
}

impl Class {
    /// Its name in the document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Vector => "vector",
        }
    }

    /// Whether this processor has its instructions.
    #[must_use]
    pub fn exists(self) -> bool {
        self != Self::Vector || has(Feature::Avx512f) && has(Feature::Avx512vl)
    }

    fn functions(self) -> Vec<Function> {
        match self {
            Self::Integer => prepared(&compiled::INTEGERS, 1),
            // Zero stays zero: sums that double would reach infinity.
            Self::Float => prepared(&compiled::FLOATS, 0.0),
            Self::Vector => prepared(&compiled::VECTORS, 0.0),
        }
    }
}

/// Variables, additions of a round, and what runs some rounds from a start.
type Compiled<T> = (usize, usize, unsafe fn(u64, T) -> T);

struct Function {
    variables: usize,
    additions: usize,
    run: Box<dyn Fn(u64)>,
}

fn prepared<T: Copy + 'static>(compiled: &'static [Compiled<T>], start: T) -> Vec<Function> {
    let prepare = |(variables, additions, function): &'static Compiled<T>| Function {
        variables: *variables,
        additions: *additions,
        // SAFETY: it computes with variables of its own; nobody runs a class that the processor does not have.
        run: Box::new(move |rounds| unsafe {
            std::hint::black_box(function(rounds, start));
        }),
    };
    compiled.iter().map(prepare).collect()
}

/// What was found.
pub struct Ranges {
    /// Variables that stay in registers; `None` if no step stands out.
    pub registers: Option<u32>,
    /// 0 to 1.
    pub confidence: f64,
    /// Cost of an addition by variables.
    pub curve: Curve,
}

/// Steps between the last numbers of variables are wide: nothing is read off beyond.
const DENSE: f64 = 40.0;
/// Costs up to this many times the least are alike: even and odd numbers of variables differ a little.
const NEAR: f64 = 1.12;
/// Rise of the first spill that is surely none of noise.
const CLEAR: f64 = 0.3;

/// Variables in registers, from the costs of an addition by variables, of two halves of the runs, with a confidence; `None` if no
/// spill shows in time.
///
/// The paper's biggest relative step (BlackjackBench 4.2.2) fails where a processor renames memory: a spill is nearly free, and
/// costs beyond are no longer flat, so that some later step is as high. The value is the last number of variables with the least
/// cost, if all beyond cost more.
#[must_use]
pub fn read(halves: [&[(f64, f64)]; 2]) -> Option<(u32, f64)> {
    let both = halves[0].iter().zip(halves[1]);
    let both: Vec<(f64, f64)> = both.map(|(a, b)| (a.0, a.1.min(b.1))).collect();
    let (at, rise) = departure(&both)?;
    let same = halves
        .iter()
        .filter(|half| departure(half).is_some_and(|d| d.0 == at));
    let repeated = [0.2, 0.45, 1.0][same.count()];
    let confidence = (rise / CLEAR).min(1.0).powi(2) * repeated;
    (confidence >= 0.2).then_some((at as u32, confidence))
}

/// The last x whose cost is near the least, and the rise right after it.
fn departure(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let dense = points.iter().take_while(|(count, _)| *count <= DENSE);
    let dense: Vec<(f64, f64)> = dense.copied().collect();
    let least = dense.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let last = dense.iter().rposition(|p| p.1 < least * NEAR)?;
    let level: Vec<f64> = dense[..=last]
        .iter()
        .map(|p| p.1)
        .filter(|c| *c < least * NEAR)
        .collect();
    let level = level.iter().sum::<f64>() / level.len() as f64;
    let beyond = dense.get(last + 1)?;
    Some((dense[last].0, beyond.1 / level - 1.0))
}

/// Measures on the core of the calling thread; `None` where the processor has no such instructions.
#[must_use]
pub fn measure(session: &Session, class: Class) -> Option<Ranges> {
    if !class.exists() {
        return None;
    }
    let functions = class.functions();
    let mut halves = [0, 1].map(|_| vec![f64::INFINITY; functions.len()]);
    for sweep in 0..session.pick(8, 24) {
        for (at, function) in functions.iter().enumerate() {
            let additions = function.additions;
            let rounds = (WINDOW / (0.3 * additions as f64)) as u64;
            let each = session.time(|| (function.run)(rounds)) / (rounds * additions as u64) as f64;
            let half = &mut halves[sweep % 2][at];
            *half = each.min(*half);
        }
    }
    let points = halves.map(|half| {
        let counted = functions.iter().zip(half);
        counted
            .map(|(f, each)| (f.variables as f64, each))
            .collect::<Vec<_>>()
    });
    let found = read([&points[0], &points[1]]);
    let name = format!("Variables in registers: {}", class.name());
    let mark = found.map(|(at, _)| (f64::from(at), "in registers".to_owned()));
    let both = points[0].iter().zip(&points[1]);
    let least = both.map(|(a, b)| (a.0, a.1.min(b.1)));
    Some(Ranges {
        registers: found.map(|f| f.0),
        confidence: found.map_or(0.0, |f| f.1),
        curve: curve(
            [&name, "variables", "nanoseconds of an addition"],
            least.collect(),
            mark,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    /// Variables beyond the registers cost `spill` each time; few variables wait for each other.
    fn modelled(registers: usize, spill: f64, random: &mut SmallRng) -> Vec<(f64, f64)> {
        let cost = |count: usize| {
            let waits = 4.0 / (count / 2) as f64;
            let spilled = count.saturating_sub(registers) as f64 / count as f64;
            let jump = if count > registers { 0.3 * spill } else { 0.0 };
            f64::max(0.5, waits) + spill * spilled + jump
        };
        let counts = (3..=40).chain([48, 64, 96, 132]);
        counts
            .map(|n| (n as f64, cost(n) * (1.0 + random.random_range(0.0..0.02))))
            .collect()
    }

    #[test]
    fn registers_of_modelled_machines() {
        let mut random = SmallRng::seed_from_u64(5);
        for registers in [16, 24, 32] {
            for _ in 0..50 {
                let halves = [0, 1].map(|_| modelled(registers, 1.0, &mut random));
                let (found, confidence) = read([&halves[0], &halves[1]]).unwrap();
                assert_eq!(found as usize, registers);
                assert!(confidence > 0.8, "{confidence}");
            }
        }
    }

    #[test]
    fn free_spills_are_not_guessed() {
        let mut random = SmallRng::seed_from_u64(6);
        for _ in 0..50 {
            let halves = [0, 1].map(|_| modelled(16, 0.0, &mut random));
            assert_eq!(read([&halves[0], &halves[1]]), None);
            let halves = [0, 1].map(|_| modelled(16, 0.15, &mut random));
            let found = read([&halves[0], &halves[1]]);
            assert!(
                found.is_none_or(|(_, confidence)| confidence < 0.5),
                "{found:?}"
            );
        }
    }

    #[test]
    fn all_functions_run() {
        for class in [Class::Integer, Class::Float, Class::Vector] {
            for function in class.functions().iter().filter(|_| class.exists()) {
                assert_eq!(function.additions % function.variables, 0);
                (function.run)(3);
            }
        }
    }
}
