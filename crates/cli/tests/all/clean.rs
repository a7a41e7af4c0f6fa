//! `cere clean`: what goes, what stays, and beside a command that works on the store.

use crate::common::{
    cere, has, instrumented, json, parsed, refused, succeed, terminal, text, write,
};
use crate::schemas::conforms;
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

const LINE: &str = "$CC -O2 main.c -o app";

fn program(factor: u32) -> String {
    format!(
        "#include <stdio.h>
static int t[50000];
__attribute__((noinline)) void fill(int n) {{ for (int i = 0; i < n; i++) t[i] += i * {factor}; }}
int main(void) {{ for (int i = 0; i < 9; i++) fill(50000); printf(\"%d\\n\", t[7]); return 0; }}
"
    )
}

/// Runs it with a user's cache of the test's own.
fn clean(at: &Path, options: &str) -> Output {
    let mut command = cere(at, &*format!("clean {options}"));
    let output = command.env("XDG_CACHE_HOME", at.join("user"));
    output.output().expect("cere runs")
}

fn cleaned(at: &Path, options: &str) -> Value {
    let output = clean(at, &format!("{options} --json"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value = parsed(&output);
    conforms("clean", &value);
    value
}

/// How many pieces of a kind.
fn pieces(value: &Value, kind: &str) -> usize {
    let all = value["pieces"].as_array().expect("pieces").iter();
    all.filter(|piece| piece["kind"] == kind).count()
}

fn count(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

/// A store with two builds, a codelet of each, replays in its cache and one piece in the user's.
fn store() -> tempfile::TempDir {
    let directory = instrumented(&program(3));
    let at = directory.path();
    succeed(at, "capture fill --invocation 1 -- ./app");
    write(at, &[("main.c", &program(7))]);
    succeed(at, &["instrument", "--", "sh", "-c", LINE]);
    succeed(at, "capture fill --invocation 2 -- ./app");
    succeed(at, "replay --reps 1 fill");
    write(
        at,
        &[
            ("user/cere/builds/old", "x"),
            ("user/cere/machines/m.json", "{}"),
            (".cere/tuned.toml", "version = 1\n"),
        ],
    );
    directory
}

#[test]
fn what_is_of_older_builds_goes_and_the_current_one_stays() {
    let directory = store();
    let at = directory.path();
    let own = at.join(".cere");
    assert_eq!(count(&own.join("codelets")), 2);
    let planned = cleaned(at, "--dry-run");
    assert_eq!(planned["removed"], false);
    assert_eq!(
        (pieces(&planned, "codelet"), pieces(&planned, "unit")),
        (1, 1),
        "{planned}"
    );
    assert!(pieces(&planned, "cache") >= 3, "{planned}");
    assert_eq!(count(&own.join("codelets")), 2, "removed all the same");
    let done = cleaned(at, "");
    assert_eq!(
        done["pieces"].as_array().map(Vec::len),
        planned["pieces"].as_array().map(Vec::len)
    );
    assert!(done["bytes"].as_u64() > Some(0) && !at.join("user/cere/builds/old").exists());
    for kept in [
        "user/cere/machines/m.json",
        ".cere/tuned.toml",
        ".cere/profile.json",
        ".cere/results.db",
    ] {
        assert!(at.join(kept).exists(), "{kept} is gone");
    }
    // Each file of the unit that is left: record and IR.
    assert!(count(&own.join("units")) >= 2 && count(&own.join("codelets")) == 1);
    let again = json(at, "replay --json --reps 1 fill");
    assert_eq!(again["verdict"], "exact", "{again}");
    succeed(at, "check --rounds 0");
}

#[test]
fn ages_and_sizes_bound_what_goes() {
    let directory = store();
    let at = directory.path();
    assert_eq!(cleaned(at, "--older-than 1h")["bytes"], 0);
    let old = File::open(at.join("user/cere/builds/old")).expect("a file");
    let past = SystemTime::now() - Duration::from_secs(9 * 86400);
    old.set_times(
        std::fs::FileTimes::new()
            .set_accessed(past)
            .set_modified(past),
    )
    .expect("a time");
    let aged = cleaned(at, "--older-than 7d");
    assert_eq!(aged["pieces"].as_array().map(Vec::len), Some(1), "{aged}");
    assert!(!at.join("user/cere/builds/old").exists());
    // Room for all: nothing goes. A little less: the caches suffice.
    assert_eq!(cleaned(at, "--to 10G")["bytes"], 0);
    let all = cleaned(at, "--dry-run");
    let now = all["left_bytes"].as_u64().expect("bytes") + all["bytes"].as_u64().expect("bytes");
    let some = cleaned(at, &format!("--to {}", now - 1));
    assert_eq!(
        (pieces(&some, "cache"), pieces(&some, "codelet")),
        (1, 0),
        "{some}"
    );
    let output = clean(at, "--to 1K");
    has(&text(&output.stderr), "the rest is of the current build");
    assert_eq!(count(&at.join(".cere/codelets")), 1);
    for wrong in ["--to 2X", "--older-than 7", "--all --to 1G"] {
        assert_eq!(clean(at, wrong).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn nothing_is_removed_beside_another_command() {
    let directory = store();
    let at = directory.path();
    let locked = |file: &str| {
        let file = File::options()
            .write(true)
            .open(at.join(file))
            .expect("a lock");
        file.try_lock().expect("locked");
        file
    };
    let lock = locked(".cere/lock");
    let output = clean(at, "");
    assert!(!output.status.success());
    has(&text(&output.stderr), "is in use by");
    drop(lock);
    // A replay holds the cache.
    let lock = locked(".cere/cache/lock");
    let output = clean(at, "");
    assert!(!output.status.success());
    has(&text(&output.stderr), "a replay uses");
    assert_eq!(count(&at.join(".cere/codelets")), 2);
    drop(lock);
}

#[test]
fn all_of_a_store_goes_only_when_asked_for() {
    let directory = store();
    let at = directory.path();
    refused(at, "clean --all", "`--yes` says yes");
    assert!(at.join(".cere/profile.json").exists());
    let mut command = terminal(at, "clean --all");
    command.env("XDG_CACHE_HOME", at.join("user"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script runs");
    let mut typed = child.stdin.take().expect("a pipe");
    typed.write_all(b"n\n").expect("typed");
    let output = child.wait_with_output().expect("script ends");
    drop(typed);
    has(
        &text(&output.stdout),
        "its results and choices included? [y/N]",
    );
    assert!(at.join(".cere/profile.json").exists());
    let gone = cleaned(at, "--all --yes");
    assert!(pieces(&gone, "current") > 3, "{gone}");
    assert!(!at.join(".cere/profile.json").exists() && !at.join(".cere/codelets").exists());
    // The store begins anew.
    succeed(at, &["instrument", "--", "sh", "-c", LINE]);
    succeed(at, "profile -- ./app");
}
