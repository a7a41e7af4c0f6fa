//! Beginning: `cere` alone, and a study that finds its build.

use crate::common::{
    directory_with, has, instrument, refused, run, succeed, terminal, text, write,
};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const PROGRAM: &str = "#include <stdio.h>
static double a[20000];
static __attribute__((noinline)) void step(int k) { for (int i = 1; i < 20000; i++) a[i] = a[i - 1] * 0.5 + a[i] * 0.25 + k; }
int main(void) { for (int k = 0; k < 300; k++) step(k); printf(\"%f\\n\", a[7]); return 0; }
";
const MAKEFILE: &str = "CFLAGS = -O2 -g\nall: waves\nwaves: waves.o\n\t$(CC) $(CFLAGS) $^ -o $@\n";

fn folder() -> tempfile::TempDir {
    directory_with(&[("waves.c", PROGRAM), ("Makefile", MAKEFILE)])
}

/// What `cere` alone says; its status is that of a command line without a command.
fn alone(at: &Path) -> String {
    let output = run(at, &[""; 0]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    text(&output.stderr)
}

#[test]
fn the_command_to_type_follows_from_the_folder_and_the_store() {
    let directory = tempfile::tempdir().expect("a directory");
    has(&alone(directory.path()), "Usage: cere");
    assert!(!directory.path().join(".cere").exists());
    let directory = folder();
    let at = directory.path();
    has(
        &alone(at),
        "\n    cere study --build make -- ./waves ARGUMENTS\n",
    );
    instrument(at, "make");
    has(&alone(at), "\n    cere profile -- ./waves ARGUMENTS\n");
    succeed(at, "profile -- ./waves");
    has(&alone(at), "\n    cere capture -- ./waves\n");
    succeed(at, "capture --invocation 5 step@* -- ./waves");
    has(&alone(at), "\n    cere check\n");
    succeed(at, "replay --reps 1 step@*");
    has(&alone(at), "\n    cere report\n");
}

#[test]
fn a_study_finds_the_build_and_asks() {
    let directory = folder();
    let at = directory.path();
    let made = std::process::Command::new("make").current_dir(at).status();
    assert!(made.expect("make runs").success());
    // No terminal: what would be run, and nothing is run.
    refused(
        at,
        "study -- ./waves",
        "There is no terminal to ask at: `--yes` says yes",
    );
    let output = run(at, "study -- ./waves");
    has(&text(&output.stderr), "./waves is built by `make -B`: ");
    assert!(!at.join(".cere").exists());
    for (answer, starts) in [("n\n", false), ("y\n", true)] {
        let mut command = terminal(at, "study --quick -- ./waves");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().expect("script runs");
        let mut typed = child.stdin.take().expect("a pipe");
        typed.write_all(answer.as_bytes()).expect("typed");
        let shown = text(&child.wait_with_output().expect("script ends").stdout);
        has(&shown, "cere: run it under CERE? [y/N]");
        assert_eq!(at.join("report.html").exists(), starts, "{shown}");
    }
    // What was built under CERE before is said, not asked.
    let output = succeed(at, "study --quick -- ./waves");
    has(&text(&output.stderr), "`make -B`: the last build in ");
}

#[test]
fn debug_information_leads_to_the_build() {
    let directory = folder();
    let at = directory.path();
    let made = std::process::Command::new("make").current_dir(at).status();
    assert!(made.expect("make runs").success());
    let elsewhere = tempfile::tempdir().expect("a directory");
    let copy = elsewhere.path().join("waves");
    std::fs::copy(at.join("waves"), &copy).expect("a copy");
    let output = run(elsewhere.path(), "study -- ./waves");
    let said = text(&output.stderr);
    has(&said, "was compiled in ");
    has(&said, "make -B");
    // Without it, what is needed.
    let stripped = std::process::Command::new("strip").arg(&copy).status();
    assert!(stripped.expect("strip runs").success());
    refused(elsewhere.path(), "study -- ./waves", "say it with --build");
    refused(
        elsewhere.path(),
        "study -- ./none",
        "the program is not there yet",
    );
    write(elsewhere.path(), &[("none.c", PROGRAM)]);
    let output = run(elsewhere.path(), "study -- ./none");
    has(&text(&output.stderr), "`cc -O2 -g none.c -o none -lm`");
}
