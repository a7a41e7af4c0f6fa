//! The built command, and scratch directories to use it in.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use cere_format::machine::{Bandwidth, Identity, MACHINE_VERSION, Machine, Peak};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// The command of this build, with its parts.
pub fn built() -> PathBuf {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(cere_testing::built::command);
    BUILT.clone()
}

/// The command in `directory`.
pub fn cere(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(built());
    command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// Runs it.
pub fn run(directory: &Path, arguments: &[&str]) -> Output {
    cere(directory, arguments).output().expect("cere runs")
}

/// Runs it; it must succeed.
pub fn succeed(directory: &Path, arguments: &[&str]) -> Output {
    let output = run(directory, arguments);
    assert!(
        output.status.success(),
        "cere {arguments:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// Runs it; stdout must be JSON.
pub fn json(directory: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = run(directory, arguments);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("cere {arguments:?}: {e}\n{}", text(&output.stderr)))
}

/// Runs it; it must fail with one message that holds `part`, and without a panic.
pub fn refused(directory: &Path, arguments: &[&str], part: &str) {
    let output = run(directory, arguments);
    let message = text(&output.stderr);
    assert!(!output.status.success(), "cere {arguments:?} succeeded");
    assert!(!message.contains("panicked"), "{message}");
    assert_eq!(message.matches("error:").count(), 1, "{message}");
    assert!(message.contains(part), "no `{part}` in: {message}");
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes files into `directory`.
pub fn write(directory: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, content).expect("a file");
    }
}

/// A directory with `program` as its only source, built as `app` under `cere instrument`.
pub fn instrumented(program: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), &[("main.c", program)]);
    let build = ["instrument", "--", "sh", "-c", "$CC -O2 main.c -o app"];
    succeed(directory.path(), &build);
    directory
}

/// The command in `directory`, with a terminal as stdin, stdout and stderr; what it writes comes out as stdout.
pub fn terminal(directory: &Path, arguments: &[&str]) -> Command {
    let cere = built();
    let words = [&[cere.to_str().expect("UTF-8")], arguments].concat();
    let mut command = Command::new("script");
    command
        .args([
            "--quiet",
            "--return",
            "--command",
            &shell_words::join(words),
        ])
        .arg("/dev/null")
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// A machine that no processor is.
pub fn machine() -> Machine {
    let bandwidth = |level, bytes_per_second| Bandwidth {
        level,
        name: "load".to_owned(),
        cores: 1,
        bytes_per_second,
        moved: 1.0,
        working_set: 0,
    };
    Machine {
        version: MACHINE_VERSION,
        identity: Identity {
            cpu: "a machine of a test".to_owned(),
            ..Identity::default()
        },
        peaks: vec![Peak {
            name: "fma".to_owned(),
            element: "f64".to_owned(),
            bits: 256,
            cores: 1,
            flops_per_second: 1e12,
            streams: 8,
        }],
        bandwidths: vec![bandwidth(1, 1e13), bandwidth(2, 1e13), bandwidth(0, 1e12)],
        ..Machine::default()
    }
}
