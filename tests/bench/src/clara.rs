//! Clustering of very many invocations.

use anyhow::{Context, Result};
use cere_cluster::{Criterion, Sampling, Timed, Whole, clara, classes, line};
use std::time::Instant;

/// Invocation `i` takes one of three times, with noise; splitmix64 (Steele, Lea, Flood 2014).
fn cycles(i: u64) -> u64 {
    let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let z = z ^ z >> 31;
    let base = [1_000_000, 5_000_000, 50_000_000][[0, 0, 0, 0, 1, 1, 2][(z % 7) as usize]];
    base + (z >> 32) % (base / 5)
}

/// Peak resident memory since the last call, in MiB.
fn peak() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib: f64 = line
        .and_then(|l| l.trim().strip_suffix(" kB"))
        .context("/proc/self/status has no VmHWM")?
        .parse()?;
    std::fs::write("/proc/self/clear_refs", "5")?;
    Ok(kib / 1024.0)
}

/// Prints the table.
pub fn run() -> Result<()> {
    println!(
        "### Many invocations\n\nThree kinds of invocations, generated as they are asked for. Cost: mean deviation from the medoids over that of\nthe best medoids, which are known for 10^5 of them.\n"
    );
    println!("| invocations | what | seconds | peak MiB | cost |\n|---|---|---|---|---|");
    let few: Vec<f64> = (1..=100_000).map(|i| cycles(i) as f64).collect();
    let best = line(&few, &vec![1.0; few.len()], 3)?.cost / few.len() as f64;
    for invocations in [1_000_000, 100_000_000u64] {
        let of = |invocation| cycles(invocation) as f64;
        peak()?;
        let start = Instant::now();
        let found = clara(
            || (1..=invocations).map(|i| (of(i), 1.0)),
            3,
            Sampling::default(),
        )?;
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "| {invocations} | CLARA, 3 clusters | {seconds:.2} | {:.1} | {:.3} |",
            peak()?,
            found.cost / invocations as f64 / best
        );
        let timed = |invocation| Timed {
            invocation,
            cycles: cycles(invocation),
            weight: 1.0,
        };
        let total = 1.0;
        let whole = Whole { invocations, total };
        let start = Instant::now();
        let found = classes(|| (1..=invocations).map(timed), whole, Criterion::default())?;
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "| {invocations} | classes: {} | {seconds:.2} | {:.1} | |",
            found.classes.len(),
            peak()?
        );
    }
    println!();
    Ok(())
}
