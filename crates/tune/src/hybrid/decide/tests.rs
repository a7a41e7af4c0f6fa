//! Decisions on a modelled program: what its parts take under a recipe is given, and the machine is one of `cere-testing`.

use super::*;
use cere_measure::{Bench, Turns};
use cere_testing::noise::{Machine, Noise};
use std::collections::HashMap;
use std::convert::Infallible;

const ROUNDS: u32 = 9;

/// Seconds of regions 0, 1 and 2 and of the rest by a recipe.
type Parts = fn(&Recipe) -> [f64; 4];

struct Model {
    machine: Machine,
    made: HashMap<PathBuf, Recipe>,
    parts: Parts,
    /// Whether the output is another.
    wrong: fn(&Recipe) -> bool,
}

impl Model {
    fn new(noise: Noise, seed: u64, parts: Parts) -> Self {
        Self {
            machine: Machine::new(noise, seed),
            made: HashMap::from([("plain".into(), Recipe::default())]),
            parts,
            wrong: |_| false,
        }
    }

    /// Builds to be timed in turns; `whole`: the program, not its regions.
    fn turns<'m>(&'m mut self, paths: &[&Path], whole: bool) -> Turns<Timing<'m>> {
        let parts = paths.iter().map(|path| {
            let parts = (self.parts)(&self.made[*path]);
            match whole {
                true => vec![parts.iter().sum()],
                false => parts[..3].to_vec(),
            }
        });
        let parts = parts.collect();
        let machine = &mut self.machine;
        Turns::new(Timing { machine, parts }, 2)
    }

    fn runs(&self, series: &cere_timing::stats::Series, builds: &[Build]) -> Runs {
        let differs = builds.iter().map(|build| {
            let wrong = (self.wrong)(&self.made[&build.path]);
            wrong.then(|| format!("{} prints 2 instead of 1", build.name))
        });
        Runs::of(series, differs.collect())
    }
}

struct Timing<'m> {
    machine: &'m mut Machine,
    parts: Vec<Vec<f64>>,
}

impl Bench for Timing<'_> {
    type Error = Infallible;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>, Infallible> {
        let factor = self.machine.factor();
        Ok(Ok(self.parts[subject].iter().map(|s| s * factor).collect()))
    }
}

fn paths(builds: &[Build]) -> Vec<&Path> {
    builds.iter().map(|b| b.path.as_path()).collect()
}

impl Program for Model {
    fn make(&mut self, recipe: &Recipe, path: &Path) -> Result<()> {
        self.made.insert(path.to_owned(), recipe.clone());
        Ok(())
    }

    fn run(&mut self, builds: &[Build], rounds: u32) -> Result<Runs> {
        let all: Vec<usize> = (1..builds.len()).collect();
        let mut turns = self.turns(&paths(builds), true);
        (0..rounds).for_each(|_| turns.round(&all).unwrap());
        let series = turns.series().clone();
        Ok(self.runs(&series, builds))
    }

    fn decide(&mut self, builds: &[Build], rule: &Rule) -> Result<(Runs, Answer)> {
        let all: Vec<usize> = (1..builds.len()).collect();
        let mut turns = self.turns(&paths(builds), true);
        let answer = turns.decide(&all, rule, |_| {}).unwrap();
        let series = turns.series().clone();
        Ok((self.runs(&series, builds), answer))
    }

    fn not_compared(&self) -> Result<Option<String>> {
        Ok(None)
    }

    fn compare(
        &mut self,
        plain: &Path,
        other: &Path,
        regions: &[RegionKey],
        rounds: u32,
    ) -> Result<Vec<Option<RegionTimes>>> {
        let mut turns = self.turns(&[plain, other], false);
        (0..rounds).for_each(|_| turns.round(&[1]).unwrap());
        let series = turns.series();
        let times = regions
            .iter()
            .map(|key| RegionTimes::of(series, key.index as usize));
        Ok(times.collect())
    }
}

fn key(index: u32) -> RegionKey {
    RegionKey {
        unit: "u".into(),
        index,
    }
}

/// Whether a region has flags of its own.
fn has(recipe: &Recipe, index: u32) -> bool {
    recipe.regions.contains_key(&key(index))
}

/// Whether the rest is compiled at `level`.
fn rest(recipe: &Recipe, level: &str) -> bool {
    recipe.rest.flags.iter().any(|flag| flag == level)
}

/// `time` with a share taken off if `is`.
fn less(time: f64, share: f64, is: bool) -> f64 {
    time * (1.0 - share * f64::from(u8::from(is)))
}

/// Regions 0 and 1 have flags; region 2 has none.
fn tuned() -> Vec<Tuned> {
    let region = |index| Tuned {
        chosen: Chosen {
            name: format!("region {index}"),
            ..Chosen::default()
        },
        key: key(index),
        choice: Choice {
            flags: vec!["-O3".into()],
            ..Choice::default()
        },
        back: None,
        times: None,
    };
    vec![region(0), region(1)]
}

/// Decides, and says why each region was put back.
fn decide(model: &mut Model, levels: bool) -> (Decision, Vec<Option<String>>) {
    let mut tuned = tuned();
    let decider = Decider {
        program: model,
        plain: Path::new("plain"),
        scratch: Path::new("scratch"),
        others: vec![key(2)],
        rest: Choice::default(),
        rounds: ROUNDS,
        budget: Budget {
            began: Instant::now(),
            seconds: None,
            run: 1.0,
        },
        levels,
    };
    let decision = decider.decide(&mut tuned).unwrap();
    (decision, tuned.into_iter().map(|t| t.back).collect())
}

/// A decision on a quiet machine, after which the hybrid is what its recipe says.
fn quiet(parts: Parts, wrong: fn(&Recipe) -> bool, levels: bool) -> (Decision, [String; 2]) {
    let mut model = Model::new(Noise::Steady, 1, parts);
    model.wrong = wrong;
    let (decision, back) = decide(&mut model, levels);
    assert_eq!(model.made[&decision.hybrid], decision.recipe);
    assert!(!wrong(&decision.recipe));
    let back = back.into_iter().map(Option::unwrap_or_default);
    let back: Vec<String> = back.collect();
    for (index, why) in (0..).zip(&back) {
        assert_eq!(has(&decision.recipe, index), why.is_empty(), "{why}");
    }
    (decision, back.try_into().unwrap())
}

fn right(_: &Recipe) -> bool {
    false
}

#[test]
fn regions_that_gain_keep_their_flags() {
    let parts = |r: &Recipe| {
        [
            less(0.3, 0.2, has(r, 0)),
            less(0.3, 0.1, has(r, 1)),
            0.2,
            0.2,
        ]
    };
    let (decision, back) = quiet(parts, right, false);
    assert_eq!(back, ["", ""]);
    let gain = decision.gain.unwrap();
    assert!((gain.ratio - 0.91).abs() < 0.01, "{gain:?}");
    let ratio = decision.hybrid_seconds / decision.plain_seconds;
    assert!((ratio - gain.ratio).abs() < 1e-9, "{ratio}, {gain:?}");
    assert!(decision.notes.is_empty(), "{:?}", decision.notes);
}

#[test]
fn a_region_that_does_not_gain_is_put_back() {
    let parts = |r: &Recipe| {
        [
            less(0.3, 0.2, has(r, 0)),
            less(0.3, -0.1, has(r, 1)),
            0.2,
            0.2,
        ]
    };
    let (decision, [first, second]) = quiet(parts, right, false);
    assert_eq!(first, "");
    assert_eq!(second, "it does not gain in the linked program");
    assert!((decision.gain.unwrap().ratio - 0.94).abs() < 0.01);
}

/// Region 1 gains, and the region without flags loses more.
#[test]
fn a_region_that_makes_others_lose_more_is_put_back() {
    let parts = |r: &Recipe| {
        let [own, other] = [less(0.3, 0.1, has(r, 1)), less(0.2, -0.5, has(r, 1))];
        [less(0.3, 0.2, has(r, 0)), own, other, 0.2]
    };
    let (decision, [first, second]) = quiet(parts, right, false);
    assert_eq!(first, "");
    assert_eq!(
        second,
        "with its flags other regions lose more than it gains"
    );
    assert!((decision.gain.unwrap().ratio - 0.94).abs() < 0.01);
}

/// What others lose is less than what the region gains.
#[test]
fn a_region_that_makes_others_lose_less_stays() {
    let parts = |r: &Recipe| {
        let [own, other] = [less(0.3, 0.3, has(r, 1)), less(0.2, -0.1, has(r, 1))];
        [less(0.3, 0.2, has(r, 0)), own, other, 0.2]
    };
    let (decision, back) = quiet(parts, right, false);
    assert_eq!(back, ["", ""]);
    assert!((decision.gain.unwrap().ratio - 0.87).abs() < 0.01);
}

#[test]
fn a_region_with_another_output_is_put_back_however_fast() {
    let parts = |r: &Recipe| {
        [
            less(0.3, 0.2, has(r, 0)),
            less(0.3, 0.9, has(r, 1)),
            0.2,
            0.2,
        ]
    };
    let (decision, [first, second]) = quiet(parts, |r| has(r, 1), false);
    assert_eq!(first, "");
    let told = "with its flags the output is another: region 1 prints 2 instead of 1";
    assert_eq!(second, told);
    assert!((decision.gain.unwrap().ratio - 0.94).abs() < 0.01);
}

#[test]
fn regions_whose_output_is_another_together_are_put_back() {
    let parts = |r: &Recipe| {
        [
            less(0.3, 0.5, has(r, 0)),
            less(0.3, 0.5, has(r, 1)),
            0.2,
            0.2,
        ]
    };
    let (decision, back) = quiet(parts, |r| has(r, 0) && has(r, 1), false);
    let told = "together their output is another: hybrid prints 2 instead of 1";
    assert_eq!(back, [told, told]);
    assert!(decision.gain.is_none());
    assert_eq!(decision.hybrid_seconds, decision.plain_seconds);
}

/// Each region gains for itself, and code outside of them loses as much.
#[test]
fn a_hybrid_that_does_not_gain_is_the_plain_build() {
    let parts = |r: &Recipe| {
        let flags = f64::from(u8::from(has(r, 0))) + f64::from(u8::from(has(r, 1)));
        [
            less(0.3, 0.1, has(r, 0)),
            less(0.3, 0.1, has(r, 1)),
            0.2,
            0.2 + 0.03 * flags,
        ]
    };
    let (decision, back) = quiet(parts, right, false);
    let told = "the linked program does not surely gain";
    assert_eq!(back, [told, told]);
    assert!(decision.gain.is_none());
    assert_eq!(decision.recipe, Recipe::default());
    assert_eq!(decision.hybrid_seconds, decision.plain_seconds);
    let [note] = &decision.notes[..] else {
        panic!("{:?}", decision.notes)
    };
    assert!(note.starts_with("inconclusive: after "), "{note}");
}

#[test]
fn code_outside_gains_by_a_level() {
    let parts = |r: &Recipe| {
        let rest = less(less(0.2, 0.3, rest(r, "-O2")), 0.1, rest(r, "-O3"));
        [
            less(0.3, 0.05, has(r, 0)),
            less(0.3, 0.05, has(r, 1)),
            0.2,
            rest,
        ]
    };
    let (decision, back) = quiet(parts, right, true);
    assert_eq!(back, ["", ""]);
    assert_eq!(decision.recipe.rest.flags, ["-O2"]);
    assert!((decision.gain.unwrap().ratio - 0.91).abs() < 0.01);
    let (level, seconds) = decision.level.unwrap();
    assert_eq!(level, "-O2");
    assert!((seconds / decision.plain_seconds - 0.94).abs() < 0.01);
    assert_eq!(
        decision.notes,
        ["the rest of the program is compiled with -O2 as well, which gains"]
    );
}

#[test]
fn a_level_of_the_whole_program_wins() {
    let parts = |r: &Recipe| {
        let all = rest(r, "-O3") && r.regions.is_empty();
        [
            less(0.3, 0.05, has(r, 0)),
            less(0.3, 0.05, has(r, 1)),
            0.2,
            0.2,
        ]
        .map(|t| less(t, 0.3, all))
    };
    let (decision, back) = quiet(parts, right, true);
    let told = "all of the program with -O3 is faster";
    assert_eq!(back, [told, told]);
    assert_eq!(decision.recipe.rest.flags, ["-O3"]);
    assert!((decision.gain.unwrap().ratio - 0.7).abs() < 0.01);
}

#[test]
fn a_level_that_is_slower_than_the_hybrid_is_not_tried() {
    let parts = |r: &Recipe| {
        let level = rest(r, "-O2");
        [
            less(0.3, 0.2, has(r, 0)),
            less(0.3, 0.2, has(r, 1)),
            0.2,
            less(0.2, 0.1, level),
        ]
    };
    let (decision, back) = quiet(parts, right, true);
    assert_eq!(back, ["", ""]);
    assert!(decision.recipe.rest.flags.is_empty());
    let (level, seconds) = decision.level.unwrap();
    assert_eq!(level, "-O2");
    assert!((seconds / decision.plain_seconds - 0.98).abs() < 0.01);
}

/// The fastest level prints something else, and the next one is taken.
#[test]
fn a_level_with_another_output_is_told_and_never_taken() {
    let parts = |r: &Recipe| {
        let rest = less(less(0.2, 0.9, rest(r, "-O3")), 0.4, rest(r, "-O1"));
        [
            less(0.3, 0.05, has(r, 0)),
            less(0.3, 0.05, has(r, 1)),
            0.2,
            rest,
        ]
    };
    let (decision, back) = quiet(parts, |r| rest(r, "-O3"), true);
    assert_eq!(back, ["", ""]);
    assert_eq!(decision.recipe.rest.flags, ["-O1"]);
    let told = "the output at -O3 is another: -O3 prints 2 instead of 1";
    assert!(
        decision.notes.iter().any(|n| n == told),
        "{:?}",
        decision.notes
    );
}

const MACHINES: [Noise; 5] = [
    Noise::Steady,
    Noise::TwoSpeeds,
    Noise::Bursts,
    Noise::Drift,
    Noise::All,
];

/// Share of decisions that believe in a gain.
fn believed(noise: &Noise, parts: Parts, levels: bool) -> f64 {
    const TIMES: u64 = 400;
    let gains = |seed: &u64| {
        let mut model = Model::new(noise.clone(), *seed, parts);
        let (decision, back) = decide(&mut model, levels);
        let kept = back.iter().any(Option::is_none) || decision.recipe.rest != Choice::default();
        assert_eq!(decision.gain.is_some(), kept, "seed {seed}");
        kept
    };
    (0..TIMES).filter(gains).count() as f64 / TIMES as f64
}

/// `cargo test --release -p cere-tune shares -- --nocapture` prints the table.
#[test]
fn shares_of_decisions_that_believe_in_a_gain() {
    let none: Parts = |_| [0.3, 0.3, 0.2, 0.2];
    let gains: Parts = |r| [less(0.5, 0.04, has(r, 0)), 0.1, 0.2, 0.2];
    println!("machine     no gain  no gain, levels  2 % of the run");
    for (noise, least) in MACHINES.iter().zip([0.99, 0.95, 0.95, 0.99, 0.88]) {
        let [plain, levels, found] = [(none, false), (none, true), (gains, false)]
            .map(|(parts, levels)| believed(noise, parts, levels));
        println!(
            "{:10} {plain:8.3} {levels:16.3} {found:15.3}",
            format!("{noise:?}")
        );
        assert!(plain <= 0.05, "{noise:?}: {plain}");
        assert!(levels <= 0.05, "{noise:?}: {levels}");
        assert!(found >= least, "{noise:?}: {found}");
    }
}
