//! HyperQueue, where `hq` is on the PATH: chunks are tasks of an array. Tested with HyperQueue 0.26. Its queue says what was
//! submitted, by the job's name.

use crate::error::{NodesError, Result};
use crate::job::Job;
use crate::place::HqOptions;
use crate::watch::{self, Queued, Scheduler, State, Times, call, ranges};
use crate::worker::{Event, Worker};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::process::Command;

const REMEDY: &str = "get HyperQueue's program from https://github.com/It4innovations/hyperqueue/releases and put it on the PATH";

/// Tasks of an array: their list has to fit a command line.
const LONGEST: usize = 10_000;

/// Runs `missing` on the server's workers. Why chunks have no result.
pub fn run(
    job: &Job,
    missing: &[usize],
    options: &HqOptions,
    worker: &Worker,
    events: &mut dyn FnMut(Event),
) -> Result<BTreeMap<usize, String>> {
    let times = Times {
        poll: options.poll,
        grace: options.grace,
    };
    let hq = Hq {
        job,
        options,
        worker,
    };
    watch::run(job, missing, &hq, times, events)
}

struct Hq<'a> {
    job: &'a Job,
    options: &'a HqOptions,
    worker: &'a Worker,
}

/// Of `hq job list`.
#[derive(Deserialize)]
struct Listed {
    id: u32,
    name: String,
}

/// Of `hq job info`.
#[derive(Deserialize)]
struct Info {
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    id: usize,
    state: String,
    worker: Option<u32>,
    error: Option<String>,
}

impl Hq<'_> {
    fn command(&self, mode: &str) -> Command {
        let mut command = Command::new("hq");
        command.envs(
            self.options
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
        command.arg(format!("--output-mode={mode}"));
        command
    }

    fn ask<T: DeserializeOwned>(&self, question: &[&str]) -> Result<T> {
        let said = call(self.command("json").args(question), "hq", REMEDY)?;
        serde_json::from_str(&said).map_err(|error| NodesError::Refused {
            place: format!("hq {}", question.join(" ")),
            said: format!("its answer cannot be read ({error}): cere was made for HyperQueue 0.26"),
        })
    }

    fn name(&self) -> String {
        format!("cere-{}", self.job.token())
    }
}

impl Scheduler for Hq<'_> {
    fn name(&self) -> &'static str {
        "HyperQueue"
    }

    fn queue(&self) -> Result<BTreeMap<usize, Queued>> {
        let jobs: Vec<Listed> = self.ask(&["job", "list", "--filter", "waiting,running"])?;
        let mut queue = BTreeMap::new();
        for job in jobs.iter().filter(|job| job.name == self.name()) {
            let info: Vec<Info> = self.ask(&["job", "info", &job.id.to_string()])?;
            for task in info.into_iter().flat_map(|info| info.tasks) {
                let state = match (task.state.as_str(), task.worker) {
                    ("waiting", _) => State::Waits(None),
                    ("running", Some(worker)) => State::Runs(format!("worker {worker}")),
                    ("running", None) => State::Runs("a worker".to_owned()),
                    _ => continue,
                };
                let id = format!("{}_{}", job.id, task.id);
                queue.insert(task.id, Queued { id, state });
            }
        }
        Ok(queue)
    }

    fn groups(&self, chunks: &[usize]) -> Result<Vec<Vec<usize>>> {
        Ok(chunks.chunks(LONGEST).map(<[usize]>::to_vec).collect())
    }

    fn submit(&self, group: &[usize]) -> Result<String> {
        let directory = self.job.directory();
        let mut submit = self.command("quiet");
        submit.args(["submit", "--name", &self.name()]);
        submit.args(["--array", &ranges(group), "--stdout", "none"]);
        submit.arg("--cwd").arg(directory);
        let log = directory.join("log/%{JOB_ID}_%{TASK_ID}");
        submit.arg("--stderr").arg(log);
        if self.worker.exclusive {
            submit.arg("--cpus=all");
        }
        submit.args(&self.options.extra);
        let words = self.worker.shell(directory);
        submit.args(["--", "sh", "-c", &format!("exec {words} \"$HQ_TASK_ID\"")]);
        let printed = call(&mut submit, "hq", REMEDY)?;
        Ok(printed.trim().to_owned())
    }

    fn id(&self, group: &str, chunk: usize) -> String {
        format!("{group}_{chunk}")
    }

    fn ended(&self, id: &str) -> Option<String> {
        let (job, task) = id.split_once('_')?;
        let info: Vec<Info> = self.ask(&["job", "info", job]).ok()?;
        let mut tasks = info.into_iter().flat_map(|info| info.tasks);
        let task = tasks.find(|found| task == found.id.to_string())?;
        Some(match task.error {
            Some(error) => format!("{}: {error}", task.state),
            None => task.state,
        })
    }
}
