//! A Slurm cluster: chunks are elements of job arrays. The queue itself says what was submitted: a job's name has the token
//! of the job here and the chunk of its index 0. So no crash of this command makes a chunk be submitted twice.

use crate::error::{NodesError, Result};
use crate::job::Job;
use crate::place::SlurmOptions;
use crate::watch::{self, Queued, Scheduler, State, Times, answer, call, ranges};
use crate::worker::{Event, Worker};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

const REMEDY: &str = "install Slurm's commands (on Debian slurm-client) with the cluster's slurm.conf, or go to a machine of the cluster";

/// Elements of an array at most, whatever the cluster takes: their list has to fit a command line.
const LONGEST: usize = 10_000;

/// Reasons to wait that need not be told.
const USUAL: [&str; 5] = [
    "None",
    "Priority",
    "Resources",
    "JobArrayTaskLimit",
    "BeginTime",
];

/// Runs `missing` on the cluster. Why chunks have no result.
pub fn run(
    job: &Job,
    missing: &[usize],
    options: &SlurmOptions,
    worker: &Worker,
    events: &mut dyn FnMut(Event),
) -> Result<BTreeMap<usize, String>> {
    let slurm = Slurm {
        job,
        options,
        worker,
        longest: 0,
    };
    let longest = slurm.longest()?;
    let times = Times {
        poll: options.poll,
        grace: options.grace,
    };
    watch::run(job, missing, &Slurm { longest, ..slurm }, times, events)
}

struct Slurm<'a> {
    job: &'a Job,
    options: &'a SlurmOptions,
    worker: &'a Worker,
    /// Indices of arrays are below it.
    longest: usize,
}

impl Slurm<'_> {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.envs(
            self.options
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
        command
    }

    /// MaxArraySize: indices of arrays have to be below it.
    fn longest(&self) -> Result<usize> {
        let mut show = self.command("scontrol");
        let shown = call(show.args(["show", "config"]), "scontrol", REMEDY)?;
        let value = |line: &str| -> Option<usize> {
            let (name, value) = line.split_once('=')?;
            (name.trim() == "MaxArraySize").then(|| value.trim().parse().ok())?
        };
        match shown.lines().find_map(value) {
            Some(longest) if longest > 1 => Ok(longest.min(LONGEST)),
            found => Err(NodesError::Refused {
                place: "this cluster".to_owned(),
                said: match found {
                    Some(longest) => format!("it takes no job arrays (MaxArraySize is {longest})"),
                    None => "`scontrol show config` names no MaxArraySize".to_owned(),
                },
            }),
        }
    }

    fn name(&self) -> String {
        format!("cere-{}", self.job.token())
    }
}

impl Scheduler for Slurm<'_> {
    fn name(&self) -> &'static str {
        "Slurm"
    }

    fn queue(&self) -> Result<BTreeMap<usize, Queued>> {
        let user = rustix::process::getuid().as_raw().to_string();
        let mut list = self.command("squeue");
        let list = list.args(["-h", "-r", "-u", &user, "-o", "%j|%F|%K|%T|%N|%r"]);
        let listed = call(list, "squeue", REMEDY)?;
        let element = |line: &str| {
            let mut fields = line.splitn(6, '|');
            let name = fields.next()?;
            let offset = name.strip_prefix(&self.name())?.strip_prefix('.')?;
            let offset: usize = offset.parse().ok()?;
            let (array, index) = (fields.next()?, fields.next()?);
            let (state, host, reason) = (fields.next()?, fields.next()?, fields.next()?);
            let chunk = offset.checked_add(index.parse().ok()?)?;
            let state = match state {
                "PENDING" => {
                    let told = !USUAL.contains(&reason);
                    State::Waits(told.then(|| reason.to_owned()))
                }
                _ => State::Runs(host.to_owned()),
            };
            let id = format!("{array}_{index}");
            Some((chunk, Queued { id, state }))
        };
        Ok(listed.lines().filter_map(element).collect())
    }

    fn groups(&self, chunks: &[usize]) -> Result<Vec<Vec<usize>>> {
        let same = |a: &usize, b: &usize| a / self.longest == b / self.longest;
        Ok(chunks.chunk_by(same).map(<[usize]>::to_vec).collect())
    }

    fn submit(&self, group: &[usize]) -> Result<String> {
        let first = group.first().copied().unwrap_or_default();
        let offset = first / self.longest * self.longest;
        let indices: Vec<usize> = group.iter().map(|chunk| chunk - offset).collect();
        let directory = self.job.directory();
        let options = self.options;
        let mut array = format!("--array={}", ranges(&indices));
        if let Some(parallel) = options.parallel {
            array.push_str(&format!("%{parallel}"));
        }
        let mut submit = self.command("sbatch");
        submit.args(["--parsable", &array]);
        submit.arg(format!("--job-name={}.{offset}", self.name()));
        // In Slurm's names of files, % begins a field.
        let plain = directory.to_string_lossy().replace('%', "%%");
        submit.arg(format!("--output={plain}/log/%A_%a"));
        submit.arg("--chdir").arg(directory);
        if self.worker.exclusive {
            submit.arg("--exclusive");
        }
        for (name, value) in [
            ("--partition", &options.partition),
            ("--account", &options.account),
            ("--time", &options.time_limit),
        ] {
            submit.args(value.iter().map(|value| format!("{name}={value}")));
        }
        submit.args(&options.extra);
        let words = self.worker.shell(directory);
        let script = format!("#!/bin/sh\nexec {words} $((SLURM_ARRAY_TASK_ID + {offset}))\n");
        submit.stdin(Stdio::piped());
        submit.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = submit.spawn().and_then(|mut child| {
            if let Some(mut pipe) = child.stdin.take() {
                // Where it does not read, it says why.
                let _ = pipe.write_all(script.as_bytes());
            }
            child.wait_with_output()
        });
        let printed = answer(output, "sbatch", REMEDY)?;
        // A cluster's name may follow.
        let id = printed.trim().split(';').next().unwrap_or_default();
        Ok(id.to_owned())
    }

    fn id(&self, group: &str, chunk: usize) -> String {
        format!("{group}_{}", chunk % self.longest)
    }

    fn ended(&self, id: &str) -> Option<String> {
        // Slurm forgets a job some minutes after its end.
        let mut show = self.command("scontrol");
        let shown = call(show.args(["show", "job", "-o", id]), "scontrol", REMEDY).ok()?;
        let known = ["JobState=", "Reason=", "ExitCode=", "NodeList="];
        let fields = shown.split_whitespace();
        let fields: Vec<&str> = fields
            .filter(|f| known.iter().any(|k| f.starts_with(k)))
            .collect();
        (!fields.is_empty()).then(|| fields.join(" "))
    }
}
