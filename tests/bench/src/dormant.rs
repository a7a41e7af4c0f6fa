//! Instrumented and dormant against the plain build, before and after a profile.

use crate::program::{all, geometric_mean, least, seconds};
use anyhow::Result;
use cere_tests::tools::{cere, succeed};
use std::process::Command;

/// Prints the table.
pub fn run(rounds: usize) -> Result<()> {
    println!(
        "### Outlining and dormant probes\n\nInstrumented over plain build at -O3, least of {rounds} alternating runs each; built again after a profile.\n"
    );
    println!(
        "| program | plain s | instrumented s | ratio | after a profile s | ratio |\n|---|---|---|---|---|---|"
    );
    let mut ratios = [Vec::new(), Vec::new()];
    for program in all() {
        let directory = tempfile::tempdir()?;
        let plain = program.plain(&directory.path().join("plain"), "-O3")?;
        let instrumented = directory.path().join("instrumented");
        let path = program.instrumented(&instrumented, "-O3")?;
        let first = path.with_file_name("first");
        std::fs::copy(&path, &first)?;
        succeed(cere(&instrumented).args(["profile", "--", "./program"]))?;
        let again = program.instrumented(&instrumented, "-O3")?;
        let builds = [&plain, &first, &again];
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            for (build, times) in builds.iter().zip(&mut times) {
                times.push(seconds(&mut Command::new(build))?);
            }
        }
        let [plain, first, again] = times.map(|times| least(&times));
        ratios[0].push(first / plain);
        ratios[1].push(again / plain);
        println!(
            "| {} | {plain:.4} | {first:.4} | {:.3} | {again:.4} | {:.3} |",
            program.name,
            first / plain,
            again / plain
        );
    }
    let [first, again] = ratios.map(|ratios| geometric_mean(&ratios));
    println!("| geometric mean | | | {first:.3} | | {again:.3} |\n");
    Ok(())
}
