//! What the files of a job hold.

use crate::error::{NodesError, Result};
use crate::files::read_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The version of a job's files.
pub const JOB_VERSION: u32 = 1;

/// `job.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub version: u32,
    pub kind: String,
    pub id: String,
    pub chunks: usize,
    pub tasks: usize,
    pub per_chunk: usize,
    pub created: u64,
}

/// Most tasks of a job.
const MOST_TASKS: usize = 1 << 26;

impl Record {
    /// Refuses what no job is.
    pub(crate) fn check(&self, directory: &Path) -> Result<()> {
        let why = if !is_plain(&self.id) {
            format!(
                "the id `{}` is not 1 to 64 letters, digits, - and _",
                self.id
            )
        } else if self.tasks > MOST_TASKS {
            format!("it has {} tasks, more than {MOST_TASKS}", self.tasks)
        } else if self.per_chunk == 0 || self.chunks != self.tasks.div_ceil(self.per_chunk) {
            format!(
                "{} tasks are not {} chunks of {}",
                self.tasks, self.chunks, self.per_chunk
            )
        } else {
            return Ok(());
        };
        let file = directory.join("job.json");
        Err(NodesError::Damaged { file, why })
    }
}

/// A task of a chunk, with its number in the job.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub task: usize,
    pub input: Value,
}

/// `results/<n>.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Chunk {
    pub job: String,
    pub chunk: usize,
    pub host: String,
    pub seconds: f64,
    pub results: Vec<Ended>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub task: usize,
    #[serde(flatten)]
    pub end: End,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Value(Value),
    Error(String),
}

/// `job.json`; none where there is no job.
pub(crate) fn read_record(directory: &Path) -> Result<Option<Record>> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let file = directory.join("job.json");
    match read_json::<Version>(&file)? {
        Some(found) if found.version != JOB_VERSION => Err(NodesError::Version {
            directory: directory.to_owned(),
            version: found.version,
            reads: JOB_VERSION,
        }),
        Some(_) => {
            let record: Option<Record> = read_json(&file)?;
            if let Some(record) = &record {
                record.check(directory)?;
            }
            Ok(record)
        }
        None => Ok(None),
    }
}

fn is_plain(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=64).contains(&id.len()) && id.chars().all(plain)
}
