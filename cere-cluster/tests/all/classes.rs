//! Performance classes.

use cere_cluster::{ClassError, Classes, Criterion, EXACT_TIMES, Timed, Whole, classes, line};
use proptest::prelude::*;

fn of(cycles: &[u64]) -> Result<Classes, ClassError> {
    let invocations = cycles.len() as u64;
    let whole = Whole {
        invocations,
        total: cycles.iter().sum::<u64>() as f64,
    };
    classes(|| timed(cycles), whole, Criterion::default())
}

fn timed(cycles: &[u64]) -> impl Iterator<Item = Timed> {
    (1..).zip(cycles).map(|(invocation, cycles)| Timed {
        invocation,
        cycles: *cycles,
        weight: 1.0,
    })
}

#[test]
fn one_class() {
    let equal = of(&[5000; 40]).unwrap();
    assert_eq!((equal.classes.len(), equal.deviation), (1, 0.0));
    let class = equal.classes[0];
    assert_eq!((class.invocation, class.cycles), (2, 5000));
    assert_eq!((class.count, class.total), (40, 200_000.0));
    assert_eq!(
        (class.least, class.most, class.deviation),
        (5000, 5000, 0.0)
    );
    let single = of(&[7]).unwrap().classes;
    assert_eq!((single[0].invocation, single[0].count), (1, 1));
    // Within 5 percent.
    assert_eq!(of(&[960, 1000, 1040, 1000]).unwrap().classes.len(), 1);
}

/// The first invocation is slow and apart; the others alternate.
#[test]
fn three_classes() {
    let mut cycles = vec![900_000];
    for i in 0..50 {
        cycles.extend([10_000 + i, 30_000 + i]);
    }
    let found = of(&cycles).unwrap();
    let kinds: Vec<(u64, u64)> = found.classes.iter().map(|c| (c.cycles, c.count)).collect();
    // By falling total.
    assert_eq!(kinds, [(30_024, 50), (900_000, 1), (10_024, 50)]);
    assert_eq!(found.classes[1].invocation, 1);
    assert!(found.deviation < 0.01);
    let total: f64 = found.classes.iter().map(|c| c.total).sum();
    assert!((total - cycles.iter().sum::<u64>() as f64).abs() < 1e-6);
    for (cycles, class) in [(1, 2), (10_000, 2), (20_024, 2), (20_025, 0), (500_000, 1)] {
        assert_eq!(found.of(cycles), class, "{cycles}");
    }
}

/// A looser criterion takes fewer classes, and the cap holds.
#[test]
fn as_many_as_it_takes() {
    let cycles: Vec<u64> = (0..400).map(|i| 1000 + 25 * i).collect();
    let whole = Whole {
        invocations: 400,
        total: 1.0,
    };
    let mut last = usize::MAX;
    for deviation in [0.0, 0.02, 0.05, 0.1, 0.2, 1.0] {
        let criterion = Criterion {
            deviation,
            ..Criterion::default()
        };
        let found = classes(|| timed(&cycles), whole, criterion).unwrap();
        let count = found.classes.len();
        assert!(count <= last && count <= criterion.most);
        let exact = |clusters| {
            let values: Vec<f64> = cycles.iter().map(|c| *c as f64).collect();
            let cost = line(&values, &[1.0; 400], clusters).unwrap().cost;
            cost / values.iter().sum::<f64>()
        };
        assert!((found.deviation - exact(count)).abs() < 1e-9);
        assert!(count == 1 || exact(count - 1) > deviation);
        assert!(count == criterion.most || found.deviation <= deviation);
        last = count;
    }
    assert_eq!(last, 1);
}

/// 4096 kept ones and a few that stand for a million: the counts and the times are the region's.
#[test]
fn scaled_to_the_region() {
    let first = (1..=4096).map(|i| (i, 1000, 1.0));
    let later = (0..1000).map(|i| (5000 + 997 * i, if i % 4 == 0 { 8000 } else { 2000 }, 1000.0));
    let all: Vec<(u64, u64, f64)> = first.chain(later).chain([(4097, 0, 1.0)]).collect();
    let whole = Whole {
        invocations: 1_004_097,
        total: 12.5,
    };
    let source = || {
        all.iter().map(|(invocation, cycles, weight)| Timed {
            invocation: *invocation,
            cycles: *cycles,
            weight: *weight,
        })
    };
    let found = classes(source, whole, Criterion::default())
        .unwrap()
        .classes;
    let kinds: Vec<u64> = found.iter().map(|c| c.cycles).collect();
    assert_eq!(kinds, [8000, 2000]);
    assert_eq!(found.iter().map(|c| c.count).sum::<u64>(), 1_004_097);
    assert_eq!(found[0].count, 250_000);
    assert_eq!(found[0].invocation, 5000);
    assert!((found.iter().map(|c| c.total).sum::<f64>() - 12.5).abs() < 1e-9);
}

#[test]
fn input_without_classes() {
    assert_eq!(of(&[]).unwrap_err(), ClassError::NoTimes);
    assert_eq!(of(&[0, u64::MAX]).unwrap_err(), ClassError::NoTimes);
    let with = |invocations, total, weight| {
        let timed = Timed {
            invocation: 1,
            cycles: 5,
            weight,
        };
        let whole = Whole { invocations, total };
        classes(|| [timed].into_iter(), whole, Criterion::default())
    };
    assert!(with(1, 1.0, 1.0).is_ok());
    let invocations = ClassError::Invocations {
        kept: 1,
        invocations: 0,
    };
    assert_eq!(with(0, 1.0, 1.0), Err(invocations));
    assert!(matches!(with(1, f64::NAN, 1.0), Err(ClassError::Total(_))));
    for weight in [0.0, -1.0, f64::INFINITY] {
        assert!(matches!(with(1, 1.0, weight), Err(ClassError::Cluster(_))));
    }
}

/// More different times than are held: CLARA's classes, which are nearly as good.
#[test]
fn more_times_than_are_held() {
    let count = 4 * EXACT_TIMES as u64;
    let cycles = |i: u64| [100_000_000, 400_000_000, 1_000_000_000][(i % 3) as usize] + i * 100;
    let source = || {
        (1..=count).map(move |invocation| Timed {
            invocation,
            cycles: cycles(invocation),
            weight: 1.0,
        })
    };
    let whole = Whole {
        invocations: count,
        total: 1.0,
    };
    let found = classes(source, whole, Criterion::default()).unwrap();
    assert!(found.sampled);
    let counts: Vec<u64> = found.classes.iter().map(|c| c.count).collect();
    assert_eq!(counts, [21845, 21846, 21845]);
    for class in &found.classes {
        assert_eq!(cycles(class.invocation), class.cycles);
    }
    assert!(found.deviation < 0.01, "{}", found.deviation);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_always_holds(cycles in prop::collection::vec((0..200u64).prop_map(|c| c * c), 1..60)) {
        let Ok(found) = of(&cycles) else {
            prop_assert!(cycles.iter().all(|c| *c == 0));
            return Ok(());
        };
        let count = found.classes.len();
        prop_assert!((1..=10).contains(&count));
        prop_assert!(found.deviation <= 0.05 || count == 10);
        prop_assert_eq!(found.classes.iter().map(|c| c.count).sum::<u64>(), cycles.len() as u64);
        let total: f64 = found.classes.iter().map(|c| c.total).sum();
        let all = cycles.iter().sum::<u64>() as f64;
        prop_assert!((total - all).abs() <= 1e-9 * all);
        for (place, class) in found.classes.iter().enumerate() {
            prop_assert!(class.cycles > 0);
            prop_assert_eq!(cycles[class.invocation as usize - 1], class.cycles);
            prop_assert!(class.least <= class.cycles && class.cycles <= class.most);
            prop_assert_eq!(found.of(class.cycles), place);
            let later = cycles[1..].contains(&class.cycles);
            prop_assert!(class.invocation > 1 || !later);
        }
    }
}
