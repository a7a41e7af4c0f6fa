//! Jobs for tests, and what has to hold of them.
#![allow(dead_code, reason = "each test binary uses a part")]

use cere_nodes::{Event, Job, Outcome, Place, Rest, Worker, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A job in a directory of its own, whose tasks log that they are done.
pub struct Trial {
    pub root: TempDir,
    pub job: Job,
    tasks: Vec<Value>,
}

impl Trial {
    /// `tasks` tasks in chunks of `per_chunk`; `change` alters each.
    pub fn new(tasks: usize, per_chunk: usize, change: impl Fn(usize, &mut Value, &Path)) -> Self {
        Self::named("job", tasks, per_chunk, change)
    }

    /// In a directory of this name.
    pub fn named(
        name: &str,
        tasks: usize,
        per_chunk: usize,
        change: impl Fn(usize, &mut Value, &Path),
    ) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().join(name);
        std::fs::create_dir_all(directory.join("inputs")).expect("a directory");
        std::fs::write(directory.join("inputs/factor"), "1.7").expect("an input");
        let task = |number: usize| {
            let mut task = json!({ "number": number, "log": root.path().join("log") });
            change(number, &mut task, root.path());
            task
        };
        let tasks: Vec<Value> = (0..tasks).map(task).collect();
        let job = Job::create_or_resume(&directory, "measure", "abc-1", &tasks, per_chunk);
        let job = job.expect("a job");
        Self { root, job, tasks }
    }

    pub fn run(&self, place: &Place) -> (Rest, Vec<Event>) {
        self.run_with(place, &worker())
    }

    /// Without nodes of its own.
    pub fn run_shared(&self, place: &Place) -> (Rest, Vec<Event>) {
        let exclusive = false;
        let shared = Worker {
            exclusive,
            ..worker()
        };
        self.run_with(place, &shared)
    }

    fn run_with(&self, place: &Place, worker: &Worker) -> (Rest, Vec<Event>) {
        let mut events = Vec::new();
        let rest = run(&self.job, place, worker, &mut |event| events.push(event));
        (rest.expect("a run"), events)
    }

    /// How often each task was begun.
    pub fn begun(&self) -> BTreeMap<usize, usize> {
        let log = std::fs::read_to_string(self.root.path().join("log")).unwrap_or_default();
        let mut begun = BTreeMap::new();
        for line in log.lines() {
            *begun.entry(line.parse().expect("a number")).or_default() += 1;
        }
        begun
    }

    /// Every task has the value that it has to have, or the error that it was told.
    pub fn assert_complete(&self) {
        let results = self.job.results().expect("results");
        assert_eq!(results.len(), self.tasks.len());
        for (number, (task, outcome)) in self.tasks.iter().zip(&results).enumerate() {
            let Outcome { value, .. } = outcome.as_ref().expect("an outcome");
            let wanted = match task["fail"].as_str() {
                Some(why) => Err(why.to_owned()),
                None => {
                    Ok(json!({ "root": (1.7 * number as f64).sqrt(), "number": number as f64 }))
                }
            };
            assert_eq!(*value, wanted, "task {number}");
        }
        assert!(self.job.missing(&mut |_| ()).expect("chunks").is_empty());
        let left = std::fs::read_dir(self.job.directory().join("results")).expect("results");
        assert_eq!(left.count(), self.job.chunks(), "files that are no results");
    }

    /// What the workers returned, as bytes.
    pub fn values(&self) -> String {
        let results = self.job.results().expect("results");
        let value = |outcome: Option<Outcome>| outcome.expect("an outcome").value;
        let lines = results
            .into_iter()
            .map(|o| format!("{:?}\n", value(o).map(|v| v.to_string())));
        lines.collect()
    }
}

/// The processes that work at a job, and at which chunk.
pub fn workers(trial: &Trial) -> Vec<(u32, usize)> {
    let job = trial.job.directory().display().to_string();
    let pattern = format!("nodes-worker.* {job} ");
    let found = Command::new("pgrep").args(["-a", "-f", &pattern]).output();
    let text = String::from_utf8(found.expect("pgrep").stdout).expect("names");
    let worker = |line: &str| {
        let pid = line.split_whitespace().next()?.parse().ok()?;
        Some((pid, line.split_whitespace().next_back()?.parse().ok()?))
    };
    text.lines().filter_map(worker).collect()
}

/// Waits until `there` holds.
pub fn wait_until(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "{what} did not come"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A port of this machine that nothing listens at, below those that the kernel gives to connections.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = std::process::id() + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (next % 12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Whether it was there to be killed.
pub fn kill(pid: u32) -> bool {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    killed.expect("kill").success()
}

pub fn worker() -> Worker {
    Worker {
        program: PathBuf::from(env!("CARGO_BIN_EXE_cere-nodes-worker")),
        arguments: vec!["work".to_owned()],
        exclusive: true,
    }
}

/// The chunks of the events of one kind, in order.
pub fn chunks(events: &[Event], pick: impl Fn(&Event) -> Option<usize>) -> Vec<usize> {
    let mut found: Vec<usize> = events.iter().filter_map(pick).collect();
    found.sort_unstable();
    found
}

pub fn done(events: &[Event]) -> Vec<usize> {
    chunks(events, |event| match event {
        Event::Done { chunk, .. } => Some(*chunk),
        _ => None,
    })
}

pub fn failed(events: &[Event]) -> Vec<usize> {
    chunks(events, |event| match event {
        Event::Failed { chunk, .. } => Some(*chunk),
        _ => None,
    })
}

/// Writes a shell script that can be run. Another process does: none that is started meanwhile has it open.
pub fn write_program(path: &Path, script: &str) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path);
    let mut child = install.stdin(Stdio::piped()).spawn().expect("install");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(format!("#!/bin/sh\n{script}\n").as_bytes())
        .expect("a script");
    drop(pipe);
    assert!(child.wait().expect("install").success());
}

/// A small file system, for root.
pub struct Small(PathBuf);

impl Small {
    /// Of `size` bytes.
    pub fn mount(at: &Path, size: usize) -> Self {
        let size = format!("size={size}");
        let mut mount = Command::new("mount");
        let status = mount
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(at)
            .status();
        assert!(
            status.expect("mount").success(),
            "the test mounts a tmpfs: run it as root"
        );
        Self(at.to_owned())
    }

    /// One that is full, of a file `ballast`.
    pub fn full(at: &Path) -> Self {
        let small = Self::mount(at, 256 << 10);
        let filled = std::fs::write(at.join("ballast"), vec![1; 1 << 20]);
        assert!(filled.is_err(), "the disk is not full");
        small
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
