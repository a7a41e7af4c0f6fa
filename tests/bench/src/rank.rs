//! Would a search find good flags sooner if it timed first what instruction counts or llvm-mca promise?

use crate::journal::trials;
use crate::program::{KERNELS, kernel};
use crate::searches::main_region;
use anyhow::{Context, Result, ensure};
use cere_tests::tools::{cere, json, succeed};
use cere_timing::stats::{median, spearman};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Variants that are drawn of each region.
const DRAWN: &str = "60";
/// Orders at random.
const SHUFFLES: u64 = 1000;

/// Variants with different machine code.
#[derive(Default)]
struct Ranked {
    /// Time as built over time.
    gains: Vec<f64>,
    /// Executed instructions.
    instructions: Vec<f64>,
    /// Cycles of the model, weighted by executions.
    cycles: Vec<f64>,
    /// Seconds that both took.
    seconds: Vec<f64>,
}

/// Times and counts variants of the main region of a store.
fn measure(store: &Path, region: &str) -> Result<Ranked> {
    let common = ["--store", ".", "--json"];
    let mut tune = cere(store);
    tune.args(["tune", region, "--search", "random", "--again"]);
    succeed(tune.args(["--budget", DRAWN]).args(common))?;
    let (mut found, mut met) = (Ranked::default(), HashSet::new());
    for trial in trials(store)? {
        let (Some(ratio), Some(code)) = (trial.ratio, trial.code) else {
            continue;
        };
        if !met.insert(code) {
            continue;
        }
        let mut metrics = cere(store);
        metrics.args(["metrics", region, "--no-time", "--budget", "1000"]);
        let start = Instant::now();
        let (vectors, _) = json(metrics.args(["--flags", &trial.flags]).args(common))?;
        let seconds = start.elapsed().as_secs_f64();
        let vectors = vectors.as_array().context("vectors")?;
        let sum = |metric: &str| -> Option<f64> {
            let all = vectors.iter().map(|v| v["metrics"][metric].as_f64());
            all.sum()
        };
        // What llvm-mca does not know has no cycles.
        if let (Some(instructions), Some(cycles)) = (sum("instructions"), sum("model_cycles")) {
            found.gains.push(1.0 / ratio);
            found.instructions.push(instructions);
            found.cycles.push(cycles);
            found.seconds.push(seconds);
        }
    }
    ensure!(found.gains.len() > 2, "{region}: too few variants");
    Ok(found)
}

/// Evaluations in this order of all until 95 % of the best gain is reached.
fn evaluations(gains: &[f64], order: &[usize]) -> f64 {
    let best = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let wanted = 1.0 + 0.95 * (best - 1.0);
    let before = order.iter().take_while(|at| gains[**at] < wanted);
    (before.count() + 1) as f64
}

/// The order of rising costs.
fn by(costs: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by(|a, b| costs[*a].total_cmp(&costs[*b]));
    order
}

/// Median over orders at random.
fn at_random(gains: &[f64]) -> Option<f64> {
    let all: Vec<f64> = (0..SHUFFLES)
        .map(|seed| {
            let mut order: Vec<usize> = (0..gains.len()).collect();
            order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
            evaluations(gains, &order)
        })
        .collect();
    median(&all)
}

/// Prints the table, of the main regions of `stores` or of the kernels.
pub fn run(stores: &[PathBuf]) -> Result<()> {
    println!(
        "### Ranking by counts\n\n{DRAWN} variants drawn from the space codegen for the main region of each program; those with machine code of \
         their own. Correlation: Spearman's, of speed with fewer instructions and with fewer cycles of llvm-mca. Evaluations until 95 % of \
         the best gain: median at random, by rising instructions, by rising cycles. Ranking: seconds that `cere metrics` takes a variant.\n\n\
         | region | variants | best | correlation, instructions | cycles | at random | by instructions | by cycles | ranking |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    let mut kept = Vec::new();
    let mut stores = stores.to_vec();
    if stores.is_empty() {
        for file in KERNELS {
            let directory = tempfile::tempdir()?;
            kernel(file).instrumented(directory.path(), "-O2")?;
            succeed(cere(directory.path()).args(["capture", "--", "./program"]))?;
            stores.push(directory.path().join(".cere"));
            kept.push(directory);
        }
    }
    for store in &stores {
        let region = main_region(store)?;
        let Ranked {
            gains,
            instructions,
            cycles,
            seconds,
        } = measure(store, &region)?;
        let best = gains.iter().copied().fold(0.0, f64::max);
        if best <= 1.0 {
            println!("| {region} | {} | none gains | | | | | | |", gains.len());
            continue;
        }
        let fewer = |costs: &[f64]| -> String {
            let fewer: Vec<f64> = costs.iter().map(|c| -c).collect();
            spearman(&gains, &fewer).map_or("-".to_owned(), |r| format!("{r:.2}"))
        };
        println!(
            "| {region} | {} | {:.3} | {} | {} | {} | {} | {} | {:.2} s |",
            gains.len(),
            best,
            fewer(&instructions),
            fewer(&cycles),
            at_random(&gains).context("no orders")?,
            evaluations(&gains, &by(&instructions)),
            evaluations(&gains, &by(&cycles)),
            median(&seconds).context("no times")?
        );
    }
    println!();
    Ok(())
}
