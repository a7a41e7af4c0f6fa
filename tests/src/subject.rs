//! A program whose plain and instrumented builds are compared, and whose regions are captured and replayed.

use crate::outcome::{Finding, Outcome};
use crate::prepare::plain;
use crate::study::{array, same, string};
use crate::tools::{cere, json, output, succeed, text};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Seconds that a program may run; csmith's may run forever.
const PROGRAM_SECONDS: u32 = 5;
/// Time limit of a command in seconds, which only a command that hangs reaches.
pub const COMMAND_SECONDS: u32 = 300;

/// A program under one set of flags.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The seed that it was made from.
    pub seed: u64,
    /// Compiler flags, `FLAGS` of the script.
    pub flags: String,
    /// Builds `./program` with `$CC`, `$CXX`, `$FC`.
    pub script: String,
    /// Arguments of each run; the last run is captured.
    pub runs: Vec<Vec<&'static str>>,
    /// Scratch directory.
    pub directory: &'a Path,
}

/// `command`, killed after so many seconds.
pub fn limited(command: &Command, seconds: u32) -> Command {
    let mut limited = Command::new("timeout");
    limited
        .args(["-s", "KILL", &seconds.to_string()])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    if let Some(directory) = command.get_current_dir() {
        limited.current_dir(directory);
    }
    limited
}

/// Removes codelets, the last ones by rank and name, until `count` are left.
pub fn keep(codelets: &[Value], count: usize, rank: impl Fn(&str) -> usize) -> Result<()> {
    let mut named = Vec::new();
    for codelet in codelets {
        let name = string(codelet, "name")?;
        named.push((rank(name), name, string(codelet, "file")?));
    }
    named.sort();
    for (_, _, file) in named.iter().skip(count) {
        std::fs::remove_file(file).with_context(|| format!("cannot remove {file}"))?;
    }
    Ok(())
}

impl Subject<'_> {
    /// An outcome of the program.
    pub fn finding(&self, outcome: Outcome, reason: String) -> Finding {
        Finding {
            seed: self.seed,
            level: self.flags.clone(),
            of: String::new(),
            flags: None,
            outcome,
            reason,
            allowed: false,
        }
    }

    /// The outputs of the program built plainly, with `flags` after its own. `None` if it runs too long.
    pub fn plain(&self, flags: &str) -> Result<Option<Vec<Output>>> {
        let flags = format!("{} {flags}", self.flags);
        let directory = self.built("plain", &flags);
        std::fs::create_dir_all(&directory)?;
        let mut command = plain(&self.script);
        succeed(command.env("FLAGS", &flags).current_dir(&directory))?;
        let runs = self.outputs(&directory)?;
        // `timeout` ends itself by the signal that it sends.
        let killed = runs.iter().any(|run| run.status.code().is_none());
        Ok((!killed).then_some(runs))
    }

    fn outputs(&self, directory: &Path) -> Result<Vec<Output>> {
        let run = |arguments: &Vec<&str>| {
            let mut command = Command::new("./program");
            command.args(arguments).current_dir(directory);
            output(&mut limited(&command, PROGRAM_SECONDS))
        };
        self.runs.iter().map(run).collect()
    }

    fn built(&self, how: &str, flags: &str) -> PathBuf {
        let name: String = flags.split_whitespace().collect();
        self.directory.join(format!("{how}{name}"))
    }

    fn instrumented(&self) -> PathBuf {
        self.built("instrumented", &self.flags)
    }

    /// Builds the instrumented program and compares what it prints.
    pub fn compare(&self, expected: &[Output]) -> Result<Finding> {
        let directory = self.instrumented();
        std::fs::create_dir_all(&directory)?;
        let mut command = cere(&directory);
        command.args(["instrument", "--all-loops", "--", "sh", "-ec", &self.script]);
        command.env("FLAGS", &self.flags);
        succeed(&mut limited(&command, COMMAND_SECONDS))?;
        let found = self.outputs(&directory)?;
        for (expected, found) in expected.iter().zip(&found) {
            if let Err(error) = same(expected, found, "the instrumented program") {
                return Ok(self.finding(Outcome::OtherOutput, format!("{error:#}")));
            }
        }
        Ok(self.finding(Outcome::SameOutput, String::new()))
    }

    /// Captures all regions of the instrumented program: the codelets. What differs and what is refused are findings.
    pub fn capture(&self, expected: &[Output], findings: &mut Vec<Finding>) -> Result<Vec<Value>> {
        let directory = self.instrumented();
        let mut command = cere(&directory);
        command
            .args(["capture", "--json", "*", "--invocation", "1", "--runs", "1"])
            .args(["--", "./program"])
            .args(self.runs.last().into_iter().flatten());
        let (captured, run) = json(&mut limited(&command, COMMAND_SECONDS))?;
        // With --json the program's output goes to standard error, among the command's own lines.
        let shown = String::from_utf8_lossy(&run.stderr);
        let printed = expected
            .last()
            .map(|run| String::from_utf8_lossy(&run.stdout));
        if !printed.is_some_and(|all| all.lines().all(|line| shown.contains(line))) {
            let reason = format!("the captured run printed something else\n{}", text(&run));
            findings.push(self.finding(Outcome::OtherOutput, reason));
        }
        for skipped in array(&captured["skipped"], "skipped")? {
            let reason = string(skipped, "reason")?;
            if !reason.contains("never ran") {
                findings.push(Finding {
                    of: string(skipped, "region")?.to_owned(),
                    ..self.finding(Outcome::Refused, reason.to_owned())
                });
            }
        }
        Ok(array(&captured["codelets"], "codelets")?.clone())
    }

    /// Replays all codelets that are there.
    pub fn replay(&self, flags: &str) -> Result<Vec<Finding>> {
        let mut command = cere(&self.instrumented());
        command
            .args(["replay", "--json", "--reps", "1", "*", "--flags", flags])
            .args(["--warmup", "working-set", "--timeout", "60"]);
        let (results, run) = json(&mut limited(&command, COMMAND_SECONDS))?;
        let results = match results {
            Value::Array(all) => all,
            one => vec![one],
        };
        ensure!(!results.is_empty(), "no replays: {}", text(&run));
        let finding = |result: &Value| {
            Ok(Finding {
                of: string(result, "codelet")?.to_owned(),
                flags: Some(flags.to_owned()),
                ..self.finding(
                    Outcome::of(string(result, "verdict")?)?,
                    string(result, "reason")?.to_owned(),
                )
            })
        };
        results.iter().map(finding).collect()
    }
}
