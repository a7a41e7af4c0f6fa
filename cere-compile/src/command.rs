//! Tools: commands that can be run here and printed for running by hand.

use crate::{CompileError, wait};
use cere_format::hexadecimal;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Hash of parts, each with its length, in hexadecimal.
pub fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hexadecimal(&hasher.finalize()[..16])
}

/// A command line.
#[derive(Debug, Clone)]
pub struct Line {
    program: String,
    directory: Option<PathBuf>,
    limit: Option<Duration>,
    variable: Option<(&'static str, PathBuf)>,
    arguments: Vec<OsString>,
}

impl Line {
    /// Starts with the program.
    pub fn new(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            directory: None,
            limit: None,
            variable: None,
            arguments: Vec::new(),
        }
    }
    /// Sets an environment variable to a path.
    pub fn variable(mut self, name: &'static str, path: &Path) -> Self {
        self.variable = Some((name, path.to_owned()));
        self
    }
    /// Runs in `directory`.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }
    /// Is killed after so long.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }
    /// An argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }
    /// A path as argument.
    pub fn path(self, path: &Path) -> Self {
        self.arg(path)
    }
    /// Arguments.
    pub fn args<T: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some((name, value)) = &self.variable {
            command.env(name, value);
        }
        command
    }
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// As a shell would take it.
impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(directory) = &self.directory {
            write!(f, "cd {} && ", quote(&directory.to_string_lossy()))?;
        }
        if let Some((name, value)) = &self.variable {
            write!(f, "{name}={} ", quote(&value.to_string_lossy()))?;
        }
        f.write_str(&quote(&self.program))?;
        for argument in &self.arguments {
            write!(f, " {}", quote(&argument.to_string_lossy()))?;
        }
        Ok(())
    }
}

fn execute(
    command: &mut Command,
    what: &str,
    line: String,
    input: Option<&str>,
    limit: Option<Duration>,
) -> Result<String, CompileError> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let start = |source| CompileError::Tool {
        tool: tool.clone(),
        source,
    };
    command
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(start)?;
    if let (Some(text), Some(mut pipe)) = (input, child.stdin.take()) {
        // A compiler that refuses its flags does not read: its message is what counts.
        let _ = pipe.write_all(text.as_bytes());
    }
    let (output, late) = match limit {
        None => (child.wait_with_output().map_err(start)?, None),
        Some(limit) => within(child, limit).map_err(start)?,
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(CompileError::Compile {
        tool,
        what: what.to_owned(),
        message: match late {
            Some(limit) => format!(
                "it ran longer than {} s and was killed",
                limit.as_secs_f64()
            ),
            None if message.is_empty() => output.status.to_string(),
            None => message,
        },
        command: line,
    })
}

/// The child's output, and the limit if it ran longer and was killed.
fn within(mut child: Child, limit: Duration) -> std::io::Result<(Output, Option<Duration>)> {
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let stdout = read(child.stdout.take().map(|p| Box::new(p) as _));
    let stderr = read(child.stderr.take().map(|p| Box::new(p) as _));
    let ended = wait::within(&mut child, limit)?;
    let (status, late) = match ended {
        Some(status) => (status, None),
        None => (child.wait()?, Some(limit)),
    };
    let join = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    let output = Output {
        status,
        stdout: join(stdout),
        stderr: join(stderr),
    };
    Ok((output, late))
}

/// Runs a line; what the tool says on failure becomes the error. Gives its standard output.
pub fn run(line: &Line, what: &str) -> Result<String, CompileError> {
    execute(
        &mut line.command(),
        what,
        line.to_string(),
        None,
        line.limit,
    )
}

/// Runs a command with `input` on its standard input.
pub fn tool_with_input(
    command: &mut Command,
    what: &str,
    input: &str,
) -> Result<String, CompileError> {
    let line = format!("{command:?}");
    execute(command, what, line, Some(input), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_killed() {
        let line = Line::new("sleep")
            .arg("600")
            .limit(Duration::from_millis(50));
        let error = run(&line, "a test").unwrap_err().to_string();
        assert!(error.contains("ran longer than 0.05 s"), "{error}");
        let line = Line::new("echo")
            .arg("done")
            .limit(Duration::from_secs(600));
        assert_eq!(run(&line, "a test").unwrap(), "done\n");
    }
}
