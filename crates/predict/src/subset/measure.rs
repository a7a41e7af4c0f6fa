//! Measures the codelets of an archive, here or on other machines: each replay is a task of a job.

use crate::subset::archive;
use crate::subset::document::{SUBSET_VERSION, Subset};
use crate::subset::machine::Machine;
use crate::subset::measurement::{Measured, Measurement, Round, noise};
use crate::subset::modelled::Model;
use crate::subset::times::{self, Code};
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes, ensure};
use cere_format::store::Store;
use cere_measure::{Replays, SentSettings, Settings, emulated};
use cere_nodes::{Job, Outcome, Place, Worker};
use cere_store::state;
use cere_system::console::print;
use cere_system::events::Events;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Kind of these jobs.
pub const KIND: &str = "measure";

/// How to replay, in a job's inputs. The name has the job's id, so that another job cannot change it.
fn how_file(directory: &Path, id: &str) -> PathBuf {
    directory.join("inputs").join(format!("how.{id}.json"))
}

/// How codelets are replayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct How {
    /// The replays.
    pub replay: SentSettings,
    /// Whether the executables of the archive are run.
    pub prebuilt: bool,
    /// What is modelled; none: replays are timed.
    #[serde(default)]
    pub model: Option<Model>,
    /// Id of the reference machine: if flags are compared there, the code as built is replayed in turns.
    pub reference: String,
}

impl How {
    /// As `settings` say, which have no passes and no team.
    #[must_use]
    pub fn of(settings: &Settings, prebuilt: bool, reference: &str) -> Self {
        Self {
            replay: settings.into(),
            prebuilt,
            model: None,
            reference: reference.to_owned(),
        }
    }
}

/// A replay of a codelet.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Task {
    codelet: usize,
    sha256: String,
    round: usize,
}

/// What it found.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Done {
    round: Round,
    seconds: f64,
    machine: Machine,
}

/// What to measure, and where.
pub struct Request<'a> {
    /// The archive.
    pub archive: &'a Path,
    /// Its subset.
    pub subset: Subset,
    /// Where the measurement goes; the job lies beside it until it is whole.
    pub output: &'a Path,
    /// How.
    pub how: How,
    /// Rounds over all codelets.
    pub rounds: usize,
    /// Replays of a chunk.
    pub per_chunk: usize,
    /// Where.
    pub place: &'a Place,
    /// Name for people.
    pub label: Option<String>,
    /// Seconds of whole programs there, by name.
    pub programs: BTreeMap<String, f64>,
    /// What is said meanwhile.
    pub events: &'a Events,
}

/// Replays all codelets of the archive in rounds. Chunks that have a result, of an earlier call that was interrupted, are not replayed
/// again.
///
/// # Errors
/// The archive cannot be used; chunks are missing, which another call takes up; no codelet could be replayed; machines that are not
/// alike took part.
pub fn measure(request: &Request, worker: &Worker) -> Result<Measurement> {
    let subset = &request.subset;
    let directory = directory(request.output);
    let inputs = directory.join("inputs");
    let told = serde_json::to_string(&(&subset.id, &request.how, request.rounds))?;
    let packages = archive::packages(request.archive)?;
    let mut present = Vec::new();
    let needed = subset.measured();
    for (codelet, of) in subset.codelets.iter().enumerate() {
        let there = packages.contains(&of.sha256);
        ensure!(
            there || !needed.contains(&codelet),
            E6316,
            "{} lacks the package of {}: make it again with `cere subset`",
            request.archive.display(),
            of.name
        );
        if there {
            present.push((codelet, of.sha256.clone()));
        }
    }
    let mut tasks = Vec::new();
    for round in 0..request.rounds {
        for (codelet, sha256) in &present {
            tasks.push(serde_json::to_value(Task {
                codelet: *codelet,
                sha256: sha256.clone(),
                round,
            })?);
        }
    }
    let job = Job::create_or_resume(
        &directory,
        KIND,
        &state::hash(&told),
        &tasks,
        request.per_chunk,
    )?;
    archive::unpack(request.archive, &inputs)?;
    state::write_json(&how_file(&directory, job.id()), &request.how)?;
    cere_nodes::run_all(&job, request.place, worker, "measuring", request.events)?;
    let outcomes = job.results()?;
    let none = |o: &Option<Outcome>| o.as_ref().is_some_and(|o| o.value.is_err());
    if outcomes.iter().all(none) {
        // Else the same command would find these results again.
        job.remove()?;
        return gather(request, &tasks, &outcomes);
    }
    let measurement = gather(request, &tasks, &outcomes)?;
    state::write_json(request.output, &measurement)?;
    job.remove()?;
    Ok(measurement)
}

/// The job's directory.
fn directory(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".work");
    output.with_file_name(name)
}

fn gather(request: &Request, tasks: &[Value], outcomes: &[Option<Outcome>]) -> Result<Measurement> {
    let mut measured: BTreeMap<usize, Measured> = BTreeMap::new();
    let mut machines: BTreeMap<String, Machine> = BTreeMap::new();
    let mut wall_seconds = 0.0;
    for (task, outcome) in tasks.iter().zip(outcomes) {
        let task: Task = serde_json::from_value(task.clone())?;
        let of = measured.entry(task.codelet).or_insert_with(|| Measured {
            codelet: task.codelet,
            rounds: Vec::new(),
            reason: None,
        });
        match outcome {
            None => bail!(
                E9001,
                "round {} of codelet {} has no result",
                task.round,
                task.codelet
            ),
            Some(Outcome {
                value: Err(why), ..
            }) => {
                of.reason.get_or_insert_with(|| why.clone());
            }
            Some(Outcome {
                value: Ok(value), ..
            }) => {
                let done: Done = serde_json::from_value(value.clone())
                    .context("a result of the job is not one of this version")?;
                wall_seconds += done.seconds;
                of.rounds.push(done.round);
                machines.insert(done.machine.id.clone(), done.machine);
            }
        }
    }
    let mut codelets: Vec<Measured> = measured.into_values().collect();
    for of in &mut codelets {
        if let Some(why) = &of.reason {
            let name = &request.subset.codelets[of.codelet].name;
            request.events.note(format!("not measured: {name}: {why}"));
            of.rounds.clear();
        }
    }
    let Some(machine) = machines.values().next().cloned() else {
        let reason = codelets.iter().find_map(|m| m.reason.clone());
        bail!(
            E6319,
            "no codelet could be measured: {}",
            reason.unwrap_or_default()
        );
    };
    if let Some(other) = machines.values().find(|m| !m.is_alike(&machine)) {
        bail!(
            E6318,
            "two kinds of machine took part, {} and {}: a measurement is of one kind; measure each alone (--on ssh:HOST, or a \
             partition of one kind), with another -o; what was measured is in {}",
            machine.describe(),
            other.describe(),
            directory(request.output).display()
        );
    }
    let label = request.label.clone().unwrap_or_else(|| {
        let words = [
            std::slice::from_ref(&machine.cpu),
            request.how.replay.flags.as_slice(),
        ]
        .concat();
        words.join(" ")
    });
    Ok(Measurement {
        version: SUBSET_VERSION,
        label,
        machine,
        machines: machines.into_keys().collect(),
        flags: request.how.replay.flags.clone(),
        prebuilt: request.how.prebuilt,
        model: request.how.model.clone(),
        noise: noise(&codelets),
        wall_seconds,
        codelets,
        programs: request.programs.clone(),
        subset: request.subset.clone(),
    })
}

/// The worker's side: replays the chunk of the job in `directory`.
///
/// # Errors
/// The job cannot be read, or its result not be written.
pub fn work(directory: &Path, chunk: usize, events: &Events) -> Result<()> {
    let inputs = directory.join("inputs");
    let id = Job::open(directory)?.id().to_owned();
    let how: How = state::read_json(&how_file(directory, &id))?;
    let settings = Settings::from(&how.replay);
    let store = Store::new(directory.join("store"));
    state::make_directory(store.root())?;
    let replays = Replays::open(&store, events)?;
    let machine = match &how.model {
        Some(model) => model.machine(),
        None => Machine::here(),
    };
    if let (None, Some(host)) = (&how.model, emulated::host()) {
        bail!(
            E6327,
            "this is an emulator of {} on a machine of {host}: nothing is timed here; measure on such a machine, or model one with \
             --model",
            cere_arch::HERE.processor()
        );
    }
    let in_turns = !how.replay.flags.is_empty() && !how.prebuilt && machine.id == how.reference;
    let one = |task: &Value| -> Result<Done> {
        let task: Task = serde_json::from_value(task.clone())?;
        let start = Instant::now();
        let file = archive::package(&inputs, &task.sha256);
        let prebuilt = match how.prebuilt {
            false => None,
            true => Some(linked(&inputs, &task.sha256)?),
        };
        let code = prebuilt.as_ref().map_or(Code::Compiled, Code::Prebuilt);
        let round = match &how.model {
            Some(model) => {
                let (seconds, built) = model.seconds(&replays, &settings, &file)?;
                Round { seconds, built }
            }
            None => times::round(&replays, &settings, &file, code, in_turns)?,
        };
        Ok(Done {
            round,
            seconds: start.elapsed().as_secs_f64(),
            machine: machine.clone(),
        })
    };
    let mut each = |task: &_| {
        let done = one(task).map_err(|error| print::error(&error))?;
        serde_json::to_value(done).map_err(|error| error.to_string())
    };
    let host = cere_nodes::host_name();
    Ok(cere_nodes::work(
        directory, chunk, &host, &mut each, events,
    )?)
}

fn linked(inputs: &Path, sha256: &str) -> Result<cere_replay::Built> {
    archive::prebuilt(inputs, sha256)?.or_coded(codes::E6311, ||
        "the archive has no linked replay of it: make it with `cere subset --prebuilt`, or measure without --prebuilt",
    )
}
