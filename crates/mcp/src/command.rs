//! One run of the command.

use anyhow::{Context, Result};
use cere_catalogue::{anyhow, bail};
use cere_format::store::Store;
use cere_system::process::wait;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// What `program` prints with `--json`, or why there is nothing.
pub fn run(program: &Path, store: &Store, words: &[String], limit: Duration) -> Result<Value> {
    // The name comes first, operands come last.
    let (name, rest) = words.split_first().context("a command is needed")?;
    let mut child = Command::new(program)
        .arg("--quiet")
        .arg(name)
        .arg("--json")
        .arg("--store")
        .arg(store.root())
        .args(rest)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let group = Pid::from_child(&child);
    let stdout = child.stdout.take().map(read);
    let stderr = child.stderr.take().map(read);
    let status = wait::within(&mut child, limit).context("cannot wait for the command")?;
    // Whatever it started ends with it.
    let _ = kill_process_group(group, Signal::KILL);
    let (stdout, stderr) = (joined(stdout), joined(stderr));
    if status.is_none() {
        bail!(
            E5306,
            "cere {name} took longer than {:.0} s and was ended: start the server with more --seconds, or with more --budget",
            limit.as_secs_f64()
        );
    }
    // A bad verdict is status 1, and an answer.
    if let Ok(answer) = serde_json::from_str(&stdout) {
        return Ok(answer);
    }
    Err(failure(stderr.trim()))
}

/// The error that a command wrote to stderr, with its code. Other text stays as it is.
fn failure(said: &str) -> anyhow::Error {
    let (code, text) = match said.strip_prefix("cere: error") {
        Some(rest) => match rest
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "))
        {
            Some((code, text)) => (cere_catalogue::entry(code), text),
            None => (None, rest.trim_start_matches(": ")),
        },
        None => (None, said),
    };
    match code {
        _ if said.is_empty() => anyhow!("it said nothing"),
        Some(entry) => cere_catalogue::coded(entry.code, text.to_owned()),
        None => anyhow!("{text}"),
    }
}

fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn joined(text: Option<JoinHandle<String>>) -> String {
    text.and_then(|text| text.join().ok()).unwrap_or_default()
}
