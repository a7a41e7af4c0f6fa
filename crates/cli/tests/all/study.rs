//! Studies: what is planned, what a budget leaves out, and what a program reads.

use crate::common::{cere, directory_with, has, instrument, json, run, succeed, text};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

/// Reads a number and does as many steps of a loop with another inside; `status` is what it ends with.
fn program(status: u32) -> String {
    format!(
        "#include <stdio.h>
static double a[20000];
static __attribute__((noinline)) void step(int k) {{ for (int i = 1; i < 20000; i++) a[i] = a[i - 1] * 0.5 + a[i] * 0.25 + k; }}
int main(int argc, char **argv) {{ int n = 0; if (argc > 1) sscanf(argv[1], \"%d\", &n); else if (scanf(\"%d\", &n) != 1) return 9;
  for (int k = 0; k < n; k++) step(k); printf(\"%f\\n\", a[7]); return {status}; }}
"
    )
}

const STUDY: &str = "study --build '$CC -O2 main.c -o app' -- ./app";

fn directory(status: u32) -> tempfile::TempDir {
    directory_with(&[("main.c", &program(status))])
}

/// The records of all replays.
fn records(at: &Path) -> Vec<serde_json::Value> {
    let all = json(at, "results --json");
    all.as_array().expect("records").clone()
}

#[test]
fn a_status_other_than_0_does_not_stop_it() {
    let directory = directory(7);
    let at = directory.path();
    for _ in 0..2 {
        let output = succeed(at, &*format!("{STUDY} 50"));
        has(&text(&output.stderr), "ended with exit status: 7");
    }
    let page = std::fs::read_to_string(at.join("report.html")).expect("a page");
    assert!(page.contains("ended with exit status: 7"));
    let capture = "capture step@* --invocation 1 -- ./app 50";
    assert_eq!(run(at, capture).status.code(), Some(7));
}

#[test]
fn a_plan_comes_first_and_nothing_is_done_twice() {
    let directory = directory(0);
    let at = directory.path();
    let output = succeed(at, &*format!("{STUDY} 300"));
    let said = text(&output.stderr);
    has(&said, "planned:");
    has(&said, "of 1 region to be captured in 1 run or more");
    has(&text(&output.stdout), "covered by codelets");
    let before = records(at).len();
    assert!(before > 0);
    let again = succeed(at, &*format!("{STUDY} 300"));
    has(
        &text(&again.stderr),
        "the store has all codelets that can be had",
    );
    assert_eq!(records(at).len(), before);
    let quick = run(at, "study --quick --build true -- ./app 300");
    assert!(quick.status.success());
}

#[test]
fn a_capture_tells_its_plan() {
    let directory = directory(0);
    let at = directory.path();
    instrument(at, "$CC -O2 main.c -o app");
    let plan = json(at, "capture --plan --json -- ./app 300");
    assert_eq!(plan["codelets"], serde_json::json!([]));
    let plan = &plan["plan"];
    assert_eq!(
        (&plan["regions"], &plan["runs"]),
        (&1.into(), &1.into()),
        "{plan}"
    );
    let all = plan["codelets"].as_u64().expect("a number");
    assert!(plan["program_seconds"].as_f64() > Some(0.0));
    assert_eq!(json(at, "codelets --json"), serde_json::json!([]));
    let taken = json(at, "capture --json -- ./app 300");
    let list = taken["codelets"].as_array().expect("codelets");
    assert_eq!(list.len() as u64, all);
    let rest = succeed(at, "capture --plan --missing -- ./app 300");
    has(
        &text(&rest.stdout),
        "the store has all codelets that can be had",
    );
    let refused = run(at, "capture --plan --invocation 1 -- ./app 300");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn what_fits_into_a_budget() {
    let directory = directory(0);
    let at = directory.path();
    instrument(at, "$CC -O2 main.c -o app");
    succeed(at, "capture -- ./app 300");
    let codelets = json(at, "codelets --json")
        .as_array()
        .expect("codelets")
        .len();
    let sessions = |records: &[serde_json::Value]| {
        let of_rounds = records.iter().filter(|r| !r["session"].is_null());
        of_rounds.count()
    };
    succeed(at, "check --within 0.001");
    let first = records(at);
    assert_eq!((first.len(), sessions(&first)), (codelets, codelets));
    // What is known is not measured again.
    succeed(at, "check --within 100");
    assert_eq!(records(at).len(), codelets);
    succeed(at, "check --again --within 100");
    let all = records(at);
    assert_eq!(all.len(), codelets * 10);
    assert_eq!(sessions(&all), codelets * 10);
    let both = run(at, "check --within 3 --rounds 2");
    assert_eq!(both.status.code(), Some(2));
}

/// A study of a program that reads `input` from a file or from a pipe.
fn reads(at: &Path, piped: bool) -> Output {
    let mut command = cere(at, STUDY);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if !piped {
        command.stdin(File::open(at.join("input")).expect("a file"));
        return command.output().expect("cere runs");
    }
    let mut child = command.stdin(Stdio::piped()).spawn().expect("cere starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(b"300\n").expect("a reader");
    drop(pipe);
    child.wait_with_output().expect("cere ends")
}

#[test]
fn every_step_reads_the_same() {
    for piped in [false, true] {
        let directory = directory(0);
        let at = directory.path();
        std::fs::write(at.join("input"), "300\n").expect("a file");
        let output = reads(at, piped);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{piped}: {said}");
        assert!(!said.contains("would not read"), "{piped}: {said}");
        // Rounds between runs, each of which had its input.
        let all = records(at);
        assert!(!all.is_empty(), "{said}");
        assert!(
            all.iter().all(|r| !r["session"].is_null()),
            "{piped}: {said}"
        );
        assert!(
            all.iter().all(|r| r["verdict"] == "exact"),
            "{piped}: {said}"
        );
    }
}
