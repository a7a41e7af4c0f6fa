//! What of a measured machine a blocking needs.

use cere_format::machine::{Machine, Operation, Peak, USABLE};
use thiserror::Error;

/// Ratio of peaks from which a wider vector is worth it.
const WIDER: f64 = 1.1;

/// A parameter that a blocking needs and the measurement does not have.
#[derive(Debug, Clone, PartialEq, Error)]
#[error(
    "{what} is not known well enough: {why}; measure again with `cere machine` while the machine does nothing else"
)]
pub struct Unknown {
    /// The parameter.
    pub what: String,
    /// Why.
    pub why: String,
}

/// Parameters of one core for a kernel in `f64`.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Bytes of a line.
    pub line: u64,
    /// Bytes of the nearest cache.
    pub l1: u64,
    /// Bytes of the second cache.
    pub l2: u64,
    /// Bytes of the third cache; `None` where there is none or it is not known well enough.
    pub l3: Option<u64>,
    /// Bits of a vector.
    pub bits: u32,
    /// Vectors that stay in registers.
    pub registers: u32,
    /// Independent fused multiply-adds that hide their latency.
    pub streams: u32,
}

/// An error of a value that has confidence and method under `path`.
fn unknown(machine: &Machine, what: &str, path: &str) -> Unknown {
    let found = machine.found.iter().find(|f| f.what == path);
    let why = found.map_or("it was not measured".to_owned(), |f| {
        format!("confidence {:.2}, {}", f.confidence, f.how)
    });
    Unknown {
        what: what.to_owned(),
        why,
    }
}

/// Bits of the vectors of `element` with the highest measured peak of fused multiply-adds, or of additions where there are none.
/// Wider vectors are taken only if their peak is clearly higher, by a tenth: they may lower the frequency. `None` without a usable
/// peak.
#[must_use]
pub fn vector_bits(machine: &Machine, element: &str) -> Option<u32> {
    let of = |name: &str| {
        let peaks = machine.peaks.iter().enumerate();
        let usable = |place: usize| machine.confidence(&format!("peaks[{place}]")) >= USABLE;
        let mut known: Vec<&Peak> = peaks
            .filter(|(place, p)| {
                (p.name.as_str(), p.element.as_str(), p.cores) == (name, element, 1)
                    && usable(*place)
            })
            .map(|(_, peak)| peak)
            .collect();
        known.sort_by_key(|peak| peak.bits);
        let better =
            |best: &'_ Peak, peak: &'_ Peak| peak.flops_per_second > WIDER * best.flops_per_second;
        known
            .into_iter()
            .reduce(|best, peak| if better(best, peak) { peak } else { best })
            .map(|peak| peak.bits)
    };
    of("fma").or_else(|| of("add"))
}

/// The usable operation `name` of `element`, in vectors of `bits` or, if that was not measured, of another width.
#[must_use]
pub fn operation<'m>(
    machine: &'m Machine,
    name: &str,
    element: &str,
    bits: u32,
) -> Option<&'m Operation> {
    let known = machine.operations.iter();
    let mut known: Vec<&Operation> = known
        .filter(|op| op.name == name && op.element == element && op.confidence >= USABLE)
        .collect();
    known.sort_by_key(|op| op.bits.abs_diff(bits));
    known.first().copied()
}

/// Independent operations that keep the units busy: latency times throughput.
#[must_use]
pub fn streams(operation: &Operation) -> u32 {
    (operation.latency_adds * operation.per_add - 0.25)
        .ceil()
        .max(1.0) as u32
}

/// Registers that AVX-512 can name: all of them, whichever stay free.
const AVX512: u32 = 32;

/// Vectors that stay in registers, of the widest set as measured. Where the processor hides spills that number cannot be observed;
/// vectors of 512 bits have the registers that their instructions name, others those that every x86-64 has.
fn registers(machine: &Machine, bits: u32) -> Result<u32, Unknown> {
    let known =
        |path: &str, number: Option<u32>| number.filter(|_| machine.confidence(path) >= USABLE);
    let cores = &machine.cores;
    let widest = known("cores.vector_registers", cores.vector_registers);
    match bits {
        512.. => Ok(widest.unwrap_or(AVX512)),
        _ => known("cores.float_registers", cores.float_registers)
            .ok_or_else(|| unknown(machine, "the number of registers", "cores.float_registers")),
    }
}

fn cache(machine: &Machine, level: u32) -> Result<u64, Unknown> {
    let place = machine.caches.iter().position(|c| c.level == level);
    let path = format!("caches[{}].size_bytes", place.unwrap_or(usize::MAX));
    machine
        .cache(level)
        .map(|cache| cache.size_bytes)
        .ok_or_else(|| unknown(machine, &format!("the size of L{level}"), &path))
}

impl Parameters {
    /// Of a measurement.
    ///
    /// # Errors
    /// A value that was not measured or whose confidence is below [`USABLE`]; of L3 alone that is no error.
    pub fn of(machine: &Machine) -> Result<Self, Unknown> {
        let line = machine
            .line_bytes
            .filter(|_| machine.confidence("line_bytes") >= USABLE);
        let line = line.ok_or_else(|| unknown(machine, "the size of a line", "line_bytes"))?;
        let bits = vector_bits(machine, "f64")
            .ok_or_else(|| unknown(machine, "the peak of f64 arithmetic", "peaks"))?;
        let fma = operation(machine, "fma", "f64", bits)
            .or_else(|| operation(machine, "add", "f64", bits))
            .ok_or_else(|| unknown(machine, "the latency of f64 arithmetic", "operations"))?;
        Ok(Self {
            line,
            l1: cache(machine, 1)?,
            l2: cache(machine, 2)?,
            l3: cache(machine, 3).ok(),
            bits,
            registers: registers(machine, bits)?,
            streams: streams(fma),
        })
    }
}
