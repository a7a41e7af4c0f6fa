//! OpenMP regions: wrong or unusual input from users, and predictions.

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::{self, instrumented, refused};
use cere_tests::tools::{cere, json, output, succeed, text};
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = r#"
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
#define N 100000
static long data[N], total;
static unsigned long volatile counter;

static __attribute__((noinline)) void plain(void) {
    #pragma omp parallel for
    for (int i = 0; i < N; i++)
        data[i] += i;
}
static __attribute__((noinline)) void racing(void) {
    #pragma omp parallel for schedule(dynamic, 10)
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 50; k++)
            counter = counter * 31 + i;
}
static __attribute__((noinline)) void sets(void) {
    #pragma omp parallel
    {
        omp_set_num_threads(3);
        #pragma omp for
        for (int i = 0; i < N; i++)
            data[i] ^= i;
    }
}
static __attribute__((noinline)) void forks(void) {
    #pragma omp parallel for
    for (int i = 0; i < 2; i++)
        if (i == 1) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            waitpid(child, NULL, 0);
        }
}
static __attribute__((noinline)) void dies(void) {
    #pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < 2; i++)
        if (i == 1)
            *(volatile int *)8 = 1;
}
static __attribute__((noinline)) void cancels(void) {
    #pragma omp parallel
    {
        #pragma omp for
        for (int i = 0; i < N; i++) {
            if (i % (N / 8) == 5) {
                #pragma omp cancel for
            }
            #pragma omp cancellation point for
        }
        #pragma omp atomic
        total += 0;
    }
}
static double parts[N], sum;
static __attribute__((noinline)) void adds(void) {
    double all = 0;
    #pragma omp parallel for reduction(+ : all) schedule(dynamic, 100)
    for (int i = 0; i < N; i++)
        all += parts[i] * parts[i] / 3;
    sum += all;
}
int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    for (int i = 0; i < 20; i++)
        plain();
    if (!strcmp(what, "racing")) racing();
    if (!strcmp(what, "sets")) sets();
    if (!strcmp(what, "forks")) forks();
    if (!strcmp(what, "dies")) dies();
    if (!strcmp(what, "cancels")) cancels();
    for (int i = 0; i < N; i++)
        parts[i] = 1.0 / (i + 1);
    if (!strcmp(what, "adds")) adds();
    printf("%ld %ld\n", data[N - 1], total);
}
"#;

/// A directory with the instrumented program.
fn built() -> Result<tempfile::TempDir> {
    let build = "$CC -fopenmp -g -O1 main.c -o program";
    instrumented(&[("main.c", PROGRAM)], build)
}

fn capture_command(directory: &Path, region: &str, arguments: &[&str]) -> Command {
    let options = [region, "--invocation", "1", "--timeout", "120"];
    let mut command = prepare::capture(directory, &options);
    command.args(arguments);
    command
}

fn capture(directory: &Path, region: &str, threads: &str, arguments: &[&str]) -> Result<Output> {
    let mut command = capture_command(directory, region, arguments);
    output(command.env("OMP_NUM_THREADS", threads))
}

fn says(run: &Output, part: &str) -> Result<()> {
    let message = String::from_utf8_lossy(&run.stderr);
    ensure!(message.contains(part), "no `{part}`\n{}", text(run));
    ensure!(!message.contains("panicked"), "{}", text(run));
    Ok(())
}

/// The verdict of a replay and its reason.
fn verdict(directory: &Path, arguments: &[&str]) -> Result<(String, String)> {
    let (found, run) = json(cere(directory).args(["replay", "--json"]).args(arguments))?;
    let word = |key: &str| {
        found[key]
            .as_str()
            .map(str::to_owned)
            .with_context(|| text(&run))
    };
    Ok((word("verdict")?, word("reason")?))
}

#[test]
fn options_that_do_not_fit_the_machine() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    // The runtime's own end, as without CERE.
    let run = capture(directory, "plain@*", "nonsense", &[])?;
    says(&run, "Invalid symbols found")?;
    let run = capture(directory, "plain@*", "2", &[])?;
    ensure!(run.status.success(), "{}", text(&run));
    let replay = |arguments: &[&str]| {
        let mut command = cere(directory);
        command
            .args(["replay", "plain@*", "--reps", "2"])
            .args(arguments);
        command
    };
    for (arguments, part) in [
        (&["--affinity", "0,4000"][..], "processor 4000"),
        (
            &["--affinity", "near"],
            "`near` is no number of a processor",
        ),
        (
            &["--affinity", "compact", "--places", "cores"],
            "cannot be used with",
        ),
        (&["--places", "{0},{4000}"], "processor 4000"),
        (&["--places", "rooms"], "`rooms` is none of"),
        (&["--bind", "loosely"], "`loosely` is none of"),
        (&["--schedule", "fast"], "`fast` is no schedule"),
        (
            &["--runtime", "/nonexistent/libomp.so"],
            "there is no file /nonexistent/libomp.so",
        ),
        (&["--threads", "0"], "0 is not in 1..=4096"),
    ] {
        refused(&mut replay(arguments), part)?;
    }
    // Another library in the runtime's place: a copy under another name, and one that does not speak its interface.
    let named = output(Command::new("clang-22").arg("-print-file-name=libomp.so"))?;
    let named = String::from_utf8(named.stdout)?;
    let other = directory.join("libother.so");
    std::fs::copy(named.trim(), &other)?;
    let other = other.to_str().context("a path")?;
    let all = [
        "plain@*",
        "--reps",
        "2",
        "--runtime",
        other,
        "--keep",
        "kept",
    ];
    let (verdict_found, reason) = verdict(directory, &[&all[..], &["--threads", "2"]].concat())?;
    ensure!(verdict_found == "exact", "{verdict_found}: {reason}");
    let link = std::fs::read_to_string(directory.join("kept/build.sh"))?;
    ensure!(link.contains("libother.so"), "{link}");
    let math = "/lib/x86_64-linux-gnu/libm.so.6";
    let run = output(&mut replay(&["--runtime", math]))?;
    ensure!(!run.status.success(), "{}", text(&run));
    for arguments in [
        &["--threads", "16"][..],
        &["--threads", "2", "--affinity", "scatter"],
        &["--threads", "2", "--affinity", "0"],
        &[
            "--threads",
            "2",
            "--places",
            "{0}",
            "--bind",
            "close",
            "--schedule",
            "dynamic,4",
        ],
    ] {
        let all = [&["plain@*", "--reps", "2"], arguments].concat();
        let (verdict, reason) = verdict(directory, &all)?;
        ensure!(verdict == "exact", "{arguments:?}: {verdict}: {reason}");
    }
    Ok(())
}

#[test]
fn regions_that_are_unusual() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    capture(directory, "sets@*", "2", &["sets"])?;
    let found = verdict(directory, &["sets@*", "--threads", "2", "--reps", "2"])?;
    ensure!(found.0 == "exact", "{found:?}");

    // Threads on one variable, in an order of chance: not the same from run to run. Long enough for all of them to begin.
    capture(directory, "racing@*", "1", &["racing"])?;
    let found = verdict(directory, &["racing@*", "--threads", "1", "--reps", "2"])?;
    ensure!(found.0 == "exact", "{found:?}");
    let found = verdict(directory, &["racing@*", "--threads", "4", "--reps", "20"])?;
    ensure!(
        found.0 == "different" && found.1.contains("race"),
        "{found:?}"
    );

    // Rounding in another order is no race, and is told as what it is.
    capture(directory, "adds@*", "1", &["adds"])?;
    let found = verdict(directory, &["adds@*", "--threads", "1", "--reps", "2"])?;
    ensure!(found.0 == "exact", "{found:?}");
    let found = verdict(directory, &["adds@*", "--threads", "3", "--reps", "20"])?;
    let expected = found.0 == "tolerance" && found.1.contains("another order");
    ensure!(expected, "{found:?}");

    let run = capture(directory, "forks@*", "2", &["forks"])?;
    says(&run, "it starts a thread or a process")?;
    let run = capture(directory, "dies@*", "2", &["dies"])?;
    says(&run, "may not access 0x8")?;
    says(&run, "SIGSEGV")?;

    let mut command = capture_command(directory, "cancels@*", &["cancels"]);
    succeed(
        command
            .env("OMP_NUM_THREADS", "2")
            .env("OMP_CANCELLATION", "true"),
    )?;
    let found = verdict(directory, &["cancels@*", "--threads", "3", "--reps", "2"])?;
    ensure!(found.0 == "exact", "{found:?}");
    Ok(())
}

#[test]
fn predictions() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    let predict = |arguments: &[&str]| {
        let mut command = cere(directory);
        command
            .args(["predict", "--threads", "1,2,3", "--reps", "3"])
            .args(arguments);
        command
    };
    refused(&mut predict(&[]), "no profile")?;
    let mut command = cere(directory);
    succeed(
        command
            .args(["profile", "--", "./program"])
            .env("OMP_NUM_THREADS", "1"),
    )?;
    refused(&mut predict(&[]), "no codelets")?;
    let mut command = cere(directory);
    succeed(
        command
            .args(["capture", "--", "./program"])
            .env("OMP_NUM_THREADS", "1"),
    )?;
    let (found, run) = json(&mut predict(&[
        "--json",
        "--measure",
        "--plot",
        "threads.svg",
    ]))?;
    let runs = found["runs"].as_array().with_context(|| text(&run))?;
    ensure!(runs.len() == 3, "{found}");
    let number = |value: &serde_json::Value| value.as_f64().filter(|s| *s > 0.0);
    for (run, threads) in runs.iter().zip(1..) {
        ensure!(run["threads"] == threads, "{run}");
        let predicted = number(&run["predicted_seconds"]).context("a prediction")?;
        number(&run["measured_seconds"]).context("a measurement")?;
        let regions = run["regions"].as_array().context("regions")?;
        // All of it by replays: none of the regions counts as profiled.
        ensure!(regions.iter().all(|r| r["reason"].is_null()), "{run}");
        let replayed = number(&run["replay_seconds"]).context("replays")?;
        ensure!(replayed < predicted, "{run}");
    }
    let picture = std::fs::read_to_string(directory.join("threads.svg"))?;
    ensure!(
        picture.starts_with("<svg") && picture.matches("class=\"dot\"").count() >= 3,
        "{picture}"
    );
    Ok(())
}
