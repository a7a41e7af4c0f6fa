//! The worker's side: does one chunk.

use crate::error::{Result, failed};
use crate::files::Unfinished;
use crate::job::Job;
use crate::record::{Chunk, End, Ended};
use cere_system::events::Events;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

/// Space for the result that is asked for before the work, in bytes a chunk and bytes a task.
const RESERVE: (u64, u64) = (4096, 512);

/// Does chunk `chunk` of the job in `directory`: calls `each` with every task, in order, and keeps what it returns. Nothing is
/// done if the chunk has a valid result. While another worker does the same chunk, its end is waited for.
///
/// # Errors
/// [`NodesError::Space`](crate::NodesError::Space) if there is no room for the result: where the file system can say, before
/// the first task. No half file is left. A task that fails is no error but a result.
pub fn work(
    directory: &Path,
    chunk: usize,
    host: &str,
    each: &mut dyn FnMut(&Value) -> std::result::Result<Value, String>,
    events: &Events,
) -> Result<()> {
    let job = Job::open(directory)?;
    let tasks = job.chunk(chunk)?;
    // A scheduler that lost a node may start its chunk again while the first worker lives.
    let path = job.chunk_file(chunk);
    let mut options = File::options();
    let file = options.read(true).write(true).open(&path);
    let file = file.map_err(failed("open", &path))?;
    if let Err(error) = file.lock() {
        // Not everywhere can nodes lock. Then the first result counts.
        events.detail(format!("cannot lock {}: {error}", path.display()));
    }
    if let Ok(Some(found)) = job.result(chunk) {
        events.detail(format!("chunk {chunk} was done on {}", found.host));
        return Ok(());
    }
    let reserve = RESERVE.0 + RESERVE.1 * tasks.len() as u64;
    let result_file = job.result_file(chunk);
    let unfinished = Unfinished::begin(&result_file, reserve)?;
    let start = Instant::now();
    let mut results = Vec::new();
    for task in tasks {
        let end = match each(&task.input) {
            Ok(value) => End::Value(value),
            Err(why) => End::Error(why),
        };
        let task = task.task;
        results.push(Ended { task, end });
    }
    let result = Chunk {
        job: job.id().to_owned(),
        chunk,
        host: host.to_owned(),
        seconds: start.elapsed().as_secs_f64(),
        results,
    };
    let content = serde_json::to_vec(&result);
    let content = content.map_err(|error| failed("write", &result_file)(error.into()))?;
    job.keep(chunk, unfinished, &content)?;
    Ok(())
}
