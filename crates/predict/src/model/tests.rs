//! Predictions of a program of two parallel regions, from replays whose times are given.

use super::*;
use crate::outcome::error;
use cere_format::build::Region as Recorded;
use std::path::PathBuf;

/// A codelet of the region `index`, captured with `threads` threads: its class of so many, its seconds, and those of one
/// invocation.
pub(crate) fn codelet(
    index: u32,
    invocation: u64,
    class: Option<(u32, u32, f64)>,
    in_vivo: Option<f64>,
) -> Codelet {
    let mut manifest: Manifest =
        serde_json::from_value(cere_testing::package::manifest()).expect("the sample");
    manifest.key = key(index);
    manifest.invocation = invocation;
    manifest.name = format!("r{index}:{invocation}");
    manifest.represents = class.map(
        |(class, classes, seconds)| cere_format::package::Represents {
            classes,
            class,
            invocations: 1,
            seconds,
        },
    );
    manifest.in_vivo = in_vivo.map(|seconds| cere_format::package::InVivo { cycles: 1, seconds });
    (PathBuf::from(&manifest.name), manifest)
}

pub(crate) fn key(index: u32) -> RegionKey {
    RegionKey {
        unit: "0".repeat(32),
        index,
    }
}

/// Names of the regions of a profile; all but those in `loops` are parallel.
pub(crate) fn known(profile: &Profile, loops: &[u32]) -> Vec<Named> {
    let manifest: Manifest =
        serde_json::from_value(cere_testing::package::manifest()).expect("the sample");
    let region: Recorded = manifest.region;
    let named = |r: &cere_format::profile::RegionProfile| Named {
        name: r.name.clone(),
        key: r.key.clone(),
        region: Recorded {
            kind: match loops.contains(&r.key.index) {
                true => RegionKind::Loop,
                false => RegionKind::Parallel,
            },
            ..region.clone()
        },
    };
    profile.regions.iter().map(named).collect()
}

/// One second: 0.5 in r0, 0.3 in r1, 0.1 in a loop.
pub(crate) fn profile() -> Profile {
    cere_testing::profile::profile(&[
        ("r1", None, 0.3, 1.0),
        ("r0", None, 0.5, 1.0),
        ("loop", None, 0.1, 1.0),
    ])
}

/// A replay of so many seconds.
pub(crate) fn replay(seconds: f64, verdict: Verdict) -> Replay {
    Replay {
        pair: Pair {
            in_vitro: seconds,
            spread: vec![seconds; 3],
            in_vivo: None,
            verdict,
        },
        reason: "x is 2 instead of 1".into(),
    }
}

/// The region with index 1 is r0, of two classes; that with index 0 is r1, of one codelet that was chosen by number.
fn codelets() -> Vec<Codelet> {
    vec![
        codelet(1, 7, Some((2, 2, 0.1)), Some(0.02)),
        codelet(1, 3, Some((1, 2, 0.4)), Some(0.1)),
        codelet(0, 1, None, Some(0.3)),
    ]
}

fn with<'a>(profile: &Profile, codelets: &'a [Codelet]) -> Plan<'a> {
    Plan::of(profile, &known(profile, &[2]), codelets).unwrap()
}

/// Replays of every codelet with `threads` threads; of those named, by `times`.
fn replays(plan: &Plan, threads: u32, times: &[(&str, &[f64])]) -> Vec<Replayed> {
    let one = |codelet: &OfClass| {
        let mut replayed = Replayed::none(codelet, threads);
        let own = times
            .iter()
            .find(|(name, _)| *name == codelet.manifest.name);
        for seconds in own.map_or(&[][..], |own| own.1) {
            replayed.add(Ok(replay(*seconds, Verdict::Exact)));
        }
        replayed
    };
    plan.each().map(one).collect()
}

#[test]
fn a_plan_has_the_parallel_regions_by_falling_time() {
    let (profile, codelets) = (profile(), codelets());
    let plan = with(&profile, &codelets);
    let names: Vec<&str> = plan.regions.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["r0", "r1"]);
    // The loop belongs to the sequential part.
    assert!((plan.sequential - 0.2).abs() < 1e-12, "{}", plan.sequential);
    assert_eq!(plan.total, 1.0);
    let names: Vec<&str> = plan.each().map(|c| c.manifest.name.as_str()).collect();
    assert_eq!(names, ["r1:3", "r1:7", "r0:1"]);
    let seconds: Vec<f64> = plan.each().map(|c| c.seconds).collect();
    assert_eq!(seconds, [0.4, 0.1, 0.3]);
    assert_eq!((plan.codelets(), plan.captured()), (3, vec![2]));
}

#[test]
fn without_a_parallel_region_there_is_no_plan() {
    let profile = profile();
    let error = Plan::of(&profile, &known(&profile, &[0, 1, 2]), &[])
        .err()
        .unwrap();
    assert!(
        error.to_string().starts_with("no parallel region ran"),
        "{error}"
    );
}

#[test]
fn codelets_that_do_not_stand_for_all_invocations_are_left_out() {
    let profile = profile();
    // One class of two, two that were chosen by number, one class twice.
    let missing = [codelet(1, 7, Some((2, 2, 0.1)), None)];
    let by_number = [codelet(1, 7, None, None), codelet(1, 8, None, None)];
    let twice = [(); 2].map(|()| codelet(1, 7, Some((1, 1, 0.5)), None));
    for codelets in [&missing[..], &by_number, &twice, &[]] {
        let plan = with(&profile, codelets);
        assert_eq!(plan.codelets(), 0);
        let prediction = Prediction::of(&plan, &[4], &[], true);
        assert!(prediction.nothing());
        assert_eq!(prediction.runs[0].predicted_seconds, 1.0);
        let reason = prediction.runs[0].regions[0].reason.as_ref().unwrap();
        assert!(
            reason.contains("stand for all of its invocations"),
            "{reason}"
        );
    }
}

#[test]
fn each_class_changes_as_its_codelet_does() {
    let (profile, codelets) = (profile(), codelets());
    let plan = with(&profile, &codelets);
    // Half as long; the same; a third.
    let times: [(&str, &[f64]); 3] = [("r1:3", &[0.05]), ("r1:7", &[0.02]), ("r0:1", &[0.1])];
    let prediction = Prediction::of(&plan, &[4], &replays(&plan, 4, &times), true);
    let run = &prediction.runs[0];
    let regions: Vec<f64> = run.regions.iter().map(|r| r.predicted_seconds).collect();
    assert!((regions[0] - 0.3).abs() < 1e-12 && (regions[1] - 0.1).abs() < 1e-12);
    assert!((run.predicted_seconds - 0.6).abs() < 1e-12, "{run:?}");
    assert!((run.replay_seconds - 0.17).abs() < 1e-12, "{run:?}");
    assert!(!prediction.nothing() && prediction.warnings().is_empty());
    // Nothing was measured: what is saved is of the prediction.
    assert!((prediction.reduction().unwrap() - 0.6 / 0.17).abs() < 1e-9);
}

/// A codelet whose time in vivo is not known is compared with its replay as captured.
#[test]
fn a_replay_as_captured_stands_in_for_the_time_in_vivo() {
    let profile = profile();
    let codelets = [codelet(1, 7, Some((1, 1, 0.5)), None)];
    let plan = with(&profile, &codelets);
    let mut all = replays(&plan, 4, &[("r1:7", &[0.1])]);
    let prediction = Prediction::of(&plan, &[4], &all, true);
    let reason = prediction.runs[0].regions[0].reason.as_deref();
    assert_eq!(reason, Some("it was not replayed"));
    all.extend(replays(&plan, 2, &[("r1:7", &[0.25])]));
    let prediction = Prediction::of(&plan, &[4], &all, true);
    assert_eq!(prediction.runs[0].regions[0].reason, None);
    assert!((prediction.runs[0].regions[0].predicted_seconds - 0.2).abs() < 1e-12);
}

#[test]
fn a_codelet_that_fails_with_one_number_of_threads_counts_with_none() {
    let (profile, codelets) = (profile(), codelets());
    let plan = with(&profile, &codelets);
    let times: [(&str, &[f64]); 3] = [("r1:3", &[0.05]), ("r1:7", &[0.02]), ("r0:1", &[0.1])];
    let mut all = replays(&plan, 4, &times);
    all.extend(replays(&plan, 8, &times));
    all[3].add(Err(anyhow::anyhow!("it crashed")));
    assert!(all[0].goes_on() && !all[3].goes_on());
    let prediction = Prediction::of(&plan, &[4, 8], &all, true);
    for run in &prediction.runs {
        let reason = run.regions[0].reason.as_deref();
        assert_eq!(reason, Some("with 8 threads: it crashed"));
        assert_eq!(run.regions[0].predicted_seconds, 0.5);
        assert_eq!(run.regions[1].reason, None);
        assert!((run.predicted_seconds - 0.8).abs() < 1e-12, "{run:?}");
    }
    let told = prediction.warnings();
    let expected =
        "not predicted, counts as profiled (50.0 % of the run): r0: with 8 threads: it crashed";
    assert_eq!(told, [expected]);
}

/// With one thread, now and at capture, a different result excludes a codelet; with several it is reported.
#[test]
fn another_result_counts_where_threads_may_be_the_reason() {
    let profile = profile();
    let mut codelets = [codelet(1, 7, Some((1, 1, 0.5)), Some(0.5))];
    for (captured, now, counts) in [(1, 1, false), (1, 4, true), (2, 1, true), (2, 2, true)] {
        let openmp = codelets[0].1.openmp.as_mut().unwrap();
        openmp.threads = captured;
        let plan = with(&profile, &codelets);
        let mut replayed = Replayed::none(plan.each().next().unwrap(), now);
        replayed.add(Ok(replay(0.25, Verdict::Different)));
        replayed.add(Ok(replay(0.25, Verdict::Different)));
        assert_eq!(replayed.goes_on(), counts, "{captured}, {now}");
        let prediction = Prediction::of(&plan, &[now], &[replayed], true);
        let region = &prediction.runs[0].regions[0];
        assert_eq!(region.reason.is_none(), counts, "{captured}, {now}");
        assert_eq!(region.predicted_seconds, if counts { 0.25 } else { 0.5 });
        let told = format!(
            "r1:7: its time counts, but its result is another: with {now} threads: x is 2 instead of 1"
        );
        assert_eq!(
            prediction.depends == [told],
            counts,
            "{:?}",
            prediction.depends
        );
    }
}

#[test]
fn rounds_are_predicted_by_their_own_replays() {
    let profile = profile();
    let codelets = [codelet(1, 7, Some((1, 1, 0.5)), Some(0.5))];
    let plan = with(&profile, &codelets);
    let all = replays(&plan, 4, &[("r1:7", &[0.2, 0.4, 0.3])]);
    let run = Prediction::of(&plan, &[4], &all, true).runs.remove(0);
    let rounds: Vec<f64> = run.rounds.iter().map(|r| r.0).collect();
    for (round, expected) in rounds.iter().zip([0.7, 0.9, 0.8]) {
        assert!((round - expected).abs() < 1e-12, "{rounds:?}");
    }
    assert_eq!(rounds.len(), 3);
    // All together: what one repetition in 1 - 0.5^(1/3) of the nine stays below, the fast third.
    assert!((run.predicted_seconds - 0.7).abs() < 1e-12, "{run:?}");
}

#[test]
fn the_best_is_the_measured_one_where_all_were_measured() {
    let profile = profile();
    let plan = with(&profile, &[]);
    let mut prediction = Prediction::of(&plan, &[1, 2, 4], &[], true);
    for (run, seconds) in prediction.runs.iter_mut().zip([0.9, 0.5, 0.7]) {
        run.predicted_seconds = seconds;
    }
    assert_eq!(prediction.best().unwrap().threads, 2);
    prediction.runs[0].measured_seconds = Some(0.1);
    assert_eq!(prediction.best().unwrap().threads, 2);
    for (run, seconds) in prediction.runs.iter_mut().zip([0.9, 0.8, 0.7]) {
        run.measured_seconds = Some(seconds);
    }
    assert_eq!(prediction.best().unwrap().threads, 4);
    assert_eq!(
        error(0.5, Some(0.4)).map(|e| (e * 100.0).round()),
        Some(25.0)
    );
    assert_eq!((error(0.5, Some(0.0)), error(0.5, None)), (None, None));
}

#[test]
fn small_regions_are_told_together_and_a_sequential_part_that_changes_is_told() {
    let profile = cere_testing::profile::profile(&[
        ("a", None, 0.005, 1.0),
        ("b", None, 0.004, 1.0),
        ("c", None, 0.5, 1.0),
    ]);
    let plan = Plan::of(&profile, &known(&profile, &[]), &[]).unwrap();
    let mut prediction = Prediction::of(&plan, &[2, 4], &[], false);
    let told = prediction.warnings();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("(50.0 % of the run): c"), "{told:?}");
    let few =
        "2 regions that take 0.9 % of the run together are not predicted, they count as profiled";
    assert_eq!(told[1], few);
    // 5 % of the run is tolerated.
    for (run, sequential) in prediction.runs.iter_mut().zip([0.5, 0.6]) {
        run.measured_seconds = Some(1.0);
        run.measured_sequential = Some(sequential);
    }
    let told = prediction.warnings();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[2].contains("with 4 threads"), "{told:?}");
    assert!(
        told[2].ends_with("in the run with as many threads as at capture"),
        "{told:?}"
    );
}
