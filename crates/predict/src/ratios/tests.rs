//! Ratios of modelled regions.

use super::*;
use cere_format::build::RegionKind;
use cere_measure::{Member, Timed};
use cere_replay::Team;
use cere_testing::noise::{Machine, Noise};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Time of a region, by its name, under flags over that as built; none: it gives another result.
type Truth = fn(&str, &Variant) -> Option<f64>;

#[derive(Clone)]
struct Model {
    truth: Truth,
    machine: Arc<Mutex<Machine>>,
    /// Regions and flags that were timed.
    timed: Arc<Mutex<Vec<String>>>,
    /// Those whose results were judged.
    judged: Arc<Mutex<Vec<String>>>,
    /// What was asked of repetitions: the precision and the seconds.
    repetitions: Arc<Mutex<Vec<(f64, f64)>>>,
    team: Team,
}

impl Measure for Model {
    fn build(&self, _: &Target, variant: &Variant) -> Result<Builds, String> {
        let flags = variant.flags.join(" ");
        match flags.contains("-refused") {
            true => Err("the compiler crashed".into()),
            false => Ok(Builds {
                built: Vec::new(),
                // This flag changes no code.
                code: flags.replace("-nothing", "").trim().to_owned(),
                seconds: 1.0,
            }),
        }
    }

    fn build_new(&self, target: &Target, variant: &Variant) -> Result<Builds, String> {
        self.build(target, variant)
    }

    fn time_while(
        &self,
        target: &Target,
        variant: &Variant,
        _: &Builds,
        (judged, _): (bool, Option<&Team>),
        _: &dyn Fn(&[f64]) -> bool,
    ) -> Result<Timed, String> {
        let name = format!("{} {}", target.name, variant.flags.join(" "));
        if judged {
            self.judged.lock().unwrap().push(name.clone());
        }
        self.timed.lock().unwrap().push(name);
        let ratio = (self.truth)(&target.name, variant).ok_or("another result")?;
        let factor = self.machine.lock().unwrap().factor();
        Ok(Timed {
            costs: vec![ratio * factor],
            wall: 0.0,
            timed: 0.0,
            preparation: Default::default(),
        })
    }

    fn team(&self) -> &Team {
        &self.team
    }

    fn repeating(&self, precision: f64, seconds: f64) -> Box<dyn Measure + '_> {
        self.repetitions.lock().unwrap().push((precision, seconds));
        Box::new(self.clone())
    }
}

fn model(truth: Truth, noise: Noise, seed: u64) -> Model {
    Model {
        truth,
        machine: Arc::new(Mutex::new(Machine::new(noise, seed))),
        timed: Arc::default(),
        judged: Arc::default(),
        repetitions: Arc::default(),
        team: Team::default(),
    }
}

fn target(name: &str, share: f64) -> Target {
    let member = Member {
        package: PathBuf::new(),
        file: PathBuf::new(),
        manifest: serde_json::from_value(cere_testing::package::manifest()).unwrap(),
        sha256: String::new(),
        weight: 1.0,
    };
    Target::new(name, RegionKind::Loop, share, vec![member])
}

fn of(flags: &str) -> Variant {
    Variant {
        flags: flags.split_whitespace().map(str::to_owned).collect(),
        passes: None,
    }
}

fn reason(region: &str, why: &str) -> Reason {
    Reason {
        region: region.into(),
        why: why.into(),
    }
}

fn truth(name: &str, variant: &Variant) -> Option<f64> {
    match (name, &variant.flags.join(" ").replace("-nothing", "")[..]) {
        ("a", "-O1") => Some(0.5),
        ("b", "-O1") => Some(2.0),
        ("b", "-wrong") | ("broken", _) => None,
        // Below the resolution of the clock.
        ("b", "-short") => Some(0.0),
        _ => Some(1.0),
    }
}

fn exact() -> Noise {
    Noise::Recorded(vec![1.0])
}

#[test]
fn the_run_changes_by_each_regions_share() {
    let model = model(truth, exact(), 1);
    let targets = [target("a", 0.6), target("b", 0.1)];
    let variants = [of("-O1"), of("-O2"), of("-nothing"), of("-O1 -nothing")];
    let found = ratios(
        &model,
        &targets,
        &variants,
        4,
        &by_shares(&targets),
        &Events::ignored(),
    );
    // 0.6 x -0.5 + 0.1 x 1.
    for (ratios, expected) in found.ratios.iter().zip([0.8, 1.0, 1.0, 0.8]) {
        let ratios = ratios.as_ref().unwrap();
        assert_eq!(ratios.len(), 4);
        assert!(
            ratios.iter().all(|r| (r - expected).abs() < 1e-12),
            "{ratios:?}"
        );
    }
    assert!((found.covered - 0.7).abs() < 1e-12);
    // Code as built is not timed again, nor is that of the first variant; a region of small share gets fewer rounds.
    let timed = model.timed.lock().unwrap();
    let times = |name: &str| timed.iter().filter(|t| *t == name).count();
    assert_eq!(times("a -nothing") + times("a -O1 -nothing"), 0);
    assert_eq!((times("a -O1"), times("b -O1"), times("b -O2")), (4, 2, 2));
    // Results are judged once.
    assert_eq!(
        *model.judged.lock().unwrap(),
        ["a -O1", "a -O2", "b -O1", "b -O2"]
    );
    // All are compiled.
    assert_eq!(found.compiled, 10.0);
    let repetitions = model.repetitions.lock().unwrap();
    let [(a, a_seconds), (b, b_seconds)] = repetitions[..] else {
        panic!("{repetitions:?}")
    };
    assert!((a - 0.002 / 0.6).abs() < 1e-12 && (b - 0.002 / 0.1).abs() < 1e-12);
    assert!(b_seconds < a_seconds, "{repetitions:?}");
}

#[test]
fn a_set_of_flags_that_fails_is_told_and_the_others_count() {
    let model = model(truth, exact(), 1);
    let targets = [target("a", 0.6), target("b", 0.3)];
    let found = ratios(
        &model,
        &targets,
        &[of("-wrong"), of("-refused"), of("-O1")],
        3,
        &by_shares(&targets),
        &Events::ignored(),
    );
    assert_eq!(found.ratios[0], Err(reason("b", "another result")));
    assert_eq!(found.ratios[1], Err(reason("a", "the compiler crashed")));
    let ratios = found.ratios[2].as_ref().unwrap();
    assert!(ratios.iter().all(|r| (r - 1.0).abs() < 1e-12), "{ratios:?}");
    // What fails once is not timed again.
    let timed = model.timed.lock().unwrap();
    assert_eq!(timed.iter().filter(|t| *t == "b -wrong").count(), 1);
}

#[test]
fn a_region_that_fails_as_built_counts_as_profiled() {
    let model = model(truth, exact(), 1);
    let targets = [target("broken", 0.5), target("a", 0.4)];
    let found = ratios(
        &model,
        &targets,
        &[of("-O1")],
        2,
        &by_shares(&targets),
        &Events::ignored(),
    );
    assert!((found.covered - 0.4).abs() < 1e-12, "{}", found.covered);
    for ratio in found.ratios[0].as_ref().unwrap() {
        assert!((ratio - 0.8).abs() < 1e-12, "{ratio}");
    }
}

#[test]
fn a_region_too_short_to_be_timed_under_flags_counts_as_profiled_there() {
    let model = model(truth, exact(), 1);
    let targets = [target("a", 0.6), target("b", 0.02)];
    let found = ratios(
        &model,
        &targets,
        &[of("-short"), of("-O1")],
        3,
        &by_shares(&targets),
        &Events::ignored(),
    );
    for ratio in found.ratios[0].as_ref().unwrap() {
        assert!((ratio - 1.0).abs() < 1e-12, "{ratio}");
    }
    let [apart] = &found.as_profiled[0][..] else {
        panic!("{:?}", found.as_profiled)
    };
    assert_eq!((apart.reason.region.as_str(), apart.share), ("b", 0.02));
    assert!(apart.reason.why.contains("too short"), "{apart:?}");
    assert!(found.as_profiled[1].is_empty());
    assert!((found.covered - 0.62).abs() < 1e-12);
}

/// On a machine with two speeds, 25 % apart, the median of the rounds is near the truth all the same.
#[test]
fn disturbed_rounds_predict_the_run() {
    let off = |seed: u64| {
        let noise = model(truth, Noise::All, seed);
        let targets = [target("a", 0.6), target("b", 0.1)];
        let found = ratios(
            &noise,
            &targets,
            &[of("-O1")],
            9,
            &by_shares(&targets),
            &Events::ignored(),
        );
        let median = cere_timing::stats::median(found.ratios[0].as_ref().unwrap()).unwrap();
        (median / 0.8 - 1.0).abs()
    };
    let mut all: Vec<f64> = (0..200).map(off).collect();
    all.sort_by(f64::total_cmp);
    println!(
        "off by {:.3} in the median, {:.3} in one case of twenty",
        all[100], all[190]
    );
    assert!(
        all[100] < 0.02 && all[190] < 0.06,
        "{} {}",
        all[100],
        all[190]
    );
}
