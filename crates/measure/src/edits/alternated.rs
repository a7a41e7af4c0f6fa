//! The codelets of a region in several variants, timed in turns.

use super::tried::{Effort, Tried, explained};
use crate::lab::fast_seconds;
use crate::{Bench, Member, Target, Turns};
use anyhow::Result;
use cere_format::replay::Verdict;
use cere_replay::wrong::Wrong;
use cere_replay::{Built, EditedUnit, Options, Replay, ReplayError, SameCode};
use cere_timing::stats::{Gain, gain};
use std::time::Instant;

/// A codelet in one variant.
struct Candidate {
    options: Options,
    built: Built,
}

/// All codelets of a region in one variant.
pub(super) struct Subject {
    built: Vec<Candidate>,
    /// Identifies their machine code.
    code: Vec<String>,
    /// What differs beside it, and is not run.
    others: String,
    /// What its first replays found.
    first: Option<Tried>,
}

impl Subject {
    pub(super) fn build(
        target: &Target,
        edited: Vec<Vec<EditedUnit>>,
        options: &Options,
    ) -> Result<Self, ReplayError> {
        let (mut all, mut code) = (Vec::new(), Vec::new());
        for (member, edited) in target.members.iter().zip(edited) {
            let options = Options {
                edited,
                ..options.clone()
            };
            let (package, manifest) = (&member.package, &member.manifest);
            let objects = cere_replay::compile(package, manifest, &options)?;
            code.push(objects.code()?);
            let built = objects.link(package, manifest, &options)?;
            all.push(Candidate { options, built });
        }
        Ok(Self {
            built: all,
            code,
            others: String::new(),
            first: None,
        })
    }

    /// With what differs beside it, and is not run.
    pub(super) fn beside(self, others: String) -> Self {
        Self { others, ..self }
    }
}

/// Which store made a result wrong; none if it cannot be found out, as by a run that takes too long.
fn wrong(member: &Member, edited: &Options, captured: &Options, replay: &Replay) -> Option<Wrong> {
    let (package, manifest) = (&member.package, &member.manifest);
    match cere_replay::wrong::explain(package, manifest, edited, captured, replay) {
        Ok(wrong) => wrong,
        Err(error) => {
            let why = explained(error);
            let what = format!(
                "{}: which store is wrong is not known: {why}",
                manifest.name
            );
            edited.events.note(what);
            None
        }
    }
}

/// Adds notes that are not there yet.
fn notes(to: &mut Vec<String>, from: &[String]) {
    for note in from {
        if !to.contains(note) {
            to.push(note.clone());
        }
    }
}

/// The replays of all subjects.
struct Trials<'t> {
    target: &'t Target,
    subjects: Vec<Subject>,
    /// Seconds of the first sample of the code as captured.
    base: Vec<f64>,
}

/// Times the subjects in turns with the first one, which is the code as captured; what came of the others. `baseline`: a subject that
/// they are compared with as well.
pub(super) fn time(
    target: &Target,
    subjects: Vec<Subject>,
    baseline: Option<usize>,
    effort: Effort,
) -> Result<Vec<Tried>> {
    let count = subjects.len();
    let trials = Trials {
        target,
        subjects,
        base: Vec::new(),
    };
    let mut turns = Turns::new(trials, 2);
    let all: Vec<usize> = (1..count).collect();
    let began = Instant::now();
    for round in 0..effort.most {
        let narrow = |subject: &usize| {
            turns.failure(*subject).is_some()
                || turns.bench.is_same(*subject)
                || gain(&turns.series().part_ratios(*subject, 0)).is_some_and(|g| {
                    g.level >= 0.95 && (g.high - g.low) / 2.0 <= effort.precision * g.ratio
                })
        };
        let done = all.iter().all(narrow) || began.elapsed().as_secs_f64() >= effort.seconds;
        let same = round > 0 && all.iter().all(|s| turns.bench.is_same(*s));
        if same || round >= effort.least && done {
            break;
        }
        turns.round(&all)?;
    }
    let gains: Vec<Option<Gain>> = all
        .iter()
        .map(|subject| match turns.bench.is_same(*subject) {
            true => Some(SAME),
            false => gain(&turns.series().part_ratios(*subject, 0)),
        })
        .collect();
    let failures: Vec<Option<String>> = all
        .iter()
        .map(|subject| turns.failure(*subject).map(str::to_owned))
        .collect();
    let tried = all.iter().zip(gains).zip(failures);
    let tried = tried.map(|((subject, gain), failure)| {
        let first = turns.bench.subjects[*subject].first.clone();
        let mut first = first.unwrap_or_else(|| Tried::open(""));
        first.same_code = match turns.bench.is_same(*subject) {
            true => SameCode::Yes,
            false => SameCode::No,
        };
        match failure {
            // The verdict is bad, or a later replay failed.
            Some(why) => Tried {
                reason: why,
                ..first
            },
            None => Tried {
                gain,
                over_baseline: baseline.and_then(|baseline| over(&turns, *subject, baseline)),
                ..first
            },
        }
    });
    Ok(tried.collect())
}

/// The time of `subject` over that of `baseline`, of which both were timed in each round.
fn over(turns: &Turns<Trials>, subject: usize, baseline: usize) -> Option<Gain> {
    let code = |subject: usize| &turns.bench.subjects[subject].code;
    let own = turns.series().part_ratios(subject, 0);
    if turns.failure(baseline).is_some() {
        return None;
    }
    if code(subject) == code(baseline) {
        return Some(SAME);
    }
    if baseline == 0 {
        return gain(&own);
    }
    let base = turns.series().part_ratios(baseline, 0);
    let ratios = own.iter().zip(&base).map(|(own, base)| own / base);
    gain(&ratios.collect::<Vec<_>>())
}

/// Of the same machine code.
const SAME: Gain = Gain {
    ratio: 1.0,
    low: 1.0,
    high: 1.0,
    level: 1.0,
};

impl Trials<'_> {
    /// Whether a subject is the machine code as captured, so that no time can differ.
    fn is_same(&self, subject: usize) -> bool {
        self.subjects[subject].code == self.subjects[0].code
    }
}

impl Bench for Trials<'_> {
    type Error = anyhow::Error;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>> {
        let is_first = self.subjects[subject].first.is_none();
        let mut first = Tried::open("");
        let mut seconds = Vec::new();
        let each = self
            .target
            .members
            .iter()
            .zip(&self.subjects[subject].built);
        for (number, (member, candidate)) in each.enumerate() {
            let (package, manifest) = (&member.package, &member.manifest);
            let (built, options) = (&candidate.built, &candidate.options);
            let judged =
                cere_replay::run::run(package, manifest, built, options).and_then(|mut r| {
                    if is_first {
                        cere_replay::judge(package, manifest, built, &mut r, options)?;
                    }
                    Ok(r)
                });
            let replay = match judged {
                Ok(replay) => replay,
                Err(error) => {
                    self.subjects[subject].first.get_or_insert(first).verdict = None;
                    return Ok(Err(explained(error)));
                }
            };
            if is_first {
                notes(&mut first.notes, &replay.notes);
                let rank = |v: Verdict| Verdict::ALL.iter().position(|of| *of == v);
                if first.verdict.is_none_or(|v| rank(replay.verdict) > rank(v)) {
                    first.verdict = Some(replay.verdict);
                    first.reason = match self.target.members.len() {
                        1 => replay.reason.clone(),
                        _ => format!("{}: {}", manifest.name, replay.reason),
                    };
                    let captured = &self.subjects[0].built[number].options;
                    if replay.verdict == Verdict::Different {
                        first.wrong = wrong(member, options, captured, &replay);
                    }
                }
            }
            seconds.push(fast_seconds(&replay));
        }
        if is_first {
            let good = matches!(
                first.verdict,
                Some(Verdict::Exact | Verdict::Tolerance | Verdict::Partly)
            );
            let why = first.reason.clone();
            let others = &self.subjects[subject].others;
            if !others.is_empty() {
                first.notes.push(format!(
                    "not tried here, and changed as well: {others}. If the program does something else there, the region meets other values"
                ));
            }
            self.subjects[subject].first = Some(first);
            if !good {
                return Ok(Err(why));
            }
        }
        if let Err(why) = self.target.check_timed_weight(&seconds) {
            if let Some(first) = &mut self.subjects[subject].first {
                notes(&mut first.notes, &[why]);
            }
            return Ok(Ok(vec![0.0]));
        }
        if self.base.is_empty() {
            self.base.clone_from(&seconds);
        }
        Ok(Ok(vec![self.target.ratio(&self.base, &seconds)]))
    }
}
