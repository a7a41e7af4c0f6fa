//! The records that replays leave, and `cere results`.

use crate::common::{built_from, cere, has, json, refused, run, succeed, text};
use std::path::Path;

const PROGRAM: &str = "#include <stdio.h>
static int table[5000];
static __attribute__((noinline)) void fill(int n) { for (int i = 0; i < n; i++) table[i] += i * 3; }
__attribute__((noinline)) int sum(int n) { int s = 0; for (int i = 0; i < n; i++) s ^= table[i]; return s; }
int main(void) { int s = 0; for (int i = 0; i < 3; i++) { fill(5000); s += sum(5000); } printf(\"%d\\n\", s); return 0; }
";

fn captured() -> tempfile::TempDir {
    let directory = built_from(&[("main.c", PROGRAM)], "$CC -O2 main.c -o app");
    let at = directory.path();
    succeed(at, "capture fill sum --invocation 1,2 -- ./app");
    directory
}

fn records(at: &Path) -> Vec<serde_json::Value> {
    let all = json(at, "results --json");
    all.as_array().expect("an array").clone()
}

#[test]
fn every_replay_leaves_a_record() {
    let directory = captured();
    let at = directory.path();
    let output = succeed(at, "results");
    assert!(text(&output.stderr).contains("no records yet"));

    let names = [
        "fill@main.c:3:1",
        "fill@main.c:3:2",
        "sum@main.c:4:1",
        "sum@main.c:4:2",
    ];
    let running: Vec<_> = names
        .iter()
        .map(|name| {
            cere(at, &["replay", name, "--reps", "3", "--flags", "-O3  -g"])
                .spawn()
                .expect("it starts")
        })
        .collect();
    for mut child in running {
        assert!(child.wait().expect("it ends").success());
    }
    succeed(at, &["replay", names[0], "--reps", "5"]);
    let all = records(at);
    assert_eq!(all.len(), 5, "{all:?}");
    let last = &all[4];
    assert_eq!(last["codelet"], names[0]);
    assert_eq!(last["region"], "fill@main.c:3");
    assert_eq!(last["verdict"], "exact");
    assert_eq!(last["same_code"], true);
    assert_eq!(last["setting"]["flags"], serde_json::json!([]));
    assert!(
        last["times"]["seconds_median"]
            .as_f64()
            .is_some_and(|s| s > 0.0)
    );
    assert!(last["times"]["samples"].as_u64().is_some_and(|n| n > 0));
    let sum = std::process::Command::new("sha256sum")
        .arg(at.join(".cere/codelets/fill@main.c:3:1.codelet"))
        .output()
        .expect("sha256sum");
    assert!(text(&sum.stdout).starts_with(last["sha256"].as_str().expect("a checksum")));
    assert_eq!(all[0]["setting"]["flags"], serde_json::json!(["-O3", "-g"]));

    let shown = text(&succeed(at, "results fill").stdout);
    assert_eq!(shown.lines().count(), 4, "{shown}");
    let csv = text(&succeed(at, "results --csv sum@*").stdout);
    assert_eq!(csv.split("\r\n").count(), 4, "{csv}");
    has(&csv, ",-O3 -g,");
    refused(at, "results nothing", "nothing is called");

    // Flags that no compiler knows: the replay fails, and the record tells how.
    assert!(
        !run(at, &["replay", names[0], "--flags", "-mno-such-thing"])
            .status
            .success()
    );
    let all = records(at);
    assert_eq!(all.len(), 6);
    assert!(
        all[5]["times"].is_null()
            && all[5]["reason"]
                .as_str()
                .is_some_and(|r| r.contains("no-such-thing"))
    );

    // A file from elsewhere: into the store that is named, or into none.
    let elsewhere = tempfile::tempdir().expect("a directory");
    let file = elsewhere.path().join("sent.codelet");
    std::fs::copy(at.join(".cere/codelets/sum@main.c:4:2.codelet"), &file).expect("a copy");
    let store = at.join(".cere");
    let (file, store) = (file.to_str().expect("text"), store.to_str().expect("text"));
    succeed(
        elsewhere.path(),
        &["replay", file, "--reps", "1", "--store", store],
    );
    assert_eq!(records(at).len(), 7);
    succeed(elsewhere.path(), &["replay", file, "--reps", "1"]);
    assert_eq!(records(at).len(), 7);
    assert!(!elsewhere.path().join(".cere").exists());
    refused(elsewhere.path(), "results", "there is no store");
}

#[test]
fn a_record_that_cannot_be_kept_costs_no_result() {
    let directory = captured();
    let at = directory.path();
    let path = at.join(".cere/results.db");
    let warned = |part: &str| {
        let output = succeed(at, "replay sum@main.c:4:1 --reps 1");
        assert!(text(&output.stdout).contains("exact"));
        let message = text(&output.stderr);
        let expected = "]: no record is kept of the replay of sum@main.c:4:1";
        assert!(
            message.contains(expected) && message.contains(part),
            "{message}"
        );
        has(&message, path.to_str().expect("text"));
    };
    std::fs::create_dir(&path).expect("a directory in its place");
    warned("give a writable store");
    std::fs::remove_dir(&path).expect("gone again");
    std::fs::write(
        &path,
        "no database at all, but long enough to be one".repeat(40),
    )
    .expect("a file");
    warned("move it away");
    refused(at, "results", "damaged: move it away");
}
