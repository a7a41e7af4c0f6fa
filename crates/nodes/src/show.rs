//! Runs a job with progress for people.

use crate::error::{NodesError, Result};
use crate::job::Job;
use crate::place::Place;
use crate::run::run;
use crate::worker::{Event, Worker};
use cere_system::events::Events;

/// Runs what is missing of a job, and says what is being done (`doing`).
///
/// # Errors
/// [`NodesError::Missing`] if chunks still have no result, and those of [`run`].
pub fn run_all(
    job: &Job,
    place: &Place,
    worker: &Worker,
    doing: &'static str,
    events: &Events,
) -> Result<()> {
    let missing = job.missing(&mut |_| ())?.len();
    let progress = events.steps(doing, missing as u64);
    let rest = run(job, place, worker, &mut |event| match event {
        Event::Started { chunk, host } => progress.at(format!("chunk {chunk} on {host}")),
        Event::Done { .. } => progress.step(),
        Event::Failed { chunk, host, why } => {
            events.note(format!("chunk {chunk} on {host}: {why}"))
        }
        Event::Dropped { host, why } => events.note(format!("{host} is used no more: {why}")),
        Event::Note(text) => events.note(text),
    });
    drop(progress);
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
