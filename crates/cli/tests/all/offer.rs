//! What a command needs and another one makes: offered on a terminal, named elsewhere.

use crate::common::{has, instrumented, refused, run, succeed, terminal, text};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const PROGRAM: &str = r#"
#include <stdio.h>
static double cells[20000];
int main(void) {
    for (int s = 0; s < 200; s++) for (int i = 1; i < 19999; i++) cells[i] = cells[i] * 0.5 + i;
    printf("%g\n", cells[7]);
    return 0;
}
"#;

/// What `cere` shows on a terminal where `answer` is typed, and whether it succeeds.
fn answered(at: &Path, arguments: &[&str], answer: &str) -> (String, bool) {
    let mut command = terminal(at, arguments);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().expect("script runs");
    let mut typed = child.stdin.take().expect("a pipe");
    typed.write_all(answer.as_bytes()).expect("typed");
    let output = child.wait_with_output().expect("script ends");
    drop(typed);
    (text(&output.stdout), output.status.success())
}

#[test]
fn codelets_are_offered_where_the_program_is_known() {
    let directory = instrumented(PROGRAM);
    let at = directory.path();
    let replay = ["replay", "main@*"];
    refused(
        at,
        &replay,
        "`cere capture 'main@*' -- PROGRAM ARGUMENTS` takes one",
    );
    // Nothing is known of the program: nothing is asked.
    let (shown, succeeds) = answered(at, &replay, "y\n");
    assert!(!succeeds && !shown.contains("now?"), "{shown}");
    succeed(at, "profile -- ./app");
    // No terminal: the exact command, and no question.
    refused(at, &replay, "`cere capture 'main@*' -- ./app` takes one");
    let check = text(&run(at, "check").stderr);
    has(&check, "`cere capture -- ./app` takes some");
    let (shown, succeeds) = answered(at, &replay, "n\n");
    assert!(
        !succeeds && shown.contains("cere: run `cere capture 'main@*' -- ./app` now? [y/N]"),
        "{shown}"
    );
    assert!(!at.join(".cere/codelets").exists(), "captured all the same");
    let (shown, succeeds) = answered(at, &replay, "y\n");
    assert!(succeeds && shown.contains("verdict"), "{shown}");
    assert!(succeed(at, &replay).status.success());
}
