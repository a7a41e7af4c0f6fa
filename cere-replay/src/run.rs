//! Runs a replay executable and reads its outcome.

use crate::{Built, Options, Replay, ReplayError, io};
use cere_format::package::Manifest;
use cere_format::replay::{
    Comparison, ENV_PLAN, REPLAY_VERSION, ReplayOutcome, ReplayPlan, Verdict,
};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The verdict on a comparison.
pub fn verdict(
    comparison: Option<&Comparison>,
    repeatable: bool,
    varied: Option<&str>,
    tolerance: f64,
) -> (Verdict, String) {
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
                "repetitions ended in different states: the result depends on more than captured memory{}",
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
    if c.floating_words == c.different_words && c.largest_relative_error <= tolerance {
        return (
            Verdict::Tolerance,
            format!(
                "{} floating-point words differ, by at most {:.2e}",
                c.different_words, c.largest_relative_error
            ),
        );
    }
    let first = c.first.first().map_or(String::new(), |d| {
        format!(
            ", first at {} ({:#x}): {:#x} instead of {:#x}",
            d.place, d.address, d.in_vitro, d.in_vivo
        )
    });
    (
        Verdict::Different,
        format!("{} words differ{first}", c.different_words),
    )
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
    let plan = ReplayPlan {
        version: REPLAY_VERSION,
        package: absolute(package),
        outcome: outcome_path.clone(),
        repetitions: options.repetitions.max(1),
        compare: options.compare,
    };
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
        let mut child = command.spawn().map_err(|source| ReplayError::Tool {
            tool: built.executable.display().to_string(),
            source,
        })?;
        let start = Instant::now();
        let mut pause = Duration::from_micros(500);
        let status = loop {
            if let Some(status) = child
                .try_wait()
                .map_err(io("wait for", &built.executable))?
            {
                break Some(status);
            }
            if start.elapsed() > options.timeout {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
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
    let mut sorted = outcome.cycles.clone();
    sorted.sort_unstable();
    let least = sorted.first().copied().unwrap_or(0);
    let most = sorted.last().copied().unwrap_or(0);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let (verdict, reason) = verdict(
        outcome.comparison.as_ref(),
        outcome.repeatable,
        outcome.varied.as_deref(),
        options.tolerance,
    );
    Ok(Replay {
        codelet: manifest.name.clone(),
        flags: options.flags.clone(),
        verdict,
        reason,
        cycles_min: least,
        cycles_median: median,
        seconds_min: least as f64 / outcome.tsc_hz,
        seconds_median: median as f64 / outcome.tsc_hz,
        spread: if median == 0 {
            0.0
        } else {
            (most - least) as f64 / median as f64
        },
        cycles: outcome.cycles,
        in_vivo_seconds: manifest.in_vivo.map(|v| v.seconds),
        repeatable: outcome.repeatable,
        same_code: built.same_code,
        comparison: outcome.comparison,
        executable: built.executable.clone(),
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
        let judge = |c: &Comparison| verdict(Some(c), true, None, 0.0).0;
        assert_eq!(judge(&comparison), Verdict::Unchecked);
        comparison.compared = 8;
        assert_eq!(judge(&comparison), Verdict::Exact);
        comparison.different_words = 1;
        assert_eq!(judge(&comparison), Verdict::Different);
    }
}
