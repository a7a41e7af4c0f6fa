//! Chains of one or more operations, timed next to a chain of integer additions.

use super::emit::{aside, emit, prepare};
use super::target::{Constants, Element, Kind, Target};
use crate::Error;
use crate::code::Code;
use crate::session::Session;
use cere_arch::loops;
use cere_timing::stats::median;
use iced_x86::code_asm::{r15, rbx, rdi};

/// Operations of a stream in a round: the difference of two lengths leaves out what a loop costs (BlackjackBench 3.3.1).
const LENGTHS: (usize, usize) = (4, 16);
/// Nanoseconds of a timed window: short, so that some windows see no interrupt.
const WINDOW: f64 = 6000.0;
/// Windows of each length in a run.
const WINDOWS: usize = 4;
/// Windows at full speed before wide instructions are timed, and the most seconds that this may take.
const STEADY: usize = 15;
const SETTLE: f64 = 1e-3;

/// A loop of rounds.
pub enum Chain {
    /// In each, every stream is operated on some times, by the targets in turns.
    Operations(Code, Box<Constants>),
    /// In each, some dependent additions of 64-bit integers.
    Additions(fn(u64)),
}

impl Chain {
    /// Operations, `length` of each stream in a round. All targets have the same width and element.
    pub fn new(targets: &[Target], streams: usize, length: usize) -> Result<Self, Error> {
        let code = Code::new(|a| {
            prepare(a, targets, streams)?;
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            for _ in 0..length {
                for stream in 0..streams {
                    emit(a, targets[stream % targets.len()], stream, streams == 1)?;
                }
            }
            a.dec(rdi)?;
            a.jnz(again)
        })?;
        let constants = targets
            .last()
            .map_or(Constants([[0; 8]; 3]), |t| t.constants());
        Ok(Self::Operations(code, Box::new(constants)))
    }

    /// Dependent additions, with a wide multiplication beside every fourth that nothing waits for: they keep the core at the
    /// frequency of wide instructions and take no time of their own.
    fn beside(target: Target, length: usize) -> Result<Self, Error> {
        let target = Target::new(Kind::Mul, Element::F32, target.bits);
        let code = Code::new(|a| {
            prepare(a, &[target], 1)?;
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            for at in 0..length {
                a.add(rbx, r15)?;
                if at % 4 == 0 {
                    aside(a, target)?;
                }
            }
            a.dec(rdi)?;
            a.jnz(again)
        })?;
        let constants = target.constants();
        Ok(Self::Operations(code, Box::new(constants)))
    }

    /// Runs `rounds`, one or more.
    pub fn run(&self, rounds: u64) {
        match self {
            Self::Operations(code, constants) => {
                let constants = constants.0.as_ptr() as u64;
                // SAFETY: the loop ends after `rounds`, uses registers alone, and reads the constants before.
                unsafe { code.call([rounds.max(1), constants, 0, 0]) };
            }
            Self::Additions(run) => run(rounds),
        }
    }
}

/// Two lengths of a chain.
pub struct Pair {
    short: Chain,
    long: Chain,
    rounds: u64,
    bits: u32,
}

impl Pair {
    /// Of a target with some streams.
    pub fn new(session: &Session, target: Target, streams: usize) -> Result<Self, Error> {
        let chain = |length| Chain::new(&[target], streams, length);
        Ok(Self::of(
            session,
            target.bits,
            [chain(LENGTHS.0)?, chain(LENGTHS.1)?],
        ))
    }

    fn of(session: &Session, bits: u32, [short, long]: [Chain; 2]) -> Self {
        long.run(2);
        let few = session.least(2, || long.run(4)) / 4.0;
        let rounds = (WINDOW / few.max(0.1)).clamp(4.0, 2000.0) as u64;
        Self {
            short,
            long,
            rounds,
            bits,
        }
    }

    /// The unit at the frequency that the core has with a target's instructions.
    pub fn unit_for(session: &Session, target: Target) -> Result<Self, Error> {
        if !target.is_heavy() {
            return Ok(Self::unit(session));
        }
        let chain = |length| Chain::beside(target, length);
        Ok(Self::of(
            session,
            64,
            [chain(LENGTHS.0)?, chain(LENGTHS.1)?],
        ))
    }

    /// The unit: dependent additions of 64-bit integers.
    pub fn unit(session: &Session) -> Self {
        let chains: [fn(u64); 2] = [
            loops::additions::<{ LENGTHS.0 }>,
            loops::additions::<{ LENGTHS.1 }>,
        ];
        Self::of(session, 64, chains.map(Chain::Additions))
    }

    /// Runs until windows are as short as at full speed: after a pause, wide instructions are throttled for some time. The shortest
    /// window, given that of earlier times.
    fn settle(&self, session: &Session, mut full: f64) -> f64 {
        if self.bits <= 128 {
            return full;
        }
        let (mut steady, from) = (0, session.elapsed());
        while steady < STEADY && session.elapsed() - from < SETTLE {
            let time = session.time(|| self.long.run(self.rounds));
            full = time.min(full);
            steady = if time < 1.15 * full { steady + 1 } else { 0 };
        }
        full
    }

    /// Nanoseconds that each link of the chains costs: from the least times of a few windows of both lengths.
    fn link(&self, session: &Session, windows: usize) -> f64 {
        let mut least = [f64::INFINITY; 2];
        for _ in 0..windows {
            for (chain, least) in [&self.short, &self.long].into_iter().zip(&mut least) {
                *least = session.time(|| chain.run(self.rounds)).min(*least);
            }
        }
        let links = self.rounds as f64 * (LENGTHS.1 - LENGTHS.0) as f64;
        ((least[1] - least[0]) / links).max(0.0)
    }
}

/// Costs of a link of all chains of a probe, by run.
#[derive(Debug, Clone, Default)]
pub struct Costs {
    /// Nanoseconds.
    pub nanoseconds: Vec<f64>,
    /// In dependent integer additions, timed in turns with it.
    pub adds: Vec<f64>,
}

/// Times a probe and the unit in turns, `runs` times: changes of the core's frequency cancel in the ratio of neighbours.
#[must_use]
pub fn costs(session: &Session, probe: &Pair, unit: &Pair, runs: usize) -> Costs {
    let mut costs = Costs::default();
    let mut full = f64::INFINITY;
    for _ in 0..runs {
        full = probe.settle(session, full);
        let own = probe.link(session, WINDOWS);
        let add = unit.link(session, WINDOWS);
        if add > 0.0 && own > 0.0 {
            costs.nanoseconds.push(own);
            costs.adds.push(own / add);
        }
    }
    costs
}

/// The second lowest (BlackjackBench 3.3.1); the lowest of one; infinite of none.
#[must_use]
pub fn second_lowest(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(1)
        .or(sorted.first())
        .copied()
        .unwrap_or(f64::INFINITY)
}

/// How well two values agree: 1 if they are the same, 0 from a tenth apart.
#[must_use]
pub fn agreement(a: f64, b: f64) -> f64 {
    agreement_within(a, b, 0.1)
}

/// Likewise; 0 from `range` of the larger one apart.
#[must_use]
pub fn agreement_within(a: f64, b: f64, range: f64) -> f64 {
    let apart = (a - b).abs() / a.abs().max(b.abs());
    if apart.is_finite() {
        (1.0 - apart / range).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// How well the even and the odd runs agree in their median.
#[must_use]
pub fn repeatability(values: &[f64]) -> f64 {
    let half = |odd: usize| {
        let runs: Vec<f64> = values.iter().copied().skip(odd).step_by(2).collect();
        median(&runs).unwrap_or(f64::INFINITY)
    };
    agreement(half(0), half(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_runs() {
        assert_eq!(second_lowest(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(second_lowest(&[3.0]), 3.0);
        assert_eq!(second_lowest(&[]), f64::INFINITY);
        assert_eq!(repeatability(&[2.0; 6]), 1.0);
        assert_eq!(repeatability(&[2.0, 3.0, 2.0, 3.0]), 0.0);
        assert_eq!(repeatability(&[2.0]), 0.0);
        assert!((agreement(1.0, 0.95) - 0.5).abs() < 1e-9);
    }
}
