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

/// What the command is called with: words, or a line that is split as a shell does.
pub trait Arguments {
    /// The words.
    fn words(self) -> Vec<String>;
}

impl Arguments for &str {
    fn words(self) -> Vec<String> {
        shell_words::split(self).expect("a line")
    }
}

impl<W: AsRef<str>> Arguments for &[W] {
    fn words(self) -> Vec<String> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<W: AsRef<str>, const N: usize> Arguments for &[W; N] {
    fn words(self) -> Vec<String> {
        self[..].words()
    }
}

impl<W: AsRef<str>> Arguments for &Vec<W> {
    fn words(self) -> Vec<String> {
        self[..].words()
    }
}

/// The command in `directory`.
pub fn cere(directory: &Path, arguments: impl Arguments) -> Command {
    let mut command = Command::new(built());
    command
        .args(arguments.words())
        .current_dir(directory)
        .stdin(Stdio::null());
    // Who runs the tests may have set these for himself.
    for variable in [
        "COLUMNS",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "FORCE_COLOR",
    ] {
        command.env_remove(variable);
    }
    command
}

/// Runs it.
pub fn run(directory: &Path, arguments: impl Arguments) -> Output {
    cere(directory, arguments).output().expect("cere runs")
}

/// Runs it; it must succeed.
pub fn succeed(directory: &Path, arguments: impl Arguments) -> Output {
    let arguments = arguments.words();
    let output = run(directory, &arguments);
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
#[track_caller]
pub fn json(directory: &Path, arguments: impl Arguments) -> serde_json::Value {
    parsed(&run(directory, arguments))
}

/// The JSON that stdout has to be.
#[track_caller]
pub fn parsed(output: &Output) -> serde_json::Value {
    match serde_json::from_slice(&output.stdout) {
        Ok(value) => value,
        Err(e) => panic!("{e}\n{}\n{}", text(&output.stdout), text(&output.stderr)),
    }
}

/// Runs it; it must fail with one message that holds `part`, and without a panic.
pub fn refused(directory: &Path, arguments: impl Arguments, part: &str) {
    let arguments = arguments.words();
    let output = run(directory, &arguments);
    let message = text(&output.stderr);
    assert!(!output.status.success(), "cere {arguments:?} succeeded");
    assert!(!message.contains("panicked"), "{message}");
    let errors = message.matches("error:").count() + message.matches("error[CERE-").count();
    assert_eq!(errors, 1, "{message}");
    has(&message, part);
}

/// Fails unless `text` has `part`.
#[track_caller]
pub fn has(text: &str, part: &str) {
    assert!(text.contains(part), "no `{part}` in: {text}");
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

/// Lets `file` be run.
pub fn make_executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).expect("an executable");
}

/// A new directory with `files`.
pub fn directory_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), files);
    directory
}

/// Builds in `directory` by lines of a shell under `cere instrument`.
pub fn instrument(directory: &Path, lines: &str) -> Output {
    succeed(directory, &["instrument", "--", "sh", "-ec", lines])
}

/// A new directory with `files`, built by lines of a shell under `cere instrument`.
pub fn built_from(files: &[(&str, &str)], lines: &str) -> tempfile::TempDir {
    let directory = directory_with(files);
    instrument(directory.path(), lines);
    directory
}

/// A directory with `program` as its only source, built as `app` under `cere instrument`.
pub fn instrumented(program: &str) -> tempfile::TempDir {
    built_from(&[("main.c", program)], "$CC -O2 main.c -o app")
}

/// The command in `directory`, with a terminal as stdin, stdout and stderr; what it writes comes out as stdout.
pub fn terminal(directory: &Path, arguments: impl Arguments) -> Command {
    let mut words = vec![built().to_str().expect("UTF-8").to_owned()];
    words.extend(arguments.words());
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
