//! Are causes found, and does taking one out gain what was forecast? Kernels in `tests/explain` have a region `slow` of a known cause, and
//! `fixed`, which does as much without it.

use anyhow::{Context, Result};
use cere_tests::tools::{cere, json};
use serde_json::Value;
use std::path::Path;

/// File, cause, and the what-if that forecasts the time of `fixed`, whose replay gets the flags.
const KERNELS: [(&str, &str, &str, &str); 22] = [
    ("triad", "bandwidth", "all data in L1", ""),
    ("reduction", "bandwidth", "all data in L1", ""),
    ("column", "latency", "all data in L1", ""),
    ("chase", "latency", "all data in L1", ""),
    ("gather", "latency", "all data in L1", ""),
    ("pages", "translations", "memory in huge pages", ""),
    ("sum", "chain", "no iteration waits for the one before", ""),
    (
        "horner",
        "chain",
        "no iteration waits for the one before",
        "",
    ),
    ("hash", "chain", "no iteration waits for the one before", ""),
    ("divide", "divisions", "multiplications for divisions", ""),
    ("root", "divisions", "multiplications for divisions", ""),
    ("modulo", "divisions", "multiplications for divisions", ""),
    (
        "branches",
        "branches",
        "no wrong prediction of a branch",
        "",
    ),
    ("search", "branches", "no wrong prediction of a branch", ""),
    ("overlap", "scalar", "vectors of full width", WIDE),
    ("largest", "scalar", "vectors of full width", WIDE),
    ("stores", "stores", "no stores", ""),
    ("histogram", "forwarding", "no load waits for a store", ""),
    ("faults", "page-faults", "memory touched before", ""),
    ("balance", "imbalance", "perfectly balanced threads", ""),
    (
        "atomics",
        "waiting",
        "threads that do not wait for one another",
        "",
    ),
    (
        "code",
        "front-end",
        "instructions fetched without delay",
        "",
    ),
];

const WIDE: &str = "-O3 -march=native -ffast-math -mprefer-vector-width=512";

fn one(home: &Path, (file, cause, change, flags): (&str, &str, &str, &str)) -> Result<[String; 6]> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = here
        .join("../explain")
        .join(format!("{file}.c"))
        .canonicalize()?;
    let here = home.join(file);
    std::fs::create_dir_all(&here)?;
    let mut build = cere(&here);
    build.args([
        "instrument",
        "--",
        "clang-22",
        "-O2",
        "-g",
        "-fopenmp",
        "-w",
    ]);
    build.arg(&source).args(["-lm", "-o", "program"]);
    anyhow::ensure!(build.output()?.status.success(), "{file} does not build");
    let mut capture = cere(&here);
    capture.args([
        "capture",
        "--json",
        "slow*",
        "fixed*",
        "--invocation",
        "2",
        "--",
        "./program",
    ]);
    json(&mut capture)?;
    let (found, _) = json(cere(&here).args(["explain", "--json", "slow*"]))?;
    let (replayed, _) = json(cere(&here).args(["replay", "--json", "fixed*", "--flags", flags]))?;
    let fixed = seconds(&replayed).context("no time of fixed")?;
    let found = &found[0];
    let slow = found["seconds"].as_f64().context("no time of slow")?;
    let what_if = found["what_if"].as_array().context("no what-if")?;
    let forecast = what_if.iter().find(|w| w["change"] == change);
    let forecast = forecast.and_then(|w| w["seconds"].as_f64());
    let share = |t: Option<f64>| t.map_or("-".to_owned(), |t| format!("{:.3}", t / slow));
    let error = forecast.map(|f| (slow - f) / (slow - fixed) - 1.0);
    Ok([
        file.to_owned(),
        cause.to_owned(),
        found["cause"].as_str().unwrap_or_default().to_owned(),
        share(forecast),
        share(Some(fixed)),
        error.map_or("-".to_owned(), |e| format!("{:+.0} %", 100.0 * e)),
    ])
}

fn seconds(replayed: &Value) -> Option<f64> {
    replayed["seconds"]["median"].as_f64()
}

/// Prints the table.
pub fn run(only: &[String]) -> Result<()> {
    let directory = tempfile::tempdir()?;
    println!(
        "### Causes\n\nTime without the cause over the time with it, as forecast and as measured of a kernel that was changed by hand; error of the time that was\n\
         forecast to be saved.\n\n\
         | kernel | cause | found | forecast | changed | error |\n|---|---|---|--:|--:|--:|"
    );
    for kernel in KERNELS {
        if !only.is_empty() && !only.iter().any(|name| name == kernel.0) {
            continue;
        }
        match one(directory.path(), kernel) {
            Ok(row) => println!("| {} |", row.join(" | ")),
            Err(error) => println!("| {} | {} | {error:#} | - | - | - |", kernel.0, kernel.1),
        }
    }
    println!();
    Ok(())
}
