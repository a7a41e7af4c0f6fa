use super::*;
use crate::subset::document::tests::subset;

fn known(ratios: &[f64]) -> Vec<Option<Ratio>> {
    let ratio = |value: &f64| Ratio {
        value: *value,
        noise: 0.0,
    };
    ratios.iter().map(|r| Some(ratio(r))).collect()
}

/// Two programs: `one` has points 0 and 1, `other` 2 and 3; clusters {0, 2}, represented by 0, and {1, 3}, represented by 3.
#[test]
fn programs_are_sums_over_clusters() {
    let mut subset = subset();
    for cluster in &mut subset.clusters {
        cluster.checks.clear();
    }
    // Half as long in the first cluster, twice as long in the second.
    let found = predict(&subset, &known(&[0.5, f64::NAN, f64::NAN, 2.0]), DISAGREE);
    // `one`: 3 s and 1 s of 5 s; `other`: 2 s and 6 s of 10 s.
    let seconds: Vec<f64> = found
        .programs
        .iter()
        .map(|p| p.outcome.predicted_seconds.unwrap())
        .collect();
    assert!((seconds[0] - 5.0 * (1.5 + 2.0) / 4.0).abs() < 1e-12);
    assert!((seconds[1] - 10.0 * (1.0 + 12.0) / 8.0).abs() < 1e-12);
    assert_eq!(found.programs[0].outcome.covered, 0.8);
    // Without checks nothing says how far members are from representatives.
    assert!(found.deviation.is_none() && found.programs[0].outcome.low.is_none());
    assert!(
        found.programs[0]
            .outcome
            .reason
            .as_ref()
            .unwrap()
            .contains("--checks")
    );
    assert!(found.refused.is_empty());
    let own: Vec<bool> = found.ratios.iter().map(|r| r.unwrap().1).collect();
    assert_eq!(own, [true, false, false, true]);
}

#[test]
fn checks_tell_how_far_members_are() {
    // Clusters {0, 1, 2} and {3, 4, 5}: representatives are of program 0, checks of 1, the others of 2.
    let subset = crate::subset::document::tests::large(2, 3);
    let unknown = f64::NAN;
    let of = |check: f64| {
        let mut ratios = known(&[0.5, check, unknown, 2.0, 2.0, unknown]);
        (ratios[2], ratios[5]) = (None, None);
        predict(&subset, &ratios, DISAGREE)
    };
    let (near, far) = (of(0.51), of(0.6));
    let width = |of: &Prediction| {
        let program = &of.programs[2].outcome;
        (program.high.unwrap() / program.low.unwrap()).ln()
    };
    assert!(0.0 < width(&near) && width(&near) < 0.3 * width(&far));
    assert_eq!(far.checks, 2);
    let deviation = (0.6f64 / 0.5).ln() / 2f64.sqrt();
    assert!((far.deviation.unwrap() - deviation).abs() < 1e-12);
    // 2.5 s of 2 s on the reference: points of 0.5 and 2 s, the first apart by a deviation, the second too.
    let expected = 2.0 * cere_timing::stats::student(2) * deviation * (0.25f64 + 4.0).sqrt() / 2.5;
    assert!((width(&far) - expected).abs() < 1e-9);
    // A check is its own measurement.
    let check = &far.programs[1].outcome;
    assert_eq!(check.predicted_seconds, Some(2.6));
    assert_eq!(check.low, check.high);
}

#[test]
fn a_cluster_whose_check_disagrees_is_refused() {
    let mut subset = subset();
    // A third member of the first cluster that nobody measures.
    subset.clusters[0].members.push(1);
    subset.clusters[1].members.retain(|p| *p != 1);
    subset.clusters[1].checks.clear();
    let found = predict(&subset, &known(&[0.5, f64::NAN, 0.9, 2.0]), DISAGREE);
    assert_eq!(found.refused.len(), 1);
    let refused = &found.refused[0];
    assert!(refused.reason.contains("0.50") && refused.reason.contains("0.90"));
    assert_eq!((refused.cluster, refused.seconds), (0, 1.0));
    // Point 1 counts as uncovered: 3 of 5 s.
    assert!((found.programs[0].outcome.covered - 0.6).abs() < 1e-12);
    assert!((found.programs[0].outcome.predicted_seconds.unwrap() - 2.5).abs() < 1e-12);
    // Within noise nothing disagrees.
    let mut noisy = known(&[0.5, f64::NAN, 0.9, 2.0]);
    for ratio in noisy.iter_mut().flatten() {
        ratio.noise = 0.3f64.powi(2);
    }
    assert!(predict(&subset, &noisy, DISAGREE).refused.is_empty());
}

#[test]
fn what_was_not_measured_is_replaced_or_refused() {
    let subset = subset();
    // The representative of the first cluster failed: its check stands in.
    let mut ratios = known(&[1.0, 2.0, 0.5, 2.0]);
    ratios[0] = None;
    let found = predict(&subset, &ratios, DISAGREE);
    assert_eq!(found.ratios[0], Some((0.5, false)));
    // Nothing of it was measured: program `one` is covered to a fifth.
    ratios[2] = None;
    let found = predict(&subset, &ratios, DISAGREE);
    assert_eq!(found.programs[0].outcome.predicted_seconds, None);
    assert!(
        found.programs[0]
            .outcome
            .reason
            .as_ref()
            .unwrap()
            .contains("20 %")
    );
    assert_eq!(found.refused.len(), 1);
    assert!(found.programs[1].outcome.predicted_seconds.is_some());
}

#[test]
fn noise_of_rounds() {
    let ratio = Ratio::of(&[2.0, 2.2, 2.1], &[1.0, 1.0]);
    assert_eq!(ratio.value, 2.0);
    assert!(ratio.noise > 0.0);
    let steady = Ratio::of(&[2.0, 2.0], &[1.0, 1.0]);
    assert_eq!(steady.noise, 0.0);
    // In turns, a machine that slows down does not count.
    let turns = Ratio::in_turns(&[(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)]).unwrap();
    assert_eq!((turns.value, turns.noise), (2.0, 0.0));
    assert_eq!(Ratio::in_turns(&[]), None);
    let point = Ratio::of_point([(0.25, steady), (0.75, Ratio::of(&[4.0; 2], &[1.0; 2]))]);
    assert_eq!(point.value, 3.5);
}

/// 95 % of intervals hold the true time: members scatter around their representatives by the same deviation everywhere.
#[test]
fn intervals_hold_the_truth() {
    let deviation = 0.08;
    let mut state = 1u64;
    let mut normal = || {
        // A sum of twelve uniform numbers.
        let sum: f64 = (0..12)
            .map(|_| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (state >> 11) as f64 / (1u64 << 53) as f64
            })
            .sum();
        sum - 6.0
    };
    let (clusters, members) = (12, 8);
    let subset = crate::subset::document::tests::large(clusters, members);
    let (mut held, mut all) = (0, 0);
    for _ in 0..200 {
        let mut truth = vec![0.0; subset.points.len()];
        let mut ratios = vec![None; subset.points.len()];
        for cluster in &subset.clusters {
            let own = (0.5 * normal()).exp();
            for point in &cluster.members {
                let apart = match *point == cluster.representative {
                    true => 0.0,
                    false => deviation * normal(),
                };
                truth[*point] = own * apart.exp();
            }
            for point in std::iter::once(&cluster.representative).chain(&cluster.checks) {
                ratios[*point] = Some(Ratio {
                    value: truth[*point],
                    noise: 0.0,
                });
            }
        }
        let found = predict(&subset, &ratios, 2.0);
        for (number, program) in found.programs.iter().enumerate() {
            let points = subset.points.iter().zip(&truth);
            let own = points.filter(|(p, _)| p.program == number);
            let there: f64 = own.map(|(p, ratio)| p.seconds * ratio).sum();
            let (low, high) = (program.outcome.low.unwrap(), program.outcome.high.unwrap());
            held += usize::from((low..=high).contains(&there));
            all += 1;
        }
    }
    let share = held as f64 / all as f64;
    assert!((0.90..=0.99).contains(&share), "{share}");
}
