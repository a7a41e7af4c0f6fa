//! What the outcome of a replay means.

use crate::beside::{self, Copies};
use crate::counters::{Event, Measured, Opening};
use crate::process::Watch;
use crate::survival::survival;
use crate::{Built, Options, Replay, ReplayError, energy, names, operand, plan, process};
use cere_format::package::{CapturedFunction, Manifest, OfThread};
use cere_format::replay::{
    CONFIDENCE, Comparison, Differing, ReplayOutcome, Stores, Unset, Verdict, Warmup, lacks,
};
use cere_format::verdict::{errors, verdict, with_questions};
use cere_system::console::print;
use cere_timing::energy::Counters;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Whether only what may be floating point differs, so that it pays to find out what it is. `several`: there are several
/// threads, on either side.
pub fn may_be_floating(replay: &Replay, several: bool) -> bool {
    let found = replay.comparison.as_ref();
    found.is_some_and(|c| {
        let differs = c.different_words > 0 && c.different_words == c.floating_words;
        differs && !c.typed && c.same_end && (replay.repeatable || several)
    })
}

/// Judges `replay` again by the comparison of a run whose code reports its stores: the same differences, their kind known.
/// With `several` threads the differences vary from run to run: the kind is that of the run with reported stores.
pub fn judge_again(
    replay: &mut Replay,
    reported: Option<Comparison>,
    options: &Options,
    several: bool,
) {
    let (Some(before), Some(reported)) = (&replay.comparison, reported) else {
        return;
    };
    if several {
        let floating = reported.typed
            && reported.different_words > 0
            && reported.floating_words == reported.different_words;
        if floating
            && reported.same_end
            && options.settings.tolerance.holds(&reported)
            && options.settings.tolerance.holds(before)
        {
            replay.verdict = Verdict::Tolerance;
            replay.reason = format!(
                "{} floating-point words differ, {}: threads add in another order",
                before.different_words,
                errors(before)
            );
        }
        return;
    }
    let same = before.different_words == reported.different_words && before.first == reported.first;
    if !same || !reported.same_end {
        return;
    }
    let (found, reason) = verdict(
        Some(&reported),
        true,
        None,
        options.settings.tolerance,
        (None, 0),
    );
    replay.reason = with_questions(found, reason, replay.asked_more);
    replay.verdict = found;
    replay.comparison = Some(reported);
}

/// What is said of `replay` if the kind of what differs was not found out within `seconds`: the verdict stays.
pub fn undecided(replay: &mut Replay, seconds: u64) {
    replay.reason += &format!(
        "; whether that is rounding is not known: code that reports its stores ran longer than {seconds} s"
    );
}

/// Runs `built`.
pub fn run(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    options: &Options,
) -> Result<Replay, ReplayError> {
    let watch = match options.settings.energy {
        Some(rounds) => Watch::Energy(Counters::find()?, rounds),
        None => Watch::Clock,
    };
    Ok(watched(package, manifest, built, watch, options)?.replay)
}

/// Runs `built`, whose code is counted and writes to `stream`.
pub fn run_counted(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    stream: OwnedFd,
    options: &Options,
) -> Result<Replay, ReplayError> {
    Ok(watched(package, manifest, built, Watch::Stream(stream), options)?.replay)
}

/// Runs `built`, whose code reports where its stores are: those to `words`, or which words end wrong if there are none.
pub fn run_traced(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    words: &[u64],
    options: &Options,
) -> Result<(Replay, Stores), ReplayError> {
    let watch = Watch::Stores(words.to_vec());
    let watched = watched(package, manifest, built, watch, options)?;
    Ok((watched.replay, watched.stores.unwrap_or_default()))
}

/// Runs `built`, whose code was edited and writes into `file`.
pub fn run_edited(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    file: &Path,
    options: &Options,
) -> Result<Replay, ReplayError> {
    let watch = Watch::File(file.to_owned());
    Ok(watched(package, manifest, built, watch, options)?.replay)
}

/// Runs `built` to find out which bytes nobody set, or without comparing those; the words that differ, if they are asked for and not
/// too many.
pub fn run_unset(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    unset: Unset,
    options: &Options,
) -> Result<(Replay, Option<Vec<Differing>>), ReplayError> {
    let watched = watched(package, manifest, built, Watch::Unset(unset), options)?;
    Ok((watched.replay, watched.differing))
}

/// Runs `built` while the kernel counts `events`.
pub fn run_measured(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    events: &[Event],
    options: &Options,
) -> Result<(Replay, Measured), ReplayError> {
    let opening = Opening::new(events).map_err(|source| ReplayError::Counters {
        codelet: manifest.name.clone(),
        source,
    })?;
    let watched = watched(package, manifest, built, Watch::Counters(opening), options)?;
    Ok((watched.replay, watched.measured))
}

/// What the time in vivo is of a codelet of a thread that is not the program's first one.
fn over_threads(manifest: &Manifest) -> Option<String> {
    let OfThread {
        number,
        threads,
        seconds: [low, high],
    } = manifest.of_thread?;
    let times = match (manifest.in_vivo, low > 0.0) {
        (Some(_), true) => format!(
            ": the time in vivo is the median of those in {threads} threads; a fifth took less than {}, another more than {}",
            print::time(low),
            print::time(high)
        ),
        _ => String::new(),
    };
    Some(format!("captured in thread {number}{times}"))
}

/// What a run shows.
struct Watched {
    replay: Replay,
    measured: Measured,
    stores: Option<Stores>,
    differing: Option<Vec<Differing>>,
}

/// Runs `built`, watched by `watch`.
fn watched(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    watch: Watch,
    options: &Options,
) -> Result<Watched, ReplayError> {
    let settings = &options.settings;
    let emulated = settings
        .cross
        .as_ref()
        .is_some_and(|cross| cross.emulator.is_some());
    let (mut warmup, note) = match emulated {
        true => (Warmup::Cold, None),
        false => plan::warmup(manifest, settings.warmup, settings.team.threads)?,
    };
    let absolute = std::path::absolute(package).unwrap_or_else(|_| package.to_owned());
    let resolved = operand::resolve(package, manifest, &settings.operands)?;
    let mut plan = plan::plan(absolute, Default::default(), warmup, manifest, options);
    plan.operands = resolved.plan;
    // What is counted is not timed, and not warmed up.
    if !emulated && !matches!(watch, Watch::Stream(_) | Watch::Stores(_) | Watch::File(_)) {
        plan.survival_ns = survival(warmup, &options.cache)?;
    }
    let (number, beside) = match watch {
        Watch::Clock if !emulated => beside::number(manifest, options),
        Watch::Energy(..) => (0, beside::left_out(manifest, options)),
        _ => (0, None),
    };
    let counters = match &watch {
        Watch::Energy(counters, _) => counters.names(),
        _ => String::new(),
    };
    let mut copies = Copies::start(number, &built.executable, manifest, &plan, options)?;
    let (mut outcome, readings) =
        process::outcome(&built.executable, manifest, &mut plan, watch, options)?;
    let ended = copies.ended();
    drop(copies);
    let mut operands = resolved.placed;
    for (operand, bytes) in operands.iter_mut().zip(&outcome.placed) {
        operand.bytes = *bytes;
    }
    if outcome.batch > 1 {
        warmup = Warmup::WorkingSet;
    }
    let (energy, unsure) = energy::energy(&outcome.energy, &counters);
    let notes = note
        .into_iter()
        .chain(over_threads(manifest))
        .chain(beside)
        .chain(ended)
        .chain(unsure)
        .chain(resolved.notes);
    let notes: Vec<String> = notes.chain(remarks(&mut outcome)).collect();
    let times = Times::of(&outcome.cycles);
    let seconds = |cycles: u64| cycles as f64 / outcome.tsc_hz;
    let (verdict, reason) = verdict(
        outcome.comparison.as_ref(),
        outcome.repeatable,
        outcome.varied.as_deref(),
        settings.tolerance,
        (plan.threads, outcome.asked_more),
    );
    let reason = with_questions(verdict, reason, outcome.asked_more);
    let replay = Replay {
        codelet: manifest.name.clone(),
        flags: settings.flags.clone(),
        verdict,
        reason,
        cycles_min: times.least,
        cycles_median: times.median,
        seconds_min: seconds(times.least),
        seconds_median: seconds(times.median),
        seconds_low: seconds(times.low),
        seconds_high: seconds(times.high),
        confidence: times.confidence,
        set_aside: outcome.set_aside,
        disturbed: outcome.disturbed,
        warmup,
        survival_ns: plan.survival_ns.filter(|_| warmup == Warmup::PageTrace),
        operands,
        batch: outcome.batch,
        notes,
        spread: times.spread(),
        cycles: outcome.cycles,
        in_vivo_seconds: manifest.in_vivo.map(|v| v.seconds),
        repeatable: outcome.repeatable,
        same_code: built.same_code,
        captured_code: captured_code(manifest),
        left: outcome.left,
        comparison: outcome.comparison,
        energy,
        preparation: outcome.preparation,
        lacking: outcome.lacking,
        asked_more: outcome.asked_more,
        crossed: None,
        executable: built.executable.clone(),
    };
    if !may_be_floating(&replay, plan.threads.is_some_and(|n| n > 1)) {
        has_enough(&replay, options)?;
    }
    let measured = Measured {
        invocations: outcome.measured,
        readings,
    };
    Ok(Watched {
        replay,
        measured,
        stores: outcome.stores,
        differing: outcome.differing,
    })
}

/// Functions that may have run as captured machine code, as people write their names.
fn captured_code(manifest: &Manifest) -> Option<Vec<CapturedFunction>> {
    let mut functions = manifest.captured_code.clone();
    for function in functions.iter_mut().flatten() {
        function.name = names::demangle(&function.name);
    }
    functions
}

/// What is to be said of an outcome, that which its process said first.
fn remarks(outcome: &mut ReplayOutcome) -> Vec<String> {
    let mut notes = std::mem::take(&mut outcome.notes);
    if outcome.batch > 1 {
        notes.push(format!(
            "too short for the clock: {} runs share a reading, warmed up by themselves (working-set)",
            outcome.batch
        ));
    }
    if !outcome.lacking.is_empty() {
        let known = match outcome.comparison {
            Some(_) => {
                "the region wrote what it read of that, or the exit state would not be the original's"
            }
            None => {
                "as nothing was compared, it is not known whether the region read of that what it had not written"
            }
        };
        let names = outcome.lacking.join(", ");
        notes.push(format!(
            "the captured program does not have {names}: {known}"
        ));
    }
    if outcome.disturbed {
        notes.push("no repetition was undisturbed: the times are of disturbed ones".to_owned());
    }
    notes
}

/// Cycles of the repetitions that count; 0 without any.
struct Times {
    least: u64,
    most: u64,
    median: u64,
    /// Ends of the median's confidence interval, and the probability that it holds the median.
    low: u64,
    high: u64,
    confidence: f64,
}

impl Times {
    fn of(cycles: &[u64]) -> Self {
        let mut sorted = cycles.to_vec();
        sorted.sort_unstable();
        let (low, high, confidence) = cere_timing::stats::interval(&sorted, CONFIDENCE)
            .map_or((0, 0, 0.0), |(low, high, ranks)| (low, high, ranks.level));
        Self {
            least: sorted.first().copied().unwrap_or(0),
            most: sorted.last().copied().unwrap_or(0),
            median: cere_timing::stats::median_of_rising(&sorted),
            low,
            high,
            confidence,
        }
    }

    /// (most - least) / median.
    fn spread(&self) -> f64 {
        match self.median {
            0 => 0.0,
            median => (self.most - self.least) as f64 / median as f64,
        }
    }
}

/// Fails if the exit state, where it was compared, leaves open whether the region needed what variables held that the
/// captured program does not have: they held nothing.
pub fn has_enough(replay: &Replay, options: &Options) -> Result<(), ReplayError> {
    let right = matches!(replay.verdict, Verdict::Exact | Verdict::Tolerance);
    if right || replay.comparison.is_none() || replay.lacking.is_empty() {
        return Ok(());
    }
    Err(ReplayError::Lacks {
        codelet: replay.codelet.clone(),
        how: lacks(&replay.lacking, options.settings.cross.is_some()),
        reason: replay.reason.clone(),
    })
}
