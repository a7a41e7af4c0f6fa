//! A replay in a process of its own against a fork of one that keeps the captured state: are time and verdict the same, and what
//! does it save? Two builds of the code alternate as well, so that no address is favoured.

use crate::program::kernel;
use anyhow::{Context, Result, ensure};
use cere_format::replay::Verdict;
use cere_format::store::Store;
use cere_measure::{Replays, Settings};
use cere_replay::{Replay, Tolerance, build, run};
use cere_sandbox::Sandbox;
use cere_tests::tools::{cere, json};
use cere_timing::stats::gain;
use cere_tune::tuning::REPETITIONS;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Replays each way.
const TIMES: usize = 200;

fn settings(flags: &[&str]) -> Settings {
    Settings {
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        passes: None,
        repetitions: REPETITIONS,
        warmup: None,
        operands: Vec::new(),
        compare: true,
        tolerance: Tolerance::default(),
        timeout: Some(Duration::from_secs(600)),
        team: Default::default(),
        energy: None,
        cross: None,
        beside: Some(0),
        sandbox: Sandbox::new(),
    }
}

/// Prints the table, for codelets in `files` or for one of a kernel.
pub fn run(files: &[PathBuf]) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let home = directory.path();
    let mut files = files.to_vec();
    if files.is_empty() {
        kernel("jacobi.c").instrumented(home, "-O3")?;
        let (captured, _) = json(cere(home).args(["capture", "--json", "--", "./program"]))?;
        let name = captured["codelets"][0]["name"].as_str();
        let name = name.context("no codelet was captured")?;
        files.push(home.join(format!(".cere/codelets/{name}.codelet")));
    }
    println!(
        "### Kept states\n\n{TIMES} replays in processes of their own and as many that are forks of one that keeps the state, alternated, \
         in two builds (as built, -O2). Ratio: time as a fork over time in a process of its own, with its 95 % interval.\n\n\
         | codelet | build | same verdict | ratio of the region's time | wall alone | wall as a fork | times less |\n\
         |---|---|--:|--:|--:|--:|--:|"
    );
    let store = Store::new(home.join("own"));
    let replays = Replays::open(&store, &cere_system::events::Events::ignored())?;
    for file in &files {
        let (package, manifest, _) = replays.unpack(file)?;
        let builds: Vec<_> = [&[][..], &["-O2"][..]]
            .iter()
            .map(|flags| {
                let settings = settings(flags);
                let alone = replays.options(&settings, None)?;
                let fork = replays.options_to_repeat(&settings)?;
                Ok((build(&package, &manifest, &alone)?, [alone, fork]))
            })
            .collect::<Result<_>>()?;
        let mut all: Vec<[Vec<(f64, f64, Verdict)>; 2]> = vec![Default::default(); builds.len()];
        for round in 0..TIMES {
            for (at, (built, ways)) in builds.iter().enumerate() {
                for turn in 0..2 {
                    let way = (round + turn) % 2;
                    let start = Instant::now();
                    let replay: Replay = run::run(&package, &manifest, built, &ways[way])?;
                    let wall = start.elapsed().as_secs_f64();
                    all[at][way].push((replay.seconds_median, wall, replay.verdict));
                }
            }
        }
        for (name, [alone, fork]) in ["as built", "-O2"].iter().zip(&all) {
            let pairs = || alone.iter().zip(fork);
            let same = pairs().filter(|(a, b)| a.2 == b.2).count();
            let ratios: Vec<f64> = pairs().map(|(a, b)| b.0 / a.0).collect();
            let found = gain(&ratios).context("no ratios")?;
            let wall = |way: &[(f64, f64, Verdict)]| {
                let walls: Vec<f64> = way.iter().map(|one| one.1).collect();
                cere_timing::stats::median(&walls).context("no times")
            };
            let (own, kept) = (wall(alone)?, wall(fork)?);
            println!(
                "| {} | {name} | {same} of {TIMES} | {:.4} ({:.4} to {:.4}) | {:.1} ms | {:.1} ms | {:.1} |",
                manifest.name,
                found.ratio,
                found.low,
                found.high,
                own * 1e3,
                kept * 1e3,
                own / kept
            );
            ensure!(same == TIMES, "a fork's verdict is another one");
        }
    }
    println!();
    Ok(())
}
