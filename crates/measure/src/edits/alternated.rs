//! The codelets of a region in several variants, timed in turns.

use super::tried::{Tried, explained};
use crate::fast::fast_seconds;
use crate::sides::{Part, Side};
use crate::{Bench, Effort, Member, Replays, Target, Turns};
use anyhow::{Context, Result};
use cere_format::replay::Verdict;
use cere_replay::wrong::Wrong;
use cere_replay::{EditedUnit, Options, Replay, ReplayError, SameCode};
use cere_store::lines;
use cere_timing::stats::{Gain, gain};
use std::path::Path;
use std::time::Instant;

/// All codelets of a region in one variant.
pub(super) struct Subject<'m> {
    side: Side<'m>,
    /// What differs beside it, and is not run.
    others: String,
    /// What its first replays found.
    first: Option<Tried>,
}

impl<'m> Subject<'m> {
    pub(super) fn build(
        target: &'m Target,
        edited: Vec<Vec<EditedUnit>>,
        options: &Options,
    ) -> Result<Self, ReplayError> {
        Ok(Self {
            side: Side::build(&target.members, edited, options)?,
            others: String::new(),
            first: None,
        })
    }

    /// With what differs beside it, and is not run.
    pub(super) fn beside(self, others: String) -> Self {
        Self { others, ..self }
    }
}

/// The region's own unit as captured, bridged as an edited one is; from `ir`, if given, in the place of the package's.
pub(super) fn bridged_as_captured(
    member: &Member,
    ir: Option<&Path>,
    options: &Options,
) -> Result<EditedUnit> {
    let (package, manifest) = (&member.package, &member.manifest);
    let own = manifest.units.first();
    let own = package.join(own.context("the package holds no units")?.member());
    let ir = ir.unwrap_or(&own);
    Ok(cere_replay::bridge::bridge(package, manifest, ir, None, options)?.0)
}

/// Which store made a result wrong; none if it cannot be found out, as by a run that takes too long.
fn wrong(replays: &Replays, edited: &Part, captured: &Part, replay: &Replay) -> Option<Wrong> {
    let member = edited.member;
    let found = with_lines(replays, captured).and_then(|captured| {
        let (package, manifest) = (&member.package, &member.manifest);
        let options = &edited.options;
        Ok(cere_replay::wrong::explain(
            package, manifest, options, &captured, replay,
        )?)
    });
    found.unwrap_or_else(|error| {
        let why = cere_system::console::print::error(&error);
        let name = &member.manifest.name;
        let what = format!("{name}: which store is wrong is not known: {why}");
        edited.options.events.note(what);
        None
    })
}

/// How the captured code is replayed, from IR that knows its lines where the package's does not. It is not timed: debug information
/// may change machine code.
fn with_lines(replays: &Replays, captured: &Part) -> Result<Options> {
    let member = captured.member;
    let ids = member.manifest.units.iter().take(1);
    let lined = lines::lined(replays.store, ids.map(|unit| unit.id.as_str()));
    let mut options = captured.options.clone();
    if let Some(ir) = lined.values().next() {
        options.edited = vec![bridged_as_captured(member, Some(ir), &captured.options)?];
    }
    Ok(options)
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
    replays: &'t Replays<'t>,
    target: &'t Target,
    subjects: Vec<Subject<'t>>,
    /// Seconds of the first sample of the code as captured.
    base: Vec<f64>,
}

/// Times the subjects in turns with the first one, which is the code as captured; what came of the others. `baseline`: a subject that
/// they are compared with as well.
pub(super) fn time<'t>(
    replays: &'t Replays<'t>,
    target: &'t Target,
    subjects: Vec<Subject<'t>>,
    baseline: Option<usize>,
    effort: Effort,
) -> Result<Vec<Tried>> {
    let count = subjects.len();
    let trials = Trials {
        replays,
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
                || effort.is_narrow(gain(&turns.series().part_ratios(*subject, 0)))
        };
        let done = all.iter().all(narrow) || effort.is_over(began);
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
    let own = turns.series().part_ratios(subject, 0);
    if turns.failure(baseline).is_some() {
        return None;
    }
    let subjects = &turns.bench.subjects;
    if subjects[subject]
        .side
        .is_same_code(&subjects[baseline].side)
    {
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
        self.subjects[subject]
            .side
            .is_same_code(&self.subjects[0].side)
    }
}

impl Bench for Trials<'_> {
    type Error = anyhow::Error;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>> {
        let is_first = self.subjects[subject].first.is_none();
        let mut first = Tried::open("");
        let mut seconds = Vec::new();
        let captured = &self.subjects[0].side.parts;
        for (part, captured) in self.subjects[subject].side.parts.iter().zip(captured) {
            let replay = match part.replay(is_first) {
                Ok(replay) => replay,
                Err(error) => {
                    self.subjects[subject].first.get_or_insert(first).verdict = None;
                    return Ok(Err(explained(error)));
                }
            };
            if is_first {
                notes(&mut first.notes, &replay.notes);
                if first
                    .verdict
                    .is_none_or(|v| replay.verdict.is_worse_than(v))
                {
                    first.verdict = Some(replay.verdict);
                    first.reason = match self.target.members.len() {
                        1 => replay.reason.clone(),
                        _ => format!("{}: {}", part.member.manifest.name, replay.reason),
                    };
                    if replay.verdict == Verdict::Different {
                        first.wrong = wrong(self.replays, part, captured, &replay);
                    }
                }
            }
            seconds.push(fast_seconds(&replay));
        }
        if is_first {
            let good = first.verdict.is_some_and(Verdict::is_right);
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
