//! `cere doctor` on this machine.

use crate::common::{
    built, cere, directory_with, has, json, make_executable, parsed, refused, run, succeed, text,
};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

#[test]
fn finds_what_is_here_in_five_seconds() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let start = Instant::now();
    let shown = text(&succeed(at, "doctor").stdout);
    let seconds = start.elapsed().as_secs_f64();
    for part in [
        "Syscall User Dispatch",
        "clang-22",
        "replay runtime",
        "Noise",
        "All that CERE needs",
    ] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    println!("cere doctor took {seconds:.2} s");
    // Others may use the machine.
    assert!(seconds < 10.0, "{seconds}");
    assert!(!at.join(".cere").exists(), "it leaves nothing");
}

#[test]
fn says_what_is_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let output = cere(at, "doctor --json")
        .env("PATH", at)
        .output()
        .expect("cere runs");
    assert_eq!(output.status.code(), Some(1));
    let found = parsed(&output);
    assert_eq!(found["complete"], false);
    let tools = found["tools"].as_array().expect("tools");
    let clang = tools
        .iter()
        .find(|t| t["name"] == "clang-22")
        .expect("clang");
    assert_eq!(clang["state"], "missing");
    assert!(
        clang["remedy"]
            .as_str()
            .is_some_and(|r| r.contains("apt install clang-22"))
    );
    let whole = json(at, "doctor --json");
    assert_eq!(whole["complete"], true);
    assert!(whole["noise"]["measured"]["untold"].is_number());
    assert!(run(at, "doctor --help").status.success());
}

/// Where a tool is missing and there is an `apt-get`, which here only says what it is asked for.
#[test]
fn what_is_missing_is_installed_after_a_question() {
    let directory = directory_with(&[("bin/apt-get", "#!/bin/sh\necho \"$@\" >> \"$LOG\"\n")]);
    let at = directory.path();
    make_executable(&at.join("bin/apt-get"));
    let log = at.join("log");
    let answered = |answer: &str| {
        let line = format!(
            "PATH='{}' LOG='{}' XDG_CACHE_HOME='{}' {} doctor",
            at.join("bin").display(),
            log.display(),
            at.display(),
            built().display()
        );
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        let child = command
            .current_dir(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = child.spawn().expect("script runs");
        let mut typed = child.stdin.take().expect("a pipe");
        typed.write_all(answer.as_bytes()).expect("typed");
        let output = child.wait_with_output().expect("script ends");
        drop(typed);
        text(&output.stdout)
    };
    // The second question is for the measurement of the machine, which takes a minute.
    let shown = answered("n\nn\nn\nn\n");
    has(&shown, "apt-get install -y clang-22 ");
    has(&shown, "now? [y/N]");
    assert!(!log.exists(), "run all the same");
    let shown = answered("y\nn\nn\nn\n");
    has(&shown, "is done");
    let asked = std::fs::read_to_string(&log).expect("it was run");
    has(&asked, "update\ninstall -y clang-22 ");
    assert_eq!(
        shown.matches("Tools and parts").count(),
        2,
        "it looks again: {shown}"
    );
    refused(at, "doctor --fix", "no terminal to ask at");
}
