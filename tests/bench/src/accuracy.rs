//! How much of a run is accurately replayed, under each warm-up, and by how few replays (CERE thesis, 5.3).

use crate::program::all;
use anyhow::{Context, Result};
use cere_tests::tools::{cere, json};
use serde_json::Value;
use std::path::Path;

/// Rounds of each check.
const ROUNDS: &str = "3";
const WARMUPS: [&str; 3] = ["page-trace", "working-set", "cold"];
/// Tolerated errors in per cent.
const TOLERATED: [u32; 8] = [2, 5, 10, 15, 20, 30, 50, 100];

/// Share of the run in regions whose error is at most `tolerated` per cent.
fn within(report: &Value, tolerated: u32) -> f64 {
    let regions = report["regions"].as_array().into_iter().flatten();
    let near = |region: &&Value| {
        let error = region["error"].as_f64();
        region["verdict"] == "exact" && error.is_some_and(|e| e * 100.0 <= f64::from(tolerated))
    };
    let shares = regions.filter(near).filter_map(|r| r["share"].as_f64());
    shares.sum()
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// Invocations of the regions that have codelets, by the store's profile.
fn invocations(home: &Path, report: &Value) -> Result<u64> {
    let profile = std::fs::read(home.join(".cere/profile.json"))?;
    let profile: Value = serde_json::from_slice(&profile)?;
    let count = |name: &Value| {
        let regions = profile["regions"].as_array().into_iter().flatten();
        let found = regions.filter(|r| r["name"] == *name);
        found.filter_map(|r| r["invocations"].as_u64()).sum::<u64>()
    };
    let rows = report["regions"].as_array().into_iter().flatten();
    let captured = rows.filter(|row| row["classes"].as_u64() > Some(0));
    Ok(captured.map(|row| count(&row["name"])).sum())
}

/// Prints the tables.
pub fn run() -> Result<()> {
    println!(
        "### Accurately replayed\n\nShare of the run in regions whose replays take the time in vivo within 15, 10 and 5 %, at -O3, {ROUNDS} \
         rounds. Reduction: the run over one run of each codelet within 15 %.\n"
    );
    println!(
        "| program | covered, exact | 15 % | 10 % | 5 % | working set, 15 % | cold, 15 % | invocations | codelets | reduction |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    );
    let mut curves = vec![vec![0.0; TOLERATED.len()]; WARMUPS.len()];
    let mut programs = 0.0;
    for program in all() {
        let directory = tempfile::tempdir()?;
        let home = directory.path();
        program.instrumented(home, "-O3")?;
        let (captured, _) = json(cere(home).args(["capture", "--json", "--", "./program"]))?;
        let codelets = captured["codelets"].as_array().map_or(0, Vec::len);
        if codelets == 0 {
            println!(
                "| {} | no region passes the defaults | | | | | | | | |",
                program.name
            );
            continue;
        }
        let mut reports = Vec::new();
        for (warmup, curve) in WARMUPS.iter().zip(&mut curves) {
            let (report, _) =
                json(cere(home).args(["check", "--json", "--rounds", ROUNDS, "--warmup", warmup]))?;
            for (tolerated, sum) in TOLERATED.iter().zip(curve) {
                *sum += within(&report, *tolerated);
            }
            reports.push(report);
        }
        programs += 1.0;
        let [traced, working, cold] = &reports[..] else {
            anyhow::bail!("a report for each warm-up");
        };
        let at = |report: &Value, level: &str| percent(report["accurate"][level].as_f64());
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {codelets} | {} |",
            program.name,
            percent(traced["coverage"].as_f64()),
            at(traced, "15"),
            at(traced, "10"),
            at(traced, "5"),
            at(working, "15"),
            at(cold, "15"),
            invocations(home, traced).context("the profile")?,
            traced["reduction"]
                .as_f64()
                .map_or("-".to_owned(), |r| format!("{r:.1}")),
        );
    }
    println!(
        "\n### Share accurately replayed against tolerated error\n\nMean over the programs.\n"
    );
    let levels: Vec<String> = TOLERATED.iter().map(|t| format!("{t} %")).collect();
    println!("| warm-up | {} |", levels.join(" | "));
    println!("|---|{}", "---|".repeat(TOLERATED.len()));
    for (warmup, curve) in WARMUPS.iter().zip(curves) {
        let cells: Vec<String> = curve
            .iter()
            .map(|sum| percent(Some(sum / programs)))
            .collect();
        println!("| {warmup} | {} |", cells.join(" | "));
    }
    println!();
    Ok(())
}
