//! Compiles one source with the pass.

use super::job::Job;
use super::tools::{ENV_ALL_LOOPS, Failure, compiler};
use super::{front, modules};
use crate::{components, state};
use anyhow::{Context, Result};
use cere_format::build::{BUILD_VERSION, CompileCommand, ENV_COMMAND, ENV_HEADERS, SkippedLoop};
use cere_system::console::warning;
use cere_system::process::supervise::shell_code;
use cere_toolchain::arguments::is_ir;
use cere_toolchain::unit::{CLANG, FLANG};
use std::collections::BTreeMap;
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
        (source, explicit): (&str, Option<&str>),
        line: &[String],
        output: &Path,
        scratch: &Path,
    ) -> Result<u8> {
        let mut record = self.record(output)?;
        let of_ir = is_ir(source, explicit);
        // What the compiler of the IR kept is the user's.
        record.debug |= of_ir;
        let mut input = None;
        if source == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            input = Some(bytes);
        }
        let path = scratch.join("command.json");
        let plugin = components::find(components::PLUGIN)?;
        let tried = through_pass(&mut record, &path, || {
            if self.front {
                let bitcode = of_ir.then(|| Path::new(source));
                return self.by_front(line, input.as_deref(), &path, (bitcode, output));
            }
            let full = self.with_plugin(line, &plugin);
            self.attempt(&self.compiler, &full, input.as_deref(), Some(&path))
        })?;
        self.concluded(
            source,
            tried,
            || self.note_object(output, scratch),
            || self.attempt(&self.compiler, line, input.as_deref(), None),
        )
    }

    /// Ends a compile of `source`: with what is `done` after the pass has done its work, else by a `plain` compile, which shows whether the
    /// source or the pass is the cause. The exit status.
    pub fn concluded(
        &self,
        source: &str,
        tried: Tried,
        done: impl FnOnce() -> Result<()>,
        plain: impl FnOnce() -> Result<(ExitStatus, String)>,
    ) -> Result<u8> {
        let (status, text) = match tried {
            Tried::Done(text) => {
                print_messages(&text);
                let _ = std::fs::remove_file(self.failure(source));
                done()?;
                return Ok(0);
            }
            Tried::Failed(status, text) => (status, text),
        };
        let (plain, said) = plain()?;
        print_messages(&said);
        if plain.success() {
            self.not_instrumented(source, &reason(&text, status));
        } else if let Some(advice) = modules::advice(&said, &self.parsed) {
            warning!("{advice}");
        }
        Ok(shell_code(plain))
    }

    /// Says that the source is compiled without regions, now and in the summary of the build.
    fn not_instrumented(&self, source: &str, reason: &str) {
        warning!("{source} is compiled without regions: {reason}");
        let failure = Failure {
            source: source.into(),
            directory: self.directory.clone(),
            reason: reason.to_owned(),
        };
        // Only the summary of the build lacks it.
        let _ = state::write_json(&self.failure(source), &failure);
    }

    /// The record of the compile to `output`.
    pub fn record(&self, output: &Path) -> Result<CompileCommand> {
        Ok(CompileCommand {
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
            front: self.front.then(|| self.compiler.clone()),
            variables: BTreeMap::new(),
        })
    }

    /// Compiles by `line` with the user's front end to bitcode, if there is none yet, and that to the output.
    fn by_front(
        &self,
        line: &[String],
        input: Option<&[u8]>,
        record: &Path,
        (bitcode, output): (Option<&Path>, &Path),
    ) -> Result<(ExitStatus, String)> {
        let made = record.with_file_name("front.bc");
        let mut said = String::new();
        if bitcode.is_none() {
            let line = front::to_bitcode(line, &made, output);
            let ended = self.attempt(&self.compiler, &line, input, Some(record))?;
            if !ended.0.success() {
                return Ok(ended);
            }
            said = ended.1;
        }
        let plugin = components::find(components::PLUGIN)?;
        let bitcode = bitcode.unwrap_or(&made);
        let mut line = front::of_bitcode(&self.parsed.codegen, Some(&plugin), bitcode, output);
        if self.parsed.assembly {
            line.push("-S".to_owned());
        }
        let (status, text) = self.attempt(&compiler(CLANG)?, &line, None, Some(record))?;
        Ok((status, said + &text))
    }

    /// `line` with the plugin and its options. Later options win, so ours come after the user's.
    fn with_plugin(&self, line: &[String], plugin: &Path) -> Vec<String> {
        let mut options = vec![format!("-fpass-plugin={}", plugin.display())];
        if !self.parsed.debug && !self.parsed.tracks {
            options.push("-gline-tables-only".into());
        }
        if self.name != FLANG {
            // Keeps the names of live-ins.
            options.push("-fno-discard-value-names".into());
        }
        let mut full = line.to_vec();
        add_options(&mut full, options);
        full
    }

    fn failure(&self, source: &str) -> PathBuf {
        let name = state::hash(&format!("{}\0{source}", self.directory.display()));
        self.store.failures().join(format!("{name}.json"))
    }

    pub fn attempt(
        &self,
        compiler: &Path,
        line: &[String],
        input: Option<&[u8]>,
        record: Option<&Path>,
    ) -> Result<(ExitStatus, String)> {
        let mut command = Command::new(compiler);
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
            let reads = !line.iter().any(|word| word == "ir");
            if reads {
                let _ = std::fs::remove_file(&list);
            }
            if reads && self.name != FLANG && std::env::var_os(CLANG_HEADERS).is_none() {
                let mut options = vec![
                    "-header-include-file".to_owned(),
                    list.display().to_string(),
                ];
                // Older front ends know only this form, and no word for it.
                options.extend((!self.front).then(|| "-header-include-format=textual".to_owned()));
                for option in options {
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
            .with_context(|| format!("cannot run {}", compiler.display()))?;
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

/// How compiling with the pass ended.
pub enum Tried {
    /// What the compiler said.
    Done(String),
    /// Its status, and what it said.
    Failed(ExitStatus, String),
}

/// Puts `options` behind those of a line: later ones win.
pub fn add_options(line: &mut Vec<String>, options: impl IntoIterator<Item = String>) {
    let end = line.iter().rposition(|a| a == "-c" || a == "-S");
    let end = end.unwrap_or(0);
    line.splice(end..end, options);
}

/// Compiles with the pass by `attempt`, which reads `record` from the file `path`, as often as the pass asks for it: each time without
/// a loop more.
pub fn through_pass(
    record: &mut CompileCommand,
    path: &Path,
    attempt: impl Fn() -> Result<(ExitStatus, String)>,
) -> Result<Tried> {
    loop {
        state::write_json(path, record)?;
        let (status, text) = attempt()?;
        if status.success() {
            return Ok(Tried::Done(text));
        }
        match parse_retry(&text) {
            Some(skip) if record.skip.iter().all(|other| other.index != skip.index) => {
                record.skip.push(skip);
            }
            _ => return Ok(Tried::Failed(status, text)),
        }
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

fn parse_retry(text: &str) -> Option<SkippedLoop> {
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
