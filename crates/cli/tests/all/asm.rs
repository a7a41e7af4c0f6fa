//! `cere asm`: machine code beside its source, with exact executions, remarks of the optimiser and a model's bound.

use crate::common::{built_from, has, json, refused, run, succeed, text};
use serde_json::Value;
use std::path::Path;

/// 4096 elements; the line of each loop's body is in its name.
const MAIN: &str = r#"#include <stdio.h>
#define N 4096
static double a[N], b[N];
__attribute__((noinline)) void axpy(double *restrict y, const double *restrict x, double f, int n) {
  for (int i = 0; i < n; i++)
    y[i] += f * x[i];
}
__attribute__((noinline)) double dot(const double *x, const double *y, int n) {
  double s = 0;
  for (int i = 0; i < n; i++)
    s += x[i] * y[i];
  return s;
}
__attribute__((noinline)) static double step(double x) {
  if (x > 1e9)
    return 1;
  return x * 0.5 + 1;
}
__attribute__((noinline)) void relax(double *x, int n) {
  for (int i = 1; i < n; i++)
    x[i] = step(x[i - 1]) + x[i];
}
int main(void) {
  double s = 0;
  for (int i = 0; i < N; i++) { a[i] = i % 7; b[i] = i % 11; }
  for (int i = 0; i < 30; i++) { axpy(a, b, 1e-3, N); s += dot(a, b, N); relax(b, N); }
  printf("%.17g\n", s);
}
"#;

fn captured(flags: &str) -> tempfile::TempDir {
    let directory = built_from(&[("main.c", MAIN)], &format!("$CC {flags} main.c -o app"));
    let regions = "capture axpy@* dot@* relax@* --invocation 3 -- ./app";
    succeed(directory.path(), regions);
    directory
}

/// The only entry of `cere asm --json` with further words.
#[track_caller]
fn listed(at: &Path, words: &[&str]) -> Value {
    let all = json(at, &[&["asm", "--json"], words].concat());
    let all = all.as_array().expect("an array");
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

fn array<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// All instructions of a listing.
fn instructions(listing: &Value) -> Vec<&Value> {
    let functions = array(listing, "functions").iter();
    let blocks = functions.flat_map(|f| array(f, "blocks"));
    blocks.flat_map(|b| array(b, "instructions")).collect()
}

/// Executions of the instructions whose text begins with one of `mnemonics`.
fn executions(listing: &Value, mnemonics: &[&str]) -> u64 {
    let text = |i: &Value| i["text"].as_str().unwrap_or_default().to_owned();
    let all = instructions(listing).into_iter();
    let wanted = all.filter(|i| {
        mnemonics
            .iter()
            .any(|m| text(i).split(' ').next() == Some(m))
    });
    wanted.filter_map(|i| i["executions"].as_u64()).sum()
}

/// The remarks whose text holds `part`.
fn remarks<'a>(listing: &'a Value, part: &str) -> Vec<&'a Value> {
    let all = array(listing, "remarks").iter();
    all.filter(|r| r["text"].as_str().is_some_and(|text| text.contains(part)))
        .collect()
}

/// What holds for every listing.
#[track_caller]
fn consistent(at: &Path, listing: &Value) {
    let name = listing["codelet"].as_str().expect("a name");
    let flags = listing["flags"].as_str().expect("flags");
    let counts = json(
        at,
        &[
            "count",
            "--json",
            "--geometry",
            "none",
            "--flags",
            flags,
            name,
        ],
    );
    assert_eq!(listing["instructions"], counts[0]["instructions"], "{name}");
    let sum = |values: Vec<&Value>, field: &str| -> u64 {
        values.iter().filter_map(|v| v[field].as_u64()).sum()
    };
    let all = listing["instructions"].as_u64().expect("a number");
    assert_eq!(sum(instructions(listing), "executions"), all);
    let of = |field: &str| array(listing, field).iter().collect::<Vec<_>>();
    assert_eq!(sum(of("functions"), "executed"), all);
    assert_eq!(sum(of("lines"), "executed"), all);
    assert_eq!(listing["functions"][0]["region"], true);
}

#[test]
fn a_vectorised_loop_and_one_that_is_not() {
    let directory = captured("-O2");
    let at = directory.path();
    let entry = listed(at, &["axpy@*"]);
    let axpy = &entry["listing"];
    assert!(entry["against"].is_null() && entry["diff"].is_null());
    assert_eq!(axpy["verdict"], "exact", "{}", axpy["reason"]);
    consistent(at, axpy);
    let done = remarks(axpy, "vectorised: 2 elements at once");
    assert_eq!(
        (done.len(), &done[0]["outcome"], &done[0]["line"]),
        (1, &"done".into(), &5.into())
    );
    // 2 elements of 64 bits a vector: 2048 multiplications for 4096 elements, however many an iteration has.
    assert_eq!(executions(axpy, &["mulpd"]), 2048, "{axpy:#}");
    assert_eq!(executions(axpy, &["mulsd"]), 0);
    let hottest = &axpy["hottest"];
    assert_eq!(hottest["line"], 6, "{hottest}");
    let in_iteration = axpy["vectors"]["bits_128"].as_u64().expect("a number");
    assert!(
        in_iteration > 2 * 2048 && axpy["vectors"]["flops_share"] == 1.0,
        "{}",
        axpy["vectors"]
    );
    let line = array(axpy, "lines")
        .iter()
        .find(|l| l["line"] == 6)
        .expect("line 6");
    assert_eq!(line["text"], "    y[i] += f * x[i];");
    assert_eq!(line["hottest"], true);

    let dot = &listed(at, &["dot@*"])["listing"];
    consistent(at, dot);
    assert_eq!(executions(dot, &["addsd"]), 4096);
    assert_eq!(dot["vectors"]["flops_share"], 0.0);
    let why = remarks(
        dot,
        "not vectorised: floating-point sums and products have to keep their order",
    );
    assert_eq!(
        (why.len(), &why[0]["line"]),
        (1, &10.into()),
        "{:#}",
        dot["remarks"]
    );
    let bound = &dot["hottest"]["bound"];
    // Each addition waits for the one before, on every processor.
    assert_eq!(bound["limit"], "dependences", "{bound}");
}

#[test]
fn functions_that_the_region_calls() {
    let directory = captured("-O2");
    let at = directory.path();
    let relax = &listed(at, &["relax@*", "--model", "icelake-server"])["listing"];
    consistent(at, relax);
    let names: Vec<&str> = array(relax, "functions")
        .iter()
        .filter_map(|f| f["name"].as_str())
        .collect();
    assert_eq!(names, ["the region", "step"]);
    // What is chosen between is computed in either case.
    let lines = array(relax, "lines").iter();
    let of_step = lines.filter(|l| l["line"].as_u64().is_some_and(|n| (14..=18).contains(&n)));
    let executed: u64 = of_step.filter_map(|l| l["executed"].as_u64()).sum();
    assert_eq!(relax["functions"][1]["executed"], executed);
    assert!(executed >= 2 * 4095, "{executed}");
    let hottest = &relax["hottest"];
    assert_eq!(hottest["iterations"], 4095, "{hottest}");
    assert_eq!(hottest["bound"]["processor"], "icelake-server");
    let calls = "not vectorised: it calls a function that has no vector version";
    assert_eq!(remarks(relax, calls).len(), 1, "{:#}", relax["remarks"]);
    let inline = "step is not inlined: noinline";
    assert_eq!(remarks(relax, inline).len(), 1, "{:#}", relax["remarks"]);
}

#[test]
fn text_for_people() {
    let directory = captured("-O2 -g");
    let at = directory.path();
    let shown = text(&succeed(at, "asm axpy@*").stdout);
    for part in [
        ": exact (",
        "  compiled        as built\n",
        "hottest loop    main.c:6, b",
        " cycles an iteration, limited by ",
        "100.0 % of the floating-point operations; ",
        "spills          none\n",
        "+ main.c:5         vectorised: 2 elements at once",
        "  the region (cere.outlined.",
        "/main.c\n",
        ">    6     y[i] += f * x[i];",
        " never ran\n",
        " mulpd ",
    ] {
        has(&shown, part);
    }
    // Nothing but text where it is not read on a terminal.
    assert!(
        shown.chars().all(|c| c == '\n' || !c.is_control()),
        "{shown}"
    );
    assert!(!text(&succeed(at, "asm axpy@* --all").stdout).contains(" never ran\n"));
}

#[test]
fn two_variants() {
    let directory = captured("-O2");
    let at = directory.path();
    let entry = listed(at, &["dot@*", "--against", "-ffast-math"]);
    let (before, after) = (&entry["listing"], &entry["against"]);
    assert_eq!(
        (&before["flags"], &after["flags"]),
        (&"".into(), &"-ffast-math".into())
    );
    consistent(at, after);
    assert_eq!(executions(before, &["addsd"]), 4096);
    assert_eq!(
        remarks(after, "vectorised: 2 elements at once").len(),
        1,
        "{:#}",
        after["remarks"]
    );
    assert_eq!(
        after["vectors"]["flops_share"]
            .as_f64()
            .map(|share| share > 0.9),
        Some(true)
    );
    let lines = array(&entry, "diff");
    let line = lines.iter().find(|l| l["line"] == 11).expect("line 11");
    let changed = |change: &str, mnemonic: &str| {
        let all = array(line, "instructions").iter();
        all.filter(|i| {
            i["change"] == change && i["text"].as_str().is_some_and(|t| t.starts_with(mnemonic))
        })
        .count()
    };
    assert!(
        changed("removed", "addsd") > 0 && changed("added", "addpd") > 0,
        "{line:#}"
    );
    assert_eq!(changed("added", "addsd") + changed("removed", "addpd"), 0);

    let shown = text(&succeed(at, "asm dot@* --against -ffast-math").stdout);
    for part in [
        "  - compiled      as built\n",
        "  + compiled      -ffast-math\n",
        "  - vectors       0.0 % of the floating-point operations; ",
        "    - main.c:10 not vectorised: floating-point sums",
        "    + main.c:10 vectorised: 2 elements at once",
        " | - ",
        " | + ",
    ] {
        has(&shown, part);
    }
    // The same flags: nothing changes.
    let same = listed(at, &["dot@*", "--against", ""]);
    let kept = |line: &Value| {
        array(line, "instructions")
            .iter()
            .all(|i| i["change"] == "same")
    };
    assert!(array(&same, "diff").iter().all(kept), "{same:#}");
    has(
        &text(&succeed(at, "asm dot@* --against ''").stdout),
        ", the same\n",
    );
}

#[test]
fn passes_have_remarks_too() {
    let directory = captured("-O2");
    let at = directory.path();
    let o1 = &listed(at, &["axpy@*", "--passes", "default<O1>"])["listing"];
    assert_eq!(executions(o1, &["mulsd"]), 4096);
    let why = remarks(o1, "not vectorised: below -O2");
    assert_eq!(why.len(), 1, "{:#}", o1["remarks"]);
    let o2 = &listed(at, &["axpy@*", "--passes", "default<O2>"])["listing"];
    assert_eq!(
        remarks(o2, "vectorised: 2 elements").len(),
        1,
        "{:#}",
        o2["remarks"]
    );
    assert_eq!(o2["passes"], "default<O2>");
}

#[test]
fn sources_that_changed_or_are_gone() {
    let directory = captured("-O2");
    let at = directory.path();
    std::fs::write(at.join("main.c"), format!("{MAIN}\n/* more */\n")).expect("a file");
    let shown = text(&succeed(at, "asm axpy@*").stdout);
    has(
        &shown,
        "changed since the build, so that the lines may be others",
    );
    has(&shown, "y[i] += f * x[i];");
    std::fs::remove_file(at.join("main.c")).expect("a file");
    let output = succeed(at, "asm axpy@*");
    let shown = text(&output.stdout);
    has(&shown, "gone since the build, so that lines have no text");
    has(&shown, " mulpd ");
    assert!(!shown.contains("y[i] +="), "{shown}");
    let entry = listed(at, &["axpy@*"]);
    let lines = array(&entry["listing"], "lines");
    assert!(lines.iter().any(|l| l["line"] == 6) && lines.iter().all(|l| l["text"].is_null()));
}

#[test]
fn a_codelet_from_elsewhere() {
    let directory = captured("-O2");
    let away = tempfile::tempdir().expect("a directory");
    let codelets = std::fs::read_dir(directory.path().join(".cere/codelets")).expect("codelets");
    let file = codelets
        .map(|f| f.expect("a file").path())
        .find(|f| f.to_string_lossy().contains("axpy"))
        .expect("a codelet");
    std::fs::copy(file, away.path().join("a.codelet")).expect("a copy");
    let mut command = crate::common::cere(away.path(), "asm a.codelet");
    let output = command
        .env("XDG_CACHE_HOME", away.path())
        .output()
        .expect("cere runs");
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{shown}{}", text(&output.stderr));
    has(&shown, "no instruction has a line");
    has(&shown, " mulpd ");
    has(&shown, "vectorised: 2 elements at once");
}

#[test]
fn several_codelets_of_a_region_and_the_report() {
    let directory = captured("-O2");
    let at = directory.path();
    succeed(at, "capture axpy@* --invocation 4 -- ./app");
    let output = succeed(at, "asm axpy@*");
    has(
        &text(&output.stderr),
        "left out 1 more codelets of the same regions (axpy@main.c:5:4)",
    );
    assert_eq!(text(&output.stdout).matches(": exact (").count(), 1);
    succeed(at, "report");
    let page = std::fs::read_to_string(at.join("report.html")).expect("the page");
    has(&page, "<summary>Machine code</summary>");
    has(&page, "mulpd ");
    has(&page, "vectorised: 2 elements at once");
    has(&page, "the next report shows it here");
}

#[test]
fn what_is_wrong_has_a_name() {
    let directory = captured("-O2");
    let at = directory.path();
    refused(at, "asm nothing@*", "nothing@*");
    refused(
        at,
        "asm dot@* --model abacus",
        "llvm-mca-22 knows no processor abacus",
    );
    refused(at, "asm dot@* --against -flto", "-flto");
    refused(at, "asm dot@* --passes no-such-pass", "no-such-pass");
    refused(at, "asm missing.codelet", "missing.codelet");
    let quote = run(at, &["asm", "dot@*", "--against", "'"]);
    assert_eq!(quote.status.code(), Some(2));
    // One of several fails: the others are listed, and the status says it.
    std::fs::write(at.join("bad.codelet"), "no codelet").expect("a file");
    let output = run(at, "asm bad.codelet dot@* --json");
    assert_eq!(output.status.code(), Some(1));
    has(&text(&output.stderr), "not listed: ");
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(all.as_array().map(Vec::len), Some(1));
}
