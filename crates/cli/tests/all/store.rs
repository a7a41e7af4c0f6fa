//! What stays in a store: codelets of older builds, and what replays cache.

use crate::common::{
    directory_with, has, instrument, json, parsed, refused, run, succeed, text, write,
};
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
    instrument(at, line);
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
    let line = "capture fill --invocation 1,2 -- ./app";
    succeed(at, line);
    let (old, new) = ("fill@main.c:3", "fill@main.c:4");
    let names = listed(&json(at, "codelets --json"));
    assert_eq!(
        names,
        [(format!("{old}:1"), true), (format!("{old}:2"), true)]
    );

    build(at, &program("\n", "3"));
    let line = "capture fill --invocation 1 -- ./app";
    succeed(at, line);
    let names = listed(&json(at, "codelets --json"));
    let older = [(format!("{old}:1"), false), (format!("{old}:2"), false)];
    assert_eq!(names[..2], older);
    assert_eq!(names[2..], [(format!("{new}:1"), true)]);
    assert!(text(&succeed(at, "codelets").stdout).contains("older"));

    // A glob and a prefix take what is current, an exact name what it names.
    for what in ["fill@*", "fill"] {
        let output = succeed(at, &["replay", "--json", "--reps", "1", what]);
        let one = parsed(&output);
        assert_eq!(one["codelet"], format!("{new}:1"));
        let word = format!("left out 2 of an older build ({old}:1, ...)");
        has(&text(&output.stderr), &word);
    }
    let both = json(at, &["replay", "--json", "--reps", "1", old]);
    assert_eq!(both.as_array().map(Vec::len), Some(2));
    let exact = json(
        at,
        &["replay", "--json", "--reps", "1", &format!("{old}:2")],
    );
    assert_eq!(exact["verdict"], "exact");

    let left = listed(&json(at, "codelets --prune --json"));
    assert_eq!(left, [(format!("{new}:1"), true)]);
    let files = std::fs::read_dir(at.join(".cere/codelets")).expect("codelets");
    assert_eq!(files.count(), 1);
    // Its verdict is that of its last record.
    assert_eq!(json(at, "codelets --json")[0]["verdict"], "exact");
}

#[test]
fn a_changed_body_under_the_same_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    build(at, &program("", "3"));
    succeed(at, "capture fill --invocation 1 -- ./app");
    build(at, &program("", "7"));
    let names = listed(&json(at, "codelets --json"));
    assert_eq!(names, [("fill@main.c:3:1".to_owned(), false)]);
    succeed(at, "capture fill --invocation 1 -- ./app");
    let names = listed(&json(at, "codelets --json"));
    assert_eq!(names, [("fill@main.c:3:1".to_owned(), true)]);
}

/// The notes of the first codelet.
fn notes(at: &Path) -> String {
    json(at, "codelets --json")[0]["notes"].to_string()
}

#[test]
fn sources_that_changed_or_are_gone() {
    let directory = directory_with(&[("scale.h", "#define SCALE 3\n")]);
    let at = directory.path();
    let source = format!("#include \"scale.h\"\n{}", program("", "SCALE"));
    build(at, &source);
    succeed(at, "capture fill --invocation 1 -- ./app");
    assert_eq!(notes(at), "[]");
    // The time alone does not count.
    write(at, &[("scale.h", "#define SCALE 3\n")]);
    assert_eq!(notes(at), "[]");

    write(at, &[("scale.h", "#define SCALE 5\n")]);
    let word = "scale.h changed since the build";
    has(&notes(at), word);
    for command in [
        &["replay", "--json", "fill"][..],
        &["count", "--json", "--geometry", "none", "fill"],
        &["check", "--json", "--rounds", "0"],
        &["select", "--json", "--coverage", "1"],
        &["report", "--json"],
    ] {
        let output = succeed(at, command);
        let found = parsed(&output);
        let first = found.get(0).unwrap_or(&found);
        assert!(
            first["notes"].to_string().contains(word),
            "{command:?}: {found}"
        );
    }
    let shown = text(&succeed(at, "replay fill").stdout);
    has(&shown, word);

    build(at, &source);
    let word = "of an older build: scale.h changed since";
    has(&notes(at), word);
    let shown = text(&succeed(at, "replay fill").stdout);
    has(&shown, word);
    refused(at, "check", "another build than the last one");

    succeed(at, "capture fill --invocation 1 -- ./app");
    std::fs::remove_file(at.join("main.c")).expect("a source");
    has(&notes(at), "main.c is gone");
    let report = json(at, "report --json");
    assert!(
        report["notes"].to_string().contains("main.c is gone"),
        "{report}"
    );
    let page = std::fs::read_to_string(at.join("report.html")).expect("a page");
    assert!(page.contains("The source is gone since the build."));
}

/// A codelet whose own unit is the same holds another unit that was built again.
#[test]
fn a_callee_of_an_older_build() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let callee = |factor: u32| format!("int scale(int x) {{ return x * {factor}; }}\n");
    let main = "int scale(int);
static int table[5000];
__attribute__((noinline)) void fill(int n) { for (int i = 0; i < n; i++) table[i] += scale(i); }
int main(void) { for (int i = 0; i < 3; i++) fill(5000); return table[1] == 0; }
";
    let build = |factor| {
        write(at, &[("scale.c", &callee(factor)), ("main.c", main)]);
        let line = "$CC -O2 main.c scale.c -o app";
        instrument(at, line);
    };
    build(3);
    succeed(at, "capture fill --invocation 1 -- ./app");
    assert_eq!(notes(at), "[]");
    build(5);
    let listed = json(at, "codelets --json");
    assert_eq!(listed[0]["current"], true, "{listed}");
    assert!(
        notes(at).contains("older build: scale.c changed since"),
        "{listed}"
    );
}

#[test]
fn codelets_of_two_commands() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    build(
        at,
        "#include <stdio.h>
#include <stdlib.h>
static double a[60000];
__attribute__((noinline)) static void once(int n) { for (int i = 0; i < n; i++) for (int j = 0; j < 6000; j++) a[j] = a[j] * 0.5 + i; }
__attribute__((noinline)) static void many(void) { for (int j = 0; j < 60000; j++) a[j] += 1; }
int main(int c, char **v) { once(400 * atoi(v[1])); for (int r = 0; r < 40; r++) many(); printf(\"%g\\n\", a[3]); }
",
    );
    succeed(at, "capture once@* many@* --invocation 1 -- ./app 2");
    let output = succeed(at, "capture many@* --invocation 1 -- ./app 4");
    let said = text(&output.stderr);
    has(&said, "replaced 1 codelet of another command, `./app 2`");
    let listed = json(at, "codelets --json");
    let command = |i: usize| listed[i]["command"].to_string();
    assert_eq!(
        [command(0), command(1)],
        [r#"["./app","4"]"#, r#"["./app","2"]"#]
    );
    assert!(text(&succeed(at, "codelets").stdout).contains("./app 2"));

    let check = ["check", "--json", "--rounds", "1"];
    let checked = |name: &str| {
        let found = json(at, &check);
        let rows = found["regions"].as_array().expect("regions").clone();
        let row = rows
            .iter()
            .find(|r| r["name"].as_str().is_some_and(|n| n.starts_with(name)));
        (
            row.expect("a region")["reason"].to_string(),
            found["notes"].to_string(),
        )
    };
    let (reason, notes) = checked("once");
    has(&reason, "it has no codelet");
    has(&notes, "`./app 2`: once@main.c:");
    has(&notes, "`cere profile -- ./app 2`");
    // The profile decides.
    succeed(at, "profile -- ./app 2");
    let (reason, notes) = checked("many");
    has(&reason, "it has no codelet");
    has(&notes, "`./app 4`: many@main.c:");
    // What another command has is not there for this one.
    succeed(at, "capture --missing many@* --invocation 1 -- ./app 2");
    let listed = json(at, "codelets --json");
    assert_eq!(listed[0]["command"], serde_json::json!(["./app", "2"]));
    // Nothing of a third command.
    succeed(at, "profile -- ./app 1");
    refused(
        at,
        "check",
        "left out 2 codelets of another command, `./app 2`",
    );
}

#[test]
fn nothing_is_older_than_no_build() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    build(at, &program("", "5"));
    succeed(at, "capture fill --invocation 1 -- ./app");
    std::fs::remove_file(at.join("main.c")).expect("a source");
    // The profiled program is there still.
    assert_eq!(json(at, "codelets --json")[0]["current"], true);
    std::fs::remove_file(at.join(".cere/profile.json")).expect("a profile");
    refused(at, "codelets --prune", "records no build");
    let list = json(at, "codelets --json");
    assert!(list[0]["current"].is_null(), "{list}");
    assert!(run(at, "replay fill").status.success());
}
