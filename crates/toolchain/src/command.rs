//! Command lines of tools, to run here or to print for running by hand.

use crate::error::{self, CompileError};
use crate::stay;
use cere_format::hexadecimal;
use cere_sandbox::{Kind, Rest, Sandbox, Task, ended_by};
use cere_system::console::detail;
use cere_system::process::wait;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
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
    sandbox: Sandbox,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    libraries: Vec<PathBuf>,
}

/// Default limit of a confined tool: seconds of processor time for each processor.
const LONG: u64 = 3600;
/// Maximum bytes of a tool's output that are kept.
const KEPT: u64 = 256 << 20;

impl Line {
    /// A line with the program only.
    pub fn new(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            directory: None,
            limit: None,
            variable: None,
            arguments: Vec::new(),
            sandbox: Sandbox::none(),
            reads: Vec::new(),
            writes: Vec::new(),
            libraries: Vec::new(),
        }
    }
    /// Runs in `sandbox`: may read the paths among its arguments and write in the directories of its outputs.
    pub fn confined(mut self, sandbox: &Sandbox) -> Self {
        self.sandbox = sandbox.clone();
        self
    }
    /// Allows reading a file that is not an input argument.
    pub fn reads(mut self, path: &Path) -> Self {
        self.reads.push(path.to_owned());
        self
    }
    /// Allows reading the shared libraries of a directory.
    pub fn loads(mut self, directory: &Path) -> Self {
        self.libraries.push(directory.to_owned());
        self
    }
    /// The path of an output as argument.
    pub fn output(mut self, path: &Path) -> Self {
        self.writes.extend(path.parent().map(Path::to_owned));
        self.arg(path)
    }
    /// Sets an environment variable to a path.
    pub fn variable(mut self, name: &'static str, path: &Path) -> Self {
        self.reads.push(path.to_owned());
        self.variable = Some((name, path.to_owned()));
        self
    }
    /// Runs in `directory`.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }
    /// Sets a time limit, after which it is killed.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }
    /// An argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }
    /// The path of an input as argument.
    pub fn path(self, path: &Path) -> Self {
        self.reads(path).arg(path)
    }
    /// Arguments.
    pub fn args<T: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }
    /// The permissions of its process in the sandbox.
    fn task(&self) -> Task {
        Task {
            kind: Kind::Tool,
            read: self.reads.clone(),
            libraries: self.libraries.clone(),
            execute: None,
            write: self.writes.clone(),
            seconds: self.limit.map_or(LONG, |limit| limit.as_secs()),
        }
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
    fn refused(&self, source: std::io::Error) -> CompileError {
        CompileError::Sandbox {
            what: self.program.clone(),
            source,
        }
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

/// The line in shell syntax.
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

/// Possible causes when a tool in a sandbox fails.
const HINT: &str = "; it ran in a sandbox, in which it reads the system's libraries, the toolchain and its inputs alone: \
                    --no-sandbox runs it without one, on packages that you trust";

/// The reason of a failure in words.
fn reason(output: &Output, late: Option<Duration>, confined: bool) -> String {
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let ended = output.status.signal().filter(|_| confined);
    if let Some(limit) = late {
        return format!(
            "it ran longer than {} s and was killed",
            limit.as_secs_f64()
        );
    }
    if let Some(ended) = ended.and_then(|signal| ended_by(signal, Kind::Tool)) {
        return ended;
    }
    // The kernel's message for a path that may not be read, and that of LLVM's assembler.
    let refusals = [
        "Permission denied",
        "permission denied",
        "Operation not permitted",
        "Could not find incbin file",
        "Could not find include file",
    ];
    let refused = confined && refusals.iter().any(|r| said.contains(r));
    match said.is_empty() {
        true => output.status.to_string(),
        // Only the most informative line is shown.
        false if refused => format!("{}{HINT}", error::first(&said)),
        false => said,
    }
}

/// What a line's tool printed and how it ended, and the limit if it ran longer and was killed.
type Ended = (Output, Option<Duration>);

fn output(line: &Line, input: Option<&str>) -> Result<Ended, CompileError> {
    detail!("runs {line}");
    // A server that is killed costs its runs one repetition.
    for last in [false, true] {
        let Some(server) = stay::server(&line.program, &line.sandbox) else {
            break;
        };
        let rest = line.sandbox.rest(&line.task());
        match served(line, &server, rest.map_err(|e| line.refused(e))?, input) {
            Ok(ended) => return Ok(ended),
            Err(error) => stay::replace(&line.program, &line.sandbox, &server, &error, last),
        }
    }
    let mut command = line.command();
    let confined = line.sandbox.confine(&mut command, &line.task());
    confined.map_err(|e| line.refused(e))?;
    started(command, input, line.limit).map_err(|source| CompileError::Tool {
        tool: line.program.clone(),
        source,
    })
}

/// Runs a line in a tool that stays.
fn served(
    line: &Line,
    server: &stay::Server,
    rest: Option<Rest>,
    input: Option<&str>,
) -> std::io::Result<Ended> {
    let (stdin, write) = match input {
        Some(_) => {
            let (read, write) = std::io::pipe()?;
            (OwnedFd::from(read), Some(write))
        }
        None => (File::open("/dev/null")?.into(), None),
    };
    let (stdout, its_output) = std::io::pipe()?;
    let (stderr, its_error) = std::io::pipe()?;
    let standard = [stdin.as_fd(), its_output.as_fd(), its_error.as_fd()];
    let child = server.run(&line.command(), rest.as_ref(), standard)?;
    drop((stdin, its_output, its_error));
    feed(write, input);
    collect(stdout, stderr, line.limit, || child.within(line.limit))
}

/// Runs a command to its end.
fn started(
    mut command: Command,
    input: Option<&str>,
    limit: Option<Duration>,
) -> std::io::Result<Ended> {
    let stdin = match input {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    };
    command.stdin(stdin);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    feed(child.stdin.take(), input);
    let missing = || std::io::Error::other("it has no output");
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    collect(stdout, stderr, limit, || {
        let ended = match limit {
            None => Some(child.wait()?),
            Some(limit) => wait::within(&mut child, limit)?,
        };
        Ok((ended.map_or_else(|| child.wait(), Ok)?, ended.is_none()))
    })
}

fn feed(pipe: Option<impl Write>, input: Option<&str>) {
    if let Some((mut pipe, text)) = pipe.zip(input) {
        // A compiler that refuses its flags closes its input; its message is what counts.
        let _ = pipe.write_all(text.as_bytes());
    }
}

/// Reads what a process prints while `wait` waits for it, and says whether it was killed.
fn collect(
    stdout: impl Read + Send,
    stderr: impl Read + Send,
    limit: Option<Duration>,
    wait: impl FnOnce() -> std::io::Result<(ExitStatus, bool)>,
) -> std::io::Result<Ended> {
    fn read(mut pipe: impl Read) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = pipe.by_ref().take(KEPT).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        bytes
    }
    std::thread::scope(|scope| {
        let stdout = scope.spawn(|| read(stdout));
        let stderr = scope.spawn(|| read(stderr));
        let ended = wait();
        let (stdout, stderr) = (stdout.join(), stderr.join());
        let (status, killed) = ended?;
        let output = Output {
            status,
            stdout: stdout.unwrap_or_default(),
            stderr: stderr.unwrap_or_default(),
        };
        Ok((output, limit.filter(|_| killed)))
    })
}

fn execute(line: &Line, what: &str, input: Option<&str>) -> Result<(String, String), CompileError> {
    let (output, late) = output(line, input)?;
    if output.status.success() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        return Ok((text(&output.stdout), text(&output.stderr)));
    }
    Err(CompileError::Compile {
        tool: line.program.clone(),
        what: what.to_owned(),
        message: reason(&output, late, line.sandbox.is_on()),
        command: line.to_string(),
    })
}

/// Runs a line; what the tool says on failure becomes the error. Gives its standard output.
pub fn run(line: &Line, what: &str) -> Result<String, CompileError> {
    Ok(execute(line, what, None)?.0)
}

/// Runs a line with `input` on its standard input. Gives its standard output and error.
pub fn run_with_input(
    line: &Line,
    what: &str,
    input: &str,
) -> Result<(String, String), CompileError> {
    execute(line, what, Some(input))
}

/// The standard error of a line; `None` if the line fails.
pub fn told(line: &Line) -> Option<Vec<u8>> {
    let output = output(line, None).ok()?.0;
    output.status.success().then_some(output.stderr)
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
