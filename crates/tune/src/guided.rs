//! Where a search starts on a measured machine: guided tuning (BlackjackBench, section 6), for flags.

use crate::Space;
use cere_format::machine::Machine;
use cere_machine::blocking::{operation, streams, vector_bits};

/// Instructions of this processor, of which none rounds otherwise.
const NATIVE: &str = "-march=native -ffp-contract=off";
/// Choices of interleaving and unrolling in the spaces.
const COUNTS: [u32; 3] = [8, 4, 2];

/// A start: choices of groups, with the measured values that they follow from.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Choices, as words.
    pub choices: Vec<Vec<String>>,
    /// Why.
    pub why: String,
}

impl Start {
    fn of(choices: &[&str], why: &str) -> Self {
        let words = |choice: &&str| choice.split(' ').map(str::to_owned).collect();
        Self {
            choices: choices.iter().map(words).collect(),
            why: why.to_owned(),
        }
    }
}

/// The largest number of copies that is offered and not above `streams`.
fn copies(streams: u32) -> Option<u32> {
    COUNTS.into_iter().find(|count| *count <= streams)
}

/// Variants of `space` that follow from the machine, the most promising first; empty where the measurement says nothing, or nothing
/// that the space has.
///
/// - Vectors of the width with the highest measured peak of `f64`, the wider one only if its peak is clearly higher.
/// - As many interleaved copies of a vectorised loop as additions have to be in flight: latency times throughput.
/// - As many copies of a body by unrolling as multiply-adds have to be in flight.
///
/// There is no distance for prefetches: clang 22 runs no pass that inserts them for x86-64, whatever `-prefetch-distance` is.
#[must_use]
pub fn starts(machine: &Machine, space: &Space) -> Vec<Start> {
    let has = |choice: &Vec<String>| space.groups.iter().any(|g| g.choices.contains(choice));
    let mut starts = all_starts(machine);
    for start in &mut starts {
        start.choices.retain(has);
    }
    // A level alone is tried anyway.
    let level = |choice: &Vec<String>| choice.iter().all(|flag| flag.starts_with("-O"));
    starts.retain(|start| !start.choices.iter().all(level));
    let mut before: Vec<Vec<Vec<String>>> = Vec::new();
    starts.retain(|start| {
        let new = !before.contains(&start.choices);
        before.push(start.choices.clone());
        new
    });
    starts
}

fn all_starts(machine: &Machine) -> Vec<Start> {
    let Some(bits) = vector_bits(machine, "f64") else {
        return Vec::new();
    };
    let width = format!("-mprefer-vector-width={bits}");
    let why = format!("{bits} bits have the highest peak of f64");
    let vectors = ["-O3", NATIVE, &width];
    let mut starts = vec![Start::of(&vectors[1..], &why), Start::of(&vectors, &why)];
    let in_flight = |name: &str| operation(machine, name, "f64", bits).map(streams);
    let mut more = |flag: &str, name: &str| {
        let Some((number, copies)) = in_flight(name).and_then(|n| Some((n, copies(n)?))) else {
            return;
        };
        let flag = format!("-mllvm {flag}={copies}");
        let why = format!("{number} {name} f64 in flight keep the units busy");
        starts.push(Start::of(&[&vectors[..], &[&flag]].concat(), &why));
    };
    more("-force-vector-interleave", "add");
    more("-unroll-count", "fma");
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Method, Search};
    use cere_format::machine::{Found, Operation, Peak};

    fn machine(wide: f64) -> Machine {
        let peak = |bits, flops_per_second| Peak {
            name: "fma".to_owned(),
            element: "f64".to_owned(),
            bits,
            cores: 1,
            flops_per_second,
            streams: 8,
        };
        let operation = |name: &str, latency_adds| Operation {
            name: name.to_owned(),
            element: "f64".to_owned(),
            bits: 256,
            latency_adds,
            per_add: 2.0,
            confidence: 0.9,
            ..Operation::default()
        };
        let found = |place: usize| Found {
            what: format!("peaks[{place}]"),
            confidence: 0.9,
            how: String::new(),
        };
        Machine {
            peaks: vec![peak(256, 1e10), peak(512, wide)],
            operations: vec![operation("add", 2.0), operation("fma", 4.0)],
            found: (0..2).map(found).collect(),
            ..Machine::default()
        }
    }

    fn proposals(wide: f64, space: &str) -> Vec<String> {
        let space = Space::parse(Space::built_in(space).unwrap()).unwrap();
        let starts = starts(&machine(wide), &space);
        let search = Search::new(space.values_kept(), None, Method::Groups, 1).unwrap();
        let mut search = search.starting_with(starts.iter().map(|s| &s.choices[..]));
        let proposed = (0..4).map(|_| search.propose().unwrap().1);
        proposed.map(|v| v.flags.join(" ")).collect()
    }

    #[test]
    fn a_search_starts_with_what_the_machine_says() {
        let native = "-march=native -ffp-contract=off -mprefer-vector-width=256";
        assert_eq!(
            proposals(1.05e10, "codegen"),
            [
                native.to_owned(),
                format!("-O3 {native}"),
                format!("-O3 {native} -mllvm -force-vector-interleave=4"),
                format!("-O3 {native} -mllvm -unroll-count=8"),
            ]
        );
        assert!(proposals(2e10, "codegen")[0].ends_with("=512"));
    }

    #[test]
    fn what_the_space_lacks_is_left_out() {
        assert_eq!(proposals(1e10, "levels"), ["-O0", "-O1", "-O2", "-O3"]);
    }

    #[test]
    fn an_unknown_machine_says_nothing() {
        let space = Space::parse(Space::built_in("codegen").unwrap()).unwrap();
        assert!(starts(&Machine::default(), &space).is_empty());
        let mut unsure = machine(2e10);
        unsure.found.clear();
        assert!(starts(&unsure, &space).is_empty());
        let mut half = machine(2e10);
        half.operations.clear();
        assert_eq!(starts(&half, &space).len(), 2);
    }
}
