//! Representatives, selection and matching, on a program whose region has two kinds of invocations.

mod common;

use common::{instrumented, json, refused, run, succeed, text, write};
use std::path::Path;

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
    refused(at, &["check"], "no profile");
    refused(at, &["select"], "no profile");
    succeed(at, &["profile", "--", "./app"]);
    refused(at, &["check"], "cere capture");

    let report = json(at, &["capture", "--json", "--", "./app"]);
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

    let work = rows(at, &["check", "--json"])
        .into_iter()
        .find(|r| r["name"] == WORK);
    let work = work.expect("a row");
    assert_eq!(work["verdict"], "exact");
    assert_eq!(work["classes"], invocations.len());
    let judged = work["error"].as_f64().is_some_and(|e| e >= 0.0);
    assert!(
        judged
            || work["reason"]
                .as_str()
                .is_some_and(|r| r.contains("in vivo")),
        "{work}"
    );
    let report = json(at, &["check", "--json", "--max-error", "100000"]);
    let coverage = report["coverage"].as_f64().expect("a share");
    assert!((0.0..=1.0).contains(&coverage) && (coverage > 0.5 || !judged));
    let row = |r: &&serde_json::Value| r["name"] == WORK;
    let regions = report["regions"].as_array().expect("regions");
    assert_eq!(regions.iter().find(row).expect("a row")["accepted"], judged);
    for level in ["15", "10", "5"] {
        assert!(
            report["accurate"][level]
                .as_f64()
                .is_some_and(|s| (0.0..=1.0).contains(&s))
        );
    }
    // Another capture's representatives take the place of these.
    succeed(at, &["capture", "--", "./app"]);
    let list = json(at, &["codelets", "--json"]);
    let listed = list.as_array().expect("codelets").iter().filter(of_work);
    let work = rows(at, &["check", "--json"])
        .into_iter()
        .find(|r| r["name"] == WORK);
    assert_eq!(work.expect("a row")["classes"], listed.count());

    let table = text(&succeed(at, &["check"]).stdout);
    assert!(
        table.contains(WORK) && table.contains("accurately replayed within 15 %"),
        "{table}"
    );
}

#[test]
fn the_cheapest_cover_takes_the_inner_region() {
    let directory = built();
    let at = directory.path();
    succeed(at, &["profile", "--", "./app"]);
    let names = |coverage: &str| {
        let chosen = rows(at, &["select", "--json", "--coverage", coverage]);
        let name = |r: &serde_json::Value| r["name"].as_str().expect("a name").to_owned();
        chosen.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names("50"), [WORK]);
    refused(at, &["select", "--coverage", "100"], "reach");
    refused(at, &["select", "--coverage", "0"], "above 0");
    let names = text(&succeed(at, &["select", "--coverage", "50", "--names"]).stdout);
    assert_eq!(names, format!("{WORK}\n"));
}

#[test]
fn a_profile_of_another_build_is_named() {
    let directory = built();
    let at = directory.path();
    succeed(at, &["profile", "--", "./app"]);
    succeed(at, &["capture", STEPS, "--invocation", "1", "--", "./app"]);
    let changed = PROGRAM.replace("0.25", "0.125");
    write(at, &[("main.c", &changed)]);
    succeed(
        at,
        &["instrument", "--", "sh", "-c", "$CC -O2 main.c -o app"],
    );
    for command in ["check", "select"] {
        let error = text(&run(at, &[command]).stderr);
        assert!(
            error.contains("of another build") && error.contains("cere profile"),
            "{error}"
        );
    }
    succeed(at, &["profile", "--", "./app"]);
    refused(at, &["check"], "no codelets of the current build");
}
