//! Other machines, by the user's ssh: each does one chunk at a time. A host that fails is dropped; its chunk goes to another.

use crate::error::{NodesError, Result};
use crate::files::Unfinished;
use crate::job::Job;
use crate::place::{Host, SshOptions};
use crate::queue::Queue;
use crate::record::Chunk;
use crate::worker::{Event, Worker, last_lines};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Result as IoResult;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Sender, channel};

/// Behind the user's options, of which ssh takes the first: no questions, and a dead host is noticed within a minute.
const OPTIONS: [&str; 4] = [
    "-oBatchMode=yes",
    "-oConnectTimeout=15",
    "-oServerAliveInterval=15",
    "-oServerAliveCountMax=3",
];

/// Where a host says what was asked for; what its start-up files say comes before.
const MARK: &str = "=== cere ===\n";

/// Runs `missing` on the hosts. Why chunks have no result.
pub fn run(
    job: &Job,
    missing: Vec<usize>,
    options: &SshOptions,
    worker: &Worker,
    events: &mut dyn FnMut(Event),
) -> Result<BTreeMap<usize, String>> {
    let remotes = options.hosts.iter().map(|host| Remote {
        job,
        host,
        options,
        worker,
    });
    let remotes: Vec<Remote> = remotes.collect();
    let tried = Command::new("ssh").arg("-V").output();
    tried.map_err(|why| NodesError::Program {
        program: "ssh",
        why,
        remedy: "install it, on Debian openssh-client",
    })?;
    let queue = Queue::of(missing);
    let mut dropped = Vec::new();
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for remote in &remotes {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move || {
                if let Err(lost) = remote.serve(queue, &sender) {
                    let _ = sender.send(Event::Dropped {
                        host: remote.host.to_string(),
                        why: lost.to_string(),
                    });
                }
            });
        }
        drop(sender);
        for event in receiver {
            if let Event::Dropped { host, why } = &event {
                dropped.push(format!("{host}: {why}"));
            }
            events(event);
        }
    });
    let left = queue.left(&format!("no host is left ({})", dropped.join("; ")))?;
    if left.is_empty() {
        for remote in &remotes {
            // A host that cannot be reached keeps its copy.
            let _ = remote.shell("rm -rf -- \"$d\"", None);
        }
    }
    Ok(left)
}

/// Writes the input of a script.
type Send<'a> = &'a dyn Fn(&mut ChildStdin) -> IoResult<()>;

/// Why a chunk has no result.
enum Failure {
    /// The chunk, on this host.
    Chunk(String),
    /// The host.
    Host(Lost),
    /// This machine.
    Here(NodesError),
}

/// Why a host is used no more.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("cannot run ssh: {0}")]
    Start(std::io::Error),
    #[error("cannot send the job: {0}")]
    Send(std::io::Error),
    #[error("cannot read the job: {0}")]
    Read(std::io::Error),
    #[error("the connection was lost")]
    Connection,
    #[error("no connection: {0}")]
    NoConnection(String),
    #[error("cannot run {program} there: put it on the PATH of that host, or name its path{said}")]
    Program { program: String, said: String },
    #[error("ssh ended with {0}")]
    Ended(ExitStatus),
    #[error("cannot keep the job there ({status}): {said}")]
    Keep { status: ExitStatus, said: String },
}

/// A host, and what it is to do.
struct Remote<'a> {
    job: &'a Job,
    host: &'a Host,
    options: &'a SshOptions,
    worker: &'a Worker,
}

impl Remote<'_> {
    /// Does chunks until none is left for it, or says why it is to be dropped.
    fn serve(&self, queue: &Queue, events: &Sender<Event>) -> std::result::Result<(), Lost> {
        self.prepare()?;
        let host = self.host.to_string();
        let tell = |event| {
            let _ = events.send(event);
        };
        while let Some(chunk) = queue.take(&host) {
            let host = host.clone();
            tell(Event::Started {
                chunk,
                host: host.clone(),
            });
            let (why, lost): (String, Option<Lost>) = match self.chunk(chunk) {
                Ok(seconds) => {
                    tell(Event::Done {
                        chunk,
                        host,
                        seconds,
                    });
                    queue.done();
                    continue;
                }
                Err(Failure::Here(error)) => {
                    queue.stop(error);
                    return Ok(());
                }
                Err(Failure::Chunk(why)) => (why, None),
                Err(Failure::Host(lost)) => (lost.to_string(), Some(lost)),
            };
            tell(Event::Failed {
                chunk,
                host: host.clone(),
                why: why.clone(),
            });
            queue.give_back(chunk, &host, &format!("{host}: {why}"));
            if let Some(lost) = lost {
                return Err(lost);
            }
        }
        Ok(())
    }

    /// Sends the job, unless it is there.
    fn prepare(&self) -> std::result::Result<(), Lost> {
        let program = quoted(self.program());
        let look = format!(
            "command -v {program} >/dev/null || exit 127; printf '%s' '{MARK}'; cat \"$d/sent\" 2>/dev/null; true"
        );
        let found = self.shell(&look, None);
        let found = self.succeeded(found)?;
        let stamp = self.stamp().map_err(Lost::Read)?;
        if behind_mark(&found.stdout) == Some(stamp.as_bytes()) {
            return Ok(());
        }
        let send = format!(
            "umask 077; rm -rf -- \"$d\"; mkdir -p -- \"$d/results\" && tar -xof - -C \"$d\" && printf %s '{stamp}' >\"$d/sent\""
        );
        let pack = |pipe: &mut ChildStdin| {
            let mut archive = tar::Builder::new(pipe);
            let directory = self.job.directory();
            archive.append_path_with_name(directory.join("job.json"), "job.json")?;
            for part in ["chunks", "inputs"] {
                archive.append_dir_all(part, directory.join(part))?;
            }
            archive.finish()
        };
        let sent = self.shell(&send, Some(&pack));
        self.succeeded(sent).map(|_| ())
    }

    /// Does a chunk and keeps its result. The seconds that it took.
    fn chunk(&self, chunk: usize) -> std::result::Result<f64, Failure> {
        let mut words: Vec<_> = self.worker.arguments.iter().map(quoted).collect();
        words.insert(0, quoted(self.program()));
        // The worker ends with the connection, which it would else outlive.
        let script = format!(
            "exec 3<&0; setsid {words} \"$d\" {chunk} </dev/null >&2 3<&- & w=$!; \
             (cat <&3; kill -TERM -$w) >/dev/null 2>&1 & c=$!; wait $w; s=$?; kill $c 2>/dev/null; \
             [ $s = 0 ] || exit $s; printf '%s' '{MARK}'; cat \"$d/results/{chunk}.json\"",
            words = words.join(" "),
        );
        let output = self.shell(&script, None);
        let output = output.map_err(|error| Failure::Host(Lost::Start(error)))?;
        if let Some(lost) = self.lost(&output) {
            return Err(Failure::Host(lost));
        }
        let said = last_lines(&output.stderr);
        if !output.status.success() {
            let why = format!("the worker ended with {}: {said}", output.status);
            return Err(Failure::Chunk(why));
        }
        let broken = |why: String| Failure::Chunk(format!("its result did not come whole: {why}"));
        let bytes = behind_mark(&output.stdout).ok_or_else(|| broken(said))?;
        let found: Chunk =
            serde_json::from_slice(bytes).map_err(|error| broken(error.to_string()))?;
        let file = self.job.result_file(chunk);
        let found = self.job.check(chunk, &file, found);
        let found = found.map_err(|error| broken(error.to_string()))?;
        Unfinished::begin(&file, bytes.len() as u64)
            .and_then(|unfinished| self.job.keep(chunk, unfinished, bytes))
            .map_err(Failure::Here)?;
        Ok(found.seconds)
    }

    /// Why the host is of no use, if `output` says so.
    fn lost(&self, output: &Output) -> Option<Lost> {
        let said = last_lines(&output.stderr);
        match output.status.code() {
            Some(255) if said.is_empty() => Some(Lost::Connection),
            Some(255) => Some(Lost::NoConnection(said)),
            Some(126 | 127) => Some(Lost::Program {
                program: self.program().to_string_lossy().into_owned(),
                said: match said.is_empty() {
                    true => said,
                    false => format!(" ({said})"),
                },
            }),
            None => Some(Lost::Ended(output.status)),
            Some(_) => None,
        }
    }

    /// The output of a script that succeeded.
    fn succeeded(&self, output: IoResult<Output>) -> std::result::Result<Output, Lost> {
        let output = output.map_err(Lost::Send)?;
        match self.lost(&output) {
            Some(lost) => Err(lost),
            None if output.status.success() => Ok(output),
            None => Err(Lost::Keep {
                status: output.status,
                said: last_lines(&output.stderr),
            }),
        }
    }

    /// Runs `script` on the host, where `$d` is the job's directory, with what `send` writes as its input; none: an input
    /// that has nothing, and ends with the connection.
    fn shell(&self, script: &str, send: Option<Send<'_>>) -> IoResult<Output> {
        let script = format!(
            "d=\"${{CERE_JOBS:-${{XDG_CACHE_HOME:-$HOME/.cache}}/cere/jobs}}/{}\"; {script}",
            self.name()
        );
        let mut command = Command::new("ssh");
        command.args(&self.options.options).args(OPTIONS);
        if let Some(port) = self.host.port {
            command.args(["-p", &port.to_string()]);
        }
        // Whatever the user's shell is.
        let script = format!("exec sh -c {}", shell_words::quote(&script));
        command.arg("--").arg(&self.host.name).arg(script);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let mut pipe = child.stdin.take();
        std::thread::scope(|scope| {
            let output = scope.spawn(move || child.wait_with_output());
            let sent = match (send, &mut pipe) {
                (Some(send), Some(open)) => {
                    let sent = send(open);
                    pipe = None;
                    sent
                }
                _ => Ok(()),
            };
            let output = output.join();
            drop(pipe);
            let output = output.map_err(|_| std::io::Error::other("ssh was not waited for"))??;
            // Where ssh failed, that is the reason.
            if output.status.success() {
                sent?;
            }
            Ok(output)
        })
    }

    /// The program there.
    fn program(&self) -> &OsStr {
        let here = &self.worker.program;
        match &self.options.program {
            Some(program) => program.as_os_str(),
            None => here.file_name().unwrap_or(here.as_os_str()),
        }
    }

    /// The name of the job's directory there: hosts may share one home.
    fn name(&self) -> String {
        let mut host = String::new();
        for byte in self.host.to_string().bytes() {
            match byte {
                b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => host.push(byte.into()),
                _ => host.push_str(&format!("_{byte:02x}")),
            }
        }
        format!("{}-{}-{host}", self.job.id(), self.job.token())
    }

    /// What the directory has that was sent: names and sizes.
    fn stamp(&self) -> IoResult<String> {
        let mut files = Vec::new();
        for part in ["job.json", "chunks", "inputs"] {
            list(&self.job.directory().join(part), &mut files)?;
        }
        files.sort();
        Ok(format!("{:016x}", hash(&files)))
    }
}

fn quoted(word: impl AsRef<OsStr>) -> String {
    shell_words::quote(&word.as_ref().to_string_lossy()).into_owned()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn list(path: &Path, found: &mut Vec<(Vec<u8>, u64)>) -> IoResult<()> {
    let metadata = path.metadata()?;
    if !metadata.is_dir() {
        let name = path.as_os_str().as_encoded_bytes().to_vec();
        found.push((name, metadata.len()));
        return Ok(());
    }
    for entry in path.read_dir()? {
        list(&entry?.path(), found)?;
    }
    Ok(())
}

/// What comes behind the mark.
fn behind_mark(output: &[u8]) -> Option<&[u8]> {
    let mark = MARK.as_bytes();
    let at = output.windows(mark.len()).position(|part| part == mark)?;
    output.get(at + mark.len()..)
}
