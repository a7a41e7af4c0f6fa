//! `cere doctor` on this machine.

use crate::common::{cere, json, parsed, run, succeed, text};
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
