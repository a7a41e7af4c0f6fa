//! Runs the chunks of a job that have no result yet.

use crate::error::Result;
use crate::hq;
use crate::job::Job;
use crate::local;
use crate::place::Place;
use crate::slurm;
use crate::ssh;
use crate::worker::{Event, Worker};

/// What is left when a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rest {
    /// Chunks without a result, in order, each with the reason.
    pub missing: Vec<(usize, String)>,
}

/// Runs the chunks without a result at `place` and waits for them. A chunk that has a result is not run again. What cannot
/// be done now is in [`Rest`]: the next call tries it again.
///
/// # Errors
/// [`NodesError::InUse`](crate::NodesError::InUse) while another process runs the job, and what keeps all of it from being run.
pub fn run(
    job: &Job,
    place: &Place,
    worker: &Worker,
    events: &mut dyn FnMut(Event),
) -> Result<Rest> {
    let _lock = job.lock()?;
    let missing = job.missing(events)?;
    if missing.is_empty() {
        return Ok(Rest::default());
    }
    let why = match place {
        Place::Local => local::run(job, missing, worker, events)?,
        Place::Ssh(options) => ssh::run(job, missing, options, worker, events)?,
        Place::Slurm(options) => slurm::run(job, &missing, options, worker, events)?,
        Place::Hq(options) => hq::run(job, &missing, options, worker, events)?,
    };
    let missing = job.missing(events)?;
    if missing.is_empty() {
        job.sweep();
    }
    let reason = |chunk: usize| {
        let known = why.get(&chunk).cloned();
        (
            chunk,
            known.unwrap_or_else(|| "it was not started".to_owned()),
        )
    };
    Ok(Rest {
        missing: missing.into_iter().map(reason).collect(),
    })
}
