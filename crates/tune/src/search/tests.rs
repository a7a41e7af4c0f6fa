//! Searches of made-up spaces whose optimum is known.

use super::*;
use crate::space::{Group, Sequences};

/// `groups` groups of `choices` choices: `-g2=3` is the third choice of group 2.
fn space(groups: usize, choices: usize) -> Space {
    let group = |g: usize| Group {
        name: format!("g{g}"),
        choices: (1..=choices).map(|c| vec![format!("-g{g}={c}")]).collect(),
        changes_values: false,
    };
    Space {
        groups: (0..groups).map(group).collect(),
        sequences: None,
    }
}

fn with_sequences(mut space: Space, drop: f64) -> Space {
    space.sequences = Some(Sequences {
        pipeline: "default<O3>".to_owned(),
        drop,
        rounds: 3,
        levels: vec![vec!["-O1".to_owned()], vec!["-O2".to_owned()]],
    });
    space
}

fn pipeline() -> Option<Pipeline> {
    Some(Pipeline::parse("a,b,function(c,d,loop(e,f)),g").unwrap())
}

fn search(space: Space, method: Method, seed: u64) -> Search {
    Search::new(space, pipeline(), method, seed).unwrap()
}

/// The true ratio of a variant: three of all groups matter, two of them only together.
fn truth(variant: &Variant) -> f64 {
    let has = |flag: &str| variant.flags.iter().any(|f| f == flag);
    let factors = [
        (has("-g2=3"), 0.8),
        (has("-g2=1"), 0.95),
        (has("-g5=2"), 0.85),
        (has("-g5=4"), 1.5),
        (has("-g9=1"), 0.9),
        (has("-g5=2") && has("-g9=1"), 0.95),
        (has("-g7=2"), 1.2),
    ];
    let there = factors.iter().filter(|f| f.0);
    there.map(|f| f.1).product()
}
const OPTIMUM: f64 = 0.8 * 0.85 * 0.9 * 0.95;

/// Noise between -1 and 1, a function of number and seed.
fn noise(number: u64, seed: u64) -> f64 {
    let mixed = (number ^ seed << 32)
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// The best variant after 150 measurements that are off by up to `error`, with its true ratio.
fn found(method: Method, seed: u64, error: f64) -> (f64, Variant) {
    let mut search = search(space(12, 4), method, seed);
    for _ in 0..150 {
        let (number, variant) = search.propose().unwrap();
        let measured = truth(&variant) * (1.0 + error * noise(number, seed));
        search.tell(number, Some(measured));
    }
    let (best, _) = search.best().unwrap();
    (truth(best), best.clone())
}

#[test]
fn what_matters_is_found() {
    for seed in 0..10 {
        let (ratio, best) = found(Method::Groups, seed, 0.01);
        assert!(ratio < OPTIMUM * 1.03, "seed {seed}: {ratio} of {best}");
    }
}

/// Without noise, because noise hides whether a flag has an effect.
#[test]
fn what_does_not_matter_is_left_out() {
    for seed in 0..10 {
        let (_, best) = found(Method::Groups, seed, 0.0);
        assert_eq!(best.flags, ["-g2=3", "-g5=2", "-g9=1"], "seed {seed}");
    }
}

#[test]
fn learning_beats_drawing() {
    let mean = |method| (0..20).map(|s| found(method, s, 0.01).0).sum::<f64>() / 20.0;
    let (random, groups) = (mean(Method::Random), mean(Method::Groups));
    assert!(groups < random * 0.9, "groups {groups}, random {random}");
}

#[test]
fn choices_that_fail_are_left() {
    let fails = |v: &Variant| {
        v.flags
            .iter()
            .any(|f| ["-g1=2", "-g3=1", "-g3=4"].contains(&&f[..]))
    };
    for seed in 0..5 {
        let mut search = search(space(8, 4), Method::Groups, seed);
        let mut failed = [0, 0];
        for i in 0..200 {
            let (number, variant) = search.propose().unwrap();
            let bad = fails(&variant);
            failed[i / 100] += usize::from(bad);
            search.tell(number, (!bad).then(|| truth(&variant)));
        }
        assert!(failed[1] <= 10, "seed {seed}: {failed:?}");
        assert!(failed[0] > failed[1], "seed {seed}: {failed:?}");
        assert!(!fails(search.best().unwrap().0));
    }
}

#[test]
fn levels_come_first() {
    let mut levels = space(4, 3);
    levels.groups[2].name = "level".to_owned();
    for method in [Method::Random, Method::Groups] {
        let mut search = search(with_sequences(levels.clone(), 0.5), method, 1);
        for number in 0..3 {
            let variant = Variant {
                flags: vec![format!("-g2={}", number + 1)],
                passes: None,
            };
            assert_eq!(search.propose(), Some((number, variant)), "{method}");
        }
        assert!(search.propose().is_some());
    }
}

#[test]
fn small_spaces_are_exhausted_and_nothing_comes_twice() {
    for method in [Method::Random, Method::Groups] {
        let mut search = search(space(3, 2), method, 5);
        let mut seen = HashSet::new();
        while let Some((number, variant)) = search.propose() {
            assert_eq!(number, seen.len() as u64);
            assert!(!search.exhausted());
            assert_ne!(variant, Variant::default());
            search.tell(number, (number % 3 > 0).then(|| truth(&variant)));
            assert!(seen.insert(variant));
        }
        assert!(search.exhausted());
        assert_eq!(seen.len(), 26, "{method}");
    }
}

#[test]
fn large_spaces_have_no_duplicates() {
    for method in [Method::Random, Method::Groups] {
        let mut search = search(with_sequences(space(6, 3), 0.5), method, 3);
        let mut seen = HashSet::new();
        let mut sequences = 0;
        for _ in 0..300 {
            let (number, variant) = search.propose().unwrap();
            let passes = variant.passes.as_ref().map_or(7, String::len);
            sequences += usize::from(variant.passes.is_some());
            search.tell(number, Some(truth(&variant) + passes as f64 / 1e3));
            assert!(variant != Variant::default() && seen.insert(variant));
        }
        assert!((30..270).contains(&sequences), "{method}: {sequences}");
    }
}

#[test]
fn the_same_again() {
    for method in [Method::Random, Method::Groups] {
        let run = |seed| {
            let mut search = search(with_sequences(space(6, 3), 0.5), method, seed);
            let mut proposed = Vec::new();
            for round in 0..30 {
                // Several are pending at a time, and reported in reverse order.
                let batch: Vec<_> = (0..5).filter_map(|_| search.propose()).collect();
                for (number, variant) in batch.into_iter().rev() {
                    search.tell(number, (round % 7 > 0).then(|| truth(&variant)));
                    proposed.push(variant);
                }
            }
            proposed
        };
        assert_eq!(run(1), run(1), "{method}");
        assert_ne!(run(1), run(2), "{method}");
    }
}

#[test]
fn outcomes_are_waited_for() {
    let mut groups = search(space(12, 4), Method::Groups, 1);
    let out: Vec<u64> = std::iter::from_fn(|| groups.propose())
        .map(|p| p.0)
        .collect();
    assert_eq!(out.len(), AWAITED);
    assert!(!groups.exhausted());
    groups.tell(out[7], None);
    assert!(groups.propose().is_some());
    assert!(groups.propose().is_none());
    let mut random = search(space(12, 4), Method::Random, 1);
    assert!((0..100).all(|_| random.propose().is_some()));
}

#[test]
fn sequences_that_are_all_one() {
    // No pass is dropped: one sequence for each level and one without.
    for method in [Method::Random, Method::Groups] {
        let mut search = search(with_sequences(Space::default(), 0.0), method, 1);
        let mut proposed = Vec::new();
        while let Some((number, variant)) = search.propose() {
            search.tell(number, None);
            proposed.push(variant.passes.unwrap());
        }
        assert!(search.exhausted());
        let whole = "a,b,function(c,d,loop(e,f)),g";
        assert_eq!(
            proposed,
            vec![format!("{whole},{whole},{whole}"); 3],
            "{method}"
        );
    }
    // All passes are dropped.
    let mut none = search(with_sequences(Space::default(), 1.0), Method::Groups, 1);
    assert_eq!(none.propose(), None);
    assert!(none.exhausted());
}

#[test]
fn odd_spaces() {
    let no_choices = space(2, 0);
    for method in [Method::Random, Method::Groups] {
        for space in [Space::default(), no_choices.clone()] {
            let mut search = search(space, method, 1);
            assert_eq!(search.propose(), None);
            assert!(search.exhausted());
        }
    }
    let unknown = Search::new(with_sequences(space(1, 1), 0.5), None, Method::Random, 1);
    assert!(unknown.unwrap_err().to_string().contains("default<O3>"));
}

#[test]
fn the_shortest_of_equals_is_the_best() {
    let mut search = search(space(2, 4), Method::Random, 1);
    let mut told = Vec::new();
    while let Some((number, variant)) = search.propose() {
        // Both flags: 0.500; the first alone, half a percent of that more.
        let ratio = match (variant.flags.len(), &variant.flags[0][..]) {
            (2, "-g0=1") => 0.5,
            (1, "-g0=1") => 0.502,
            (1, _) => 0.503,
            _ => 0.9,
        };
        search.tell(number, Some(ratio));
        search.tell(number + 1000, Some(0.1));
        told.push(ratio);
    }
    assert_eq!(told.len(), 24);
    let (best, ratio) = search.best().unwrap();
    assert_eq!((best.to_string(), ratio), ("-g0=1".to_owned(), 0.502));
    search.tell(0, Some(f64::NAN));
    search.tell(1, Some(-1.0));
    assert!(search.best().unwrap().1 > 0.0);
}
