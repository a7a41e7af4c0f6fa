//! Rounds of a modelled program.

use super::*;
use crate::model::tests::{codelet, key, known, profile, replay};
use cere_format::replay::Verdict;
use std::path::PathBuf;

/// A program whose region and sequential part speed up with its threads as they should, on a machine that is slower by a
/// factor in each round.
struct Model {
    runs: bool,
    /// Times of rounds over those of an idle machine.
    slow: Vec<f64>,
    /// Runs and replays in order.
    made: Vec<String>,
    fails: Option<u32>,
}

impl Model {
    fn new(runs: bool) -> Self {
        Self {
            runs,
            slow: vec![1.5, 1.0, 1.25],
            made: Vec::new(),
            fails: None,
        }
    }

    /// The factor of the next run or replay with this name.
    fn slow(&mut self, name: String) -> f64 {
        let round = self.made.iter().filter(|made| **made == name).count();
        self.made.push(name);
        self.slow[round]
    }
}

impl Source for Model {
    fn runs(&self) -> bool {
        self.runs
    }

    fn run(&mut self, regions: &[RegionKey], threads: u32) -> Result<Profile> {
        assert_eq!(regions, [key(1), key(0)]);
        let slow = self.slow(format!("run {threads}"));
        // The profile's own regions take 0.8 of it as captured, with two threads.
        let regions = 1.6 / f64::from(threads) * slow;
        let mut run = profile();
        run.seconds = 0.1 * slow + regions;
        run.regions.truncate(2);
        for (region, share) in run.regions.iter_mut().zip([0.375, 0.625]) {
            region.inclusive_seconds = regions * share;
            region.trace.first = vec![(regions * share * 1e9).round() as u64];
        }
        Ok(run)
    }

    fn replay(&mut self, settings: &Settings, file: &Path) -> Result<Replay> {
        let threads = settings.team.threads.unwrap();
        let slow = self.slow(format!("{} {threads}", file.display()));
        if self.fails == Some(threads) {
            anyhow::bail!("it crashed");
        }
        // 10 % slower than in vivo, as captured and with other numbers of threads.
        Ok(replay(
            1.0 / f64::from(threads) * 1.1 * slow,
            Verdict::Exact,
        ))
    }
}

/// Three rounds with 2 and 4 threads of the region with index 1; that with index 0 has no codelet.
fn predict(model: &mut Model, threads: &[u32], measure: bool, sequential: bool) -> Prediction {
    let profile = profile();
    let codelets = [codelet(1, 1, Some((1, 1, 0.5)), Some(0.5))];
    let store = Store::new(PathBuf::from("none"));
    let rounds = Rounds {
        store: &store,
        profile: &profile,
        plan: Plan::of(&profile, &known(&profile, &[2]), &codelets).unwrap(),
        threads,
        settings: Settings {
            flags: Vec::new(),
            passes: None,
            repetitions: Default::default(),
            warmup: None,
            operands: Vec::new(),
            compare: true,
            tolerance: Default::default(),
            timeout: None,
            team: Team::default(),
            energy: None,
            cross: None,
            beside: None,
            sandbox: Default::default(),
        },
        rounds: 3,
        measure,
        sequential,
        events: &Events::ignored(),
    };
    rounds.predict_from(model).unwrap()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn without_runs_the_profile_is_the_reference() {
    let mut model = Model::new(false);
    let prediction = predict(&mut model, &[2, 4], true, true);
    let each = ["r1:1 2", "r1:1 4"];
    assert_eq!(model.made, [each, each, each].concat());
    assert!(prediction.as_profiled);
    near(prediction.sequential_seconds, 0.2);
    // The fast replay over 0.5 seconds in the profile, and r1 as profiled.
    near(prediction.runs[0].predicted_seconds, 0.2 + 0.55 + 0.3);
    near(prediction.runs[1].predicted_seconds, 0.2 + 0.275 + 0.3);
    assert_eq!(prediction.runs[0].measured_seconds, None);
}

#[test]
fn runs_at_capture_are_the_reference_of_the_sequential_part() {
    let mut model = Model::new(true);
    let prediction = predict(&mut model, &[4], false, true);
    // As many threads as at capture, after those asked for: a run a round, and one replay.
    let [round, first] = [["r1:1 4", "run 2"], ["r1:1 2", "r1:1 4"]];
    assert_eq!(
        model.made,
        [&round[..], &first, &["run 2"], &round].concat()
    );
    assert!(!prediction.as_profiled);
    // Fast times count.
    near(prediction.sequential_seconds, 0.1);
    near(prediction.profiled_seconds, 0.9);
    near(prediction.runs[0].predicted_seconds, 0.1 + 0.275 + 0.3);
    assert_eq!(prediction.runs[0].measured_seconds, None);
}

#[test]
fn what_is_measured_is_the_fast_times_of_the_runs() {
    let mut model = Model::new(true);
    let prediction = predict(&mut model, &[2, 4], true, true);
    let each = ["run 2", "r1:1 2", "run 4", "r1:1 4"];
    assert_eq!(model.made, [each, each, each].concat());
    for (run, regions) in prediction.runs.iter().zip([0.8, 0.4]) {
        near(run.measured_seconds.unwrap(), 0.1 + regions);
        near(run.measured_sequential.unwrap(), 0.1);
        near(run.regions[0].measured_seconds.unwrap(), 0.625 * regions);
        let rounds: Vec<f64> = run.rounds.iter().filter_map(|r| r.1).collect();
        assert_eq!(rounds.len(), 3);
        near(rounds[0], 1.5 * (0.1 + regions));
        let (low, high) = run.error_range.unwrap();
        let error = run.outcome().error().unwrap();
        assert!(low <= error && error <= high, "{low} {error} {high}");
    }
    assert_eq!(prediction.best().unwrap().threads, 4);
}

#[test]
fn a_replay_that_failed_is_not_repeated_and_is_told() {
    let mut model = Model::new(false);
    model.fails = Some(4);
    let prediction = predict(&mut model, &[2, 4], false, false);
    assert_eq!(model.made, ["r1:1 2", "r1:1 4", "r1:1 2", "r1:1 2"]);
    assert!(prediction.nothing());
    near(prediction.runs[1].predicted_seconds, 1.0);
    let told =
        "not predicted, counts as profiled (50.0 % of the run): r0: with 4 threads: it crashed";
    assert_eq!(prediction.warnings()[0], told);
}
