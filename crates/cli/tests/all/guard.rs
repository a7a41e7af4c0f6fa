//! `cere guard`: performance tests of regions in a repository.

use crate::common::{
    cere, directory_with, has, instrument, json, parsed, refused, run, succeed, text, write,
};
use serde_json::Value;
use std::path::Path;

const HEADER: &str = "static inline double weight(double x) { return x * 0.25; }\n";

/// Two loops.
const PROGRAM: &str = r#"
#include "weight.h"
#include <stdio.h>
#include <stdlib.h>
#define N 2000
static double w[N];
__attribute__((noinline)) double smooth(double *a, double *b, int n, double c) {
    double s = 0;
    for (int i = 1; i < n - 1; i++) {
        b[i] = weight(c) * (a[i - 1] + 2 * a[i] + a[i + 1]) * w[i];
        s += b[i];
    }
    return s;
}
__attribute__((noinline)) int count(const int *v, int n) {
    int found = 0;
    for (int i = 0; i < n; i++)
        if (v[i] % 3 == 1) found++;
    return found;
}
int main(void) {
    double *a = malloc(N * 8), *b = calloc(N, 8); int *v = malloc(N * 4);
    for (int i = 0; i < N; i++) { a[i] = i % 7; w[i] = 1 + i % 3; v[i] = i * 7; }
    double s = 0;
    for (int r = 0; r < 100; r++) s += smooth(a, b, N, 1.0 + r * 1e-3) + count(v, N);
    printf("%.15g\n", s);
}
"#;

/// A line that has no effect, and takes instructions.
const SLOWER: &str = "        for (volatile int k = 0; k < 2; k++);\n        s += b[i];";

/// A repository in a fresh place, whose regions are tests: built, captured and added elsewhere, in a directory that is gone, under
/// `source`.
fn repository() -> tempfile::TempDir {
    let built = directory_with(&[("src/k.c", PROGRAM), ("include/weight.h", HEADER)]);
    let first = built.path();
    std::fs::create_dir(first.join("build")).expect("a directory");
    let include = first.join("include");
    let line = format!(
        "cd build && $CC -O2 -I{} -MMD -c ../src/k.c && $CC k.o -o k",
        include.display()
    );
    instrument(first, &line);
    succeed(first, "profile -- build/k");
    succeed(first, "capture smooth* count* --invocation 50 -- build/k");
    let added = succeed(first, "guard add *");
    has(&text(&added.stdout), "smooth@k.c:9");
    has(&text(&added.stdout), "count@k.c:17");
    let checkout = directory_with(&[("src/k.c", PROGRAM), ("include/weight.h", HEADER)]);
    let copied = std::process::Command::new("cp")
        .args(["-r", "cere-guard"])
        .arg(checkout.path())
        .current_dir(first)
        .status();
    assert!(copied.expect("cp runs").success());
    built.close().expect("the directory goes");
    checkout
}

/// The result of the region that begins with `region`, with the whole answer.
fn tested(at: &Path, region: &str) -> (String, Value) {
    let all = json(at, "guard --json --no-times --timeout 5");
    let found = all.as_array().expect("a list").iter();
    let mut found = found.filter(|r| r["name"].as_str().is_some_and(|n| n.starts_with(region)));
    let found = found.next().cloned().expect("the region");
    (
        found["result"].as_str().unwrap_or_default().to_owned(),
        found,
    )
}

/// The same with `from` replaced by `to` in the source.
fn edited(at: &Path, from: &str, to: &str) -> (String, Value) {
    assert!(PROGRAM.contains(from), "{from}");
    write(at, &[("src/k.c", &PROGRAM.replace(from, to))]);
    tested(at, "smooth")
}

#[test]
fn a_fresh_checkout_is_tested_without_a_store() {
    let directory = repository();
    let at = directory.path();
    let output = run(at, "guard");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(tested(at, "smooth").0, "unchanged");
    assert!(!at.join(".cere").exists() && !at.join("build").exists());

    assert_eq!(
        edited(at, "double s = 0;", "/* sum */\n    double s = 0;").0,
        "identical"
    );
    assert!(!at.join("build").exists());

    // More instructions are an alarm by counts, in every form.
    write(
        at,
        &[(
            "src/k.c",
            &format!("\n\n{}", PROGRAM.replace("        s += b[i];", SLOWER)),
        )],
    );
    let mut command = cere(
        at,
        "guard --no-times --github --junit guard.xml --markdown guard.md",
    );
    let summary = at.join("summary.md");
    let output = command
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .expect("cere runs");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    has(
        &shown,
        "::error file=src/k.c,line=11,title=cere guard%3A smooth@k.c%3A9 is slower::",
    );
    assert_eq!(shown.matches("::error").count(), 1, "{shown}");
    has(&shown, "instructions +118.");
    let read = |name: &str| std::fs::read_to_string(at.join(name)).expect("a file");
    has(&read("guard.xml"), "failures=\"1\"");
    has(&read("guard.md"), "| `smooth@k.c:9` | **slower** |");
    assert_eq!(read("summary.md"), read("guard.md"));
    let (result, slower) = tested(at, "smooth");
    assert_eq!(result, "slower");
    assert_eq!(slower["verdict"], "exact", "{slower}");
    let grown = slower["grown"].as_array().expect("a list");
    assert!(
        grown.iter().any(|g| g["what"] == "instructions"),
        "{slower}"
    );
    let instructions = |side: usize| slower["counts"][side]["instructions"].as_u64();
    assert!(instructions(1) > instructions(0), "{slower}");
    assert!(slower["counts"][0]["memory bytes"].is_number(), "{slower}");
    assert_eq!(tested(at, "count").0, "identical");
    // Only what was named.
    assert_eq!(run(at, "guard count* --no-times").status.code(), Some(0));
}

#[test]
fn limits_and_another_baseline() {
    let directory = repository();
    let at = directory.path();
    assert_eq!(edited(at, "        s += b[i];", SLOWER).0, "slower");
    let config = at.join("cere-guard/guard.toml");
    let before = std::fs::read_to_string(&config).expect("a file");
    write(
        at,
        &[(
            "cere-guard/guard.toml",
            &format!("{before}\n[regions.\"smooth@*\"]\ncounts = 1000\n[regions.gone]\ntime = 3\n"),
        )],
    );
    let (result, answer) = tested(at, "smooth");
    assert_eq!(result, "passed", "{answer}");
    assert_eq!(answer["limits"]["counts"], 1000.0);
    has(
        &text(&run(at, "guard --no-times").stderr),
        "guard.toml has limits for gone",
    );
    write(at, &[("cere-guard/guard.toml", &before)]);

    // What is accepted is the baseline then: the first code is an improvement.
    has(
        &text(&succeed(at, "guard accept smooth*").stdout),
        "accepted",
    );
    assert_eq!(tested(at, "smooth").0, "unchanged");
    has(&text(&succeed(at, "guard list").stdout), "accepted");
    write(
        at,
        &[(
            "src/k.c",
            &PROGRAM.replace("        s += b[i];", &format!("\n{SLOWER}")),
        )],
    );
    assert_eq!(tested(at, "smooth").0, "identical");
    write(at, &[("src/k.c", PROGRAM)]);
    let (result, answer) = tested(at, "smooth");
    assert_eq!(result, "passed", "{answer}");
    has(
        &text(&succeed(at, "guard accept smooth*").stdout),
        "accepted",
    );
    has(
        &text(&succeed(at, "guard accept").stdout),
        "is the baseline already",
    );
    assert_eq!(edited(at, "        s += b[i];", SLOWER).0, "slower");

    // Another result is no baseline.
    write(at, &[("src/k.c", &PROGRAM.replace("2 * a[i]", "3 * a[i]"))]);
    let output = run(at, "guard accept smooth*");
    assert_eq!(output.status.code(), Some(1));
    has(&text(&output.stderr), "its result is different");
    succeed(at, "guard remove smooth*");
    assert_eq!(
        json(at, "guard --json --no-times").as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn what_goes_wrong_is_a_result_of_its_own() {
    let directory = repository();
    let at = directory.path();
    for (what, from, to, result, why) in [
        ("another result", "2 * a[i]", "3 * a[i]", "wrong", "differ"),
        ("no C", "s += b[i];", "s += b[i]", "failed", "expected ';'"),
        (
            "endless",
            "s += b[i];",
            "s += b[i]; i -= i > 5;",
            "failed",
            "ran longer than",
        ),
        (
            "a crash",
            "s += b[i];",
            "s += b[i]; if (i == 5) *(volatile int *)8 = 1;",
            "failed",
            "0x8",
        ),
        (
            "an exit",
            "s += b[i];",
            "s += b[i]; if (i == 5) exit(0);",
            "failed",
            "",
        ),
        (
            "a fork",
            "s += b[i];",
            "s += b[i]; extern int fork(void); if (i == 5) s += fork();",
            "failed",
            "",
        ),
        (
            "100 GB",
            "s += b[i];",
            "s += b[i]; if (i == 5) { volatile char *p = malloc(100l << 30); for (long k = 0; k < 100l << 30; k += 4096) p[k] = 1; }",
            "failed",
            "",
        ),
        (
            "a file",
            "s += b[i];",
            "s += b[i]; if (i == 5) { FILE *f = fopen(\"written\", \"w\"); fputs(\"x\", f); fclose(f); }",
            "failed",
            "",
        ),
        (
            "no loop any more",
            "    for (int i = 1; i < n - 1; i++) {\n",
            "    { int i = 1;\n",
            "wrong",
            "differ",
        ),
        (
            "gone",
            "smooth(",
            "smoothed(",
            "failed",
            "the function smooth is not in the new source",
        ),
    ] {
        let (found, answer) = edited(at, from, to);
        assert_eq!(found, result, "{what}: {answer}");
        let reason = answer["reason"].as_str().expect("a reason");
        assert!(
            !reason.is_empty() && reason.contains(why),
            "{what}: {reason}"
        );
        assert!(!at.join("written").exists(), "{what}");
        // The other region has nothing of it, unless nothing compiles.
        let other = tested(at, "count").0;
        assert_eq!(other == "failed", what == "no C", "{what}: {other}");
    }
    // Two functions swapped by name: their arguments are not those that were captured.
    let swapped = PROGRAM
        .replace("smooth(", "x(")
        .replace("count(", "smooth(")
        .replace("x(", "count(");
    write(at, &[("src/k.c", &swapped)]);
    assert!(["failed", "wrong"].contains(&&*tested(at, "smooth").0));
    // Functions in another order are no change.
    let (head, rest) = PROGRAM
        .split_once("__attribute__((noinline)) double smooth")
        .expect("it");
    let (smooth, rest) = rest
        .split_once("__attribute__((noinline)) int count")
        .expect("it");
    let (count, main) = rest.split_once("int main").expect("it");
    let moved = format!(
        "{head}__attribute__((noinline)) int count{count}__attribute__((noinline)) double smooth{smooth}int main{main}"
    );
    write(at, &[("src/k.c", &moved)]);
    for region in ["smooth", "count"] {
        let (result, answer) = tested(at, region);
        assert!(["identical", "passed"].contains(&&*result), "{answer}");
    }
    // A header is a source.
    write(
        at,
        &[
            ("src/k.c", PROGRAM),
            ("include/weight.h", &HEADER.replace("0.25", "0.5")),
        ],
    );
    assert!(!["unchanged", "identical", "passed"].contains(&&*tested(at, "smooth").0));
    std::fs::remove_file(at.join("src/k.c")).expect("a file");
    let (result, answer) = tested(at, "smooth");
    assert_eq!(result, "failed", "{answer}");
}

#[test]
fn folders_that_do_not_fit_are_named() {
    let directory = repository();
    let at = directory.path();
    let empty = tempfile::tempdir().expect("a directory");
    refused(
        empty.path(),
        "guard",
        "there is no folder cere-guard here or above",
    );
    refused(empty.path(), "guard add x", "there is no store");
    refused(at, "guard no-such", "nothing is called no-such");
    assert_eq!(run(at, "guard --no-such").status.code(), Some(2));
    refused(at, "guard --junit no/such/file", "no file can be written");
    // Below the folder's parent, too.
    std::fs::create_dir(at.join("sub")).expect("a directory");
    assert_eq!(
        run(&at.join("sub"), "guard --no-times").status.code(),
        Some(0)
    );

    // A baseline of another processor and compiler is compared all the same.
    let file = at.join("cere-guard/regions/smooth@k.c.9/region.json");
    let record = std::fs::read_to_string(&file).expect("a record");
    let mut value: Value = serde_json::from_str(&record).expect("JSON");
    value["baseline"]["cpu"] = "a processor of a test".into();
    value["baseline"]["counts"]["loads"] = 1.into();
    std::fs::write(&file, value.to_string()).expect("a record");
    let (result, answer) = tested(at, "smooth");
    assert_eq!(result, "unchanged");
    has(
        &answer["notes"].to_string(),
        "taken on another processor (a processor of a test)",
    );
    has(
        &answer["notes"].to_string(),
        "the baseline itself has other loads",
    );

    // Exchanged codelets; a damaged one.
    let codelet = |region: &str| at.join(format!("cere-guard/regions/{region}/1.codelet"));
    let (one, other) = (codelet("smooth@k.c.9"), codelet("count@k.c.17"));
    let kept = std::fs::read(&one).expect("a codelet");
    std::fs::copy(&other, &one).expect("a copy");
    has(
        &tested(at, "smooth").1["reason"].to_string(),
        "holds a codelet of count@k.c:17",
    );
    std::fs::write(&one, &kept[..kept.len() / 2]).expect("a file");
    assert_eq!(tested(at, "smooth").0, "failed");
    assert_eq!(tested(at, "count").0, "unchanged");
    std::fs::write(&one, &kept).expect("a file");

    value["version"] = 7.into();
    std::fs::write(&file, value.to_string()).expect("a record");
    refused(at, "guard", "has version 7, this cere reads 1");
    std::fs::write(&file, &record).expect("a record");
    write(at, &[("cere-guard/guard.toml", "version = 9\n")]);
    refused(at, "guard", "has version 9, this cere reads 1");
    write(
        at,
        &[(
            "cere-guard/guard.toml",
            "version = 1\ntime = -1\ncounts = 1\n",
        )],
    );
    refused(at, "guard", "a limit is -1");
}

#[test]
fn large_regions_are_refused() {
    let directory = directory_with(&[("k.c", PROGRAM), ("weight.h", HEADER)]);
    let at = directory.path();
    instrument(at, "$CC -O2 k.c -o k");
    succeed(at, "profile -- ./k");
    succeed(at, "capture smooth* --invocation 50 -- ./k");
    refused(
        at,
        "guard add smooth* --max-size 0.001",
        "more than 0.0: capture an invocation with less memory",
    );
    assert!(!at.join("cere-guard/regions").exists());
    succeed(at, "guard add smooth*");
    // Once more, and the place of the header.
    succeed(at, "guard add smooth*");
    let list = text(&succeed(at, "guard list").stdout);
    assert_eq!(list.matches("smooth@k.c:9").count(), 1, "{list}");
    let all = parsed(&run(at, "guard --json --no-times"));
    assert_eq!(all[0]["file"], "k.c", "{all}");
}

#[test]
fn the_workflow_of_the_guide_is_one() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src/guard.md");
    let guide = std::fs::read_to_string(guide).expect("the page");
    let (_, rest) = guide.split_once("```yaml\n").expect("a workflow");
    let (workflow, _) = rest.split_once("```").expect("its end");
    let parsed = yaml_rust2::YamlLoader::load_from_str(workflow).expect("YAML");
    let steps = parsed[0]["jobs"]["guard"]["steps"].as_vec().expect("steps");
    let runs = steps.iter().filter_map(|step| step["run"].as_str());
    assert!(
        runs.into_iter().any(|line| line.starts_with("cere guard ")),
        "{workflow}"
    );
}
