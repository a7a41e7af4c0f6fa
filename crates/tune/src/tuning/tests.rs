//! Searches of modelled regions: the time of a variant is given, and the machine is one of `cere-testing`.

mod fewer;
mod in_batches;

use super::ahead::Ahead;
use super::batches::{Codes, Crew, Step};
use super::budget::{Budget, Left};
use super::drive::Pair;
use super::evaluator::Evaluator;
use super::searches::{again, conclude, confirm_elsewhere, find_suspects};
use super::task::{Task, Work};
use super::*;
use crate::{Method, Space, Variant};
use anyhow::Error;
use cere_format::build::RegionKind;
use cere_format::package::Manifest;
use cere_measure::{Builds, Measure, Member, Timed};
use cere_replay::Team;
use cere_system::events::Events;
use cere_testing::noise::{Machine, Noise};
use cere_testing::package::manifest;
use std::path::Path;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

/// Seconds of the two codelets as built.
const AS_BUILT: [f64; 2] = [2.0, 1.0];

/// A machine on which the time of a variant is known.
struct Model {
    machine: Mutex<Machine>,
    /// Time over that as built.
    ratio: fn(&Variant) -> f64,
    /// Why a variant cannot be compiled.
    refused: fn(&Variant) -> Option<String>,
    /// Why its result is not right; true: it is judged.
    wrong: fn(&Variant, bool) -> Option<String>,
    /// Tells its machine code from another.
    code: fn(&Variant) -> String,
    /// Variants that were timed and the number of codelets that were.
    timed: Mutex<Vec<(Variant, usize)>>,
    team: Team,
}

impl Model {
    fn new(noise: Noise, seed: u64, ratio: fn(&Variant) -> f64) -> Self {
        Self {
            machine: Mutex::new(Machine::new(noise, seed)),
            ratio,
            refused: |_| None,
            wrong: |_, _| None,
            code: |v| v.flags.join(" "),
            timed: Mutex::default(),
            team: Team::default(),
        }
    }

    /// The numbers of codelets that were timed in each timing of `variant`.
    fn timings(&self, variant: &Variant) -> Vec<usize> {
        let timed = self.timed.lock().unwrap();
        let own = timed.iter().filter(|(v, _)| v == variant);
        own.map(|(_, codelets)| *codelets).collect()
    }
}

impl Measure for Model {
    fn build(&self, _: &Target, variant: &Variant) -> Result<Builds, String> {
        match (self.refused)(variant) {
            Some(why) => Err(why),
            None => Ok(Builds {
                built: Vec::new(),
                code: (self.code)(variant),
                seconds: 0.1,
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
        (judged, team): (bool, Option<&Team>),
        goes_on: &dyn Fn(&[f64]) -> bool,
    ) -> Result<Timed, String> {
        if let Some(why) = (self.wrong)(variant, judged) {
            return Err(why);
        }
        // A team of n threads takes 1 / n of the time of one, but one of 3 nothing less than one of 2.
        let threads = team.and_then(|t| t.threads).unwrap_or(2);
        let team = 2.0 / f64::from(if threads == 3 { 2 } else { threads });
        let mut seconds = Vec::new();
        for as_built in &AS_BUILT[..target.members.len()] {
            let factor = self.machine.lock().unwrap().factor();
            seconds.push(as_built * (self.ratio)(variant) * team * factor);
            if !goes_on(&seconds) {
                break;
            }
        }
        let mut timed = self.timed.lock().unwrap();
        timed.push((variant.clone(), seconds.len()));
        Ok(Timed {
            wall: seconds.iter().sum(),
            timed: seconds.iter().sum(),
            costs: seconds,
            preparation: Default::default(),
        })
    }

    fn team(&self) -> &Team {
        &self.team
    }

    fn repeating(&self, _: f64, _: f64) -> Box<dyn Measure + '_> {
        unreachable!("a search takes the repetitions that it is given")
    }
}

/// Two classes of invocations, the first of which takes three times as long as the second.
fn target(name: &str, share: f64) -> Target {
    static MANIFEST: LazyLock<Manifest> =
        LazyLock::new(|| serde_json::from_value(manifest()).unwrap());
    let member = |weight| Member {
        package: PathBuf::new(),
        file: PathBuf::new(),
        manifest: MANIFEST.clone(),
        sha256: String::new(),
        weight,
    };
    Target::new(
        name,
        RegionKind::Parallel,
        share,
        vec![member(1.0), member(3.0)],
    )
}

/// `groups` groups of three choices: `-g2=3` is the third of the second.
fn space(groups: usize) -> Space {
    let group = |g: usize| crate::Group {
        name: format!("g{g}"),
        choices: (1..=3).map(|c| vec![format!("-g{g}={c}")]).collect(),
        changes_values: false,
    };
    Space {
        groups: (1..=groups).map(group).collect(),
        sequences: None,
    }
}

fn has(variant: &Variant, flag: &str) -> bool {
    variant.flags.iter().any(|f| f == flag)
}

fn of(flags: &str) -> Variant {
    Variant {
        flags: flags.split_whitespace().map(str::to_owned).collect(),
        passes: None,
    }
}

/// A search, and where it is written down.
struct Searched<'a> {
    space: Space,
    budget: Budget,
    wanted: Option<f64>,
    method: Method,
    directory: &'a Path,
}

impl<'a> Searched<'a> {
    fn new(groups: usize, evaluations: u64, directory: &'a Path) -> Self {
        Self {
            space: space(groups),
            budget: Budget::Evaluations(evaluations),
            wanted: None,
            method: Method::Groups,
            directory,
        }
    }

    fn journal(&self, target: &Target) -> PathBuf {
        self.directory.join(&target.name)
    }

    fn course<'t>(&self, at: (usize, &'t Target)) -> Result<Course<'t>> {
        let search = Search::new(self.space.clone(), None, self.method, 1)?;
        Course::begin(at, search, &self.journal(at.1))
    }

    fn begin<'t>(&self, model: &Model, targets: &'t [Target]) -> Result<Vec<Pair<'t>>> {
        let pair = |at: (usize, &'t Target)| {
            let evaluator = Evaluator::begin(model, at.1).map_err(Error::msg)?;
            Ok((self.course(at)?, evaluator))
        };
        targets.iter().enumerate().map(pair).collect()
    }

    fn search_pairs<'t>(&self, model: &Model, targets: &'t [Target]) -> Vec<Pair<'t>> {
        let mut pairs = self.begin(model, targets).unwrap();
        let before = pairs.iter().map(|(course, _)| course.proposed()).sum();
        let mut left = Left::new(self.budget, Instant::now(), before);
        let list: Vec<&Target> = targets.iter().collect();
        Ahead::with(model, &list, 1, |ahead| {
            drive::go_on(
                &Events::ignored(),
                model,
                &mut pairs,
                ahead,
                &mut left,
                self.wanted,
                1,
            )
        })
        .unwrap();
        pairs
    }

    fn search<'t>(&self, model: &Model, targets: &'t [Target]) -> Vec<Course<'t>> {
        let pairs = self.search_pairs(model, targets).into_iter();
        pairs.map(|(course, _)| course).collect()
    }

    /// What is found for one region.
    fn find(&self, model: &Model, most: Duration) -> Found {
        let targets = [target("region", 0.5)];
        let mut pairs = self.search_pairs(model, &targets);
        let suspects = find_suspects(&Events::ignored(), &self.space, pairs.iter().map(|p| &p.0));
        let (mut course, evaluator) = pairs.pop().unwrap();
        let again = again(&mut course, &suspects, &[], most);
        let decision = again.decide(model, course.target, &evaluator.default);
        conclude(&Events::ignored(), course, decision).unwrap()
    }
}

/// What counts of what was found; times of the search itself do not.
fn counted(found: &Found) -> String {
    let failed = found.failed.iter();
    let failed: Vec<_> = failed.map(|f| (&f.variant, &f.reason, f.same)).collect();
    let Found {
        evaluations,
        same_code,
        ended,
        ranked,
        winner,
        ..
    } = found;
    format!("{evaluations} {same_code} {ended:?} {ranked:?} {failed:?} {winner:?}")
}

/// One flag takes 20 % off, another one 10 %, a third adds 30 %; one is refused, and one gives another result.
fn truth(variant: &Variant) -> f64 {
    let factors = [("-g1=2", 0.8), ("-g2=3", 0.9), ("-g3=1", 1.3)];
    let there = factors.iter().filter(|(flag, _)| has(variant, flag));
    there.map(|(_, factor)| factor).product()
}

fn varied(noise: Noise, seed: u64) -> Model {
    Model {
        refused: |v| has(v, "-g3=2").then(|| "the compiler crashed".into()),
        wrong: |v, _| has(v, "-g2=1").then(|| "another result".into()),
        // This flag changes no code.
        code: |v| {
            let flags = v.flags.iter().filter(|f| *f != "-g3=3");
            flags.map(String::as_str).collect::<Vec<_>>().join(" ")
        },
        ..Model::new(noise, seed, truth)
    }
}

/// Without noise: ratios are what they are, whenever they are measured.
fn exact() -> Noise {
    Noise::Recorded(vec![1.0])
}

#[test]
fn the_best_is_found_and_believed() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(Noise::Steady, 1);
    let found = Searched::new(3, 40, directory.path()).find(&model, Duration::MAX);
    let winner = found.winner.as_ref().unwrap();
    assert_eq!((model.code)(&winner.variant), "-g1=2 -g2=3");
    assert!((winner.gain.ratio - 0.72).abs() < 0.01, "{:?}", winner.gain);
    assert!((found.gain() - 1.0 / 0.72).abs() < 0.02);
    assert_eq!((found.evaluations, found.earlier), (40, 0));
    assert_eq!(found.ended, None);
    let ratios: Vec<f64> = found.ranked.iter().map(|r| r.0).collect();
    assert!(ratios.is_sorted(), "{ratios:?}");
}

#[test]
fn what_fails_is_told_and_is_no_result() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let found = Searched::new(3, 60, directory.path()).find(&model, Duration::MAX);
    assert!(found.failed.len() > 5, "{}", found.failed.len());
    for failure in &found.failed {
        let why = match (has(&failure.variant, "-g3=2"), failure.same) {
            (true, _) => "the compiler crashed",
            (false, true) => "another with the same code failed",
            (false, false) => "another result",
        };
        assert_eq!(failure.reason, why, "{}", failure.variant);
    }
    assert!(found.failed.iter().any(|f| f.same));
    for (ratio, variant) in &found.ranked {
        assert!(
            !has(variant, "-g3=2") && !has(variant, "-g2=1"),
            "{variant}"
        );
        assert!(
            (ratio - truth(variant)).abs() < 1e-12,
            "{ratio} of {variant}"
        );
    }
    let outcomes = found.ranked.len() + found.failed.len();
    let same = found.failed.iter().filter(|f| f.same).count();
    assert_eq!(outcomes + found.same_code as usize - same, 60);
}

/// Code that another variant has, or the code as built, is not timed.
#[test]
fn the_same_code_is_timed_once() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let found = Searched::new(3, 63, directory.path()).find(&model, Duration::ZERO);
    assert_eq!(found.evaluations, 63);
    assert!(model.timings(&of("-g3=3")).is_empty());
    let mut codes: Vec<String> = found.ranked.iter().map(|r| (model.code)(&r.1)).collect();
    let all = codes.len();
    codes.sort();
    codes.dedup();
    assert_eq!(codes.len(), all);
    // 3 choices or none of group 1, 2 or none of group 2 that work, 1 or none of group 3; less the code as built.
    assert_eq!(all, 4 * 3 * 2 - 1);
}

#[test]
fn a_hopeless_variant_is_timed_on_its_first_codelet_alone() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    Searched::new(3, 63, directory.path()).find(&model, Duration::ZERO);
    assert_eq!(model.timings(&of("-g3=1")), [1]);
    assert_eq!(model.timings(&of("-g2=3 -g3=1")), [1]);
    // Slower by 4 % with a flag that takes 20 % off.
    assert_eq!(model.timings(&of("-g1=2 -g3=1")), [2]);
    // And those that it is measured with again, to see whether anything gains.
    assert_eq!(model.timings(&of("-g1=2")), [2; 6]);
}

/// Wherever a search was broken off, in the middle of a line too, going on gives the same outcomes and the same file.
#[test]
fn a_search_that_goes_on_gives_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let whole = Searched::new(3, 20, directory.path());
    let targets = [target("region", 0.5)];
    let expected = counted(&whole.find(&varied(exact(), 1), Duration::MAX));
    let journal = std::fs::read(whole.journal(&targets[0])).unwrap();
    let lines = journal.split_inclusive(|b| *b == b'\n');
    let mut at = 0;
    let mut cuts = vec![0];
    for line in lines {
        cuts.extend([at + line.len() / 2, at + line.len()]);
        at += line.len();
    }
    assert_eq!(cuts.len(), 1 + 2 * 40);
    for cut in cuts {
        let again = tempfile::tempdir().unwrap();
        let search = Searched::new(3, 20, again.path());
        std::fs::write(search.journal(&targets[0]), &journal[..cut]).unwrap();
        let model = varied(exact(), 1);
        let found = search.find(&model, Duration::MAX);
        assert_eq!(counted(&found), expected, "broken off at byte {cut}");
        let told = String::from_utf8_lossy(&journal[..cut]);
        let told = told
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        let told = told.filter(|line| line.contains("told")).count();
        assert_eq!(found.earlier, told as u64);
        assert_eq!(
            String::from_utf8(std::fs::read(search.journal(&targets[0])).unwrap()).unwrap(),
            String::from_utf8_lossy(&journal),
            "broken off at byte {cut}"
        );
    }
}

#[test]
fn a_longer_budget_goes_on() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let whole = Searched::new(3, 30, first.path()).find(&varied(exact(), 1), Duration::MAX);
    Searched::new(3, 10, second.path()).find(&varied(exact(), 1), Duration::MAX);
    let found = Searched::new(3, 30, second.path()).find(&varied(exact(), 1), Duration::MAX);
    assert_eq!(found.earlier, 10);
    assert_eq!(counted(&found), counted(&whole));
}

#[test]
fn a_file_of_another_search_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let targets = [target("region", 0.5)];
    Searched::new(3, 10, directory.path()).search(&varied(exact(), 1), &targets);
    let other = Searched {
        space: space(2),
        ..Searched::new(2, 10, directory.path())
    };
    let error = other.begin(&varied(exact(), 1), &targets).err().unwrap();
    assert!(
        error.to_string().contains("start again with --again"),
        "{error}"
    );
}

#[test]
fn a_region_that_fails_as_built_is_not_searched() {
    let directory = tempfile::tempdir().unwrap();
    let mut model = varied(exact(), 1);
    model.wrong = |_, judged| judged.then(|| "another result".into());
    let targets = [target("region", 0.5)];
    let search = Searched::new(3, 10, directory.path());
    let error = search.begin(&model, &targets).err().unwrap().to_string();
    assert_eq!(error, "region cannot be replayed as built: another result");
}

#[test]
fn a_compile_or_a_replay_that_hangs_has_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let targets = [target("region", 0.5)];
    Searched::new(3, 10, directory.path())
        .begin(&model, &targets)
        .unwrap();
    // Ten times the 3 seconds of both codelets.
    assert_eq!(targets[0].limit.get(), Some(&30.0));
}

#[test]
fn searches_end_where_all_was_tried_the_target_is_reached_or_the_budget_is_used_up() {
    let directory = tempfile::tempdir().unwrap();
    let found = Searched::new(2, 100, directory.path()).find(&varied(exact(), 1), Duration::MAX);
    assert_eq!(
        (found.evaluations, found.ended),
        (15, Some("all was tried"))
    );
    let directory = tempfile::tempdir().unwrap();
    let mut search = Searched::new(3, 60, directory.path());
    search.wanted = Some(1.2);
    let found = search.find(&varied(exact(), 1), Duration::MAX);
    assert_eq!(found.ended, Some("the target is reached"));
    assert!(found.evaluations < 20, "{}", found.evaluations);
    assert!(found.gain() >= 1.2);
    let directory = tempfile::tempdir().unwrap();
    let mut search = Searched::new(3, 60, directory.path());
    search.budget = Budget::Time(Duration::ZERO);
    let found = search.find(&varied(exact(), 1), Duration::MAX);
    assert_eq!((found.evaluations, found.ended), (0, None));
    assert!(found.winner.is_none());
}

/// A region that nothing helps leaves its part of the budget to the others; one that gains little does not.
#[test]
fn a_region_where_nothing_gains_is_given_up() {
    let given_up = |ratio: fn(&Variant) -> f64| {
        let directory = tempfile::tempdir().unwrap();
        let model = Model::new(exact(), 3, ratio);
        let found = Searched::new(4, 80, directory.path()).find(&model, Duration::MAX);
        let again = found.spent.confirming;
        assert!(again > 0.0, "{again}");
        (found.ended, found.evaluations, found.winner.is_some())
    };
    let (ended, evaluations, winner) = given_up(|variant| 1.0 + 0.01 * variant.flags.len() as f64);
    assert_eq!((ended, winner), (Some("nothing gains"), false));
    assert!((25..35).contains(&evaluations), "{evaluations}");
    let (ended, evaluations, _) = given_up(truth);
    assert_eq!((ended, evaluations), (None, 80));
}

/// A lucky timing does not end a search: the best is measured again first.
#[test]
fn a_target_is_reached_when_measuring_again_says_so() {
    let (mut lucky, mut reached) = (0, 0);
    for seed in 0..200 {
        let directory = tempfile::tempdir().unwrap();
        let mut search = Searched::new(3, 30, directory.path());
        search.wanted = Some(1.2);
        let model = Model::new(Noise::TwoSpeeds, seed, |_| 1.0);
        let targets = [target("region", 0.5)];
        let courses = search.search(&model, &targets);
        lucky += u32::from(courses[0].best() < 1.0 / 1.2);
        reached += u32::from(courses[0].found.ended == Some("the target is reached"));
    }
    assert!(lucky >= 100 && reached <= 5, "{reached} of {lucky}");
}

#[test]
fn regions_get_evaluations_by_their_shares() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let targets = [target("a", 0.6), target("b", 0.2)];
    let courses = Searched::new(3, 40, directory.path()).search(&model, &targets);
    assert_eq!(
        [courses[0].found.evaluations, courses[1].found.evaluations],
        [30, 10]
    );
    // What the first one leaves is for the second.
    let directory = tempfile::tempdir().unwrap();
    let targets = [target("a", 0.6), target("b", 0.2)];
    let courses = Searched::new(2, 24, directory.path()).search(&model, &targets);
    assert_eq!(
        [courses[0].found.evaluations, courses[1].found.evaluations],
        [15, 9]
    );
    assert_eq!(courses[0].found.ended, Some("all was tried"));
    assert_eq!(courses[1].found.ended, None);
}

/// The best by its single timing gives another result when it is judged.
#[test]
fn a_winner_with_another_result_is_told_and_the_next_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let mut model = Model::new(Noise::Steady, 1, truth);
    model.wrong = |v, judged| (judged && has(v, "-g2=3")).then(|| "not by rounding".into());
    let found = Searched::new(3, 63, directory.path()).find(&model, Duration::MAX);
    let winner = found.winner.unwrap();
    assert!(has(&winner.variant, "-g1=2") && !has(&winner.variant, "-g2=3"));
    assert!(!found.failed.is_empty());
    for failure in &found.failed {
        assert!(has(&failure.variant, "-g2=3"), "{}", failure.variant);
        assert_eq!(failure.reason, "not by rounding");
    }
}

#[test]
fn the_only_candidate_with_another_result_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut model = Model::new(exact(), 1, |v| if *v == of("-g1=2") { 0.8 } else { 1.1 });
    model.wrong = |v, judged| (judged && *v == of("-g1=2")).then(|| "not by rounding".into());
    let found = Searched::new(3, 63, directory.path()).find(&model, Duration::MAX);
    assert!(found.winner.is_none() && found.ended.is_none());
    assert_eq!(found.failed.len(), 1);
    assert_eq!(found.failed[0].variant, of("-g1=2"));
    assert_eq!(found.failed[0].reason, "not by rounding");
}

/// A choice that fails in most variants is in no winner, though one with it was right and the fastest.
#[test]
fn a_variant_with_a_suspect_is_not_chosen() {
    let directory = tempfile::tempdir().unwrap();
    let mut model = Model::new(Noise::Steady, 1, truth);
    model.wrong = |v, _| (has(v, "-g2=3") && *v != of("-g1=2 -g2=3")).then(|| "wrong".into());
    let found = Searched::new(3, 63, directory.path()).find(&model, Duration::MAX);
    assert_eq!(found.ranked[0].1, of("-g1=2 -g2=3"));
    let winner = found.winner.unwrap().variant;
    assert!(has(&winner, "-g1=2") && !has(&winner, "-g2=3"), "{winner}");
}

#[test]
fn a_budget_that_is_over_before_measuring_again_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let search = Searched::new(3, 40, directory.path());
    let found = search.find(&model, Duration::ZERO);
    assert!(found.winner.is_none());
    let told = "the budget was over before the best was measured again";
    assert_eq!(found.ended, Some(told));
    assert_eq!(found.gain(), 1.0);
    // With nothing to measure again nothing was missed.
    let directory = tempfile::tempdir().unwrap();
    let search = Searched::new(3, 20, directory.path());
    let found = search.find(&Model::new(exact(), 1, |_| 1.0), Duration::ZERO);
    assert_eq!((found.winner.is_none(), found.ended), (true, None));
}

#[test]
fn the_number_of_threads_is_the_fastest() {
    let model = Model::new(Noise::Steady, 1, truth);
    let target = target("region", 0.5);
    let threads = |counts: &[u32]| {
        let found = confirm::threads(&model, &target, &of("-g1=2"), counts).unwrap();
        found.map(|(n, gain)| (n, (gain.ratio * 100.0).round()))
    };
    // The sample was captured with two.
    assert_eq!(threads(&[1, 2, 4, 8]), Some((8, 25.0)));
    assert_eq!(threads(&[1, 2, 4]), Some((4, 50.0)));
    assert_eq!(threads(&[1, 2, 3]), None);
}

const MACHINES: [Noise; 5] = [
    Noise::Steady,
    Noise::TwoSpeeds,
    Noise::Bursts,
    Noise::Drift,
    Noise::All,
];

/// Share of searches that believe in a variant, and share that believe in one with `-g1=2`.
fn believed(noise: &Noise, ratio: fn(&Variant) -> f64) -> (f64, f64) {
    const TIMES: u32 = 200;
    let directory = tempfile::tempdir().unwrap();
    let (mut any, mut right) = (0, 0);
    for seed in 0..TIMES {
        let place = directory.path().join(seed.to_string());
        let model = Model::new(noise.clone(), seed.into(), ratio);
        let found = Searched::new(4, 30, &place).find(&model, Duration::MAX);
        if let Some(winner) = found.winner {
            any += 1;
            right += u32::from(has(&winner.variant, "-g1=2"));
        }
    }
    [any, right].map(|n| f64::from(n) / f64::from(TIMES)).into()
}

/// `cargo test --release -p cere-tune --lib shares -- --nocapture` prints the table.
#[test]
fn shares_of_searches_that_believe_in_a_variant() {
    println!("machine     no gain  2 %");
    for (noise, least) in MACHINES.iter().zip([0.98, 0.65, 0.9, 0.9, 0.25]) {
        let (wrong, _) = believed(noise, |_| 1.0);
        let (_, found) = believed(noise, |v| less(v, "-g1=2", 0.02));
        println!("{:10} {wrong:8.3} {found:6.3}", format!("{noise:?}"));
        assert!(wrong <= 0.05, "{noise:?}: {wrong}");
        assert!(found >= least, "{noise:?}: {found}");
    }
}

/// 1, and with `flag` the `share` less.
fn less(variant: &Variant, flag: &str, share: f64) -> f64 {
    1.0 - share * f64::from(u8::from(has(variant, flag)))
}
