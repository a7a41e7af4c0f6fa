//! Which regions keep their flags in the linked program (CERE thesis, 6.5.2: neighbours interact). Regions that do not gain
//! there, and regions that make others lose more than they gain, are put back, until the hybrid is the best that is known.

use crate::{Choice, Image, Recipe};
use anyhow::Result;
use cere_console::note;
use cere_format::profile::RegionKey;
use cere_measure::{Build, Linked, Shown, Trial, join};
use std::path::{Path, PathBuf};

/// A region keeps its flags if they take at least this share off its time.
const GAINS: f64 = 0.005;
/// What regions that were not tuned may lose together, as a share of the run.
const LOST: f64 = 0.01;
/// A build is faster than another one only by more than this share.
const FASTER: f64 = 0.002;
/// How often plain build and hybrid are run so many times more while nothing tells which is the faster.
const MORE: u32 = 2;
/// Levels that the whole program is compiled at for comparison.
const LEVELS: [&str; 3] = ["-O1", "-O2", "-O3"];

/// A region with flags of its own.
#[derive(Debug, Clone)]
pub struct Tuned {
    /// Name.
    pub name: String,
    /// Identity.
    pub key: RegionKey,
    /// What it is compiled with.
    pub choice: Choice,
    /// Why it was put back, if it was.
    pub back: Option<String>,
    /// Seconds in the plain build and in the last hybrid with its flags.
    pub seconds: Option<(f64, f64)>,
    /// Where its team goes, as the flags file says.
    pub bind: Option<String>,
    /// What tuning found it to gain.
    pub gain: Option<f64>,
}

/// What was decided.
#[derive(Debug)]
pub struct Decision {
    /// What the hybrid is compiled with.
    pub recipe: Recipe,
    /// Its file.
    pub hybrid: PathBuf,
    /// Seconds of the plain build.
    pub plain: Shown,
    /// Seconds of the hybrid.
    pub chosen: Shown,
    /// The fastest of the levels whose output is right.
    pub level: Option<(String, Shown)>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// What decides.
pub struct Decider<'a> {
    /// The image.
    pub image: &'a Image<'a>,
    /// The plain build.
    pub plain: &'a Path,
    /// Where builds go.
    pub scratch: &'a Path,
    /// Runs for time and output.
    pub trial: Trial<'a>,
    /// Runs for regions' times.
    pub linked: Linked<'a>,
    /// Regions of the profile that matter and have no flags of their own.
    pub others: Vec<RegionKey>,
    /// Flags of all other code.
    pub rest: Choice,
    /// Runs of each build.
    pub rounds: u32,
    /// Whether the whole program is compiled at other levels for comparison.
    pub levels: bool,
}

fn build(name: &str, path: &Path) -> Build {
    Build {
        name: name.to_owned(),
        path: path.to_owned(),
    }
}

/// What is kept of `tuned`, but for the one at the place `without`.
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

/// That runs do not tell whether a build gains.
fn unsure(plain: &Shown, other: &Shown) -> Option<String> {
    let (least, most, level) = other.range()?;
    let gain = |seconds: f64| plain.median() / seconds;
    Some(format!(
        "{} runs of the hybrid leave open whether it gains: {:.3} times the plain build's speed, and with {:.0} % between {:.3} and {:.3}; a quieter machine tells, or more --rounds",
        other.seconds.len(),
        gain(other.median()),
        100.0 * level,
        gain(most),
        gain(least)
    ))
}

impl Decider<'_> {
    /// Puts back what does not gain, in `tuned` as well.
    pub fn decide(mut self, tuned: &mut [Tuned]) -> Result<Decision> {
        let mut notes = Vec::new();
        let mut hybrid = self.make("hybrid", tuned, None, &self.rest)?;
        let plain = build("plain", self.plain);
        // Right before fast: an output that differs says which region it is, or that it is several together.
        let shown = self
            .trial
            .run(&[plain.clone(), build("hybrid", &hybrid)], 2)?;
        if let Some((count, line)) = self.trial.varying()?.told() {
            notes.push(format!(
                "{count} words of the output differ from run to run and are not compared, as in: {line}"
            ));
        }
        if let Some(why) = &shown[1].differs {
            hybrid = self.put_back_wrong(tuned, why)?;
        }
        hybrid = self.put_back_losers(tuned, hybrid)?;
        let mut builds = vec![plain, build("hybrid", &hybrid)];
        if self.levels {
            for level in LEVELS {
                builds.push(build(level, &self.level(level)?));
            }
        }
        let mut shown = self.trial.run(&builds, self.rounds)?;
        let some = tuned.iter().any(|t| t.back.is_none());
        for _ in 0..MORE {
            if !some || shown[1].differs.is_some() || !shown[1].may_take(shown[0].median()) {
                break;
            }
            note!(
                "{} runs leave open whether the hybrid gains: {} more",
                shown[1].seconds.len(),
                self.rounds
            );
            let more = self.trial.run(&builds[..2], self.rounds)?;
            join(&mut shown, more);
        }
        for (build, shown) in builds.iter().zip(&shown).skip(1) {
            if let Some(why) = &shown.differs {
                notes.push(format!("the output at {} is another: {why}", build.name));
            }
        }
        let right = |i: &usize| shown[*i].differs.is_none();
        let by_time = |a: &usize, b: &usize| shown[*a].median().total_cmp(&shown[*b].median());
        let best = (2..builds.len()).filter(right).min_by(by_time);
        let mut kept = recipe(tuned, None, &self.rest);
        if let Some(best) = best
            && shown[best].median() < shown[1].median() * (1.0 - FASTER)
        {
            // Code outside of the tuned regions gains by that level.
            let mut rest = self.rest.clone();
            rest.flags.push(builds[best].name.clone());
            let other = self.make("with-level", tuned, None, &rest)?;
            let more = [
                builds[0].clone(),
                builds[1].clone(),
                build("hybrid with level", &other),
                builds[best].clone(),
            ];
            let again = self.trial.run(&more, self.rounds)?;
            let fastest = (1..more.len())
                .filter(|i| again[*i].differs.is_none())
                .min_by(|a, b| again[*a].median().total_cmp(&again[*b].median()));
            let mut chosen = 1;
            if let Some(fastest) = fastest.filter(|f| *f > 1)
                && again[fastest].median() < again[1].median() * (1.0 - FASTER)
            {
                if fastest == 3 {
                    for region in tuned.iter_mut().filter(|t| t.back.is_none()) {
                        region.back = Some(format!(
                            "all of the program with {} is faster",
                            builds[best].name
                        ));
                    }
                    kept = recipe(tuned, None, &rest);
                }
                hybrid.clone_from(&more[fastest].path);
                kept.rest = rest;
                chosen = fastest;
            }
            // What was decided upon is what is told.
            shown[0] = again[0].clone();
            shown[1] = again[chosen].clone();
            shown[best] = again[3].clone();
        }
        let level = best.map(|best| (builds[best].name.clone(), shown[best].clone()));
        let mut shown = shown.into_iter();
        let (Some(plain), Some(mut chosen)) = (shown.next(), shown.next()) else {
            anyhow::bail!("nothing was run");
        };
        let gains = chosen.median() < plain.median() * (1.0 - FASTER) && chosen.differs.is_none();
        let some = tuned.iter().any(|t| t.back.is_none()) || kept.rest != self.rest;
        if some && chosen.differs.is_none() && chosen.may_take(plain.median()) {
            notes.extend(unsure(&plain, &chosen));
        }
        if !some || !gains {
            // The same code: what its runs differ by is noise.
            chosen = plain.clone();
        }
        if some && !gains {
            for region in tuned.iter_mut().filter(|t| t.back.is_none()) {
                region.back = Some("the linked program does not gain".into());
            }
            kept = recipe(tuned, None, &self.rest);
            hybrid = self.make("as-built", tuned, None, &self.rest)?;
        }
        if kept.rest != self.rest
            && let Some(level) = kept.rest.flags.last()
        {
            notes.push(format!(
                "the rest of the program is compiled with {level} as well, which gains"
            ));
        }
        Ok(Decision {
            recipe: kept,
            hybrid,
            plain,
            chosen,
            level,
            notes,
        })
    }

    fn make(
        &self,
        name: &str,
        tuned: &[Tuned],
        without: Option<usize>,
        rest: &Choice,
    ) -> Result<PathBuf> {
        let path = self.scratch.join(name);
        self.image.make(&recipe(tuned, without, rest), &path)?;
        Ok(path)
    }

    fn level(&self, level: &str) -> Result<PathBuf> {
        let mut rest = self.rest.clone();
        rest.flags.push(level.to_owned());
        self.make(level.trim_start_matches('-'), &[], None, &rest)
    }

    /// Puts back each region with which alone the output is another one; all, if none is it alone.
    fn put_back_wrong(&mut self, tuned: &mut [Tuned], why: &str) -> Result<PathBuf> {
        let plain = build("plain", self.plain);
        for region in tuned.iter_mut().filter(|t| t.back.is_none()) {
            let only = Recipe {
                rest: self.rest.clone(),
                regions: [(region.key.clone(), region.choice.clone())].into(),
            };
            let path = self.scratch.join("one");
            self.image.make(&only, &path)?;
            let builds = [plain.clone(), build(&region.name, &path)];
            let shown = self.trial.run(&builds, 1)?;
            if let Some(why) = &shown[1].differs {
                region.back = Some(format!("with its flags the output is another: {why}"));
            }
        }
        let mut hybrid = self.make("hybrid", tuned, None, &self.rest)?;
        let shown = self.trial.run(&[plain, build("hybrid", &hybrid)], 1)?;
        if shown[1].differs.is_some() {
            for region in tuned.iter_mut().filter(|t| t.back.is_none()) {
                region.back = Some(format!("together their output is another: {why}"));
            }
            hybrid = self.make("hybrid", tuned, None, &self.rest)?;
        }
        Ok(hybrid)
    }

    fn put_back_losers(&mut self, tuned: &mut [Tuned], mut hybrid: PathBuf) -> Result<PathBuf> {
        let keys: Vec<RegionKey> = tuned.iter().map(|t| t.key.clone()).collect();
        let all = [&keys[..], &self.others[..]].concat();
        let rounds = self.rounds.clamp(2, 5);
        loop {
            let times = self.linked.compare(self.plain, &hybrid, &all, rounds)?;
            let mut lost = false;
            for (region, times) in tuned
                .iter_mut()
                .zip(&times)
                .filter(|(t, _)| t.back.is_none())
            {
                let (Some(before), Some(after)) = *times else {
                    continue;
                };
                region.seconds = Some((before, after));
                if after > before * (1.0 - GAINS) {
                    region.back = Some("it does not gain in the linked program".into());
                    lost = true;
                }
            }
            if lost {
                hybrid = self.make("hybrid", tuned, None, &self.rest)?;
                continue;
            }
            let change =
                |(before, after): &(Option<f64>, Option<f64>)| Some((*after)? - (*before)?);
            let back = tuned.iter().map(|t| t.back.is_some());
            let back = back.chain(self.others.iter().map(|_| true));
            let as_built = times.iter().zip(back).filter(|(_, back)| *back);
            let slower: f64 = as_built.filter_map(|(times, _)| change(times)).sum();
            let run: f64 = times.iter().filter_map(|t| t.0).sum();
            if slower < LOST * run || !self.put_back_one(tuned, &mut hybrid)? {
                return Ok(hybrid);
            }
        }
    }

    /// Puts back the region without which the program is fastest, if it is faster so.
    fn put_back_one(&mut self, tuned: &mut [Tuned], hybrid: &mut PathBuf) -> Result<bool> {
        let kept: Vec<usize> = (0..tuned.len())
            .filter(|i| tuned[*i].back.is_none())
            .collect();
        let mut builds = vec![build("plain", self.plain), build("hybrid", hybrid)];
        for place in &kept {
            let path = self.make(&format!("without-{place}"), tuned, Some(*place), &self.rest)?;
            builds.push(build(&format!("without {}", tuned[*place].name), &path));
        }
        let shown = self.trial.run(&builds, self.rounds.clamp(2, 3))?;
        let times: Vec<f64> = shown.iter().map(Shown::median).collect();
        let Some(best) = (2..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])) else {
            return Ok(false);
        };
        if times[best] >= times[1] * (1.0 - FASTER) {
            return Ok(false);
        }
        tuned[kept[best - 2]].back =
            Some("with its flags other regions lose more than it gains".into());
        *hybrid = self.make("hybrid", tuned, None, &self.rest)?;
        Ok(true)
    }
}
