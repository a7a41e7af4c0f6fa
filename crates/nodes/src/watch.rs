//! What is common to schedulers: chunks are submitted, results waited for, and chunks that left the queue without one found.

use crate::error::{NodesError, Result, failed};
use crate::files::{Unfinished, make_directory};
use crate::job::Job;
use crate::worker::{Event, last_lines};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a scheduler may not answer.
const SILENCE: Duration = Duration::from_secs(300);
/// The longest time between two looks at the queue.
const LOOK: Duration = Duration::from_secs(30);

/// A chunk in a queue.
pub struct Queued {
    /// What the scheduler calls it.
    pub id: String,
    /// Where it runs, or why it waits, as far as that is known.
    pub state: State,
}

/// The state of a chunk in a queue.
pub enum State {
    /// It runs on this host.
    Runs(String),
    /// It waits: the reason, if it is one to tell.
    Waits(Option<String>),
}

/// A scheduler.
pub trait Scheduler {
    /// Its name, for people.
    fn name(&self) -> &'static str;
    /// The job's chunks that wait or run there.
    fn queue(&self) -> Result<BTreeMap<usize, Queued>>;
    /// Groups of chunks that can be submitted at once.
    fn groups(&self, chunks: &[usize]) -> Result<Vec<Vec<usize>>>;
    /// Submits a group: what the scheduler calls it.
    fn submit(&self, group: &[usize]) -> Result<String>;
    /// What it calls a chunk of a submitted group.
    fn id(&self, group: &str, chunk: usize) -> String;
    /// What it says of a chunk that ended, if anything.
    fn ended(&self, id: &str) -> Option<String>;
}

/// How often to look, and how long results may be late.
#[derive(Clone, Copy)]
pub struct Times {
    pub poll: Duration,
    pub grace: Duration,
}

/// A chunk that has to come.
struct Awaited {
    id: String,
    runs: Option<String>,
    gone: Option<Instant>,
}

/// Submits `missing`, unless it is in the queue, and waits. Why chunks have no result.
pub fn run(
    job: &Job,
    missing: &[usize],
    scheduler: &dyn Scheduler,
    times: Times,
    events: &mut dyn FnMut(Event),
) -> Result<BTreeMap<usize, String>> {
    make_directory(&job.directory().join("log"))?;
    let mut why = BTreeMap::new();
    let queue = scheduler.queue()?;
    let mut awaited = BTreeMap::new();
    let mut fresh = Vec::new();
    for &chunk in missing {
        match queue.get(&chunk) {
            Some(queued) => {
                awaited.insert(chunk, Awaited::of(queued.id.clone()));
            }
            None => fresh.push(chunk),
        }
    }
    let name = scheduler.name();
    if !awaited.is_empty() {
        let text = format!(
            "{} chunks are in the queue of {name} already",
            awaited.len()
        );
        events(Event::Note(text));
    }
    for group in scheduler.groups(&fresh)? {
        match scheduler.submit(&group) {
            Ok(id) => {
                let text = format!(
                    "submitted {} chunks to {name} as {id}: they stay there if this command ends, the same command goes on",
                    group.len()
                );
                events(Event::Note(text));
                awaited.extend(
                    group
                        .iter()
                        .map(|chunk| (*chunk, Awaited::of(scheduler.id(&id, *chunk)))),
                );
            }
            Err(error @ NodesError::Refused { .. }) if !awaited.is_empty() => {
                let text = error.to_string();
                why.extend(group.iter().map(|chunk| (*chunk, text.clone())));
                events(Event::Note(text));
            }
            Err(error) => return Err(error),
        }
    }
    wait(job, awaited, scheduler, times, events, &mut why)?;
    Ok(why)
}

fn wait(
    job: &Job,
    mut awaited: BTreeMap<usize, Awaited>,
    scheduler: &dyn Scheduler,
    times: Times,
    events: &mut dyn FnMut(Event),
    why: &mut BTreeMap<usize, String>,
) -> Result<()> {
    let start = Instant::now();
    let (mut looked, mut answered) = (start, start);
    let mut told = BTreeSet::new();
    loop {
        take_results(job, &mut awaited, events)?;
        let late = |a: &Awaited| a.gone.is_some_and(|gone| gone.elapsed() >= times.grace);
        let lost: Vec<usize> = awaited
            .iter()
            .filter(|(_, a)| late(a))
            .map(|(c, _)| *c)
            .collect();
        for chunk in lost {
            let Some(lost) = awaited.remove(&chunk) else {
                continue;
            };
            let host = lost.runs.unwrap_or_else(|| scheduler.name().to_owned());
            let text = reason(job, scheduler, &lost.id);
            why.insert(chunk, text.clone());
            let why = text;
            events(Event::Failed { chunk, host, why });
        }
        if awaited.is_empty() {
            return Ok(());
        }
        std::thread::sleep(times.poll);
        // The longer it takes, the less often the scheduler is asked.
        let pause = (start.elapsed() / 10).clamp(times.poll.min(LOOK), LOOK);
        if looked.elapsed() < pause {
            continue;
        }
        looked = Instant::now();
        match scheduler.queue() {
            Ok(queue) => {
                answered = looked;
                compare(&queue, &mut awaited, scheduler.name(), &mut told, events);
            }
            Err(error @ NodesError::Program { .. }) => return Err(error),
            Err(error) if answered.elapsed() >= SILENCE => return Err(error),
            Err(error) => {
                let text = format!("{error}: results are waited for");
                if told.insert(text.clone()) {
                    events(Event::Note(text));
                }
            }
        }
    }
}

impl Awaited {
    fn of(id: String) -> Self {
        Self {
            id,
            runs: None,
            gone: None,
        }
    }
}

/// Takes chunks whose results are there.
fn take_results(
    job: &Job,
    awaited: &mut BTreeMap<usize, Awaited>,
    events: &mut dyn FnMut(Event),
) -> Result<()> {
    let directory = job.directory().join("results");
    let failed = || failed("read", &directory);
    for entry in directory.read_dir().map_err(failed())? {
        let name = entry.map_err(failed())?.file_name();
        let chunk = name.to_str().and_then(|name| name.strip_suffix(".json"));
        let Some(chunk) = chunk.and_then(|chunk| chunk.parse().ok()) else {
            continue;
        };
        if awaited.contains_key(&chunk)
            && let Ok(Some(result)) = job.result(chunk)
        {
            awaited.remove(&chunk);
            let (host, seconds) = (result.host, result.seconds);
            events(Event::Done {
                chunk,
                host,
                seconds,
            });
        }
    }
    Ok(())
}

/// What changed in the queue.
fn compare(
    queue: &BTreeMap<usize, Queued>,
    awaited: &mut BTreeMap<usize, Awaited>,
    name: &str,
    told: &mut BTreeSet<String>,
    events: &mut dyn FnMut(Event),
) {
    for (&chunk, awaited) in awaited {
        let Some(queued) = queue.get(&chunk) else {
            awaited.gone.get_or_insert_with(Instant::now);
            continue;
        };
        awaited.gone = None;
        match &queued.state {
            State::Runs(host) => {
                if awaited.runs.as_ref() != Some(host) {
                    awaited.runs = Some(host.clone());
                    let host = host.clone();
                    events(Event::Started { chunk, host });
                }
            }
            State::Waits(reason) => {
                if let Some(host) = awaited.runs.take() {
                    let why = format!("{name} put it back into the queue");
                    events(Event::Failed { chunk, host, why });
                }
                if let Some(reason) = reason
                    && told.insert(reason.clone())
                {
                    events(Event::Note(format!(
                        "chunks wait in the queue of {name}: {reason}"
                    )));
                }
            }
        }
    }
}

/// Why a chunk left the queue without a result.
fn reason(job: &Job, scheduler: &dyn Scheduler, id: &str) -> String {
    let name = scheduler.name();
    let log = job.directory().join("log").join(id);
    let state = scheduler.ended(id);
    let state = state.map_or(String::new(), |state| format!(" ({state})"));
    let said = match std::fs::read(&log) {
        Ok(said) if said.is_empty() => {
            // A worker on a full disk cannot say so.
            let probe = job.directory().join("results/probe");
            match Unfinished::begin(&probe, 1 << 16) {
                Err(error) => error.to_string(),
                Ok(_) => "the worker said nothing".to_owned(),
            }
        }
        Ok(said) => last_lines(&said),
        Err(_) => format!(
            "it left no log: do the nodes of {name} have {}?",
            job.directory().display()
        ),
    };
    format!("{name} ended {id} without a result{state}: {said}")
}

/// Runs a command of a scheduler. What it printed.
pub fn call(command: &mut Command, program: &'static str, remedy: &'static str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    answer(output, program, remedy)
}

/// What a command of a scheduler printed.
pub fn answer(
    output: std::io::Result<std::process::Output>,
    program: &'static str,
    remedy: &'static str,
) -> Result<String> {
    let output = output.map_err(|why| match why.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => NodesError::Program {
            program,
            why,
            remedy,
        },
        _ => NodesError::Io {
            doing: format!("run {program}"),
            source: why,
        },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // Asked for JSON, HyperQueue complains in JSON.
    let json = serde_json::from_slice(&output.stdout).unwrap_or(serde_json::Value::Null);
    let said = match json["error"].as_str() {
        Some(error) => last_lines(error.as_bytes()),
        None => last_lines(&output.stderr),
    };
    Err(NodesError::Refused {
        place: program.to_owned(),
        said: format!("{said} ({})", output.status),
    })
}

/// Numbers in the form `0-3,7`, which schedulers take. They are in order.
pub fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let part = |(first, last): (usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let parts: Vec<String> = parts.into_iter().map(part).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranges_are_short() {
        for (numbers, wanted) in [
            (&[0][..], "0"),
            (&[0, 1], "0-1"),
            (&[1, 3, 4, 5, 9], "1,3-5,9"),
            (&[], ""),
        ] {
            assert_eq!(super::ranges(numbers), wanted);
        }
    }
}
