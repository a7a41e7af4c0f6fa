//! Profile, capture, list and replay, on a program with a nest of regions.

use crate::common::{
    cere, directory_with, has, instrument, instrumented, json, parsed, refused, run, succeed, text,
    write,
};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static double cells[20000];
static __attribute__((noinline)) void smooth(int n) {
    for (int i = 1; i < n - 1; i++) cells[i] = cells[i] * 0.5 + (cells[i - 1] + cells[i + 1]) * 0.25;
}
static __attribute__((noinline)) void sweep(int steps) {
    for (int s = 0; s < steps; s++) smooth(20000);
}
static __attribute__((noinline)) double total(void) {
    double sum = 0;
    for (int i = 0; i < 20000; i++) sum += cells[i];
    return sum;
}
int main(int argc, char **argv) {
    int first = 1, status = argc > 1 ? atoi(argv[1]) : 0;
    if (argc > 2 && scanf("%d", &first) != 1) return 9;
    cells[first] = 1e6;
    sweep(200);
    printf("total %.10g\n", total());
    return status;
}
"#;

const SMOOTH: &str = "smooth@main.c:6";
const SWEEP: &str = "sweep@main.c:9";

/// A directory with the program, instrumented.
fn built() -> tempfile::TempDir {
    instrumented(PROGRAM)
}

/// One with codelets of the first and the third invocation of `smooth`, for tests that only read it.
fn captured() -> &'static Path {
    static CAPTURED: OnceLock<tempfile::TempDir> = OnceLock::new();
    CAPTURED
        .get_or_init(|| {
            let directory = built();
            let line = ["capture", SMOOTH, "--invocation", "1,3", "--", "./app"];
            succeed(directory.path(), &line);
            directory
        })
        .path()
}

#[test]
fn profiles_as_json_csv_and_table() {
    let directory = built();
    let at = directory.path();
    let profile = json(at, "profile --json -- ./app");
    let regions = profile["regions"].as_array().expect("regions");
    assert_eq!(regions[0]["name"], SMOOTH);
    assert_eq!(regions[0]["invocations"], 200);
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let shares: f64 = regions.iter().map(|r| number(&r["share"])).sum();
    let coverage = number(&profile["coverage"]);
    assert!((shares - coverage).abs() < 1e-6 && coverage > 0.0 && coverage <= 1.0);
    let sweep = regions.iter().find(|r| r["name"] == SWEEP).expect("sweep");
    assert!(number(&sweep["self_seconds"]) < number(&sweep["inclusive_seconds"]) / 2.0);
    let tree = profile["tree"].as_array().expect("a tree");
    let inner = tree.iter().find(|n| n["region"] == SMOOTH).expect("smooth");
    let parent = inner["parent"].as_u64().expect("a parent") as usize;
    assert_eq!(tree[parent]["region"], SWEEP);

    let csv = succeed(at, "profile --csv -- ./app");
    let csv = text(&csv.stdout);
    assert!(csv.starts_with("name,self_seconds,share,invocations,"));
    has(&csv, &format!("\n{SMOOTH},"));

    let table = text(&succeed(at, "profile -- ./app").stdout);
    assert!(table.starts_with("total "), "{table}");
    let nested = format!("\n  {SWEEP}");
    assert!(table.contains(&nested) && table.contains(&format!("\n    {SMOOTH}")));
}

#[test]
fn a_failing_program_keeps_its_profile_and_its_status() {
    let directory = built();
    let at = directory.path();
    let output = run(at, "profile -- ./app 3");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("status 3"));
    assert!(at.join(".cere/profile.json").is_file());
    let output = run(at, "capture -- ./app 3");
    assert_eq!(output.status.code(), Some(3));
    let list = json(at, "codelets --json");
    assert_eq!(list[0]["region"], SMOOTH);
}

#[test]
fn the_default_takes_what_matters() {
    let directory = built();
    let at = directory.path();
    let report = json(at, "capture --json -- ./app");
    let names: Vec<_> = report["codelets"]
        .as_array()
        .expect("codelets")
        .iter()
        .map(|c| c["name"].as_str().expect("a name").to_owned())
        .collect();
    let of = |region: &str| names.iter().any(|n| n.starts_with(&format!("{region}:")));
    assert!(of(SMOOTH) && !of(SWEEP), "{names:?}");
    assert!(report["codelets"][0]["in_vivo_seconds"].is_f64());
}

#[test]
fn the_time_of_an_invocation_beyond_the_trace() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let source = "#include <stdlib.h>
static volatile int cell;
static __attribute__((noinline)) void spin(int n) { for (int i = 0; i < n; i++) cell += i; }
int main(void) { for (int i = 1; i <= 20000; i++) spin(i == 15001 ? 4000000 : 20); return 0; }
";
    write(at, &[("main.c", source)]);
    instrument(at, "$CC -O2 main.c -o app");
    succeed(at, "profile -- ./app");
    let line = "capture spin --invocation 15001,19997 --json -- ./app";
    let output = succeed(at, line);
    has(&text(&output.stderr), "once more");
    let report = parsed(&output);
    let time = |i: usize| report["codelets"][i]["in_vivo_seconds"].as_f64();
    // The long one is known from its neighbours.
    assert!(
        time(0).expect("a time") > 100.0 * time(1).expect("a time"),
        "{report}"
    );
    // Now the store's profile has them.
    let again = text(&succeed(at, line).stderr);
    assert!(!again.contains("once more"), "{again}");
}

#[test]
fn a_pipe_is_read_by_every_run() {
    let directory = built();
    let at = directory.path();
    write(at, &[("number", "7\n")]);
    let plain = std::process::Command::new(at.join("app"))
        .args(["0", "read"])
        .stdin(File::open(at.join("number")).expect("a file"))
        .output()
        .expect("the program runs");
    let line = "capture -- ./app 0 read";
    // A file first, which is put back; then a pipe.
    let file = cere(at, line)
        .stdin(File::open(at.join("number")).expect("a file"))
        .output()
        .expect("cere runs");
    std::fs::remove_file(at.join(".cere/profile.json")).expect("a profile");
    let mut cat = std::process::Command::new("cat")
        .arg(at.join("number"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat runs");
    let pipe = cat.stdout.take().expect("a pipe");
    let piped = cere(at, line).stdin(pipe).output().expect("cere runs");
    cat.wait().expect("cat ends");
    for output in [file, piped] {
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).starts_with(&text(&plain.stdout)));
    }
}

#[test]
fn what_was_asked_and_did_not_happen() {
    let directory = built();
    let at = directory.path();
    let late = ["capture", SMOOTH, "--invocation", "900", "--", "./app"];
    refused(at, &late, "invocation 900 never came");
    let list = json(at, "codelets --json");
    assert_eq!(list.as_array().map(Vec::len), Some(0));
    let half = ["capture", SMOOTH, "--invocation", "1,900", "--", "./app"];
    refused(at, &half, "1 of the named regions");
    let list = json(at, "codelets --json");
    assert_eq!(list[0]["name"], format!("{SMOOTH}:1"));
}

#[test]
fn replays_one_or_several() {
    let at = captured();
    let one = json(at, &["replay", "--json", &format!("{SMOOTH}:3")]);
    assert_eq!(one["verdict"], "exact");
    assert_eq!(one["identical_code"], true);
    assert!(one["seconds"]["min"].as_f64() <= one["seconds"]["median"].as_f64());
    assert!(one["in_vivo_seconds"].is_f64());
    let several = json(at, "replay --json --reps 2 smooth");
    assert_eq!(several.as_array().map(Vec::len), Some(2));
    let list = json(at, "codelets --json");
    assert_eq!(list[0]["verdict"], "exact");
    let unchecked = run(at, "replay smooth --no-check --flags=-O1");
    assert!(unchecked.status.success(), "{}", text(&unchecked.stderr));
    refused(at, "replay smoth", &format!("near: {SMOOTH}"));
}

#[test]
fn flags_that_change_the_result_within_the_tolerance() {
    let at = captured();
    let first = format!("{SMOOTH}:1");
    let fast = [
        "replay",
        "--json",
        "--flags",
        "-O3 -ffast-math -mfma",
        &first,
    ];
    let loose = json(at, &[&fast[..], &["--tolerance", "1e-6"]].concat());
    assert_ne!(loose["verdict"], "different", "{loose}");
    assert_eq!(loose["flags"], "-O3 -ffast-math -mfma");
    let strict = run(at, &[&fast[..], &["--tolerance", "0"]].concat());
    let verdict = parsed(&strict);
    assert_eq!(strict.status.success(), verdict["verdict"] == "exact");
}

#[test]
fn a_file_alone_and_a_damaged_one() {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let at = elsewhere.path();
    let list = json(captured(), "codelets --json");
    let bytes = std::fs::read(list[0]["file"].as_str().expect("a file")).expect("a package");
    std::fs::write(at.join("sent.codelet"), &bytes).expect("a copy");
    let output = cere(at, "replay sent.codelet")
        .env("XDG_CACHE_HOME", at.join("cache"))
        .output()
        .expect("cere runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(at.join("cache/cere").is_dir() && !at.join(".cere").exists());

    let damaged = at.join(".cere/codelets");
    std::fs::create_dir_all(&damaged).expect("a directory");
    std::fs::write(damaged.join("half.codelet"), &bytes[..bytes.len() / 2]).expect("a file");
    std::fs::write(damaged.join("whole.codelet"), &bytes).expect("a file");
    let output = run(at, "codelets --json");
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("half.codelet"));
    let list = parsed(&output);
    assert_eq!(list.as_array().map(Vec::len), Some(1));

    // A failure is an entry like any other; the others are replayed all the same.
    let one = "replay --json .cere/codelets/half.codelet";
    let output = run(at, one);
    assert!(!output.status.success() && text(&output.stderr).contains("cere: error"));
    let failed = parsed(&output);
    assert_eq!(failed["codelet"], "half");
    assert_eq!(failed["code"], "CERE-4022");
    assert_eq!(failed["verdict"], "unchecked");
    assert!(failed["error"].is_string() && failed["flags"] == "");
    let output = run(at, "replay --json --reps 1 *");
    assert!(!output.status.success());
    let both = parsed(&output);
    assert_eq!(both[0]["verdict"], "unchecked");
    assert_eq!(both[1]["verdict"], "exact");
    let missing = json(at, "replay --json none");
    assert_eq!(missing["codelet"], "none");
    let rejected = ["replay", "--json", "whole", "--flags", "-O2 -fno-such-flag"];
    let rejected = json(at, &rejected);
    assert!(
        rejected["error"]
            .as_str()
            .expect("an error")
            .contains("-fno-such-flag")
    );
}

#[test]
fn the_program_decides_between_two_objects_of_one_source() {
    let directory = directory_with(&[("main.c", PROGRAM)]);
    let at = directory.path();
    let build = "$CC -O2 -c main.c -o a.o; $CC -O1 -c main.c -o b.o; $CC a.o -o a; $CC b.o -o b";
    instrument(at, build);
    refused(at, &["regions", SMOOTH], "begins 2 names");
    let mut taken = Vec::new();
    for program in ["./a", "./b"] {
        let line = ["capture", "--json", SMOOTH, "--invocation", "1", "--"];
        let captured = json(at, &[&line[..], &[program]].concat());
        taken.push(captured["codelets"][0]["name"].clone());
    }
    assert_ne!(taken[0], taken[1]);
    // A prefix as well; what both could mean is asked back.
    let line = "capture smooth --invocation 1 -- ./b";
    succeed(at, line);
    refused(at, "capture s -- ./b", "begins 4 names");
    refused(at, &["replay", SMOOTH], "begins 2 names");
}

#[test]
fn programs_that_cannot_be_run() {
    let directory = built();
    let at = directory.path();
    let mut plain = std::process::Command::new("clang-22");
    let plain = plain.args(["main.c", "-o", "plain"]).current_dir(at);
    assert!(plain.status().expect("clang runs").success());
    let build = "$CC -O2 -static main.c -o static; cp app other; printf x >> other";
    instrument(at, build);
    refused(at, "profile -- ./static", "without -static");
    refused(at, "profile -- ./none", "./none");
    refused(at, "profile -- ./main.c", "main.c");
    refused(at, "profile -- ./plain", "cere instrument");
    // The store of another build.
    write(at, &[("elsewhere/main.c", PROGRAM)]);
    let there = at.join("elsewhere");
    let build = ["instrument", "--", "sh", "-c", "$CC -O1 main.c -o app"];
    succeed(&there, &build);
    refused(&there, "profile -- ../app", "another build");
}

#[test]
fn the_kept_profile_is_shown_again() {
    let directory = built();
    let at = directory.path();
    refused(at, "profile --show", "there is no profile");
    let output = run(at, "profile --json -- ./app 3");
    assert_eq!(output.status.code(), Some(3));
    let kept = std::fs::read(at.join(".cere/profile.json")).expect("the profile");
    assert_eq!(json(at, "profile --show --json"), parsed(&output));
    let shown = succeed(at, "profile --show");
    has(&text(&shown.stdout), SMOOTH);
    has(
        &text(&shown.stderr),
        "the profiled run of ./app ended with exit status: 3",
    );
    has(&text(&succeed(at, "profile --show --csv").stdout), SWEEP);
    refused(at, "profile --show -- ./app", "--show");
    // Nothing ran.
    let now = std::fs::read(at.join(".cere/profile.json")).expect("the profile");
    assert_eq!(now, kept);
}
