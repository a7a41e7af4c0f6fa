//! `cere tune --on local`: the search in batches, by workers of a job.

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::{instrumented, refused};
use cere_tests::tools::{cere, json, succeed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two regions: a sum of products, and a filter of integers.
const PROGRAM: &str = r#"
#include <stdio.h>
#define N 20000
static double a[N], b[N];
static long words[N];
static __attribute__((noinline)) double product(long n) {
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}
static __attribute__((noinline)) long mixes(long *p, long n) {
    long all = 0;
    for (long i = 0; i < n; i++)
        all += p[i] = (p[i] ^ i) * 5 + (p[i] >> 3);
    return all;
}
int main(void) {
    for (int i = 0; i < N; i++)
        a[i] = i * 0.5, b[i] = 1.0 / (i + 1);
    double sum = 0;
    long all = 0;
    for (int i = 0; i < 1000; i++) {
        sum += product(N);
        all += mixes(words, N);
    }
    printf("sum %.17g\nall %ld\n", sum, all);
}
"#;

/// A directory with codelets.
fn captured() -> Result<tempfile::TempDir> {
    let directory = instrumented(&[("main.c", PROGRAM)], "$CC -g -O0 main.c -o program")?;
    succeed(cere(directory.path()).args(["capture", "--", "./program"]))?;
    Ok(directory)
}

/// `cere tune --on local` with batches of eight; few repetitions, as nothing is asked of the times.
fn tune(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = cere(directory);
    // Workers keep builds in the user's cache.
    command.env("XDG_CACHE_HOME", directory.join("cache"));
    command.args(["tune", "--json", "--space", "levels", "--reps", "2"]);
    command.args(["--on", "local", "--batch", "8", "--chunk", "3"]);
    command.args(arguments);
    command
}

/// Paths below the store's `tune/` with this ending.
fn files(directory: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let folder = directory.join(".cere/tune");
    for entry in std::fs::read_dir(&folder).into_iter().flatten() {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The numbers of a journal's proposals, and its outcomes. Each proposal has one.
fn outcomes(journal: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(journal)?;
    let lines: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let of = |kind: &str| -> Vec<Value> {
        let lines = lines.iter().filter(|line| line.get(kind).is_some());
        lines.map(|line| line[kind].clone()).collect()
    };
    let (proposed, told) = (of("proposed"), of("told"));
    let number = |event: &Value| event[0].as_u64();
    let numbers: BTreeSet<_> = proposed.iter().map(number).collect();
    ensure!(numbers.len() == proposed.len(), "proposed twice: {text}");
    ensure!(
        told.len() == proposed.len(),
        "not each is told once: {text}"
    );
    ensure!(
        told.iter().map(number).collect::<BTreeSet<_>>() == numbers,
        "{text}"
    );
    Ok(told)
}

fn all_outcomes(directory: &Path) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for journal in files(directory, ".jsonl")? {
        all.extend(outcomes(&journal)?);
    }
    Ok(all)
}

#[test]
fn a_search_by_workers() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    let (found, _) = json(&mut tune(directory, &["--budget", "10"]))?;
    ensure!(found["evaluations"] == 10, "{found}");
    ensure!(found["earlier_evaluations"] == 0, "{found}");
    let regions = found["regions"].as_array().context("regions")?;
    ensure!(regions.len() == 2, "{found}");
    for region in regions {
        let failed = region["failed"].as_array().context("failures")?;
        ensure!(failed.is_empty(), "{region}");
    }
    for spent in ["compiling", "starting", "timed"] {
        let seconds = found["spent_seconds"][spent].as_f64();
        ensure!(seconds.is_some_and(|s| s > 0.0), "{spent}: {found}");
    }
    ensure!(all_outcomes(directory)?.len() == 10);
    ensure!(files(directory, ".work")?.is_empty(), "jobs are left");
    // The search without `--on` is another one.
    let mut here = cere(directory);
    here.args([
        "tune", "--json", "--space", "levels", "--reps", "2", "--budget", "2",
    ]);
    ensure!(json(&mut here)?.0["earlier_evaluations"] == 0);
    let (again, _) = json(&mut tune(directory, &["--budget", "10"]))?;
    ensure!(
        again["earlier_evaluations"] == 10 && again["evaluations"] == 10,
        "{again}"
    );

    // As built nothing is optimised: some level is surely faster.
    ensure!(
        regions.iter().any(|region| !region["flags"].is_null()),
        "{found}"
    );
    succeed(cere(directory).args(["hybrid", "-o", "tuned"]))?;
    let [tuned, plain] = ["tuned", "program"].map(|name| directory.join(name));
    let printed = |program: &Path| succeed(&mut Command::new(program));
    ensure!(printed(&tuned)?.stdout == printed(&plain)?.stdout);
    Ok(())
}

/// Killed after the first chunk: the same command takes what is there and does the rest.
#[test]
fn a_search_that_is_killed_goes_on() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    let mut first = tune(directory, &["--budget", "8"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let start = Instant::now();
    let result = loop {
        ensure!(
            start.elapsed() < Duration::from_secs(300),
            "no chunk is done"
        );
        ensure!(first.try_wait()?.is_none(), "it ended before it was killed");
        let found = files(directory, "search.work")?.pop();
        let found = found.map(|job| job.join("results/0.json"));
        if let Some(file) = found.filter(|file| file.is_file()) {
            break serde_json::from_slice::<Value>(&std::fs::read(file)?)?;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    first.kill()?;
    first.wait()?;
    let (found, _) = json(&mut tune(directory, &["--budget", "8"]))?;
    ensure!(found["evaluations"] == 8, "{found}");
    let outcomes = all_outcomes(directory)?;
    ensure!(outcomes.len() == 8, "{outcomes:?}");
    // Times differ from one replay to the next: these are those of the first call.
    let results = result["results"].as_array().context("results")?;
    ensure!(results.len() == 3, "{result}");
    for one in results {
        let told = &one["value"]["done"]["told"];
        let kept = |outcome: &Value| outcome[1]["ratio"] == told["ratio"];
        ensure!(
            told["ratio"].is_f64() && outcomes.iter().any(kept),
            "{told} {outcomes:?}"
        );
    }
    ensure!(files(directory, ".work")?.is_empty(), "jobs are left");
    Ok(())
}

#[test]
fn options_that_need_a_place() -> Result<()> {
    let directory = tempfile::tempdir()?;
    std::fs::create_dir_all(directory.path().join(".cere"))?;
    for (arguments, said) in [
        (&["--batch", "8"][..], "--on <WHERE>"),
        (&["--chunk", "3"], "--chunk goes with --on"),
        (&["--on", "local", "--partition", "x"], "go with --on slurm"),
        (&["--on", "moon"], "is no place to run at"),
    ] {
        refused(cere(directory.path()).arg("tune").args(arguments), said)?;
    }
    Ok(())
}
