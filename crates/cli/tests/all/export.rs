//! `cere export`: the folder builds and runs without CERE, elsewhere.

use crate::common::{directory_with, has, instrument, json, refused, run, succeed, text};
use std::path::Path;
use std::process::{Command, Output};

/// A loop that leaves integers and doubles behind.
pub const SUMS: &str = r#"
#include <stdio.h>
static unsigned long seen[64]; double total;
__attribute__((noinline)) void sums(const double *a, int n) {
    for (int t = 0; t < 4; t++)
        for (int i = 1; i < n - 1; i++) {
            total += a[i - 1] * a[i + 1];
            seen[i & 63] += i * 3ul + 1;
        }
}
int main(void) {
    static double a[1000];
    for (int i = 0; i < 1000; i++) a[i] = i % 7;
    for (int r = 0; r < 20; r++) sums(a, 1000);
    printf("%g %lu\n", total, seen[3]);
}
"#;

/// The program with its loop captured.
pub fn captured() -> tempfile::TempDir {
    let directory = directory_with(&[("k.c", SUMS)]);
    let at = directory.path();
    instrument(at, "$CC -O2 -g k.c -o k");
    succeed(at, "profile -- ./k");
    succeed(at, "capture sums* --invocation 5 -- ./k");
    directory
}

/// `make` in a folder, without anything of the environment.
fn make(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("make")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .output()
        .expect("make runs")
}

fn replace(file: &Path, from: &str, to: &str) {
    let old = std::fs::read_to_string(file).expect("a text");
    assert!(old.contains(from), "no `{from}` in {}", file.display());
    std::fs::write(file, old.replace(from, to)).expect("a file");
}

#[test]
fn a_folder_runs_elsewhere_without_cere() {
    let directory = captured();
    let said = succeed(directory.path(), "export sums* out");
    has(&text(&said.stdout), "exact");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let folder = elsewhere.path().join("folder");
    let moved = Command::new("cp")
        .arg("-r")
        .args([&directory.path().join("out"), &folder])
        .status();
    assert!(moved.expect("cp runs").success());
    drop(directory);
    for arguments in [
        &["run"][..],
        &["run", "FLAGS=-O0"],
        &["run", "PASSES=default<O3>"],
        &["run", "MARKERS=sniper"],
        &["simulate", "FLAGS=-O3"],
    ] {
        let output = make(&folder, arguments);
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}{}", text(&output.stderr));
        has(&said, "verdict: exact");
        has(&said, "repetition 1: ");
    }
    // Sources as they were compiled, found under the folder.
    let copied = Command::new("find")
        .arg(folder.join("src"))
        .args(["-name", "k.c"])
        .output()
        .expect("find runs");
    assert_eq!(text(&copied.stdout).lines().count(), 1);
    // Other code is not exact, with the place.
    replace(&folder.join("unit0.ll"), "and i32 %i", "or i32 %i");
    let output = make(&folder, &["run"]);
    assert!(!output.status.success(), "{}", text(&output.stdout));
    let said = text(&output.stdout);
    assert!(said.contains("verdict: different") || text(&output.stderr).contains("replay:"));
}

#[test]
fn wrong_results_are_named() {
    let directory = captured();
    succeed(directory.path(), "export sums* out");
    let folder = directory.path().join("out");
    replace(&folder.join("unit0.ll"), ", 63", ", 31");
    let output = make(&folder, &["run"]);
    assert!(!output.status.success());
    let said = text(&output.stdout);
    has(&said, "verdict: different");
    has(&said, "  seen+");
}

/// Where `markers.o` has these bytes.
fn marked(folder: &Path, markers: &str, bytes: &[u8]) -> usize {
    let output = make(folder, &[&*format!("MARKERS={markers}")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let object = std::fs::read(folder.join("markers.o")).expect("an object");
    object.windows(bytes.len()).filter(|w| *w == bytes).count()
}

#[test]
fn markers_have_the_encodings_of_the_simulators() {
    let directory = captured();
    succeed(directory.path(), "export sums* out");
    let folder = directory.path().join("out");
    let begin = [0x0f, 0x04, 0x5a, 0x00];
    let end = [0x0f, 0x04, 0x5b, 0x00];
    assert_eq!(marked(&folder, "gem5", &begin), 1);
    assert_eq!(marked(&folder, "gem5", &end), 1);
    // mov $1, %eax; xchg %bx, %bx
    let start = [0xb8, 1, 0, 0, 0, 0x66, 0x87, 0xdb];
    assert_eq!(marked(&folder, "sniper", &start), 1);
    assert_eq!(marked(&folder, "none", &begin), 0);
    assert_eq!(marked(&folder, "none", &start[5..]), 0);
    let output = make(&folder, &["MARKERS=simics"]);
    has(&text(&output.stderr), "MARKERS is none, gem5 or sniper");
}

#[test]
fn a_debugger_stops_at_lines_and_watched_addresses() {
    if Command::new("gdb").arg("--version").output().is_err() {
        println!("skipped: no gdb");
        return;
    }
    let directory = captured();
    succeed(directory.path(), "export sums* out");
    let folder = directory.path().join("out");
    assert!(make(&folder, &[]).status.success());
    // The original is gone: the copy is shown.
    std::fs::remove_file(directory.path().join("k.c")).expect("a file");
    let commands =
        "break k.c:8\ncontinue\nlist 8,8\nwatch -l *(double *)(a + 1)\ndelete 1 2\nkill\n";
    std::fs::write(folder.join("more.txt"), commands).expect("a file");
    let output = Command::new("timeout")
        .args([
            "-k", "1", "60", "gdb", "-batch", "-x", "gdb.txt", "-x", "more.txt", "./replay",
        ])
        .current_dir(&folder)
        .output()
        .expect("gdb runs");
    let said = text(&output.stdout);
    has(&said, "seen[i & 63] += i * 3ul + 1;");
    has(&said, "Hardware watchpoint");
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let directory = captured();
    let at = directory.path();
    succeed(at, "capture sums* --invocation 7 -- ./k");
    refused(at, "export sums* out", "names 2 codelets");
    refused(at, "export nothing* out", "nothing");
    std::fs::create_dir(at.join("full")).expect("a directory");
    std::fs::write(at.join("full/a"), "").expect("a file");
    refused(at, "export sums*:5 full", "is not empty");
    assert!(!run(at, "export sums*:5 k.c").status.success());
    let said = json(at, "export sums*:5 out --json");
    assert_eq!(said["verdict"], "exact");
}
