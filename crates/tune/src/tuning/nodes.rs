//! The machines of `cere tune --on`: each step of a search is a job of `cere-nodes`.

pub use super::request::Spread;

use super::batches::{Codes, Crew, Reply, Step};
use super::request::Request;
use super::spent::Spent;
use super::task::{Done, Task, perform};
use anyhow::{Context, Error, Result};
use cere_catalogue::ensure;
use cere_format::build::RegionKind;
use cere_format::package::PACKAGE_EXTENSION;
use cere_format::store::Store;
use cere_measure::{Goal, Lab, Member, Replays, SentSettings, Target};
use cere_nodes::Job;
use cere_store::state;
use cere_system::events::Events;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Kind of these jobs.
pub const KIND: &str = "tune";
/// What is in the inputs of a job.
const SETUP: &str = "setup.json";
const TASKS: &str = "tasks.json";
const CODES: &str = "codes.json";
const CODELETS: &str = "codelets";

/// What all tasks of a search have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setup {
    regions: Vec<Region>,
    replay: SentSettings,
    /// Whether variants may round differently.
    rounds: bool,
    /// What they are compared by.
    #[serde(default)]
    goal: Goal,
    /// Variants compiled at a time; none: as many as the machine has processors.
    jobs: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Region {
    name: String,
    kind: RegionKind,
    share: f64,
    members: Vec<Codelet>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Codelet {
    sha256: String,
    weight: f64,
}

/// A result of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answer {
    done: Done,
    spent: Spent,
    /// The processor that did it.
    cpu: String,
}

/// The machines of a search.
pub struct Nodes<'a> {
    spread: Spread<'a>,
    /// The jobs' directories without their ends.
    stem: PathBuf,
    setup: Setup,
    packages: BTreeMap<String, PathBuf>,
    cpus: BTreeSet<String>,
    events: &'a Events,
}

impl<'a> Nodes<'a> {
    /// For the regions `targets`, with jobs in directories whose paths begin with `stem`.
    pub fn new(
        spread: Spread<'a>,
        stem: PathBuf,
        targets: &[Target],
        lab: &Lab,
        request: &Request<'a>,
    ) -> Self {
        let codelet = |m: &Member| Codelet {
            sha256: m.sha256.clone(),
            weight: m.weight,
        };
        let region = |target: &Target| Region {
            name: target.name.clone(),
            kind: target.kind,
            share: target.share,
            members: target.members.iter().map(codelet).collect(),
        };
        let members = targets.iter().flat_map(|target| &target.members);
        Self {
            spread,
            stem,
            setup: Setup {
                regions: targets.iter().map(region).collect(),
                replay: (&lab.settings).into(),
                rounds: lab.rounds,
                goal: lab.goal,
                jobs: request.jobs,
            },
            packages: members
                .map(|m| (m.sha256.clone(), m.file.clone()))
                .collect(),
            cpus: BTreeSet::new(),
            events: request.events,
        }
    }

    fn directory(&self, step: Step) -> PathBuf {
        let end = match step {
            Step::Begin => "begin.work",
            Step::Search => "search.work",
            Step::Reach => "reach.work",
            Step::Confirm => "confirm.work",
        };
        self.stem.with_extension(end)
    }

    /// Writes what workers read. A package is linked where that can be done.
    fn write_inputs(&self, inputs: &Path, tasks: &[Task], codes: &Codes) -> Result<()> {
        let codelets = inputs.join(CODELETS);
        state::make_directory(&codelets)?;
        let regions: BTreeSet<usize> = tasks.iter().map(|task| task.region).collect();
        let used = regions.iter().filter_map(|r| self.setup.regions.get(*r));
        for codelet in used.flat_map(|region| &region.members) {
            let to = package(inputs, &codelet.sha256);
            let Some(file) = self.packages.get(&codelet.sha256).filter(|_| !to.is_file()) else {
                continue;
            };
            if std::fs::hard_link(file, &to).is_err() {
                // No half file may have its name.
                let part = to.with_extension("part");
                std::fs::copy(file, &part)
                    .and_then(|_| std::fs::rename(&part, &to))
                    .with_context(|| {
                        format!("cannot copy {} to {}", file.display(), to.display())
                    })?;
            }
        }
        state::write_json(&inputs.join(SETUP), &self.setup)?;
        state::write_json(&inputs.join(CODES), codes)?;
        state::write_json(&inputs.join(TASKS), &tasks)
    }

    fn job(&self, step: Step, tasks: &[Task], codes: &Codes) -> Result<Job> {
        let directory = self.directory(step);
        let id = state::hash(&serde_json::to_string(&(&self.setup, tasks))?);
        if let Ok(job) = Job::open(&directory)
            && job.id() != id
        {
            // Other settings make it another job; what has no outcome is in the journals.
            job.remove()?;
        }
        self.write_inputs(&directory.join("inputs"), tasks, codes)?;
        let values: Vec<Value> = tasks
            .iter()
            .map(serde_json::to_value)
            .collect::<Result<_, _>>()?;
        let per_chunk = match step {
            Step::Search => self.spread.per_chunk,
            Step::Begin | Step::Reach | Step::Confirm => 1,
        };
        Ok(Job::create_or_resume(
            &directory, KIND, &id, &values, per_chunk,
        )?)
    }

    /// Says it once if processors of several kinds took part.
    fn note_cpu(&mut self, cpu: String) {
        if self.cpus.insert(cpu) && self.cpus.len() > 1 {
            let cpus: Vec<&str> = self.cpus.iter().map(String::as_str).collect();
            self.events.note(format!(
                "processors of {} kinds take part ({}): each variant is compared with the code as built of its own machine, \
                 but what is best on one kind need not be on the other",
                cpus.len(),
                cpus.join(", ")
            ));
        }
    }
}

impl Crew for Nodes<'_> {
    fn begun(&mut self, step: Step) -> Result<Vec<Task>> {
        let directory = self.directory(step);
        match Job::open(&directory) {
            Ok(_) => state::read_json(&directory.join("inputs").join(TASKS)),
            Err(_) => Ok(Vec::new()),
        }
    }

    fn run(&mut self, step: Step, tasks: &[Task], codes: &Codes) -> Result<Vec<(Reply, Spent)>> {
        let job = self.job(step, tasks, codes)?;
        let doing = match step {
            Step::Begin => "replaying as built",
            Step::Search => "tuning",
            Step::Reach | Step::Confirm => "measuring the best again",
        };
        cere_nodes::run_all(
            &job,
            self.spread.place,
            self.spread.worker,
            doing,
            self.events,
        )?;
        let mut replies = Vec::new();
        for outcome in job.results()? {
            let outcome = outcome.context("a chunk's result is gone: the same command goes on")?;
            replies.push(match outcome.value {
                Err(why) => (Err(Error::msg(why)), Spent::default()),
                Ok(value) => {
                    let answer: Answer = serde_json::from_value(value)
                        .context("a result of the job is not one of this version of cere")?;
                    self.note_cpu(answer.cpu);
                    (Ok(answer.done), answer.spent)
                }
            });
        }
        ensure!(
            replies.len() == tasks.len(),
            E9001,
            "the results of the job are of other tasks: remove its directory and start again"
        );
        Ok(replies)
    }

    fn finish(&mut self, step: Step) -> Result<()> {
        match Job::open(&self.directory(step)) {
            Ok(job) => Ok(job.remove()?),
            Err(_) => Ok(()),
        }
    }
}

fn package(inputs: &Path, sha256: &str) -> PathBuf {
    let name = format!("{sha256}.{PACKAGE_EXTENSION}");
    inputs.join(CODELETS).join(name)
}

/// The worker's side: does the chunk of the job in `directory`.
///
/// # Errors
/// The job cannot be read, its result not be written, or a region's code as built not be replayed here.
pub fn work(directory: &Path, chunk: usize, events: &Events) -> Result<()> {
    let inputs = directory.join("inputs");
    let setup: Setup = state::read_json(&inputs.join(SETUP))?;
    let codes: Codes = state::read_json(&inputs.join(CODES))?;
    let tasks: Vec<Task> = Job::open(directory)?
        .inputs(chunk)?
        .into_iter()
        .map(serde_json::from_value)
        .collect::<Result<_, _>>()
        .context("the job is not one of this version of cere")?;
    // It does not exist: packages and builds go to the user's cache, which outlasts a batch, and no records are kept.
    let store = Store::new(directory.join("store"));
    let replays = Replays::open(&store, events)?;
    let mut targets = BTreeMap::new();
    for region in tasks.iter().map(|task| task.region) {
        if targets.contains_key(&region) {
            continue;
        }
        let of = setup
            .regions
            .get(region)
            .with_context(|| format!("the job has no region {region}"))?;
        let target = of.target(&replays, &inputs)?;
        for (code, ratio) in codes.get(&region).into_iter().flatten() {
            target.learn(code.clone(), *ratio);
        }
        targets.insert(region, target);
    }
    let lab = Lab {
        store: &store,
        replays: &replays,
        settings: (&setup.replay).into(),
        rounds: setup.rounds,
        goal: setup.goal,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = cere_package::machine().cpu;
    let host = cere_nodes::host_name();
    perform(
        &lab,
        &targets,
        &tasks,
        setup.jobs.unwrap_or(cores),
        |each| {
            let mut one = |task: &Value| -> Result<Value> {
                let (done, spent) = each(&serde_json::from_value(task.clone())?)?;
                let cpu = cpu.clone();
                Ok(serde_json::to_value(Answer { done, spent, cpu })?)
            };
            let mut one = |task: &Value| one(task).map_err(|error| format!("{error:#}"));
            Ok(cere_nodes::work(directory, chunk, &host, &mut one, events)?)
        },
    )
}

impl Region {
    fn target(&self, replays: &Replays, inputs: &Path) -> Result<Target> {
        let mut members = Vec::new();
        for codelet in &self.members {
            let file = package(inputs, &codelet.sha256);
            let (package, manifest, sha256) = replays.unpack(&file)?;
            ensure!(
                sha256 == codelet.sha256,
                E6307,
                "{} is damaged: its checksum is not that of its name",
                file.display()
            );
            members.push(Member {
                package,
                file,
                manifest,
                sha256,
                weight: codelet.weight,
            });
        }
        Ok(Target::new(&self.name, self.kind, self.share, members))
    }
}
