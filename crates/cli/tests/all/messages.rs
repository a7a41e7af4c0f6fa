//! What is said on stderr, and how: `--quiet`, `--verbose`, NO_COLOR.

use crate::common::{cere, has, instrumented, json, refused, run, succeed, terminal, text};

const PROGRAM: &str = r#"
#include <stdio.h>
static double cells[20000];
int main(void) {
    for (int s = 0; s < 200; s++) for (int i = 1; i < 19999; i++) cells[i] = cells[i] * 0.5 + i;
    printf("%g\n", cells[7]);
    return 0;
}
"#;

/// What `cere` writes to stderr.
fn said(at: &std::path::Path, arguments: &[&str]) -> String {
    text(&succeed(at, arguments).stderr)
}

#[test]
fn quiet_leaves_out_notes_and_verbose_adds_steps() {
    let directory = instrumented(PROGRAM);
    let at = directory.path();
    let capture = ["capture", "main@*", "--invocation", "1", "--", "./app"];
    let usual = said(at, &capture);
    has(&usual, "cere: running once more");
    assert!(!usual.contains("cere: runs "), "{usual}");
    // Before the subcommand and after it.
    for quiet in [&["-q"][..], &["--quiet"]] {
        assert_eq!(said(at, &[quiet, &capture].concat()), "");
        assert_eq!(said(at, &[&["capture"], quiet, &capture[1..]].concat()), "");
    }
    let steps = said(at, &["replay", "-v", "main@*"]);
    has(&steps, "cere: runs ");
    assert!(steps.contains("-22"), "a compiler: {steps}");
    let again = said(at, &["replay", "-v", "main@*"]);
    has(&again, "from the cache");
    let runs = said(at, &["-v", "profile", "--", "./app"]);
    has(&runs, "cere: ./app ended after ");
}

#[test]
fn quiet_keeps_errors_and_goes_without_verbose() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = run(directory.path(), "-q regions");
    has(&text(&output.stderr), "cere: error[CERE-4003]: ");
    let output = run(directory.path(), "-q -v regions");
    assert_eq!(output.status.code(), Some(2));
    std::fs::create_dir(directory.path().join(".cere")).expect("a store");
    assert!(said(directory.path(), &["codelets"]).contains("no codelets yet"));
    assert_eq!(said(directory.path(), &["codelets", "-q"]), "");
}

/// A terminal gets no escape sequence from `--quiet`, and no colour where NO_COLOR is set.
#[test]
fn terminals_get_what_they_ask_for() {
    let directory = instrumented(PROGRAM);
    let at = directory.path();
    succeed(at, "capture main@* --invocation 1 -- ./app");
    let show = |arguments: &[&str], no_color: bool| {
        let mut command = terminal(at, arguments);
        command.env_remove("NO_COLOR").env("TERM", "xterm");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let output = command.output().expect("script runs");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stdout)
        );
        text(&output.stdout)
    };
    let colour = |shown: &str| shown.contains("\x1b[1m") || shown.contains("\x1b[4m");
    assert!(colour(&show(&["--help"], false)));
    assert!(!colour(&show(&["--help"], true)));
    let replay = ["replay", "main@*", "--flags", "-O1"];
    assert!(show(&replay, true).contains("replaying main@"));
    let quiet = show(&[&["-q"], &replay[..]].concat(), true);
    assert!(
        !quiet.contains('\x1b') && !quiet.contains("replaying"),
        "{quiet:?}"
    );
    // What is no terminal gets neither.
    let output = cere(at, &replay)
        .env("TERM", "xterm")
        .output()
        .expect("cere runs");
    assert!(!text(&output.stderr).contains('\x1b'));
}

#[test]
fn options_of_every_command_stand_before_it_too() {
    let directory = instrumented(PROGRAM);
    let at = directory.path();
    std::fs::rename(at.join(".cere"), at.join("elsewhere")).expect("a store");
    let regions = |arguments: &[&str]| json(at, arguments);
    let after = regions(&["regions", "--store", "elsewhere", "--json"]);
    assert!(!after.as_array().expect("regions").is_empty());
    assert_eq!(
        regions(&["--store", "elsewhere", "--json", "regions"]),
        after
    );
    assert_eq!(regions(&["--json", "regions", "--store=elsewhere"]), after);
    refused(at, "regions", "no build is recorded");
    let output = run(at, "--store elsewhere --json manual .");
    let message = text(&output.stderr);
    has(&message, "has no option --store");
}
