//! From other flags to a printed result.

use crate::program::{kernel, least, seconds};
use anyhow::Result;
use cere_tests::tools::{cere, succeed};

/// Prints the table.
pub fn run(rounds: usize) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let home = directory.path();
    kernel("ten_megabytes.c").instrumented(home, "-O3")?;
    succeed(cere(home).args(["capture", "smooth@*", "--", "./program"]))?;
    succeed(cere(home).args(["replay", "smooth@*"]))?;
    let (mut fresh, mut cached) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // A threshold that no earlier replay used: nothing of it is in the cache.
        let flags = format!("-O2 -mllvm -unroll-threshold={}", 300 + round);
        for list in [&mut fresh, &mut cached] {
            list.push(seconds(
                cere(home).args(["replay", "smooth@*", "--flags", &flags]),
            )?);
        }
    }
    println!(
        "### From other flags to a result\n\nA codelet of one unit and 10 MB, `cere replay --flags ...`, wall seconds, least (largest) of {rounds}.\n"
    );
    println!("| flags not met before | flags met before |\n|---|---|");
    let most = |v: &[f64]| v.iter().copied().fold(0.0, f64::max);
    println!(
        "| {:.2} ({:.2}) | {:.2} ({:.2}) |\n",
        least(&fresh),
        most(&fresh),
        least(&cached),
        most(&cached)
    );
    Ok(())
}
