//! Chunks on this machine, one after another: they are timed.

use crate::{Event, Job, Rest, Worker};
use anyhow::{Context, Result};
use std::process::{Command, Stdio};

/// The name of this machine in events.
pub(crate) const HERE: &str = "this machine";

/// Runs the chunks that are missing.
pub(crate) fn run(job: &Job, worker: &Worker, events: &mut dyn FnMut(Event)) -> Result<Rest> {
    let mut rest = Rest::default();
    for chunk in job.missing()? {
        let host = HERE.to_owned();
        events(Event::Started {
            chunk,
            host: host.clone(),
        });
        let output = Command::new(&worker.program)
            .args(&worker.arguments)
            .arg(job.directory())
            .arg(chunk.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .with_context(|| format!("cannot start {}", worker.program.display()))?;
        match job.done(chunk) {
            Some(done) => events(Event::Done {
                chunk,
                host,
                seconds: done.seconds,
            }),
            None => {
                let why = crate::said(&output.stderr, &output.status.to_string());
                events(Event::Failed {
                    chunk,
                    host,
                    why: why.clone(),
                });
                rest.missing.push((chunk, why));
            }
        }
    }
    Ok(rest)
}
