//! Latency, throughput and operations in flight of one operation (BlackjackBench 3.3).

use super::probe::{Costs, Pair, agreement_within, costs, repeatability, second_lowest};
use super::target::{Element, Kind, Target};
use crate::Error;
use crate::analysis::monotone;
use crate::document::curve;
use crate::session::Session;
use cere_arch::feature::{Feature, has};
use cere_format::machine::{Curve, Operation};
use cere_timing::stats::median;

/// Most streams, as in the paper.
const STREAMS: usize = 20;

/// What was found of an operation.
pub struct Outcome {
    /// The figures.
    pub operation: Operation,
    /// How they were found.
    pub how: String,
    /// Cost of a link of all chains, in additions, by streams.
    pub curve: Vec<(f64, f64)>,
}

/// The operations of this processor, scalars first, then the widest. A quick measurement has fewer.
#[must_use]
pub fn targets(quick: bool) -> Vec<Target> {
    use Kind::*;
    let all = [
        Add, Mul, Fma, Div, Sqrt, And, Xor, Shift, Min, Max, ToFloat, ToInt, RoundTrip,
    ];
    let few = [Add, Mul, Fma, Div];
    let kinds = if quick { &few[..] } else { &all[..] };
    let mut targets = Vec::new();
    let widest = if has(Feature::Avx512f) { 512 } else { 256 };
    for bits in [0, 512, 256, 128] {
        if quick && bits != 0 && bits != widest {
            continue;
        }
        for element in [Element::I32, Element::I64, Element::F32, Element::F64] {
            let width = if bits == 0 { element.bits() } else { bits };
            let found = kinds.iter().map(|kind| Target::new(*kind, element, width));
            targets.extend(found.filter(|t| t.exists()));
        }
    }
    targets
}

/// Measures one, next to additions.
pub fn measure(session: &Session, target: Target) -> Result<Outcome, Error> {
    let runs = session.pick(4, 6);
    let streams = target.streams().min(STREAMS);
    // All code is there before the first is timed: a pause would change the frequency.
    let probes = (1..=streams).map(|count| Pair::new(session, target, count));
    let probes = probes.collect::<Result<Vec<Pair>, Error>>()?;
    let unit = Pair::unit_for(session, target)?;
    let timed = probes
        .iter()
        .map(|probe| costs(session, probe, &unit, runs));
    let found: Vec<Costs> = timed.collect();
    let counted = found.iter().enumerate();
    let curve: Vec<(f64, f64)> = counted
        .map(|(at, costs)| {
            (
                at as f64 + 1.0,
                median(&costs.adds).unwrap_or(f64::INFINITY),
            )
        })
        .collect();
    let (alone, best) = (&found[0], &found[fastest(&curve)]);
    let each = fastest_cost(&curve);
    let restored = restores(target);
    let add = second_lowest(&alone.nanoseconds) / median(&alone.adds).unwrap_or(f64::INFINITY);
    let latency = (median(&alone.adds).unwrap_or(f64::INFINITY) - restored).max(0.0);
    let flight = in_flight(&curve);
    let bend = flight.map_or_else(
        || format!("more than {streams} streams, as many as there are registers"),
        |f| {
            format!(
                "the bend at {} and latency x throughput {:.1}",
                f.bend, f.product
            )
        },
    );
    let agree = flight.map_or(1.0, |f| f.agreement());
    let repeated = repeatability(&alone.adds).min(repeatability(&best.adds));
    let operation = Operation {
        name: target.name().to_owned(),
        element: target.element.name().to_owned(),
        bits: target.bits,
        latency_adds: latency,
        latency_ns: latency * add,
        per_add: 1.0 / each,
        in_flight: flight.map(|f| f.count()),
        confidence: repeated * (0.5 + 0.5 * agree),
    };
    let note = match target.note() {
        "" => String::new(),
        note => format!("; {note}"),
    };
    let how = format!(
        "chains of two lengths timed in turns with additions, 1 to {streams} streams; in flight: {bend}{note}"
    );
    Ok(Outcome {
        operation,
        how,
        curve,
    })
}

/// Index of the number of streams with the second lowest cost of an operation: past the bend all are alike, and one may err.
fn fastest(curve: &[(f64, f64)]) -> usize {
    let mut order: Vec<usize> = (0..curve.len()).collect();
    let each = |at: &usize| curve[*at].1 / curve[*at].0;
    order.sort_by(|a, b| each(a).total_cmp(&each(b)));
    order.get(1).or(order.first()).copied().unwrap_or(0)
}

fn fastest_cost(curve: &[(f64, f64)]) -> f64 {
    let at = curve.get(fastest(curve));
    at.map_or(f64::INFINITY, |(streams, cost)| cost / streams)
}

/// Additions in a chain that are not the operation's.
fn restores(target: Target) -> f64 {
    let general = target.is_general() && target.kind == Kind::Div;
    if general { 1.0 } else { 0.0 }
}

/// The curve of an operation, for people.
#[must_use]
pub fn drawn(outcome: &Outcome) -> Curve {
    let o = &outcome.operation;
    let name = format!(
        "{} {} in {} bits: independent streams",
        o.name, o.element, o.bits
    );
    let titles: [&str; 3] = [
        &name,
        "streams",
        "cost of one operation of each, in additions",
    ];
    let mark = o.in_flight.map(|f| (f64::from(f), "in flight".to_owned()));
    curve(titles, outcome.curve.clone(), mark)
}

/// Operations in flight, by two ways.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flight {
    /// Streams up to which one more costs nothing.
    pub bend: u32,
    /// Where the flat part of the curve and the line of a busy unit meet: latency times throughput.
    pub product: f64,
}

impl Flight {
    /// Whole streams that the unit holds. By the product: near the bend ports are taken unevenly, and it comes early.
    #[must_use]
    pub fn count(&self) -> u32 {
        ((self.product * 1.03) as u32).max(1)
    }

    /// Agreement of both estimates: 1 if they differ by one stream at most, 0 if they differ by half or more.
    #[must_use]
    pub fn agreement(&self) -> f64 {
        let apart = (f64::from(self.bend) - self.product).abs();
        let apart = (apart - 1.0).max(0.0);
        agreement_within(self.product, self.product - apart, 0.5)
    }
}

/// Operations in flight, from the cost of one link of all chains by the number of streams, from 1 on; `None` if it does not rise for
/// good within them.
#[must_use]
pub fn in_flight(costs: &[(f64, f64)]) -> Option<Flight> {
    let points = monotone(costs);
    let alone = points.first()?.1;
    // Where the operation's unit is busy, every further stream adds the same.
    let slope = fastest_cost(costs);
    let flat = points
        .iter()
        .take_while(|(_, cost)| *cost < alone + 0.5 * slope)
        .count();
    let found = Flight {
        bend: flat as u32,
        product: alone / slope,
    };
    let risen = points.last()?.1 > alone + slope;
    (alone > 0.0 && slope > 0.0 && risen && flat < points.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    #[test]
    fn bends_of_modelled_units() {
        let mut random = SmallRng::seed_from_u64(7);
        // Latency, operations per addition, what is in flight.
        for (latency, rate, expected) in [
            (4.0, 2.0, 8),
            (3.0, 1.0, 3),
            (14.0, 0.25, 3),
            (1.0, 4.0, 4),
            (4.0, 4.0, 16),
            (10.0, 0.1, 1),
        ] {
            for _ in 0..50 {
                let curve: Vec<_> = (1..=20)
                    .map(|s| {
                        (
                            f64::from(s),
                            f64::max(latency, f64::from(s) / rate)
                                * (1.0 + random.random_range(0.0..0.015)),
                        )
                    })
                    .collect();
                let found = in_flight(&curve).unwrap();
                assert_eq!(found.count(), expected, "{curve:?}");
                assert!(found.agreement() > 0.8, "{found:?}");
            }
        }
    }

    #[test]
    fn a_unit_that_registers_do_not_fill() {
        let flat: Vec<_> = (1..=14).map(|s| (f64::from(s), 4.0)).collect();
        assert_eq!(in_flight(&flat), None);
        assert_eq!(in_flight(&[]), None);
        let bent = Flight {
            bend: 8,
            product: 12.0,
        };
        assert!(bent.agreement() < 0.6);
    }
}
