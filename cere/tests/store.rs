//! What stays in a store: codelets of older builds, and what replays cache.

mod common;

use common::{json, refused, run, succeed, text, write};
use std::path::Path;

/// Two loops; `before` comes ahead of them, `factor` into the first.
fn program(before: &str, factor: &str) -> String {
    format!(
        "{before}#include <stdio.h>
static int table[5000];
static __attribute__((noinline)) void fill(int n) {{ for (int i = 0; i < n; i++) table[i] += i * {factor}; }}
__attribute__((noinline)) int sum(int n) {{ int s = 0; for (int i = 0; i < n; i++) s ^= table[i]; return s; }}
int main(void) {{ int s = 0; for (int i = 0; i < 3; i++) {{ fill(5000); s += sum(5000); }} printf(\"%d\\n\", s); return 0; }}
"
    )
}

fn build(at: &Path, source: &str) {
    write(at, &[("main.c", source)]);
    let line = "$CC -O2 main.c -o app";
    succeed(at, &["instrument", "--", "sh", "-c", line]);
}

/// Names in `list`, with whether they are current.
fn listed(list: &serde_json::Value) -> Vec<(String, bool)> {
    let list = list.as_array().expect("an array");
    let entry = |c: &serde_json::Value| {
        let name = c["name"].as_str().expect("a name").to_owned();
        (name, c["current"].as_bool().expect("current"))
    };
    list.iter().map(entry).collect()
}

#[test]
fn codelets_of_an_older_build() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    build(at, &program("", "3"));
    let line = ["capture", "fill", "--invocation", "1,2", "--", "./app"];
    succeed(at, &line);
    let (old, new) = ("fill@main.c:3", "fill@main.c:4");
    let names = listed(&json(at, &["codelets", "--json"]));
    assert_eq!(
        names,
        [(format!("{old}:1"), true), (format!("{old}:2"), true)]
    );

    build(at, &program("\n", "3"));
    let line = ["capture", "fill", "--invocation", "1", "--", "./app"];
    succeed(at, &line);
    let names = listed(&json(at, &["codelets", "--json"]));
    let older = [(format!("{old}:1"), false), (format!("{old}:2"), false)];
    assert_eq!(names[..2], older);
    assert_eq!(names[2..], [(format!("{new}:1"), true)]);
    assert!(text(&succeed(at, &["codelets"]).stdout).contains("older"));

    // A glob and a prefix take what is current, an exact name what it names.
    for what in ["fill@*", "fill"] {
        let output = succeed(at, &["replay", "--json", "--reps", "1", what]);
        let one: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(one["codelet"], format!("{new}:1"));
        let word = format!("left out 2 of an older build ({old}:1, ...)");
        assert!(
            text(&output.stderr).contains(&word),
            "{}",
            text(&output.stderr)
        );
    }
    let both = json(at, &["replay", "--json", "--reps", "1", old]);
    assert_eq!(both.as_array().map(Vec::len), Some(2));
    let exact = json(
        at,
        &["replay", "--json", "--reps", "1", &format!("{old}:2")],
    );
    assert_eq!(exact["verdict"], "exact");

    let left = listed(&json(at, &["codelets", "--prune", "--json"]));
    assert_eq!(left, [(format!("{new}:1"), true)]);
    let files = std::fs::read_dir(at.join(".cere/codelets")).expect("codelets");
    assert_eq!(files.count(), 1);
    // Its verdict is that of its last record.
    assert_eq!(json(at, &["codelets", "--json"])[0]["verdict"], "exact");
}

#[test]
fn a_changed_body_under_the_same_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    build(at, &program("", "3"));
    succeed(at, &["capture", "fill", "--invocation", "1", "--", "./app"]);
    build(at, &program("", "7"));
    let names = listed(&json(at, &["codelets", "--json"]));
    assert_eq!(names, [("fill@main.c:3:1".to_owned(), false)]);
    succeed(at, &["capture", "fill", "--invocation", "1", "--", "./app"]);
    let names = listed(&json(at, &["codelets", "--json"]));
    assert_eq!(names, [("fill@main.c:3:1".to_owned(), true)]);
}

#[test]
fn nothing_is_older_than_no_build() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    build(at, &program("", "5"));
    succeed(at, &["capture", "fill", "--invocation", "1", "--", "./app"]);
    std::fs::remove_file(at.join("main.c")).expect("a source");
    refused(at, &["codelets", "--prune"], "records no build");
    let list = json(at, &["codelets", "--json"]);
    assert!(list[0]["current"].is_null(), "{list}");
    assert!(run(at, &["replay", "fill"]).status.success());
}
