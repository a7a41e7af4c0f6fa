//! Runs a replay executable and reads its outcome.

use crate::{Built, Options, Replay, ReplayError, Tolerance, plan};
use cere_compile::command::tool_with_input;
use cere_compile::{CompileError, io, wait};
use cere_format::package::{CapturedFunction, Manifest};
use cere_format::replay::{
    CONFIDENCE, Comparison, ENV_PLAN, ReplayOutcome, Verdict, Warmup, lacks,
};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// The tool that gives names in the source's terms.
const DEMANGLE: &str = "llvm-cxxfilt-22";

/// What the environment says of teams and their places: a replay's are as its options say.
const FORGOTTEN: [&str; 10] = [
    "OMP_THREAD_LIMIT",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_NUM_TEAMS",
    "OMP_TEAMS_THREAD_LIMIT",
    "KMP_AFFINITY",
    "KMP_HW_SUBSET",
    "KMP_ALL_THREADS",
    "KMP_DEVICE_THREAD_LIMIT",
];

/// The verdict on a comparison.
pub fn verdict(
    comparison: Option<&Comparison>,
    repeatable: bool,
    varied: Option<&str>,
    tolerance: Tolerance,
    threads: Option<u32>,
) -> (Verdict, String) {
    let cause = match threads {
        Some(2..) => "its threads race, or the order in which they run shows in the result",
        _ => "the result depends on more than captured memory",
    };
    let Some(c) = comparison else {
        return (Verdict::Unchecked, "nothing was compared".to_owned());
    };
    if !c.same_end {
        return (
            Verdict::Different,
            "the region ended another way than in vivo (return or exception)".to_owned(),
        );
    }
    if !repeatable {
        return (
            Verdict::Different,
            format!(
                "repetitions ended in different states: {}{}",
                cause,
                varied.map_or(String::new(), |place| format!(", first seen at {place}"))
            ),
        );
    }
    if c.compared == 0 {
        let masked: u64 = c.masked.iter().map(|m| m.1).sum();
        return (
            Verdict::Unchecked,
            format!("nothing was compared: all {masked} bytes are left out"),
        );
    }
    if c.different_words == 0 {
        return (
            Verdict::Exact,
            format!("all {} bytes compared are the same", c.compared),
        );
    }
    let floating = c.typed && c.floating_words == c.different_words;
    if floating && tolerance.holds(c) {
        return (
            Verdict::Tolerance,
            format!(
                "{} floating-point words differ, {}",
                c.different_words,
                errors(c)
            ),
        );
    }
    let first = c.first.first().map_or(String::new(), |d| {
        format!(
            ", first at {} ({:#x}): {:#x} instead of {:#x}",
            d.place, d.address, d.in_vitro, d.in_vivo
        )
    });
    let kind = match (c.typed, c.floating_words) {
        (_, 0) | (false, _) => String::new(),
        (true, all) if all == c.different_words => format!(", all floating-point, {}", errors(c)),
        (true, some) => format!(", {some} of them floating-point, {}", errors(c)),
    };
    (
        Verdict::Different,
        format!("{} words differ{first}{kind}", c.different_words),
    )
}

/// The relative errors for people.
fn errors(c: &Comparison) -> String {
    let (double, single) = (c.largest_relative_error, c.largest_float_error);
    match (double > 0.0, single > 0.0) {
        (true, true) => {
            format!("doubles by at most {double:.2e} of their value, floats by {single:.2e}")
        }
        (false, true) => format!("by at most {single:.2e} of a float's value"),
        _ => format!("by at most {double:.2e} of a double's value"),
    }
}

/// Whether only what may be floating point differs, so that it pays to find out what it is. `several`: there are several
/// threads, on either side.
pub fn may_be_floating(replay: &Replay, several: bool) -> bool {
    let found = replay.comparison.as_ref();
    found.is_some_and(|c| {
        let differs = c.different_words > 0 && c.different_words == c.floating_words;
        differs && !c.typed && c.same_end && (replay.repeatable || several)
    })
}

/// `replay` judged by what its code, telling its stores, was found to leave: the same differences, their kind known.
/// With `several` threads the differences vary from run to run: their kind is what the code tells of those that it met.
pub fn judge_again(
    replay: &mut Replay,
    told: Option<Comparison>,
    options: &Options,
    several: bool,
) {
    let (Some(before), Some(told)) = (&replay.comparison, told) else {
        return;
    };
    if several {
        let floating =
            told.typed && told.different_words > 0 && told.floating_words == told.different_words;
        if floating
            && told.same_end
            && options.tolerance.holds(&told)
            && options.tolerance.holds(before)
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
    let same = before.different_words == told.different_words && before.first == told.first;
    if !same || !told.same_end {
        return;
    }
    (replay.verdict, replay.reason) = verdict(Some(&told), true, None, options.tolerance, None);
    replay.comparison = Some(told);
}

/// `functions` by their names in the source's terms.
fn demangled(
    mut functions: Option<Vec<CapturedFunction>>,
) -> Result<Option<Vec<CapturedFunction>>, ReplayError> {
    let mangled = functions.iter_mut().flatten();
    let mangled: Vec<&mut String> = mangled
        .map(|f| &mut f.name)
        .filter(|name| name.starts_with("_Z"))
        .collect();
    if !mangled.is_empty() {
        let text: String = mangled.iter().map(|name| format!("{name}\n")).collect();
        let what = "the names of functions";
        let plain = tool_with_input(Command::new(DEMANGLE).arg("-p"), what, &text)?;
        for (name, plain) in mangled.into_iter().zip(plain.lines()) {
            plain.clone_into(name);
        }
    }
    Ok(functions)
}

/// Runs `built`.
pub fn run(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    options: &Options,
) -> Result<Replay, ReplayError> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = |what: &str| {
        options
            .cache
            .join(format!("run.{}.{number}.{what}", std::process::id()))
    };
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (plan_path, outcome_path, errors_path) =
        (name("plan"), absolute(&name("outcome")), name("stderr"));
    let (mut warmup, note) = plan::warmup(manifest, options.warmup, options.team.threads)?;
    let plan = plan::plan(
        absolute(package),
        outcome_path.clone(),
        warmup,
        manifest,
        options,
    );
    let text = serde_json::to_vec(&plan).map_err(ReplayError::Manifest)?;
    std::fs::write(&plan_path, text).map_err(io("write", &plan_path))?;
    let errors = std::fs::File::create(&errors_path).map_err(io("write", &errors_path))?;
    let mut command = Command::new(&built.executable);
    command
        .env(ENV_PLAN, &plan_path)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    if let Some(threads) = plan.threads {
        for name in FORGOTTEN {
            command.env_remove(name);
        }
        command
            .env("OMP_NUM_THREADS", threads.to_string())
            .env("OMP_DYNAMIC", "false")
            .envs(options.team.environment.iter().cloned());
    }
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // Ordinary layout: randomised, libraries and stack at the top, away from captured addresses.
            libc::personality(0);
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_STACK, &mut limit);
            limit.rlim_cur = (8 << 20).min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_STACK, &limit);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let outcome = (|| {
        let mut child = command.spawn().map_err(|source| CompileError::Tool {
            tool: built.executable.display().to_string(),
            source,
        })?;
        let status =
            wait::within(&mut child, options.timeout).map_err(io("wait for", &built.executable))?;
        let mut message = String::new();
        if let Ok(mut file) = std::fs::File::open(&errors_path) {
            let mut bytes = Vec::new();
            let _ = file.read_to_end(&mut bytes);
            message = String::from_utf8_lossy(&bytes).trim().to_owned();
        }
        let failed = |how: String| ReplayError::Run {
            codelet: manifest.name.clone(),
            how,
            message: if message.is_empty() {
                String::new()
            } else {
                format!(": {message}")
            },
        };
        let Some(status) = status else {
            return Err(failed(format!(
                "ran longer than {} s",
                options.timeout.as_secs()
            )));
        };
        if !status.success() {
            return Err(failed(match (status.code(), status.signal()) {
                (Some(code), _) => format!("failed (exit code {code})"),
                (_, Some(signal)) => format!("was ended by signal {signal}"),
                _ => "failed".to_owned(),
            }));
        }
        let text = std::fs::read(&outcome_path).map_err(io("read", &outcome_path))?;
        serde_json::from_slice::<ReplayOutcome>(&text).map_err(|source| ReplayError::Outcome {
            codelet: manifest.name.clone(),
            source,
        })
    })();
    for path in [&plan_path, &outcome_path, &errors_path] {
        let _ = std::fs::remove_file(path);
    }
    let outcome = outcome?;
    let mut notes: Vec<String> = note.into_iter().chain(outcome.notes).collect();
    if outcome.batch > 1 {
        notes.push(format!(
            "too short for the clock: {} runs share a reading, warmed up by themselves (working-set)",
            outcome.batch
        ));
        warmup = Warmup::WorkingSet;
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
    let mut sorted = outcome.cycles.clone();
    sorted.sort_unstable();
    let least = sorted.first().copied().unwrap_or(0);
    let most = sorted.last().copied().unwrap_or(0);
    let median = cere_clock::median(&sorted);
    let (low, high, confidence) = cere_clock::interval(&sorted, CONFIDENCE)
        .map_or((0, 0, 0.0), |(low, high, ranks)| (low, high, ranks.level));
    let seconds = |cycles: u64| cycles as f64 / outcome.tsc_hz;
    let (verdict, reason) = verdict(
        outcome.comparison.as_ref(),
        outcome.repeatable,
        outcome.varied.as_deref(),
        options.tolerance,
        plan.threads,
    );
    let replay = Replay {
        codelet: manifest.name.clone(),
        flags: options.flags.clone(),
        verdict,
        reason,
        cycles_min: least,
        cycles_median: median,
        seconds_min: seconds(least),
        seconds_median: seconds(median),
        seconds_low: seconds(low),
        seconds_high: seconds(high),
        confidence,
        set_aside: outcome.set_aside,
        disturbed: outcome.disturbed,
        warmup,
        batch: outcome.batch,
        notes,
        spread: if median == 0 {
            0.0
        } else {
            (most - least) as f64 / median as f64
        },
        cycles: outcome.cycles,
        in_vivo_seconds: manifest.in_vivo.map(|v| v.seconds),
        repeatable: outcome.repeatable,
        same_code: built.same_code,
        captured_code: demangled(manifest.captured_code.clone())?,
        comparison: outcome.comparison,
        preparation: outcome.preparation,
        lacking: outcome.lacking,
        executable: built.executable.clone(),
    };
    let several = plan.threads.is_some_and(|n| n > 1);
    if !may_be_floating(&replay, several) {
        has_enough(&replay)?;
    }
    Ok(replay)
}

/// Fails if the exit state, where it was compared, leaves open whether the region needed what variables held that the
/// captured program does not have: they held nothing.
pub fn has_enough(replay: &Replay) -> Result<(), ReplayError> {
    let right = matches!(replay.verdict, Verdict::Exact | Verdict::Tolerance);
    if right || replay.comparison.is_none() || replay.lacking.is_empty() {
        return Ok(());
    }
    Err(ReplayError::Lacks {
        codelet: replay.codelet.clone(),
        how: lacks(&replay.lacking),
        reason: replay.reason.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_compared_is_not_exact() {
        let mut comparison = Comparison {
            masked: vec![("dead stack".to_owned(), 4096)],
            same_end: true,
            ..Comparison::default()
        };
        let judge = |c: &Comparison| verdict(Some(c), true, None, Tolerance::default(), None).0;
        assert_eq!(judge(&comparison), Verdict::Unchecked);
        comparison.compared = 8;
        assert_eq!(judge(&comparison), Verdict::Exact);
        comparison.different_words = 1;
        comparison.floating_words = 1;
        comparison.largest_relative_error = 1e-12;
        assert_eq!(judge(&comparison), Verdict::Different);
        comparison.typed = true;
        assert_eq!(judge(&comparison), Verdict::Tolerance);
        let none = Tolerance {
            double: 0.0,
            single: 0.0,
        };
        assert_eq!(
            verdict(Some(&comparison), true, None, none, None).0,
            Verdict::Different
        );
        comparison.largest_float_error = 1e-4;
        let (judged, reason) = verdict(Some(&comparison), true, None, Tolerance::default(), None);
        assert_eq!(judged, Verdict::Different);
        assert!(reason.contains("1.00e-4"), "{reason}");
    }
}
