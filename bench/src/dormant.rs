//! Instrumented and dormant against the plain build.

use crate::program::{all, geometric_mean, least, seconds};
use anyhow::Result;
use std::process::Command;

/// Prints the table.
pub fn run(rounds: usize) -> Result<()> {
    println!(
        "### Outlining and dormant probes\n\nInstrumented over plain build at -O3, least of {rounds} alternating runs each.\n"
    );
    println!("| program | plain s | instrumented s | ratio |\n|---|---|---|---|");
    let mut ratios = Vec::new();
    for program in all() {
        let directory = tempfile::tempdir()?;
        let plain = program.plain(&directory.path().join("plain"), "-O3")?;
        let instrumented = program.instrumented(&directory.path().join("instrumented"), "-O3")?;
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            a.push(seconds(&mut Command::new(&plain))?);
            b.push(seconds(&mut Command::new(&instrumented))?);
        }
        let ratio = least(&b) / least(&a);
        ratios.push(ratio);
        println!(
            "| {} | {:.4} | {:.4} | {ratio:.3} |",
            program.name,
            least(&a),
            least(&b)
        );
    }
    println!("| geometric mean | | | {:.3} |\n", geometric_mean(&ratios));
    Ok(())
}
