//! Work on several machines: one protocol of chunks whose results are files of their own, renamed when they are whole. A node that is
//! lost costs its chunk, and a second call goes on with what is missing.
//!
//! | module | what |
//! |---|---|
//! | [`job`] | the job as a directory; the worker's side |
//! | [`place`] | where chunks are done |
//! | [`local`] | on this machine |

mod job;
mod local;
mod place;

pub use job::{Job, Outcome, kind, work};
pub use place::{Hq, Place, Slurm, Ssh, Worker};

use anyhow::Result;

/// What happens to a chunk.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It was given to a machine.
    Started {
        /// The chunk.
        chunk: usize,
        /// The machine.
        host: String,
    },
    /// It has a result.
    Done {
        /// The chunk.
        chunk: usize,
        /// The machine.
        host: String,
        /// Seconds that it took there.
        seconds: f64,
    },
    /// It has none from this machine.
    Failed {
        /// The chunk.
        chunk: usize,
        /// The machine.
        host: String,
        /// Why.
        why: String,
    },
}

/// What a run leaves undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rest {
    /// Chunks without a result, and why.
    pub missing: Vec<(usize, String)>,
}

/// Has all chunks that are missing done at `place`, and waits for them.
///
/// # Errors
/// The place cannot be used: a tool is missing, a scheduler refuses.
pub fn run(
    job: &Job,
    place: &Place,
    worker: &Worker,
    events: &mut dyn FnMut(Event),
) -> Result<Rest> {
    match place {
        Place::Local => local::run(job, worker, events),
        _ => todo!(),
    }
}

/// The last lines of what a process said, or `status` if it said nothing.
pub(crate) fn said(stderr: &[u8], status: &str) -> String {
    const LINES: usize = 3;
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    match lines.len() {
        0 => status.to_owned(),
        count => lines[count.saturating_sub(LINES)..].join("; "),
    }
}
