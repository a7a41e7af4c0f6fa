//! Compiles one source with the pass.

use super::job::Job;
use super::{ENV_ALL_LOOPS, Failure};
use crate::{components, state};
use anyhow::{Context, Result};
use cere_format::build::{BUILD_VERSION, CompileCommand, ENV_COMMAND, ENV_HEADERS, SkippedLoop};
use cere_system::console::warning;
use cere_system::process::supervise::shell_code;
use cere_toolchain::unit::FLANG;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Line of the pass on stderr: `CERE-RETRY-SKIP <index> <reason>`.
const RETRY: &str = "CERE-RETRY-SKIP ";

/// Environment variable of clang: a user's own list of the headers that it reads.
const CLANG_HEADERS: &str = "CC_PRINT_HEADERS";

impl Job {
    /// Compiles `source` by `line`, which makes `output`; the result is the compiler's exit status. What the pass fails on is
    /// compiled plainly, with a warning.
    pub fn instrumented(
        &self,
        source: &str,
        line: &[String],
        output: &Path,
        scratch: &Path,
    ) -> Result<u8> {
        let plugin = components::find(components::PLUGIN)?;
        let mut record = CompileCommand {
            version: BUILD_VERSION,
            store: self.store.root().to_path_buf(),
            directory: self.directory.clone(),
            compiler: self.name.into(),
            arguments: self.expanded.clone(),
            codegen: self.parsed.codegen.clone(),
            output: Some(self.recorded(output)),
            debug: self.parsed.debug || self.parsed.tracks,
            skip: Vec::new(),
            short: match std::env::var_os(ENV_ALL_LOOPS) {
                Some(_) => None,
                None => Some(state::short_loops(&self.store)?),
            },
            split: state::split_loops(&self.store)?,
            functions: state::chosen_functions(&self.store)?,
        };
        let mut input = None;
        if source == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            input = Some(bytes);
        }
        let path = scratch.join("command.json");
        let full = self.with_plugin(line, &plugin);
        loop {
            state::write_json(&path, &record)?;
            let (status, text) = self.attempt(&full, input.as_deref(), Some(&path))?;
            if status.success() {
                print_messages(&text);
                let _ = std::fs::remove_file(self.failure(source));
                self.note_object(output, scratch)?;
                return Ok(0);
            }
            if let Some(skip) = parse_retry(&text)
                && record.skip.iter().all(|other| other.index != skip.index)
            {
                record.skip.push(skip);
                continue;
            }
            // The plain compiler shows whether the source or the pass is the cause.
            let (plain, plain_text) = self.attempt(line, input.as_deref(), None)?;
            if !plain.success() {
                print_messages(&plain_text);
                return Ok(shell_code(plain));
            }
            let failure = Failure {
                source: source.into(),
                directory: self.directory.clone(),
                reason: reason(&text, status),
            };
            print_messages(&plain_text);
            warning!("{source} is compiled without regions: {}", failure.reason);
            // Only the summary of the build lacks it.
            let _ = state::write_json(&self.failure(source), &failure);
            return Ok(0);
        }
    }

    /// `line` with the plugin and its options. Later options win, so ours come after the user's.
    fn with_plugin(&self, line: &[String], plugin: &Path) -> Vec<String> {
        let end = line
            .iter()
            .rposition(|a| a == "-c" || a == "-S")
            .unwrap_or(0);
        let mut full = line[..end].to_vec();
        full.push(format!("-fpass-plugin={}", plugin.display()));
        if !self.parsed.debug && !self.parsed.tracks {
            full.push("-gline-tables-only".into());
        }
        if self.name != FLANG {
            // Keeps the names of live-ins.
            full.push("-fno-discard-value-names".into());
        }
        full.extend(line[end..].iter().cloned());
        full
    }

    fn failure(&self, source: &str) -> PathBuf {
        let name = state::hash(&format!("{}\0{source}", self.directory.display()));
        self.store.failures().join(format!("{name}.json"))
    }

    fn attempt(
        &self,
        line: &[String],
        input: Option<&[u8]>,
        record: Option<&Path>,
    ) -> Result<(ExitStatus, String)> {
        let mut command = Command::new(&self.compiler);
        if std::io::stderr().is_terminal() {
            command.arg("-fcolor-diagnostics");
        }
        command.args(line);
        command.stderr(Stdio::piped());
        command.env_remove(ENV_COMMAND);
        if let Some(record) = record {
            command.env(ENV_COMMAND, record);
            // clang appends to the list. A user's own one stays as it is. The driver's way to ask for a list would put the
            // system's headers into `-MMD`'s as well.
            let list = record.with_file_name("headers");
            let _ = std::fs::remove_file(&list);
            if self.name != FLANG && std::env::var_os(CLANG_HEADERS).is_none() {
                let options =
                    ["-header-include-file", &list.display().to_string()].map(str::to_owned);
                let format = "-header-include-format=textual".to_owned();
                for option in options.into_iter().chain([format]) {
                    command.args(["-Xclang".to_owned(), option]);
                }
            }
            command.env(ENV_HEADERS, list);
        }
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        // stdout is not piped, so wait_with_output() returns an empty one, as intended.
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {}", self.compiler.display()))?;
        let pipe = child.stdin.take();
        let output = std::thread::scope(|scope| -> Result<_> {
            if let (Some(mut pipe), Some(bytes)) = (pipe, input) {
                scope.spawn(move || pipe.write_all(bytes));
            }
            Ok(child.wait_with_output()?)
        })?;
        Ok((
            output.status,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ))
    }
}

/// The error in a few lines, without the compiler's stack dump.
fn reason(text: &str, status: ExitStatus) -> String {
    let dump = ["PLEASE submit a bug report", "Stack dump:"];
    let lines: Vec<&str> = text
        .lines()
        .take_while(|line| !dump.iter().any(|d| line.starts_with(d)))
        .filter(|line| !line.starts_with("CERE-"))
        .take(12)
        .collect();
    let said = lines.join("\n").trim().to_owned();
    if said.is_empty() {
        format!("the compiler ended with {status}")
    } else {
        said
    }
}

pub fn parse_retry(text: &str) -> Option<SkippedLoop> {
    let line = text.lines().find_map(|line| line.strip_prefix(RETRY))?;
    let (index, reason) = line
        .split_once(' ')
        .unwrap_or((line, "outlining it breaks the module"));
    Some(SkippedLoop {
        index: index.parse().ok()?,
        reason: reason.into(),
    })
}

/// Prints the compiler's messages.
fn print_messages(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pass_asks_for_another_try() {
        let skip = parse_retry("a\nCERE-RETRY-SKIP 3 the verifier says no\n").unwrap();
        assert_eq!(
            (skip.index, skip.reason.as_str()),
            (3, "the verifier says no")
        );
        assert!(parse_retry("error: x\n").is_none());
    }
}
