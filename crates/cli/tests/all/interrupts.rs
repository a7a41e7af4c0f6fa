//! Commands that are stopped half way: nothing of them runs on, and the same command goes on with the store.

use crate::common::{cere, directory_with, has, instrument, json, succeed, text};
use cere_format::store::Store;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Runs for some 20 s with the argument 0, else for a moment; a file shows that it runs.
const PROGRAM: &str = "#include <stdio.h>
#include <time.h>
static double a[20000];
static __attribute__((noinline)) void step(int k) { for (int i = 1; i < 20000; i++) a[i] = a[i - 1] * 0.5 + a[i] * 0.25 + k; }
int main(void) { FILE *slow = fopen(\"slow\", \"r\");
  for (int k = 0; k < 300; k++) step(k);
  if (slow) { fclose(fopen(\"runs\", \"w\")); time_t end = time(0) + 20; while (time(0) < end) step(1); }
  printf(\"%f\\n\", a[7]); return 0; }
";

fn folder() -> tempfile::TempDir {
    directory_with(&[("main.c", PROGRAM), ("slow", "")])
}

/// Waits for `there`, which takes no longer than a minute.
fn until(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < Duration::from_secs(60), "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(child: &Child, signal: rustix::process::Signal) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, signal).expect("sent");
}

/// Starts the command, waits until its program runs, and ends it by `signal`. What it said.
fn stopped(at: &Path, line: &str, signal: rustix::process::Signal) -> String {
    let _ = std::fs::remove_file(at.join("runs"));
    let mut command = cere(at, line);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(at.join("said")).expect("a file"))
        .spawn()
        .expect("cere starts");
    until("program that runs", || at.join("runs").exists());
    send(&child, signal);
    let status = child.wait().expect("cere ends");
    assert!(!status.success(), "{line}");
    // What it started is gone as well.
    until("free lock", || {
        cere_store::state::lock(&Store::new(at.join(".cere"))).is_ok()
    });
    text(&std::fs::read(at.join("said")).expect("what it said"))
}

#[test]
fn a_capture_that_is_stopped_while_it_profiles_keeps_no_profile() {
    use rustix::process::Signal;
    let directory = folder();
    let at = directory.path();
    instrument(at, "$CC -O2 main.c -o app");
    for signal in [Signal::INT, Signal::TERM] {
        let said = stopped(at, "capture -- ./app", signal);
        has(&said, "no profile is kept of this run");
        assert!(!at.join(".cere/profile.json").exists(), "{said}");
    }
    stopped(at, "capture -- ./app", Signal::KILL);
    assert!(!at.join(".cere/profile.json").exists());
    std::fs::remove_file(at.join("slow")).expect("quick from now on");
    succeed(at, "capture -- ./app");
    assert!(
        json(at, "codelets --json")
            .as_array()
            .is_some_and(|all| !all.is_empty())
    );
    let left = std::fs::read_dir(at.join(".cere/runs")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "scratch of the killed run");
}

#[test]
fn a_study_that_is_killed_takes_its_step_with_it() {
    use rustix::process::Signal;
    let directory = folder();
    let at = directory.path();
    let line = "study --quick --build '$CC -O2 main.c -o app' -- ./app";
    for signal in [Signal::KILL, Signal::TERM] {
        stopped(at, line, signal);
    }
    std::fs::remove_file(at.join("slow")).expect("quick from now on");
    succeed(at, line);
    assert!(at.join("report.html").exists());
}
