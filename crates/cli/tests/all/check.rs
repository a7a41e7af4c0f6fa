//! Representatives, selection and matching, on a program whose region has two kinds of invocations.

use crate::common::{
    cere, has, instrument, instrumented, json, refused, run, succeed, text, write,
};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// `work` takes one in four times ten times as long.
const PROGRAM: &str = r#"
#include <stdio.h>
static double cells[40000];
static __attribute__((noinline)) void work(int n) {
    for (int i = 1; i < n - 1; i++) cells[i] = cells[i] * 0.5 + (cells[i - 1] + cells[i + 1]) * 0.25 + 1 / (cells[i] + 1);
}
static __attribute__((noinline)) void steps(int count) {
    for (int s = 0; s < count; s++) work(s % 4 == 3 ? 40000 : 4000);
}
int main(void) {
    cells[1] = 1e6;
    steps(400);
    printf("%.10g\n", cells[2]);
    return 0;
}
"#;

const WORK: &str = "work@main.c:5";
const STEPS: &str = "steps@main.c:8";

fn built() -> tempfile::TempDir {
    instrumented(PROGRAM)
}

fn rows(at: &Path, arguments: &[&str]) -> Vec<serde_json::Value> {
    let report = json(at, arguments);
    report["regions"].as_array().expect("regions").clone()
}

#[test]
fn one_codelet_a_class_and_all_of_them_match() {
    let directory = built();
    let at = directory.path();
    refused(at, "check", "no profile");
    refused(at, "select", "no profile");
    succeed(at, "profile -- ./app");
    refused(at, "check", "cere capture");

    let report = json(at, "capture --json -- ./app");
    let codelets = report["codelets"].as_array().expect("codelets");
    let of_work = |c: &&serde_json::Value| c["region"] == WORK;
    let invocations: Vec<u64> = codelets
        .iter()
        .filter(of_work)
        .map(|c| c["invocation"].as_u64().expect("a number"))
        .collect();
    let long = invocations.iter().filter(|i| *i % 4 == 0).count();
    assert!(long >= 1 && long < invocations.len(), "{invocations:?}");
    // One whose time was disturbed in vivo may have none.
    assert!(codelets.iter().any(|c| c["in_vivo_seconds"].is_f64()));

    // A class all of whose invocations were disturbed in vivo has no time: not three times in a row.
    let check = ["check", "--json", "--again", "--rounds", "2"];
    let judged = |r: &serde_json::Value| r["name"] == WORK && r["error"].is_f64();
    let found = (0..3).find_map(|_| rows(at, &check).into_iter().find(judged));
    let work = found.expect("an error of the time in vitro");
    assert_eq!(work["verdict"], "exact");
    assert_eq!(work["classes"], invocations.len());
    let (error, ratio) = (work["error"].as_f64(), work["ratio"].as_f64());
    let (error, ratio) = (error.expect("an error"), ratio.expect("a ratio"));
    assert!((error - (ratio - 1.0).abs()).abs() < 1e-12, "{work}");
    let report = json(at, "check --json --rounds 2 --max-error 100000");
    let coverage = report["coverage"].as_f64().expect("a share");
    assert!((0.5..=1.0).contains(&coverage), "{coverage}");
    let row = |r: &&serde_json::Value| r["name"] == WORK;
    let regions = report["regions"].as_array().expect("regions");
    assert_eq!(regions.iter().find(row).expect("a row")["accepted"], true);
    // What is within a smaller error is within a larger one.
    let accurate = |level: &str| report["accurate"][level].as_f64().expect("a share");
    let levels = ["5", "10", "15"].map(accurate);
    assert!(
        levels.is_sorted() && levels[0] >= 0.0 && levels[2] <= coverage,
        "{levels:?}"
    );
    // Another capture's representatives take the place of these.
    succeed(at, "capture -- ./app");
    let list = json(at, "codelets --json");
    let listed = list.as_array().expect("codelets").iter().filter(of_work);
    let work = rows(at, &["check", "--json", "--rounds", "2"])
        .into_iter()
        .find(|r| r["name"] == WORK);
    assert_eq!(work.expect("a row")["classes"], listed.count());

    let table = text(&succeed(at, "check --rounds 2").stdout);
    assert!(
        table.contains(WORK) && table.contains("accurately replayed within 15 %"),
        "{table}"
    );
}

/// One region, called from nothing else; each run adds a line to a file, and waits while there is a file `hold`.
const COUNTED: &str = r#"
#include <stdio.h>
#include <unistd.h>
static double cells[40000];
static __attribute__((noinline)) void work(void) {
    for (int i = 1; i < 40000; i++) cells[i] = cells[i] * 0.5 + cells[i - 1];
}
int main(void) {
    FILE *runs = fopen("runs", "a");
    fputs("run\n", runs);
    fclose(runs);
    cells[0] = 1;
    while (!access("hold", F_OK)) usleep(1000);
    for (int i = 0; i < 3; i++) work(), work(), work();
    printf("%g\n", cells[9]);
    return 0;
}
"#;

/// It, with a codelet of its region.
fn counted() -> tempfile::TempDir {
    let directory = instrumented(COUNTED);
    let line = "capture work --invocation 2 -- ./app";
    succeed(directory.path(), line);
    directory
}

/// How often it ran.
fn runs_of(at: &Path) -> usize {
    let text = std::fs::read_to_string(at.join("runs")).expect("a file");
    text.lines().count()
}

#[test]
fn rounds_run_the_program_between_replays() {
    let directory = counted();
    let at = directory.path();
    let mut before = 0;
    let mut runs = |expected: usize| {
        let now = runs_of(at);
        assert_eq!(now - before, expected);
        before = now;
    };
    // One of the capture, three for the times in vivo.
    runs(4);
    let check = |rounds: &str, more: &[&str]| {
        let line = [&["check", "--json", "--rounds", rounds], more].concat();
        let work = rows(at, &line).remove(0);
        assert_eq!(work["verdict"], "exact");
        work
    };
    let work = check("3", &[]);
    runs(4);
    assert_eq!(work["rounds"], 3);
    let [least, most] = [0, 1].map(|i| work["ratio_range"][i].as_f64().expect("a ratio"));
    assert!(0.0 < least && least <= most, "{work}");
    // What is known is not measured again, fewer rounds neither.
    assert_eq!(check("3", &[]), work);
    check("2", &[]);
    check("0", &[]);
    runs(0);
    check("1", &["--again"]);
    runs(2);
    let alone = check("0", &["--again", "--warmup", "cold"]);
    assert_eq!(alone["rounds"], 1);
    runs(0);
    // A program that is not the one of the profile.
    let app = std::fs::read(at.join("app")).expect("the program");
    std::fs::write(at.join("app"), [&app[..], b"x"].concat()).expect("the program");
    let output = run(at, "check --again --rounds 1");
    let message = text(&output.stderr);
    has(&message, "not the program of the profile");
    assert_eq!(output.status.code(), Some(0));
    runs(0);
}

#[test]
fn what_is_told_to_end_in_a_run_of_the_program_ends() {
    let directory = counted();
    let at = directory.path();
    let before = runs_of(at);
    std::fs::write(at.join("hold"), "").expect("a file");
    let mut command = cere(at, "check --rounds 3");
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cere runs");
    let late = Instant::now() + Duration::from_secs(60);
    while runs_of(at) == before {
        assert!(Instant::now() < late, "the program does not run");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: kill takes no pointers; the child was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let ended = child.wait_with_output().expect("an end");
    let said = text(&ended.stderr);
    has(&said, "ended by signal 15");
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert_eq!(runs_of(at), before + 1);
}

#[test]
fn the_cheapest_cover_takes_the_inner_region() {
    let directory = built();
    let at = directory.path();
    succeed(at, "profile -- ./app");
    let names = |coverage: &str| {
        let chosen = rows(at, &["select", "--json", "--coverage", coverage]);
        let name = |r: &serde_json::Value| r["name"].as_str().expect("a name").to_owned();
        chosen.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names("50"), [WORK]);
    refused(at, "select --coverage 100", "reach");
    refused(at, "select --coverage 0", "above 0");
    let names = text(&succeed(at, "select --coverage 50 --names").stdout);
    assert_eq!(names, format!("{WORK}\n"));
}

#[test]
fn a_profile_of_another_build_is_named() {
    let directory = built();
    let at = directory.path();
    succeed(at, "profile -- ./app");
    succeed(at, &["capture", STEPS, "--invocation", "1", "--", "./app"]);
    let changed = PROGRAM.replace("0.25", "0.125");
    write(at, &[("main.c", &changed)]);
    instrument(at, "$CC -O2 main.c -o app");
    for command in ["check", "select"] {
        let error = text(&run(at, &[command]).stderr);
        assert!(
            error.contains("of another build") && error.contains("cere profile"),
            "{error}"
        );
    }
    succeed(at, "profile -- ./app");
    refused(at, "check", "no codelets of the current build");
}
