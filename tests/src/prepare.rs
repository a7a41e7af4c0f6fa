//! What tests begin with: instrumented programs and their codelets; and the end that wrong input has.

use crate::tools::{built, cere, json, output, shown, succeed, text};
use anyhow::{Context, Result, ensure};
use cere_format::replay::Repetitions;
use cere_replay::{Options, Settings, Team, Tolerance};
use cere_sandbox::Sandbox;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;

/// A shell that runs `script` with the plain compilers in place of the wrappers.
pub fn plain(script: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-ec", script])
        .env("CC", "clang-22")
        .env("CXX", "clang++-22")
        .env("FC", "flang-22");
    command
}

/// Runs the shell's `build` in `directory` under `cere instrument`.
pub fn instrument(directory: &Path, build: &str) -> Result<Output> {
    succeed(cere(directory).args(["instrument", "--", "sh", "-ec", build]))
}

/// A directory with `files`, built by `build` under `cere instrument`.
pub fn instrumented(files: &[(&str, &str)], build: &str) -> Result<TempDir> {
    let directory = tempfile::tempdir()?;
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text)?;
    }
    instrument(directory.path(), build)?;
    Ok(directory)
}

/// `cere capture --runs 1 ARGUMENTS -- ./program`, with one thread of OpenMP.
pub fn capture(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = cere(directory);
    command.args(["capture", "--runs", "1"]).args(arguments);
    command
        .args(["--", "./program"])
        .env("OMP_NUM_THREADS", "1");
    command
}

/// Names and files of the store's codelets.
pub fn codelets(directory: &Path) -> Result<Vec<(String, PathBuf)>> {
    let (list, _) = json(cere(directory).args(["codelets", "--json"]))?;
    let list = list.as_array().context("a list of codelets")?;
    list.iter()
        .map(|codelet| {
            let name = codelet["name"].as_str().context("a name")?;
            let file = codelet["file"].as_str().context("a file")?;
            Ok((name.to_owned(), directory.join(file)))
        })
        .collect()
}

/// Options of replays at the build's own flags, with their cache in `directory`.
pub fn options(directory: &Path, repetitions: u32, sandbox: Sandbox) -> Result<Options> {
    let cache = directory.join("cache");
    std::fs::create_dir_all(&cache)?;
    Ok(Options {
        settings: Settings {
            flags: Vec::new(),
            passes: None,
            repetitions: Repetitions::exactly(repetitions),
            warmup: None,
            operands: Vec::new(),
            compare: true,
            tolerance: Tolerance::default(),
            timeout: Some(Duration::from_secs(60)),
            team: Team::default(),
            beside: None,
            energy: None,
            cross: None,
            sandbox,
        },
        keep: None,
        cache,
        plugin: built().join("libcere_pass.so"),
        runtime: built().join("libcere_runtime.a"),
        edited: Vec::new(),
        keepers: None,
        elsewhere: false,
        ablation: None,
        memory: Default::default(),
        events: cere_system::events::Events::ignored(),
    })
}

/// The command fails, with one message of CERE's own that holds `part`.
pub fn refused(command: &mut Command, part: &str) -> Result<Output> {
    let run = output(command)?;
    let message = String::from_utf8_lossy(&run.stderr);
    let seen = || format!("{}\n{}", shown(command), text(&run));
    ensure!(!run.status.success(), "it succeeded: {}", seen());
    ensure!(run.status.code().is_some(), "a signal: {}", seen());
    ensure!(!message.contains("panicked"), "a panic: {}", seen());
    ensure!(
        (message.matches("cere: error:").count() + message.matches("cere: error[CERE-").count())
            == 1
            || message.starts_with("error:"),
        "not one error: {}",
        seen()
    );
    let has = message.contains(part);
    ensure!(has, "no `{part}`: {}", seen());
    Ok(run)
}
