//! Runs a job with progress for people.

use crate::error::{NodesError, Result};
use crate::job::Job;
use crate::place::Place;
use crate::run::run;
use crate::worker::{Event, Worker};
use cere_system::console::{note, progress};

/// Runs what is missing of a job, with a bar that says what is being done (`doing`).
///
/// # Errors
/// [`NodesError::Missing`] if chunks still have no result, and those of [`run`].
pub fn run_all(job: &Job, place: &Place, worker: &Worker, doing: &'static str) -> Result<()> {
    let missing = job.missing()?.len();
    let bar = progress::bar(doing, missing as u64);
    let rest = run(job, place, worker, &mut |event| match event {
        Event::Started { chunk, host } => bar.set_message(format!("chunk {chunk} on {host}")),
        Event::Done { .. } => bar.inc(1),
        Event::Failed { chunk, host, why } => note!("chunk {chunk} on {host}: {why}"),
        Event::Dropped { host, why } => note!("{host} is used no more: {why}"),
        Event::Note(text) => note!("{text}"),
    });
    bar.finish_and_clear();
    let rest = rest?.missing;
    match rest.first() {
        None => Ok(()),
        Some((chunk, why)) => Err(NodesError::Missing {
            left: rest.len(),
            of: missing,
            chunk: *chunk,
            why: why.clone(),
        }),
    }
}
