//! What holds on every x86-64, on a busy machine as well.

use super::target::{Element, Kind, Target};
use super::*;

fn session() -> Session<'static> {
    Session::new(false, 60.0, &|_| ())
}

fn scalar(session: &Session, kind: Kind, element: Element) -> Operation {
    let target = Target::new(kind, element, element.bits());
    latency::measure(session, target).unwrap().operation
}

#[test]
fn latencies_and_throughputs_of_scalars() {
    let session = session();
    place::on(place::allowed()[0], || {
        let of = |kind, element| scalar(&session, kind, element);
        let add = of(Kind::Add, Element::I32);
        assert!((0.8..1.25).contains(&add.latency_adds), "{add:?}");
        // Every processor of the last decades has two units for integers.
        assert!(add.per_add > 1.3, "{add:?}");
        let sum = of(Kind::Add, Element::F64);
        assert!((1.5..7.5).contains(&sum.latency_adds), "{sum:?}");
        let product = of(Kind::Mul, Element::F64);
        assert!((2.2..8.0).contains(&product.latency_adds), "{product:?}");
        let whole = of(Kind::Mul, Element::I64);
        assert!((2.2..8.0).contains(&whole.latency_adds), "{whole:?}");
        for (quick, kind, element) in [
            (&product, Kind::Div, Element::F64),
            (&whole, Kind::Div, Element::I64),
        ] {
            let slow = of(kind, element);
            assert!(
                slow.latency_adds > 1.3 * quick.latency_adds,
                "{slow:?} {quick:?}"
            );
            assert!(slow.per_add < quick.per_add, "{slow:?} {quick:?}");
        }
        for operation in [&add, &sum, &product, &whole] {
            assert!(
                operation.per_add > 0.8 / operation.latency_adds,
                "{operation:?}"
            );
            assert!((0.0..=1.0).contains(&operation.confidence));
        }
    })
    .unwrap();
}

#[test]
fn every_operation_runs_with_all_its_streams() {
    let session = session();
    let all = latency::targets(false);
    assert!(all.len() > 20);
    for target in &all {
        for streams in [1, target.streams()] {
            probe::Chain::new(&[*target], streams, 3).unwrap().run(3);
        }
    }
    assert!(latency::targets(true).iter().all(|t| all.contains(t)));
    assert!(session.left() > 0.0);
}

/// One more link of a chain, in `f64`; rounded to `f32` by the caller where that is the element.
fn link(kind: Kind, s: f64, c: f64, d: f64) -> f64 {
    match kind {
        Kind::Add => s + d,
        Kind::Mul => s * c,
        Kind::Div => s / c,
        Kind::Fma => s.mul_add(c, d),
        Kind::Sqrt => s.sqrt(),
        Kind::Min => s.min(c),
        Kind::Max => s.max(c),
        _ => s,
    }
}

#[test]
fn operands_stay_normal() {
    // Denormals, infinities and NaNs take other times. Chains are at most some 300 000 long.
    for target in latency::targets(false)
        .into_iter()
        .filter(|t| !t.element.is_integer())
    {
        let single = target.element == Element::F32;
        let values = target.constants().0.map(|v| match single {
            true => f64::from(f32::from_bits(v[0] as u32)),
            false => f64::from_bits(v[0]),
        });
        let [mut s, c, d] = values;
        for _ in 0..400_000 {
            s = link(target.kind, s, c, d);
            if single {
                s = f64::from(s as f32);
            }
        }
        let zero = target.kind == Kind::ToInt;
        assert!(
            zero && s == 0.0 || s.is_normal() && (1e-3..1e9).contains(&s),
            "{target:?}: {s}"
        );
    }
}

#[test]
fn peaks_grow_with_width_and_halve_with_the_element() {
    let session = session();
    let (peaks, found) = peaks::measure(&session, &place::allowed(), f64::INFINITY).unwrap();
    assert_eq!(peaks.len(), found.len());
    let rate = |name: &str, element: &str, bits| {
        let peak = peaks.iter().find(|p| {
            (p.name.as_str(), p.element.as_str(), p.bits, p.cores) == (name, element, bits, 1)
        });
        peak.map(|p| p.flops_per_second)
    };
    for name in ["add", "mul", "fma"] {
        let (Some(single), Some(double)) = (rate(name, "f32", 32), rate(name, "f64", 64)) else {
            assert_eq!(name, "fma");
            continue;
        };
        assert!(
            single > 0.6 * double && double > 0.6 * single,
            "{name} {single} {double}"
        );
        for bits in [128, 256, 512] {
            let (Some(singles), Some(doubles)) = (rate(name, "f32", bits), rate(name, "f64", bits))
            else {
                continue;
            };
            assert!(doubles > 0.9 * double, "{name} {bits}: {doubles} {double}");
            assert!(
                (1.5..2.6).contains(&(singles / doubles)),
                "{name} {bits}: {singles} {doubles}"
            );
        }
    }
    if let (Some(fma), Some(mul)) = (rate("fma", "f64", 256), rate("mul", "f64", 256)) {
        assert!(fma < 2.6 * mul && fma > 0.9 * mul, "{fma} {mul}");
    }
    // All cores at once are faster than one, if they ran at once at all.
    for all in peaks.iter().filter(|p| p.cores > 1) {
        let one = rate(&all.name, &all.element, all.bits).unwrap();
        let most = 1.5 * one * f64::from(all.cores);
        assert!(all.flops_per_second < most, "{all:?} {one}");
    }
}

#[test]
fn a_quick_measurement_has_every_value_or_a_reason() {
    let session = Session::new(true, 20.0, &|_| ());
    let measured = measure(&session).unwrap();
    assert!(
        measured.add_ns > 0.02 && measured.add_ns < 20.0,
        "{}",
        measured.add_ns
    );
    assert!(!measured.operations.is_empty() && !measured.peaks.is_empty());
    for what in [
        "float_contexts",
        "integer_contexts",
        "memory_contexts",
        "integer_registers",
        "float_registers",
        "vector_registers",
        "time_slot_seconds",
    ] {
        let found = measured
            .found
            .iter()
            .find(|f| f.what == format!("cores.{what}"));
        let found = found.unwrap_or_else(|| panic!("{what} is not in {:?}", measured.found));
        assert!(
            (0.0..=1.0).contains(&found.confidence) && !found.how.is_empty(),
            "{found:?}"
        );
    }
    for (at, operation) in measured.operations.iter().enumerate() {
        let found = measured
            .found
            .iter()
            .find(|f| f.what == format!("operations[{at}]"))
            .unwrap();
        assert_eq!(found.confidence, operation.confidence);
        assert!(
            operation.latency_adds.is_finite() && operation.per_add.is_finite(),
            "{operation:?}"
        );
    }
}

#[test]
fn a_session_without_time_says_so() {
    let session = Session::new(false, 0.0, &|_| ());
    let measured = measure(&session).unwrap();
    assert!(measured.operations.is_empty() && measured.peaks.is_empty());
    let slot = measured
        .found
        .iter()
        .find(|f| f.what == "cores.time_slot_seconds")
        .unwrap();
    assert!(slot.how.contains("no time"), "{slot:?}");
}
