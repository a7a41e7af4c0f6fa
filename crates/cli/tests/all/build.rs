//! `cere instrument` on builds of all kinds, and `cere regions` on what they leave.

use crate::common::{
    built, cere, directory_with, has, instrument, json, make_executable, refused, run, succeed,
    text,
};
use std::path::Path;
use std::process::Command;

const MAIN: &str = "int part(int n);\nint main(void) { int s = 0; for (int i = 0; i < 3; i++) s += part(i); return s; }\n";
const PART: &str =
    "int part(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * i; return s; }\n";

/// Names of the outlined regions.
fn regions(directory: &Path) -> Vec<String> {
    let list = json(directory, "regions --json");
    let mut names: Vec<String> = list
        .as_array()
        .expect("an array")
        .iter()
        .filter(|r| r["outlined"] == true)
        .map(|r| r["name"].as_str().expect("a name").to_owned())
        .collect();
    names.sort();
    names
}

fn have(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    assert!(
        found || std::env::var_os("CI").is_none() || tool != "make",
        "{tool} is missing"
    );
    if !found {
        eprintln!("skipped: {tool} is not installed");
    }
    found
}

#[test]
fn parallel_make_with_an_archive() {
    let makefile = "prog: main.o libpart.a\n\t$(CC) -o $@ main.o -L. -lpart\nlibpart.a: sub/part.o\n\tar rcs $@ $<\n%.o: %.c\n\t$(CC) -O2 -c -o $@ $<\n";
    let files = [
        ("Makefile", makefile),
        ("main.c", MAIN),
        ("sub/part.c", PART),
    ];
    let directory = directory_with(&files);
    let at = directory.path();
    let report = json(at, "instrument --json -- make -j2");
    assert_eq!(report["compiled"], 2);
    assert_eq!(report["units"], 2);
    assert_eq!(regions(at), ["main@main.c:2", "part@part.c:1"]);
    let status = Command::new(at.join("prog")).status().expect("it runs");
    assert_eq!(status.code(), Some(1));
    let links = std::fs::read_dir(at.join(".cere/links")).expect("links");
    assert_eq!(links.count(), 1);
    // Nothing is left to do, and what was done counts.
    let again = succeed(at, "instrument -- make");
    assert!(text(&again.stderr).contains("everything is up to date"));
    assert_eq!(regions(at).len(), 2);
    let other = "instrument --store other -- make";
    refused(at, other, "make clean");
}

#[test]
fn cmake_with_ninja() {
    if !have("cmake") || !have("ninja") {
        return;
    }
    let lists = "cmake_minimum_required(VERSION 3.16)\nproject(p C CXX)\nadd_library(part SHARED part.c)\nadd_executable(prog main.c)\ntarget_link_libraries(prog part)\n";
    let files = [
        ("CMakeLists.txt", lists),
        ("main.c", MAIN),
        ("part.c", PART),
    ];
    let directory = directory_with(&files);
    let at = directory.path();
    succeed(at, "instrument -- cmake -G Ninja -B build");
    succeed(at, "instrument -- cmake --build build");
    assert_eq!(regions(at), ["main@main.c:2", "part@part.c:1"]);
    let status = Command::new(at.join("build/prog"))
        .status()
        .expect("it runs");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn the_builds_output_and_status_are_its_own() {
    let directory = directory_with(&[]);
    let at = directory.path();
    let failing = "instrument -- sh -c 'echo out; exit 7'";
    let output = run(at, failing);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(text(&output.stdout), "out\n");
    refused(at, "instrument -- no-such-tool", "no-such-tool");
    refused(at, "instrument --timeout 0.2 -- sleep 60", "--timeout");
}

#[test]
fn a_unit_that_cannot_be_instrumented() {
    let directory = directory_with(&[("part.c", PART), (".cere/units", "in the way")]);
    let at = directory.path();
    let build = ["sh", "-c", "cc -c part.c"];
    let report = json(at, &[&["instrument", "--json", "--"], &build[..]].concat());
    assert_eq!(report["failures"][0]["source"], "part.c");
    assert!(at.join("part.o").is_file());

    let output = run(at, &[&["instrument", "--"], &build[..]].concat());
    let message = text(&output.stderr);
    has(&message, "part.c is compiled without regions");
    assert!(
        message.contains("no unit could be instrumented") && !output.status.success(),
        "{message}"
    );
}

/// A compiler that asks for another try without the first loop.
#[test]
fn a_loop_that_breaks_the_compile_is_refused_with_the_reason() {
    let script = "#!/bin/sh\nif [ -n \"$CERE_COMMAND\" ] && ! grep -q '\"index\":0' \"$CERE_COMMAND\"; then\n  echo 'CERE-RETRY-SKIP 0 the verifier says no' >&2\n  exit 77\nfi\nexec $REAL \"$@\"\n";
    let directory = directory_with(&[("part.c", PART), ("fake/clang-22", script)]);
    let at = directory.path();
    let fake = at.join("fake/clang-22");
    make_executable(&fake);
    let path = std::env::var("PATH").expect("PATH");
    let real = std::env::split_paths(&path)
        .map(|d| d.join("clang-22"))
        .find(|p| p.is_file())
        .expect("clang-22");
    let output = cere(at, "instrument -- sh -c 'cc -O2 -c part.c'")
        .env("PATH", format!("{}/fake:{path}", at.display()))
        .env("REAL", real)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let list = json(at, "regions --json");
    assert_eq!(list[0]["outlined"], false);
    assert_eq!(list[0]["reason"], "the verifier says no");
}

#[test]
fn stripping_links_keep_their_symbols() {
    let directory = directory_with(&[("main.c", MAIN), ("part.c", PART)]);
    let at = directory.path();
    let line = "gcc -O2 -s -Wl,-s -Wl,-x -flto -fipa-cp main.c part.c -o prog";
    let output = instrument(at, line);
    assert!(text(&output.stderr).contains("-flto is dropped"));
    assert!(text(&output.stderr).contains("-fipa-cp is dropped"));
    let image = std::fs::read(at.join("prog")).expect("the image");
    assert!(image.windows(10).any(|w| w == b"cere.unit."));
}

#[test]
fn names_of_regions() {
    let two = "int a(int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; for (int i = 0; i < n; i++) s ^= p[i]; return s; }\n";
    let files = [("x/same.c", two), ("y/same.c", two)];
    let directory = directory_with(&files);
    let at = directory.path();
    let line = "cc -O1 -c x/same.c -o x.o; cc -O1 -c y/same.c -o y.o";
    instrument(at, line);
    assert_eq!(
        regions(at),
        [
            "a@x/same.c:1",
            "a@x/same.c:1#2",
            "a@y/same.c:1",
            "a@y/same.c:1#2"
        ]
    );
    let picked = json(at, "regions --json a@x/same.c:1");
    assert_eq!(picked.as_array().expect("an array").len(), 1);
    assert_eq!(picked[0]["line"], 1);
    let live_ins = picked[0]["live_ins"].as_array().expect("an array");
    assert!(
        live_ins
            .iter()
            .any(|l| l["type"] == "ptr" && l["name"] == "p")
    );
    refused(at, "regions a@x", "begins 2 names");
    refused(at, "regions b@x/same.c:1", "near: a@x/same.c:1");
}

#[test]
fn long_names_are_cut_to_globs_in_tables_alone() {
    let source = "template <class A, class B> struct PairOfLongNames {};
template <class T> struct Accumulator { template <class U> __attribute__((noinline)) static long run(const int *p, int n) { long s = 0; for (int i = 0; i < n; i++) s += p[i] * sizeof(T); return s; } };
using First = PairOfLongNames<PairOfLongNames<int, unsigned long>, PairOfLongNames<unsigned long, long double>>;
using Second = PairOfLongNames<PairOfLongNames<int, unsigned long>, PairOfLongNames<unsigned long, double>>;
long both(const int *p, int n) { return Accumulator<First>::run<Second>(p, n) + Accumulator<Second>::run<First>(p, n); }
";
    let directory = directory_with(&[("long.cpp", source)]);
    let at = directory.path();
    instrument(at, "$CXX -O1 -c long.cpp");
    let names = regions(at);
    assert!(names.len() == 2 && names.iter().all(|n| n.len() > 150));
    let table = cere(at, "regions").env("COLUMNS", "80").output();
    let table = text(&table.expect("cere").stdout);
    for line in table.lines().skip(1) {
        let shown = line.split("  ").next().expect("a name");
        assert!(shown.len() <= 80, "{line}");
        assert!(shown.ends_with("@long.cpp:2"), "{line}");
        let picked = json(at, &["regions", "--json", shown]);
        assert_eq!(picked.as_array().map(Vec::len), Some(1), "{shown}");
    }
}

#[test]
fn stores_that_cannot_be() {
    let directory = directory_with(&[("file", "")]);
    let at = directory.path();
    for store in ["/proc/store", "file/store"] {
        refused(at, &["instrument", "--store", store, "--", "true"], store);
    }
    refused(at, "regions", "cere instrument");
    refused(at, "codelets", "cere instrument");
}

#[test]
fn an_installed_command_finds_its_parts() {
    let directory = directory_with(&[("part.c", PART)]);
    let at = directory.path();
    let built = built();
    let output = Command::new("make")
        .args([
            "-s",
            "-C",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../.."),
            "install",
        ])
        .arg("PREFIX=/usr")
        .arg(format!("DESTDIR={}/root", at.display()))
        .arg(format!(
            "BUILT={}",
            built.parent().expect("a parent").display()
        ))
        .output()
        .expect("make runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = Command::new(at.join("root/usr/bin/cere"))
        .args(["instrument", "--", "sh", "-c", "$CC -O2 -c part.c"])
        .current_dir(at)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(regions(at), ["part@part.c:1"]);
}
