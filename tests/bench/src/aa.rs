//! A/A: a codelet against itself. How often do two interleaved halves of one replay's repetitions look different?

use crate::program::kernel;
use anyhow::{Context, Result};
use cere_tests::tools::{cere, json, succeed};

/// Replays.
const TIMES: usize = 200;
/// Confidence level of each half's interval.
const CONFIDENCE: f64 = 0.95;
/// Repetitions of a replay.
const REPETITIONS: &str = "60";

/// The median's interval.
fn interval(cycles: &[u64]) -> Option<(u64, u64)> {
    let mut sorted = cycles.to_vec();
    sorted.sort_unstable();
    let (low, high, ranks) = cere_timing::stats::interval(&sorted, CONFIDENCE)?;
    (ranks.level >= CONFIDENCE).then_some((low, high))
}

/// Prints the table.
pub fn run() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let home = directory.path();
    kernel("jacobi.c").instrumented(home, "-O3")?;
    let (captured, _) = json(cere(home).args(["capture", "--json", "--", "./program"]))?;
    let codelet = captured["codelets"][0]["name"]
        .as_str()
        .context("no codelet was captured")?;
    let mut command = cere(home);
    command.args(["replay", codelet]);
    succeed(&mut command)?;
    println!(
        "### A/A\n\n{codelet} of jacobi.c against itself: {TIMES} replays of {REPETITIONS} repetitions, every other one to each half; \
         the halves differ if the {:.0} % confidence intervals of their medians are apart.\n",
        CONFIDENCE * 100.0
    );
    println!("| warm-up | compared | different | allowed |\n|---|---|---|---|");
    for warmup in ["cold", "working-set"] {
        let (mut compared, mut different) = (0, 0);
        for _ in 0..TIMES {
            let arguments = [
                "replay",
                "--json",
                "--no-check",
                "--reps",
                REPETITIONS,
                "--warmup",
                warmup,
                codelet,
            ];
            let (result, _) = json(cere(home).args(arguments))?;
            let cycles = result["cycles"].as_array().context("cycles")?;
            let of = |half: usize| {
                let all = cycles.iter().skip(half).step_by(2);
                interval(&all.filter_map(|c| c.as_u64()).collect::<Vec<u64>>())
            };
            // Too few undisturbed repetitions for an interval: nothing is said.
            if let (Some(a), Some(b)) = (of(0), of(1)) {
                compared += 1;
                different += usize::from(a.1 < b.0 || b.1 < a.0);
            }
        }
        let allowed = (compared as f64 * (1.0 - CONFIDENCE)).floor();
        println!("| {warmup} | {compared} | {different} | {allowed} |");
    }
    println!();
    Ok(())
}
