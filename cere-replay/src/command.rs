//! Tools: commands that can be run here and printed for running by hand.

use crate::ReplayError;
use cere_format::hexadecimal;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    variable: Option<(&'static str, PathBuf)>,
    arguments: Vec<OsString>,
}

impl Line {
    /// Starts with the program.
    pub fn new(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            variable: None,
            arguments: Vec::new(),
        }
    }
    /// Sets an environment variable to a path.
    pub fn variable(mut self, name: &'static str, path: &Path) -> Self {
        self.variable = Some((name, path.to_owned()));
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
) -> Result<String, ReplayError> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let start = |source| ReplayError::Tool {
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
    let output = child.wait_with_output().map_err(start)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ReplayError::Compile {
        tool,
        what: what.to_owned(),
        message: if message.is_empty() {
            output.status.to_string()
        } else {
            message
        },
        command: line,
    })
}

/// Runs a line; what the tool says on failure becomes the error. Gives its standard output.
pub fn run(line: &Line, what: &str) -> Result<String, ReplayError> {
    execute(&mut line.command(), what, line.to_string(), None)
}

/// Runs a command with `input` on its standard input.
pub fn tool_with_input(
    command: &mut Command,
    what: &str,
    input: &str,
) -> Result<String, ReplayError> {
    let line = format!("{command:?}");
    execute(command, what, line, Some(input))
}
