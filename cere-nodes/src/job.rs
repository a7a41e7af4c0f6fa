//! A job as a directory: what is to be done, in chunks, and what was done, a file a chunk.
//!
//! | file | content |
//! |---|---|
//! | `job.json` | kind, id, numbers of chunks and tasks |
//! | `chunks/<n>.json` | the tasks of a chunk |
//! | `inputs/` | files that the work needs |
//! | `results/<n>.json` | what came of the chunk; appears by rename when it is whole |

use anyhow::{Context, Result, bail, ensure};
use cere_console::note;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Version of the files of a job.
const VERSION: u32 = 1;

/// `job.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    version: u32,
    kind: String,
    id: String,
    chunks: usize,
    tasks: usize,
}

/// A task with its number in the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Numbered {
    task: usize,
    value: Value,
}

/// What came of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Its value.
    Value(Value),
    /// Why there is none.
    Error(String),
}

/// `results/<n>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The id of the job.
    job: String,
    /// The chunk.
    chunk: usize,
    /// The machine that did it.
    pub(crate) host: String,
    /// Seconds that it took.
    pub(crate) seconds: f64,
    /// One for each of the chunk's tasks, in order.
    results: Vec<(usize, Outcome)>,
}

/// Work in chunks.
#[derive(Debug)]
pub struct Job {
    directory: PathBuf,
    head: Head,
    _lock: File,
}

/// Writes `bytes` to `path`, whole or not at all; they are on the disk before the file has its name.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let directory = path.parent().context("a path without a directory")?;
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".unfinished.")
            .tempfile_in(directory)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| {
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&error.kind());
        let advice = match full {
            true => ": make room there; the same command goes on with what is missing",
            false => "",
        };
        anyhow::Error::from(error).context(format!("cannot write {}{advice}", path.display()))
    })
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display()))
}

fn head(directory: &Path) -> Result<Head> {
    let head: Head = read(&directory.join("job.json"))?;
    ensure!(
        head.version == VERSION,
        "the job in {} has version {}, this cere knows {VERSION}: install the version of cere that made it, or remove the directory",
        directory.display(),
        head.version
    );
    Ok(head)
}

/// The kind of the job in `directory`.
///
/// # Errors
/// There is no job, or one of another version.
pub fn kind(directory: &Path) -> Result<String> {
    Ok(head(directory)?.kind)
}

fn chunk_file(directory: &Path, chunk: usize) -> PathBuf {
    directory.join("chunks").join(format!("{chunk}.json"))
}

fn result_file(directory: &Path, chunk: usize) -> PathBuf {
    directory.join("results").join(format!("{chunk}.json"))
}

impl Job {
    /// The job of these `tasks` in `directory`, at most `per_chunk` in a chunk. If it is there already, what was done counts. `id`
    /// tells jobs apart: it is a hash over all that their results depend on.
    ///
    /// # Errors
    /// Another job is there; another process works on it; it cannot be written.
    pub fn create_or_resume(
        directory: &Path,
        kind: &str,
        id: &str,
        tasks: &[Value],
        per_chunk: usize,
    ) -> Result<Self> {
        let directory = std::path::absolute(directory)
            .with_context(|| format!("cannot make {} absolute", directory.display()))?;
        let chunks: Vec<&[Value]> = tasks.chunks(per_chunk.max(1)).collect();
        for part in ["chunks", "results", "log"] {
            fs::create_dir_all(directory.join(part))
                .with_context(|| format!("cannot create {}", directory.join(part).display()))?;
        }
        let lock = lock(&directory)?;
        let wanted = Head {
            version: VERSION,
            kind: kind.to_owned(),
            id: id.to_owned(),
            chunks: chunks.len(),
            tasks: tasks.len(),
        };
        if directory.join("job.json").exists() {
            let found = head(&directory)?;
            ensure!(
                found == wanted,
                "{} holds another job (of kind {}, {} tasks in {} chunks): finish that one with its own command, or remove the directory",
                directory.display(),
                found.kind,
                found.tasks,
                found.chunks
            );
        } else {
            let mut number = 0;
            for (chunk, tasks) in chunks.iter().enumerate() {
                let numbered = tasks.iter().zip(number..).map(|(value, task)| Numbered {
                    task,
                    value: value.clone(),
                });
                let numbered: Vec<Numbered> = numbered.collect();
                number += tasks.len();
                write_whole(
                    &chunk_file(&directory, chunk),
                    &serde_json::to_vec(&numbered)?,
                )?;
            }
            // Written last: with it the job is whole.
            write_whole(&directory.join("job.json"), &serde_json::to_vec(&wanted)?)?;
        }
        Ok(Self {
            directory,
            head: wanted,
            _lock: lock,
        })
    }

    /// Its directory, absolute.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.head.id
    }

    /// Number of its chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.head.chunks
    }

    /// The result of a chunk, if there is a whole one of this job.
    pub(crate) fn done(&self, chunk: usize) -> Option<Done> {
        let path = result_file(&self.directory, chunk);
        let bytes = fs::read(&path).ok()?;
        match self.valid(chunk, &bytes) {
            Ok(done) => Some(done),
            Err(error) => {
                note!("{} does not count: {error:#}", path.display());
                None
            }
        }
    }

    fn valid(&self, chunk: usize, bytes: &[u8]) -> Result<Done> {
        let done: Done = serde_json::from_slice(bytes).context("it is damaged")?;
        let tasks: Vec<Numbered> = read(&chunk_file(&self.directory, chunk))?;
        let numbers = tasks.iter().map(|t| t.task);
        let same = numbers.eq(done.results.iter().map(|r| r.0));
        ensure!(
            done.job == self.head.id && done.chunk == chunk && same,
            "it is a result of another job"
        );
        Ok(done)
    }

    /// Takes the result of a chunk that another machine sent.
    pub(crate) fn accept(&self, chunk: usize, bytes: &[u8]) -> Result<Done> {
        let done = self.valid(chunk, bytes)?;
        write_whole(&result_file(&self.directory, chunk), bytes)?;
        Ok(done)
    }

    /// The chunks without a result.
    ///
    /// # Errors
    /// None so far.
    pub fn missing(&self) -> Result<Vec<usize>> {
        Ok((0..self.head.chunks)
            .filter(|chunk| self.done(*chunk).is_none())
            .collect())
    }

    /// What came of each task, in order; none of one in a chunk without a result.
    ///
    /// # Errors
    /// A chunk cannot be read.
    pub fn results(&self) -> Result<Vec<Option<Outcome>>> {
        let mut all = vec![None; self.head.tasks];
        for chunk in 0..self.head.chunks {
            for (task, outcome) in self.done(chunk).map_or(Vec::new(), |done| done.results) {
                if let Some(place) = all.get_mut(task) {
                    *place = Some(outcome);
                }
            }
        }
        Ok(all)
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.directory)
            .with_context(|| format!("cannot remove {}", self.directory.display()))
    }
}

/// The exclusive right to run a job; it goes with the file.
fn lock(directory: &Path) -> Result<File> {
    let path = directory.join("lock");
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = options
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    if file.try_lock().is_err() {
        bail!(
            "another process works on the job in {}: wait for it",
            directory.display()
        );
    }
    Ok(file)
}

/// The worker's side: does each task of a chunk and writes the result, whole or not at all. Nothing is done if there is a result.
///
/// # Errors
/// The job cannot be read, or the result not be written.
pub fn work(
    directory: &Path,
    chunk: usize,
    host: &str,
    each: &mut dyn FnMut(&Value) -> Result<Value, String>,
) -> Result<()> {
    let head = head(directory)?;
    ensure!(
        chunk < head.chunks,
        "the job in {} has {} chunks, no chunk {chunk}",
        directory.display(),
        head.chunks
    );
    let path = result_file(directory, chunk);
    if path.exists() {
        return Ok(());
    }
    let start = std::time::Instant::now();
    let tasks: Vec<Numbered> = read(&chunk_file(directory, chunk))?;
    let results = tasks.iter().map(|numbered| {
        let outcome = each(&numbered.value).map_or_else(Outcome::Error, Outcome::Value);
        (numbered.task, outcome)
    });
    let results = results.collect();
    let done = Done {
        job: head.id,
        chunk,
        host: host.to_owned(),
        seconds: start.elapsed().as_secs_f64(),
        results,
    };
    fs::create_dir_all(directory.join("results"))
        .with_context(|| format!("cannot create {}", directory.join("results").display()))?;
    write_whole(&path, &serde_json::to_vec(&done)?)
}
