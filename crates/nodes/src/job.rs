//! A job: a directory with tasks in chunks and, by and by, their results.

use crate::error::{NodesError, Result, failed};
use crate::files::{Unfinished, make_directory, read_json, sweep, write_json};
use crate::host::host_name;
use crate::record::{Chunk, End, JOB_VERSION, Record, Task, read_record};
use crate::worker::Event;
use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What became of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The host that did it.
    pub host: String,
    /// What the worker returned, or why it could not.
    pub value: std::result::Result<Value, String>,
}

/// A job's directory.
#[derive(Debug)]
pub struct Job {
    directory: PathBuf,
    record: Record,
}

/// The exclusive right to run a job; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone leaves it to a process that another thread is about to start.
        let _ = self.0.unlock();
    }
}

impl Job {
    /// The job of `tasks` in `directory`, in chunks of `per_chunk` tasks (at least one): a new one, or the one that is there
    /// with its results and its own chunks. What the work reads has to lie in `inputs/` of the directory by then.
    ///
    /// `id` says what the tasks mean, for example by a hash: 1 to 64 letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// [`NodesError::OtherJob`] if there is a job of another kind, id or number of tasks.
    pub fn create_or_resume(
        directory: &Path,
        kind: &str,
        id: &str,
        tasks: &[Value],
        per_chunk: usize,
    ) -> Result<Self> {
        let per_chunk = per_chunk.max(1);
        let wanted = Record {
            version: JOB_VERSION,
            kind: kind.to_owned(),
            id: id.to_owned(),
            chunks: tasks.len().div_ceil(per_chunk),
            tasks: tasks.len(),
            per_chunk,
            created: now(),
        };
        for part in ["chunks", "inputs", "results"] {
            make_directory(&directory.join(part))?;
        }
        let directory = directory
            .canonicalize()
            .map_err(failed("find", directory))?;
        if read_record(&directory)?.is_none() {
            let _lock = lock(&directory)?;
            wanted.check(&directory)?;
            let number = |(task, input): (usize, &Value)| Task {
                task,
                input: input.clone(),
            };
            let tasks: Vec<Task> = tasks.iter().enumerate().map(number).collect();
            for (chunk, tasks) in tasks.chunks(per_chunk).enumerate() {
                write_json(&directory.join(format!("chunks/{chunk}.json")), &tasks)?;
            }
            // Last: with it, the job is there.
            write_json(&directory.join("job.json"), &wanted)?;
        }
        let job = Self::open(&directory)?;
        let name = |r: &Record| format!("{} {}, {} tasks", r.kind, r.id, r.tasks);
        if name(&job.record) != name(&wanted) {
            return Err(NodesError::OtherJob {
                directory,
                found: name(&job.record),
                wanted: name(&wanted),
            });
        }
        Ok(job)
    }

    /// The job that is in `directory`.
    ///
    /// # Errors
    /// Where there is none, or that of another version.
    pub fn open(directory: &Path) -> Result<Self> {
        let missing = || failed("find a job in", directory)(ErrorKind::NotFound.into());
        let directory = directory
            .canonicalize()
            .map_err(failed("find a job in", directory))?;
        let record = read_record(&directory)?.ok_or_else(missing)?;
        Ok(Self { directory, record })
    }

    /// Its directory, absolute.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the tasks are for.
    pub fn kind(&self) -> &str {
        &self.record.kind
    }

    /// What the tasks mean.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// The number of chunks.
    pub fn chunks(&self) -> usize {
        self.record.chunks
    }

    /// The number of tasks.
    pub fn tasks(&self) -> usize {
        self.record.tasks
    }

    /// 16 hexadecimal digits that tell it from other jobs, earlier ones of the same id included.
    pub(crate) fn token(&self) -> String {
        format!("{:016x}", self.record.created)
    }

    /// The chunks without a valid result, in order. A result that cannot be read, or is that of another job, does not count;
    /// a note names it.
    ///
    /// # Errors
    /// If results cannot be looked for.
    pub fn missing(&self, events: &mut dyn FnMut(Event)) -> Result<Vec<usize>> {
        let mut missing = Vec::new();
        for chunk in 0..self.chunks() {
            match self.result(chunk) {
                Ok(Some(_)) => continue,
                Ok(None) => {}
                Err(NodesError::Damaged { file, why }) => {
                    let file = file.display();
                    let text = format!("chunk {chunk} is done again: {file} is damaged ({why})");
                    events(Event::Note(text));
                }
                Err(error) => return Err(error),
            }
            missing.push(chunk);
        }
        Ok(missing)
    }

    /// What became of each task, in the order of the tasks; none where the chunk has no valid result.
    ///
    /// # Errors
    /// If a result cannot be read.
    pub fn results(&self) -> Result<Vec<Option<Outcome>>> {
        let mut all = vec![None; self.tasks()];
        for chunk in 0..self.chunks() {
            let found = match self.result(chunk) {
                Err(NodesError::Damaged { .. }) => None,
                found => found?,
            };
            let Some(found) = found else { continue };
            for ended in found.results {
                let value = match ended.end {
                    End::Value(value) => Ok(value),
                    End::Error(why) => Err(why),
                };
                let host = found.host.clone();
                if let Some(place) = all.get_mut(ended.task) {
                    *place = Some(Outcome { host, value });
                }
            }
        }
        Ok(all)
    }

    /// Removes the directory with all that is in it.
    ///
    /// # Errors
    /// [`NodesError::InUse`] while it is run.
    pub fn remove(self) -> Result<()> {
        let _lock = self.lock()?;
        fs::remove_dir_all(&self.directory).map_err(failed("remove", &self.directory))
    }

    /// Takes the right to run the job.
    pub(crate) fn lock(&self) -> Result<Lock> {
        lock(&self.directory)
    }

    /// Removes what killed workers left.
    pub(crate) fn sweep(&self) {
        sweep(&self.directory.join("results"));
    }

    pub(crate) fn chunk_file(&self, chunk: usize) -> PathBuf {
        self.directory.join(format!("chunks/{chunk}.json"))
    }

    pub(crate) fn result_file(&self, chunk: usize) -> PathBuf {
        self.directory.join(format!("results/{chunk}.json"))
    }

    /// The numbers of a chunk's tasks.
    fn numbers(&self, chunk: usize) -> std::ops::Range<usize> {
        let start = chunk.saturating_mul(self.record.per_chunk);
        start
            ..start
                .saturating_add(self.record.per_chunk)
                .min(self.tasks())
    }

    /// The tasks of a chunk.
    pub(crate) fn chunk(&self, chunk: usize) -> Result<Vec<Task>> {
        if chunk >= self.chunks() {
            return Err(NodesError::NoChunk {
                directory: self.directory.clone(),
                chunk,
                chunks: self.chunks(),
            });
        }
        let file = self.chunk_file(chunk);
        let found: Option<Vec<Task>> = read_json(&file)?;
        match found {
            Some(tasks) if tasks.iter().map(|t| t.task).eq(self.numbers(chunk)) => Ok(tasks),
            found => Err(NodesError::Damaged {
                file,
                why: found
                    .map_or("it is not there", |_| "it has other tasks")
                    .to_owned(),
            }),
        }
    }

    /// What the tasks of a chunk are, in order, for a worker that prepares something for all of them.
    ///
    /// # Errors
    /// The job has no such chunk, or its file is damaged.
    pub fn inputs(&self, chunk: usize) -> Result<Vec<Value>> {
        let tasks = self.chunk(chunk)?;
        Ok(tasks.into_iter().map(|task| task.input).collect())
    }

    /// The result of a chunk, if there is one.
    ///
    /// # Errors
    /// [`NodesError::Damaged`] if it is not one of this chunk of this job.
    pub(crate) fn result(&self, chunk: usize) -> Result<Option<Chunk>> {
        let file = self.result_file(chunk);
        let found: Option<Chunk> = read_json(&file)?;
        let Some(found) = found else { return Ok(None) };
        self.check(chunk, &file, found).map(Some)
    }

    /// `found`, if it is the result of this chunk of this job.
    pub(crate) fn check(&self, chunk: usize, file: &Path, found: Chunk) -> Result<Chunk> {
        let numbers = found.results.iter().map(|ended| ended.task);
        let ours = found.job == self.id() && found.chunk == chunk;
        if ours && numbers.eq(self.numbers(chunk)) {
            return Ok(found);
        }
        Err(NodesError::Damaged {
            file: file.to_owned(),
            why: format!("it is of chunk {} of job {}", found.chunk, found.job),
        })
    }

    /// Keeps the result of a chunk, unless there is a valid one. Whether it was kept.
    pub(crate) fn keep(
        &self,
        chunk: usize,
        unfinished: Unfinished,
        content: &[u8],
    ) -> Result<bool> {
        let damaged = matches!(self.result(chunk), Err(NodesError::Damaged { .. }));
        unfinished.finish(content, damaged)
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

fn lock(directory: &Path) -> Result<Lock> {
    let path = directory.join("lock");
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).map_err(failed("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            // The holder writes its number after it has taken the lock.
            return Err(NodesError::InUse {
                directory: directory.to_owned(),
                holder: match holder.trim() {
                    "" => "another process".to_owned(),
                    holder => holder.to_owned(),
                },
            });
        }
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "process {} on {}", std::process::id(), host_name()))
        .map_err(failed("write", &path))?;
    Ok(Lock(file))
}
