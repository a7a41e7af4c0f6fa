//! The command that does a chunk, and its events.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The command that does a chunk: it ends with status 0 once the chunk has its result (see [`work`](crate::work)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// The program, `cere`.
    pub program: PathBuf,
    /// What comes before the job's directory and the chunk's number.
    pub arguments: Vec<String>,
    /// Whether a chunk needs a node of its own, because it is timed.
    pub exclusive: bool,
}

impl Worker {
    /// Program and arguments for a chunk of the job in `directory`.
    pub(crate) fn words(&self, directory: &Path, chunk: usize) -> Vec<OsString> {
        let arguments = self.arguments.iter().map(OsString::from);
        let mut words = vec![self.program.clone().into_os_string()];
        words.extend(arguments);
        words.push(directory.as_os_str().to_owned());
        words.push(chunk.to_string().into());
        words
    }

    /// All but the chunk's number, for a shell.
    pub(crate) fn shell(&self, directory: &Path) -> String {
        let mut words = self.words(directory, 0);
        words.pop();
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        shell_words::join(words)
    }

    /// What runs here.
    pub(crate) fn command(&self, directory: &Path, chunk: usize) -> Command {
        let words = self.words(directory, chunk);
        let mut command = Command::new(&self.program);
        command.args(&words[1..]);
        command
    }
}

/// What happens while a job runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A chunk was started.
    Started {
        /// Its number.
        chunk: usize,
        /// Where.
        host: String,
    },
    /// A chunk has its result.
    Done {
        /// Its number.
        chunk: usize,
        /// Where.
        host: String,
        /// How long its tasks took.
        seconds: f64,
    },
    /// A chunk ended without a result, there. Another host may begin it next, or the scheduler again.
    Failed {
        /// Its number.
        chunk: usize,
        /// Where.
        host: String,
        /// Why.
        why: String,
    },
    /// A host is used no more in this run.
    Dropped {
        /// Its name.
        host: String,
        /// Why.
        why: String,
    },
    /// Something to tell the user: an array that was submitted, chunks that wait.
    Note(String),
}

/// Why a worker left no result: how it ended, and the last that it said.
pub fn reason(status: ExitStatus, said: &[u8]) -> String {
    match last_lines(said) {
        text if text.is_empty() => format!("the worker ended with {status}, without a word"),
        text => format!("the worker ended with {status}: {text}"),
    }
}

/// The last three lines of what a program said, in one.
pub fn last_lines(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<_> = lines.collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}
