//! This machine: one worker after another.

use crate::error::{NodesError, Result};
use crate::host::host_name;
use crate::job::Job;
use crate::worker::{Event, Worker, reason};
use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

/// One command is supervised at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Runs `missing` here. Why chunks have no result.
pub fn run(
    job: &Job,
    missing: Vec<usize>,
    worker: &Worker,
    events: &mut dyn FnMut(Event),
) -> Result<BTreeMap<usize, String>> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut failures = BTreeMap::new();
    for chunk in missing {
        let host = host_name();
        events(Event::Started {
            chunk,
            host: host.clone(),
        });
        let io = |source| NodesError::Io {
            doing: "keep what a worker says in a temporary file".to_owned(),
            source,
        };
        let mut said = tempfile::tempfile().map_err(io)?;
        let mut command = worker.command(job.directory(), chunk);
        command
            .stdin(Stdio::null())
            .stdout(said.try_clone().map_err(io)?)
            .stderr(said.try_clone().map_err(io)?);
        let shown = worker.program.display().to_string();
        let ended = cere_system::process::supervise::run(&mut command, &shown, None);
        let ended = ended.map_err(|error| NodesError::Refused {
            place: "this machine".to_owned(),
            said: format!("{error:#}"),
        })?;
        if let Some(told) = ended.told {
            return Err(NodesError::Interrupted(told));
        }
        if let Ok(Some(result)) = job.result(chunk) {
            let (host, seconds) = (result.host, result.seconds);
            events(Event::Done {
                chunk,
                host,
                seconds,
            });
            continue;
        }
        let mut text = Vec::new();
        let _ = said.rewind().and_then(|()| said.read_to_end(&mut text));
        let why = reason(ended.status, &text);
        failures.insert(chunk, why.clone());
        events(Event::Failed { chunk, host, why });
    }
    Ok(failures)
}
