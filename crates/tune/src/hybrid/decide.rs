//! Decides which regions keep their flags in the linked program (CERE thesis, 6.5.2: neighbours interact). Regions that do
//! not gain there, and regions that cost others more than they gain, are put back, until no known choice is better.

use crate::Chosen;
use crate::hybrid::choice::Choice;
use crate::hybrid::{Image, Recipe};
use anyhow::Result;
use cere_format::profile::RegionKey;
use cere_measure::decide::{Answer, MARGIN, Rule};
use cere_measure::{Build, Linked, RegionTimes, Runs, Trial};
use cere_timing::stats::{Gain, gain};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Minimum gain of a region that keeps its flags, as a share of its time.
const GAINS: f64 = 0.005;
/// Time that regions without own flags may lose together, as a share of the run.
const LOST: f64 = 0.01;
/// Share of the run that a level has to save in one run to be compared further.
const PROMISING: f64 = 0.01;
/// Levels at which the whole program is compiled for comparison.
const LEVELS: [&str; 3] = ["-O1", "-O2", "-O3"];

/// A region with its own flags.
#[derive(Debug, Clone)]
pub struct Tuned {
    /// Its name, and the choice for it.
    pub chosen: Chosen,
    /// Identity.
    pub key: RegionKey,
    /// The choice as the compiler takes it.
    pub choice: Choice,
    /// Why it was put back, if it was.
    pub back: Option<String>,
    /// Its times in the plain build and in the last hybrid with its flags.
    pub times: Option<RegionTimes>,
}

/// The outcome of the decision.
#[derive(Debug)]
pub struct Decision {
    /// What the hybrid is compiled with.
    pub recipe: Recipe,
    /// Its file.
    pub hybrid: PathBuf,
    /// Seconds of the plain build.
    pub plain_seconds: f64,
    /// Seconds of the hybrid, at the plain build's speed of the machine.
    pub hybrid_seconds: f64,
    /// The hybrid's time over the plain build's, if it was measured; `None` if they are the same code.
    pub gain: Option<Gain>,
    /// The fastest of the levels whose output is right, and its seconds.
    pub level: Option<(String, f64)>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// The program as a decision needs it. Builds are what [`Program::make`] made, and the plain build, which is the first of any.
pub trait Program {
    /// Links the program by `recipe` at `path`.
    fn make(&mut self, recipe: &Recipe, path: &Path) -> Result<()>;

    /// Runs `builds` in turns, `rounds` times each.
    fn run(&mut self, builds: &[Build], rounds: u32) -> Result<Runs>;

    /// The same, until `rule` decides whether the build at place 1 is faster than the plain one.
    fn decide(&mut self, builds: &[Build], rule: &Rule) -> Result<(Runs, Answer)>;

    /// What a reader should know of what is not compared in the plain build's output, if there is such a thing.
    fn not_compared(&self) -> Result<Option<String>>;

    /// What `regions` take in `plain` and in `other`, in `rounds` rounds; none for one that did not run.
    fn compare(
        &mut self,
        plain: &Path,
        other: &Path,
        regions: &[RegionKey],
        rounds: u32,
    ) -> Result<Vec<Option<RegionTimes>>>;
}

/// The program itself: its image, runs for time and output, runs for regions' times.
pub struct Linking<'a> {
    /// The image.
    pub image: &'a Image<'a>,
    /// Runs for time and output.
    pub trial: Trial<'a>,
    /// Runs for regions' times.
    pub linked: Linked<'a>,
}

impl Program for Linking<'_> {
    fn make(&mut self, recipe: &Recipe, path: &Path) -> Result<()> {
        self.image.make(recipe, path)
    }

    fn run(&mut self, builds: &[Build], rounds: u32) -> Result<Runs> {
        self.trial.run(builds, rounds)
    }

    fn decide(&mut self, builds: &[Build], rule: &Rule) -> Result<(Runs, Answer)> {
        self.trial.decide(builds, rule)
    }

    fn not_compared(&self) -> Result<Option<String>> {
        Ok(self.trial.varying()?.note())
    }

    fn compare(
        &mut self,
        plain: &Path,
        other: &Path,
        regions: &[RegionKey],
        rounds: u32,
    ) -> Result<Vec<Option<RegionTimes>>> {
        self.linked.compare(plain, other, regions, rounds)
    }
}

/// Decides which regions keep their flags.
pub struct Decider<'a> {
    /// What is linked and run.
    pub program: &'a mut dyn Program,
    /// The plain build.
    pub plain: &'a Path,
    /// Where builds go.
    pub scratch: &'a Path,
    /// Regions of the profile that matter and have no own flags.
    pub others: Vec<RegionKey>,
    /// Flags of all other code.
    pub rest: Choice,
    /// Runs of each build.
    pub rounds: u32,
    /// Whether the whole program is compiled at other levels for comparison.
    pub levels: bool,
    /// What it may take.
    pub budget: Budget,
}

/// The time of a decision. What is needed for a right answer is done in any case; what only improves it needs time.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// When it began.
    pub began: Instant,
    /// Seconds that it may take; none: no bound.
    pub seconds: Option<f64>,
    /// Seconds of a run of the program.
    pub run: f64,
}

impl Budget {
    /// Of a decision that begins now. `seconds`: those of a user; else 24 runs, a minute at least.
    pub fn of(seconds: Option<f64>, run: f64) -> Self {
        Self {
            began: Instant::now(),
            seconds: Some(seconds.unwrap_or((24.0 * run).max(60.0))),
            run,
        }
    }

    /// Runs of the program that still fit.
    fn runs(&self) -> usize {
        let left = |seconds| seconds - self.began.elapsed().as_secs_f64();
        self.seconds.map_or(usize::MAX, |s| {
            (left(s) / self.run.max(1e-3)).max(0.0) as usize
        })
    }

    fn has(&self, runs: usize) -> bool {
        self.runs() >= runs
    }
}

/// Runs of a comparison of one build with the plain one.
fn runs_of(rounds: usize) -> usize {
    2 * rounds + 1
}

fn build(name: &str, path: &Path) -> Build {
    Build {
        name: name.to_owned(),
        path: path.to_owned(),
    }
}

/// The recipe with the kept regions of `tuned`, except the one with index `without`.
pub fn recipe(tuned: &[Tuned], without: Option<usize>, rest: &Choice) -> Recipe {
    let kept = tuned.iter().enumerate();
    let kept = kept.filter(|(i, t)| t.back.is_none() && Some(*i) != without);
    Recipe {
        rest: rest.clone(),
        regions: kept
            .map(|(_, t)| (t.key.clone(), t.choice.clone()))
            .collect(),
    }
}

/// A hybrid, and how it did beside the plain build.
struct Tried {
    hybrid: PathBuf,
    /// What code outside of its regions is compiled with.
    rest: Choice,
    /// Its runs at place 1, those of the plain build at place 0.
    runs: Runs,
    /// Whether it is faster than the plain build.
    answer: Answer,
    /// The fastest of the levels whose output is right, and its seconds.
    level: Option<(String, f64)>,
}

/// The fastest of the builds at `places` whose output is right.
fn fastest(runs: &Runs, places: std::ops::Range<usize>) -> Option<usize> {
    places
        .filter(|place| runs.is_right(*place))
        .min_by(|a, b| runs.seconds(*a).total_cmp(&runs.seconds(*b)))
}

/// Puts back all regions that still have their flags.
fn put_back_all(tuned: &mut [Tuned], why: &str) {
    for region in tuned.iter_mut().filter(|t| t.back.is_none()) {
        region.back = Some(why.to_owned());
    }
}

/// The message that the runs do not show whether the hybrid gains.
fn inconclusive(runs: usize, gain: &Gain) -> String {
    format!(
        "inconclusive: after {runs} runs the hybrid has {:.3} times the plain build's speed, and with {:.0} % between {:.3} and {:.3}; \
         more --rounds or a quieter machine may show more",
        1.0 / gain.ratio,
        100.0 * gain.level,
        1.0 / gain.high,
        1.0 / gain.low
    )
}

impl Decider<'_> {
    /// Decides, and marks regions that are put back in `tuned`.
    pub fn decide(mut self, tuned: &mut [Tuned]) -> Result<Decision> {
        let mut notes = Vec::new();
        // Correctness before speed.
        let hybrid = self.make_right(tuned, &mut notes)?;
        let hybrid = self.put_back_losers(tuned, hybrid)?;
        let mut found = self.compare_with_levels(tuned, hybrid, &mut notes)?;
        let some = tuned.iter().any(|t| t.back.is_none()) || found.rest != self.rest;
        let believed = some && found.runs.is_right(1) && matches!(found.answer, Answer::Faster(_));
        if some && !believed {
            let open = |gain: &Gain| gain.low < 1.0;
            if found.runs.is_right(1)
                && let Some(gain) = found.runs.gain(1).filter(open)
            {
                notes.push(inconclusive(found.runs.ratios[1].len(), &gain));
            }
            put_back_all(tuned, "the linked program does not surely gain");
            found.rest = self.rest.clone();
            found.hybrid = self.make_kept("as-built", tuned)?;
        }
        if found.rest != self.rest
            && let Some(level) = found.rest.flags.last()
        {
            notes.push(format!(
                "the rest of the program is compiled with {level} as well, which gains"
            ));
        }
        Ok(Decision {
            recipe: recipe(tuned, None, &found.rest),
            hybrid: found.hybrid,
            plain_seconds: found.runs.seconds(0),
            // Without kept regions the code is the plain build's: differences between their runs are noise.
            hybrid_seconds: found.runs.seconds(usize::from(believed)),
            gain: found.runs.gain(1).filter(|_| believed),
            level: found.level,
            notes,
        })
    }

    /// Links all of `tuned`, without the region, or the regions together, that change the output.
    fn make_right(&mut self, tuned: &mut [Tuned], notes: &mut Vec<String>) -> Result<PathBuf> {
        let hybrid = self.make_kept("hybrid", tuned)?;
        let builds = [build("plain", self.plain), build("hybrid", &hybrid)];
        let mut runs = self.program.run(&builds, 1)?;
        if !runs.is_right(1) {
            // More runs of the plain build may show that it prints the same word otherwise each time.
            runs = self.program.run(&builds, 1)?;
        }
        notes.extend(self.program.not_compared()?);
        self.budget.run = runs.seconds(0);
        match &runs.differs[1] {
            Some(why) => self.put_back_wrong(tuned, why),
            None => Ok(hybrid),
        }
    }

    /// Runs the hybrid in turns with the plain build and, if that is wanted, with the whole program at each level. If a level is
    /// faster than the hybrid, other code gains by it: both together are tried.
    fn compare_with_levels(
        &mut self,
        tuned: &mut [Tuned],
        hybrid: PathBuf,
        notes: &mut Vec<String>,
    ) -> Result<Tried> {
        let rule = self.rule();
        let mut builds = vec![build("plain", self.plain), build("hybrid", &hybrid)];
        builds.extend(self.rival_levels(&rule, notes)?);
        let (runs, answer) = self.program.decide(&builds, &rule)?;
        for (build, why) in builds.iter().zip(&runs.differs).skip(1) {
            if let Some(why) = why {
                notes.push(format!("the output at {} is another: {why}", build.name));
            }
        }
        let best = fastest(&runs, 2..builds.len());
        let found = Tried {
            hybrid,
            rest: self.rest.clone(),
            level: best.map(|best| (builds[best].name.clone(), runs.seconds(best))),
            answer,
            runs,
        };
        let faster = |gain: Gain| gain.high < 1.0 - MARGIN;
        match best {
            Some(best) if gain(&found.runs.ratios_over(best, 1)).is_none_or(faster) => {
                if !self.budget.has(5 * self.rounds as usize) {
                    notes.push(format!(
                        "all of the program with {} is faster than the hybrid; there was no time to try both together: a longer --budget has it",
                        builds[best].name
                    ));
                    return Ok(found);
                }
                self.try_with_level(tuned, found, &builds[best])
            }
            _ => Ok(found),
        }
    }

    /// The levels that may be faster than a hybrid; where there is no time for runs of all of them, after one round in which the slow
    /// ones drop out.
    fn rival_levels(&mut self, rule: &Rule, notes: &mut Vec<String>) -> Result<Vec<Build>> {
        let rounds = rule.looks.first().copied().unwrap_or(1);
        if !self.levels {
            return Ok(Vec::new());
        }
        let first = 2 * LEVELS.len() + 1;
        if !self.budget.has(first + runs_of(rounds)) {
            notes.push(
                "there was no time to compare with the whole program at -O1, -O2 and -O3: a longer --budget has it".to_owned(),
            );
            return Ok(Vec::new());
        }
        let mut levels = Vec::new();
        for level in LEVELS {
            levels.push(build(level, &self.level(level)?));
        }
        let all = LEVELS.len() + LEVELS.len().div_ceil(2);
        if self.budget.has(rounds * (all + 2)) {
            return Ok(levels);
        }
        let mut builds = vec![build("plain", self.plain)];
        builds.append(&mut levels);
        let runs = self.program.run(&builds, 1)?;
        let places = 1..builds.len();
        let promises = |place: &usize| {
            let ratio = runs.ratios[*place].first().copied();
            runs.is_right(*place) && ratio.is_some_and(|r| r < 1.0 - PROMISING)
        };
        let mut kept: Vec<usize> = places.filter(promises).collect();
        kept.sort_by(|a, b| runs.seconds(*a).total_cmp(&runs.seconds(*b)));
        // Each costs runs of its own in every round.
        kept.truncate(1);
        for (build, why) in builds.iter().zip(&runs.differs).skip(1) {
            if let Some(why) = why {
                notes.push(format!("the output at {} is another: {why}", build.name));
            }
        }
        Ok(kept
            .into_iter()
            .map(|place| builds[place].clone())
            .collect())
    }

    /// Tries the hybrid whose other code is compiled at the level of the build `level`. The runs that chose the level are biased: it
    /// is measured again.
    fn try_with_level(
        &mut self,
        tuned: &mut [Tuned],
        mut found: Tried,
        level: &Build,
    ) -> Result<Tried> {
        let mut rest = self.rest.clone();
        rest.flags.push(level.name.clone());
        let with_level = self.make("with-level", &recipe(tuned, None, &rest))?;
        let rivals = [
            build("plain", self.plain),
            build("hybrid with level", &with_level),
            level.clone(),
            build("hybrid", &found.hybrid),
        ];
        let rule = self.rule();
        let (again, answer) = self.program.decide(&rivals, &rule)?;
        found.level = Some((level.name.clone(), again.seconds(2)));
        let chosen = fastest(&again, 1..rivals.len()).unwrap_or(3);
        if chosen == 2 {
            let why = format!("all of the program with {} is faster", level.name);
            put_back_all(tuned, &why);
        }
        if chosen < 3 {
            found.hybrid.clone_from(&rivals[chosen].path);
            found.rest = rest;
            found.answer = match chosen {
                1 => answer,
                _ => rule.look(&again.ratios[chosen]),
            };
        }
        found.runs = Runs {
            ratios: vec![Vec::new(), again.ratios[chosen].clone()],
            differs: vec![None, again.differs[chosen].clone()],
            plain: again.plain,
        };
        Ok(found)
    }

    /// The rule for as many rounds as there is time for.
    fn rule(&self) -> Rule {
        let mut rule = Rule::for_program(self.rounds);
        let fits = self.budget.runs();
        let first = rule.looks.first().copied();
        rule.looks
            .retain(|rounds| runs_of(*rounds) <= fits || Some(*rounds) == first);
        rule
    }

    fn make(&mut self, name: &str, recipe: &Recipe) -> Result<PathBuf> {
        let path = self.scratch.join(name);
        self.program.make(recipe, &path)?;
        Ok(path)
    }

    /// Links what is kept of `tuned`.
    fn make_kept(&mut self, name: &str, tuned: &[Tuned]) -> Result<PathBuf> {
        self.make(name, &recipe(tuned, None, &self.rest))
    }

    fn level(&mut self, level: &str) -> Result<PathBuf> {
        let mut rest = self.rest.clone();
        rest.flags.push(level.to_owned());
        self.make(level.trim_start_matches('-'), &recipe(&[], None, &rest))
    }

    /// Puts back each region that changes the output alone; all regions if only several together do.
    fn put_back_wrong(&mut self, tuned: &mut [Tuned], why: &str) -> Result<PathBuf> {
        let plain = build("plain", self.plain);
        for region in tuned.iter_mut().filter(|t| t.back.is_none()) {
            let only = Recipe {
                rest: self.rest.clone(),
                regions: [(region.key.clone(), region.choice.clone())].into(),
            };
            let path = self.make("one", &only)?;
            let builds = [plain.clone(), build(&region.chosen.name, &path)];
            let runs = self.program.run(&builds, 1)?;
            if let Some(why) = &runs.differs[1] {
                region.back = Some(format!("with its flags the output is another: {why}"));
            }
        }
        let mut hybrid = self.make_kept("hybrid", tuned)?;
        let runs = self.program.run(&[plain, build("hybrid", &hybrid)], 1)?;
        if !runs.is_right(1) {
            put_back_all(tuned, &format!("together their output is another: {why}"));
            hybrid = self.make_kept("hybrid", tuned)?;
        }
        Ok(hybrid)
    }

    fn put_back_losers(&mut self, tuned: &mut [Tuned], mut hybrid: PathBuf) -> Result<PathBuf> {
        let keys: Vec<RegionKey> = tuned.iter().map(|t| t.key.clone()).collect();
        let all = [&keys[..], &self.others[..]].concat();
        let deciding = runs_of(self.rounds as usize);
        // The whole program has to be compared afterwards.
        let rounds = match self.budget.has(deciding + runs_of(5)) {
            true => self.rounds.clamp(2, 5),
            false => 2,
        };
        // Nothing is left to put back: no run is needed.
        while tuned.iter().any(|t| t.back.is_none()) {
            let times = self.program.compare(self.plain, &hybrid, &all, rounds)?;
            let mut lost = false;
            for (region, times) in tuned
                .iter_mut()
                .zip(&times)
                .filter(|(t, _)| t.back.is_none())
            {
                let Some(found) = *times else { continue };
                region.times = Some(found);
                // Its codelets have shown a gain; here it suffices that there is no evidence against it.
                if found.gain.ratio > 1.0 - GAINS {
                    region.back = Some("it does not gain in the linked program".into());
                    lost = true;
                }
            }
            if lost {
                hybrid = self.make_kept("hybrid", tuned)?;
                match self.budget.has(deciding + runs_of(rounds as usize)) {
                    true => continue,
                    false => break,
                }
            }
            let back = tuned.iter().map(|t| t.back.is_some());
            let back = back.chain(self.others.iter().map(|_| true));
            let as_built = times.iter().zip(back).filter(|(_, back)| *back);
            let slower: f64 = as_built
                .filter_map(|(times, _)| times.map(|t| t.other() - t.plain))
                .sum();
            let run: f64 = times.iter().flatten().map(|t| t.plain).sum();
            let kept = tuned.iter().filter(|t| t.back.is_none()).count();
            let time = self.budget.has(deciding + 3 * (kept + 1 + kept / 2));
            if slower < LOST * run || !time || !self.put_back_one(tuned, &mut hybrid)? {
                break;
            }
        }
        Ok(hybrid)
    }

    /// Puts back the one region without which the program is fastest, if it is faster without it.
    fn put_back_one(&mut self, tuned: &mut [Tuned], hybrid: &mut PathBuf) -> Result<bool> {
        let kept: Vec<usize> = (0..tuned.len())
            .filter(|i| tuned[*i].back.is_none())
            .collect();
        let mut builds = vec![build("plain", self.plain), build("hybrid", hybrid)];
        for place in &kept {
            let path = self.make(
                &format!("without-{place}"),
                &recipe(tuned, Some(*place), &self.rest),
            )?;
            builds.push(build(
                &format!("without {}", tuned[*place].chosen.name),
                &path,
            ));
        }
        let runs = self.program.run(&builds, self.rounds.clamp(2, 3))?;
        let times: Vec<f64> = (0..builds.len()).map(|place| runs.seconds(place)).collect();
        let Some(best) = (2..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])) else {
            return Ok(false);
        };
        if times[best] >= times[1] * (1.0 - MARGIN) {
            return Ok(false);
        }
        tuned[kept[best - 2]].back =
            Some("with its flags other regions lose more than it gains".into());
        *hybrid = self.make_kept("hybrid", tuned)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
