//! Regions within regions, captured by one command: by runs of their own, so that each finds the program's allocator.

use crate::common::{cere, has, instrumented, json, parsed, run, succeed, text, write};
use cere_format::capture::{PAGE_ABSENT, PAGE_FOREIGN, PAGE_STACK};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

/// `fill` runs inside `step` inside `around`, on fresh blocks each time, and outside of them as well.
const BLOCKS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { BLOCKS = 6, WORDS = 64 * 1024 };
static double *blocks[BLOCKS];
static double total;
static __attribute__((noinline)) void fill(double x) {
    for (int b = 0; b < BLOCKS; b++)
        for (int i = 0; i < WORDS; i++) blocks[b][i] = x + i;
}
static __attribute__((noinline)) void once(double x) {
    for (int b = 0; b < BLOCKS; b++) if (!(blocks[b] = malloc(WORDS * sizeof(double)))) abort();
    fill(x);
    for (int b = 0; b < BLOCKS; b++) { total += blocks[b][7]; free(blocks[b]); }
}
static __attribute__((noinline)) void step(int n) {
    for (int i = 0; i < n; i++) once(i);
}
static __attribute__((noinline)) void around(int n) {
    for (int i = 0; i < n; i++) step(3);
}
int main(int argc, char **argv) {
    int n = 2, times = 0;
    if (argc > 2 && scanf("%d", &n) != 1) return 9;
    if (argc > 1) {
        FILE *log = fopen(argv[1], "a+");
        while (log && fgetc(log) != EOF) times++;
        if (!log || fputc('x', log) == EOF || fclose(log)) return 8;
    }
    once(1);
    around(n);
    once(times < 2);
    printf("%g\n", total);
    return 0;
}
"#;

const LINE: [&str; 7] = [
    "capture",
    "around*",
    "step*",
    "fill*",
    "--invocation",
    "1,2",
    "--json",
];

/// The flags of the codelets' pages, those of the stack and of the thread control block apart, and how many have them.
fn tables(report: &Value) -> BTreeMap<String, BTreeMap<u32, usize>> {
    let codelets = report["codelets"].as_array().expect("codelets");
    let table = |codelet: &Value| {
        let string = |key: &str| codelet[key].as_str().expect("a string").to_owned();
        let package = cere_package::io::read_package(Path::new(&string("file")), 1 << 30);
        let mut table = BTreeMap::new();
        for page in package.expect("a package").pages {
            if page.flags & (PAGE_STACK | PAGE_FOREIGN) == 0 {
                *table.entry(page.flags).or_default() += 1;
            }
        }
        (string("name"), table)
    };
    codelets.iter().map(table).collect()
}

#[test]
fn together_as_alone() {
    let directory = instrumented(BLOCKS);
    let at = directory.path();
    let line = |list: &[&'static str]| [list, &["--", "./app"][..]].concat();
    let output = succeed(at, &line(&LINE));
    // `around` ran once; `step` and `fill` run inside it.
    assert!(text(&output.stderr).contains("run 3, without output"));
    assert!(!text(&output.stderr).contains("run 4"));
    assert_eq!(text(&output.stderr).matches("cere: skipped").count(), 1);
    let together = tables(&parsed(&output));
    assert_eq!(together.len(), 5, "{together:?}");
    for region in ["around", "step", "fill"] {
        for invocation in ["1", "2"] {
            let alone = ["capture", region, "--json", "--invocation", invocation];
            let alone = tables(&json(at, &line(&alone)));
            for (name, table) in alone {
                assert_eq!(together[&name], table, "{name}");
                // What `fill` writes the kernel has yet to give each time.
                let absent = table.iter().filter(|(flags, _)| *flags & PAGE_ABSENT != 0);
                let absent: usize = absent.map(|(_, count)| count).sum();
                assert_eq!(absent > 700, region == "fill", "{name}: {absent}");
            }
        }
    }
    let replays = json(at, "replay --json --reps 2 *");
    let verdicts = replays.as_array().expect("replays").iter();
    assert!(verdicts.clone().all(|r| r["verdict"] == "exact"));
}

#[test]
fn every_run_reads_the_same() {
    let directory = instrumented(BLOCKS);
    let at = directory.path();
    write(at, &[("number", "2\n")]);
    let mut cat = std::process::Command::new("cat")
        .arg(at.join("number"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat runs");
    let pipe = cat.stdout.take().expect("a pipe");
    let line = [&LINE[..], &["--", "./app", "log", "read"]].concat();
    let piped = cere(at, &line).stdin(pipe).output().expect("cere runs");
    cat.wait().expect("cat ends");
    std::fs::remove_file(at.join("log")).expect("a file");
    let file = File::open(at.join("number")).expect("a file");
    let file = cere(at, &line).stdin(file).output().expect("cere runs");
    for output in [piped, file] {
        let report = parsed(&output);
        assert_eq!(tables(&report).len(), 5, "{}", text(&output.stderr));
    }
}

#[test]
fn a_program_that_does_something_else_each_time() {
    let source = BLOCKS.replace("around(n);", "if (times == 0) around(n);");
    let directory = instrumented(&source);
    let at = directory.path();
    let line = "capture around fill --invocation 1,4 -- ./app log";
    let output = run(at, line);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    has(
        &message,
        "it runs inside invocation 1 of around@main.c:20, which the same run captured, and the next run did not \
             reach invocation 4: capture it alone, with --invocation 4",
    );
    // Nothing that is wrong with it: the next time it may work.
    let known = std::fs::read_to_string(at.join(".cere/captures.json")).expect("a file");
    assert!(!known.contains("fill"), "{known}");
}

/// `work` runs on a block of `take`, the first time only.
const KEPT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { BLOCKS = 50, WORDS = 100 };
static double *blocks[BLOCKS];
static __attribute__((noinline)) void take(void) {
    for (int b = 0; b < BLOCKS; b++)
        if (!(blocks[b] = malloc(WORDS * sizeof(double)))) abort();
}
static __attribute__((noinline)) void work(double x) {
    for (int b = 0; b < BLOCKS; b++)
        for (int i = 0; i < WORDS; i++) blocks[b][i] = x + i;
}
int main(int argc, char **argv) {
    int times = 0;
    FILE *log = fopen(argv[1], "a+");
    while (log && fgetc(log) != EOF) times++;
    if (!log || fputc('x', log) == EOF || fclose(log)) return 8;
    take();
    if (times == 0) work(argc);
    return 0;
}
"#;

#[test]
fn blocks_that_stay_in_use() {
    let directory = instrumented(KEPT);
    let at = directory.path();
    let words = [
        "capture",
        "take",
        "work",
        "--invocation",
        "1",
        "--",
        "./app",
    ];
    let output = run(at, &[&words[..], &["log"]].concat());
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    has(
        &message,
        "blocks in use lie elsewhere than without invocation 1 of take@main.c:7, which the same run captured, and the \
             next run did not reach invocation 1: capture it alone, with --invocation 1",
    );
    // A file that does not change its length: each run is the first.
    let output = succeed(at, &[&words[..], &["/dev/null"]].concat());
    let message = text(&output.stderr);
    let reason = "run 2, without output, for invocations that captures of run 1 disturb: 1 beside blocks that one allocated";
    assert!(
        message.contains(reason) && !message.contains("run 3, without output, for inv"),
        "{message}"
    );
}
