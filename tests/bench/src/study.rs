//! How long a study takes beside the build, against a run of the program, and what it finds in that time.

use crate::program::{Program, all, geometric_mean, least, seconds};
use anyhow::Result;
use cere_tests::tools::{cere, json};
use std::process::Command;
use std::time::Instant;

/// A study in a store without profile and codelets: seconds, and shares of the run within 15 and 5 %.
fn study(program: &Program, more: &[&str]) -> Result<(f64, [f64; 2])> {
    let directory = tempfile::tempdir()?;
    program.instrumented(directory.path(), "-O3")?;
    let mut command = cere(directory.path());
    command.args(["study", "--json", "--build", "true"]);
    command.args(more).args(["--", "./program"]);
    let start = Instant::now();
    let (found, _) = json(&mut command)?;
    let within = |level: &str| found["accurate"][level].as_f64().unwrap_or(f64::NAN);
    Ok((start.elapsed().as_secs_f64(), [within("15"), within("5")]))
}

/// Prints the table.
pub fn run(rounds: usize) -> Result<()> {
    println!(
        "### A study\n\nSeconds beside the build, in a fresh store, least of {rounds} rounds of a plain run, a study and a quick one; the medians of the \
         shares of the run that are replayed within 15 and 5 %.\n"
    );
    println!(
        "| program | plain s | study s | times | quick s | times | within 15 %; 5 % | quick |\n|---|--:|--:|--:|--:|--:|--:|--:|"
    );
    let mut times = [Vec::new(), Vec::new()];
    for program in all() {
        let directory = tempfile::tempdir()?;
        let plain = program.plain(directory.path(), "-O3")?;
        let mut own = Vec::new();
        let mut taken = [Vec::new(), Vec::new()];
        let mut within = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            own.push(seconds(Command::new(&plain).current_dir(directory.path()))?);
            for (place, more) in [&[][..], &["--quick"]].into_iter().enumerate() {
                let (seconds, shares) = study(&program, more)?;
                taken[place].push(seconds);
                within[place].push(shares);
            }
        }
        let own = least(&own);
        let taken = taken.map(|all| least(&all));
        for (list, seconds) in times.iter_mut().zip(taken) {
            list.push(seconds / own);
        }
        let shares = within.map(|all| {
            let [wide, narrow] = [0, 1].map(|level| {
                let all: Vec<f64> = all.iter().map(|shares| shares[level]).collect();
                100.0 * cere_timing::stats::median(&all).unwrap_or(f64::NAN)
            });
            format!("{wide:.0}; {narrow:.0}")
        });
        println!(
            "| {} | {own:.3} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {} |",
            program.name,
            taken[0],
            taken[0] / own,
            taken[1],
            taken[1] / own,
            shares[0],
            shares[1]
        );
    }
    let [whole, quick] = times.map(|all| geometric_mean(&all));
    println!("| geometric mean | | | {whole:.1} | | {quick:.1} | | |\n");
    Ok(())
}
