//! The built command, and running things.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// Directory with the command, the plugin, the preload library and the runtime, of the profile that runs the tests.
pub fn built() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let command = cere_testing::built::command();
        command.parent().expect("a directory").to_owned()
    });
    &BUILT
}

/// The command in `directory`.
pub fn cere(directory: &Path) -> Command {
    let mut command = Command::new(built().join("cere"));
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// The command as one would type it, to repeat it.
pub fn shown(command: &Command) -> String {
    let place = command
        .get_current_dir()
        .map_or(String::new(), |d| format!("cd {} && ", d.display()));
    format!("{place}{command:?}")
}

/// Runs a command to its end.
pub fn output(command: &mut Command) -> Result<Output> {
    command
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))
}

/// Runs a command; a failure is an error with the output.
pub fn succeed(command: &mut Command) -> Result<Output> {
    let output = output(command)?;
    if !output.status.success() {
        bail!(
            "{} ended with {}\n{}",
            shown(command),
            output.status,
            text(&output)
        );
    }
    Ok(output)
}

/// Runs a command; its standard output must be JSON, whatever its status.
pub fn json(command: &mut Command) -> Result<(Value, Output)> {
    let output = output(command)?;
    let value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "{} ended with {} and no JSON\n{}",
            shown(command),
            output.status,
            text(&output)
        )
    })?;
    Ok((value, output))
}

/// The output of a run, for messages.
pub fn text(output: &Output) -> String {
    let cut = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let start = text.char_indices().rev().nth(4000).map_or(0, |(i, _)| i);
        text[start..].to_owned()
    };
    format!(
        "stdout: {}\nstderr: {}",
        cut(&output.stdout),
        cut(&output.stderr)
    )
}
