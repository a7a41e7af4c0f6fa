//! Operations of the core (BlackjackBench 3.3 to 3.6), and the peaks of rooflines.
//!
//! | module | what |
//! |---|---|
//! | [`target`], [`emit`] | operations, and their instructions |
//! | [`probe`] | chains of them, timed next to integer additions |
//! | [`latency`] | latency, throughput, operations in flight |
//! | [`peaks`] | floating-point operations per second, of one core and of all |
//! | [`branch`] | what a wrong prediction of a branch costs |
//! | [`live`] | variables that stay in registers |
//! | [`contexts`] | threads that do not hinder each other |
//! | [`slot`] | how long a thread runs when others wait |

pub mod branch;
pub mod contexts;
pub mod emit;
pub mod latency;
pub mod live;
pub mod peaks;
pub mod probe;
pub mod slot;
pub mod target;

use crate::code::Code;
use crate::document::found;
use crate::session::Session;
use crate::{Error, not_here, place};
use cere_format::machine::{Cores, Curve, Found, Operation, Peak};
use contexts::Work;
use live::{Class, Ranges};
use probe::Pair;

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Nanoseconds of a dependent integer addition.
    pub add_ns: f64,
    /// Latencies and throughputs.
    pub operations: Vec<Operation>,
    /// Peaks of arithmetic.
    pub peaks: Vec<Peak>,
    /// Contexts, registers, time slot; the rest is left empty.
    pub cores: Cores,
    /// How each value was found; paths as in [`cere_format::machine::Found::what`].
    pub found: Vec<Found>,
    /// Curves that values were read off.
    pub curves: Vec<Curve>,
}

/// Nanoseconds of a dependent integer addition of two registers: the unit of other figures.
#[must_use]
pub fn add_nanoseconds(session: &Session) -> f64 {
    let unit = Pair::unit(session);
    let costs = probe::costs(session, &unit, &unit, session.pick(6, 12));
    probe::second_lowest(&costs.nanoseconds)
}

/// Measures all of it: within 3 seconds if quick, else 14; less where the session has less left. What there was no time for is
/// missing, or `None` with a reason.
pub fn measure(session: &Session) -> Result<Measured, Error> {
    let mut measured = Measured::default();
    let cores = place::allowed();
    let core = cores.last().copied().unwrap_or(0);
    let time = (session.left() / session.pick(2.7, 12.5)).min(1.0);
    let until = |quick: f64, full| session.elapsed() + session.pick(quick, full) * time;
    let end = until(1.1, 7.0);
    place::on(core, || operations(session, &mut measured, end))??;
    if Code::runs() {
        session.step("peaks of arithmetic");
        let (peaks, found) = peaks::measure(session, &cores, until(0.6, 2.2))?;
        measured.peaks = peaks;
        measured.found.extend(found);
    }
    place::on(core, || registers(session, &mut measured))?;
    let divides = |work: &Work| Code::runs() || *work == Work::Memory;
    for work in [Work::Float, Work::Integer, Work::Memory]
        .into_iter()
        .filter(divides)
    {
        threads(session, &mut measured, &cores, work, until(0.2, 0.7))?;
    }
    time_slot(session, &mut measured, &cores)?;
    Ok(measured)
}

impl Measured {
    fn tell(&mut self, what: String, confidence: f64, how: &str) {
        self.found.push(found(what, confidence, how));
    }
}

const NO_TIME: &str = "there was no time left to measure it";

/// Operations whose curve is kept.
fn is_shown(operation: &Operation) -> bool {
    let of = (operation.name.as_str(), operation.element.as_str());
    matches!(of, ("fma", "f64") | ("add", "i64" | "f64"))
}

fn operations(session: &Session, measured: &mut Measured, until: f64) -> Result<(), Error> {
    session.step("latencies and throughputs");
    measured.add_ns = add_nanoseconds(session);
    if !Code::runs() {
        let missing = [
            "operations",
            "peaks",
            "cores.float_contexts",
            "cores.integer_contexts",
        ];
        for what in missing {
            measured.tell(what.to_owned(), 0.0, &not_here(cere_arch::HERE));
        }
        return Ok(());
    }
    for target in latency::targets(session.quick) {
        if session.left() == 0.0 || session.elapsed() > until {
            break;
        }
        let outcome = latency::measure(session, target)?;
        let what = format!("operations[{}]", measured.operations.len());
        measured.tell(what, outcome.operation.confidence, &outcome.how);
        if is_shown(&outcome.operation) {
            measured.curves.push(latency::drawn(&outcome));
        }
        measured.operations.push(outcome.operation);
    }
    Ok(())
}

fn registers(session: &Session, measured: &mut Measured) {
    for class in [Class::Integer, Class::Float, Class::Vector] {
        session.step(&format!("variables in registers: {}", class.name()));
        let timed = session.left() > 0.0;
        let found = timed.then(|| live::measure(session, class)).flatten();
        let how = match &found {
            None if !timed => NO_TIME,
            None => "the processor has no AVX-512",
            Some(Ranges {
                registers: None, ..
            }) => {
                "3 to 132 variables: no step stands out; the processor hides loads and stores of the stack"
            }
            Some(_) => {
                "3 to 132 variables that a compiler gives registers: the last number before costs rise, and how much they rise"
            }
        };
        let confidence = found.as_ref().map_or(0.0, |f| f.confidence);
        measured.tell(format!("cores.{}_registers", class.name()), confidence, how);
        let value = match class {
            Class::Integer => &mut measured.cores.integer_registers,
            Class::Float => &mut measured.cores.float_registers,
            Class::Vector => &mut measured.cores.vector_registers,
        };
        *value = found.as_ref().and_then(|f| f.registers);
        measured.curves.extend(found.map(|f| f.curve));
    }
}

fn threads(
    session: &Session,
    measured: &mut Measured,
    cores: &[u32],
    work: Work,
    until: f64,
) -> Result<(), Error> {
    let what = format!("cores.{}_contexts", work.name());
    if session.left() == 0.0 || cores.is_empty() {
        measured.tell(what, 0.0, NO_TIME);
        return Ok(());
    }
    session.step(&format!("contexts of threads: {}", work.name()));
    let found = contexts::measure(session, work, cores, until)?;
    let how = match found.threads {
        Some(_) => {
            "more and more threads, bound to no core: the first step above the mean, and whether one bound to each hinder each other"
        }
        None => {
            "no number of threads up to that of the processors hindered them by more than noise"
        }
    };
    let how = format!("{how}; {} processors may be used", cores.len());
    measured.tell(what, found.confidence, &how);
    measured.curves.push(found.curve);
    *match work {
        Work::Float => &mut measured.cores.float_contexts,
        Work::Integer => &mut measured.cores.integer_contexts,
        Work::Memory => &mut measured.cores.memory_contexts,
    } = found.threads;
    Ok(())
}

fn time_slot(session: &Session, measured: &mut Measured, cores: &[u32]) -> Result<(), Error> {
    let what = "cores.time_slot_seconds".to_owned();
    if session.left() == 0.0 || cores.is_empty() {
        measured.tell(what, 0.0, NO_TIME);
        return Ok(());
    }
    session.step("time slot");
    let slot = slot::measure(session, cores)?;
    let how = match slot.seconds {
        Some(_) => {
            "two threads bound to each core: the most common time that one runs, and whether the other's pauses are as long"
        }
        None => "too few pauses while two threads shared each core",
    };
    measured.tell(what, slot.confidence, how);
    measured.cores.time_slot_seconds = slot.seconds;
    measured.curves.push(slot.curve);
    Ok(())
}

#[cfg(test)]
mod tests;
