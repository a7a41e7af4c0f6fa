//! Jobs on HyperQueue: by a stand-in for `hq`, which the first test describes. `CERE_TEST_HQ=/path/to/hq` runs the tests of
//! its arrays with the real one: a server and a worker of each test's own.

mod support;

use cere_nodes::{Event, HqOptions, NodesError, Place, run};
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{Trial, done, failed, wait_until, worker, write_program};
use tempfile::TempDir;

/// Runs the tasks of one job after another, in the background. A task's state is its file in the directory of the server.
const STAND_IN: &str = r#"
cd "$HQ_SERVER_DIR" || exit 1
set_state() { echo "$3" >"state-$1-$2"; mv "state-$1-$2" "job-$1/tasks/$2"; }
echo "$*" >>calls
case "$*" in
"--output-mode=quiet submit "*)
  while [ "$1" != -- ]; do
    case $1 in --name) name=$2;; --array) array=$2;; --stderr) log=$2;; esac
    shift
  done
  shift
  id=$(($(ls -d job-* 2>/dev/null | wc -l) + 1))
  mkdir "job-$id"; echo "$name" >"job-$id/name"; mkdir "job-$id/tasks"
  tasks=
  for part in $(echo "$array" | tr , ' '); do tasks="$tasks $(seq ${part%-*} ${part#*-})"; done
  for task in $tasks; do set_state $id $task waiting; done
  (for task in $tasks; do
    set_state $id $task running
    file=$(echo "$log" | sed "s/%{JOB_ID}/$id/; s/%{TASK_ID}/$task/")
    state=failed
    (HQ_TASK_ID=$task "$@") >/dev/null 2>"$file" </dev/null && state=finished
    set_state $id $task $state
  done) >/dev/null 2>&1 &
  echo $id;;
"--output-mode=json job list --filter waiting,running")
  sep='['
  for job in job-*/tasks; do
    grep -qE 'waiting|running' "$job"/* 2>/dev/null || continue
    job=${job%/tasks}
    printf '%s{"id":%s,"name":"%s"}' "$sep" "${job#job-}" "$(cat $job/name)"
    sep=,
  done
  [ $sep = , ] || printf '['
  echo ']';;
"--output-mode=json job info "*)
  sep='[{"tasks":['
  for task in job-$4/tasks/*; do
    printf '%s{"id":%s,"state":"%s"}' "$sep" "${task##*/}" "$(cat $task)"
    sep=,
  done
  echo ']}]';;
*)
  echo "stand-in: $*" >&2; exit 1;;
esac
"#;

struct Server {
    root: TempDir,
    real: Vec<Child>,
}

impl Server {
    fn start() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let program = root.path().join("hq");
        let mut server = Self {
            root,
            real: Vec::new(),
        };
        match std::env::var_os("CERE_TEST_HQ") {
            Some(real) => {
                std::os::unix::fs::symlink(real, program).expect("a link");
                server.spawn(&["server", "start"]);
                wait_until("the server", || {
                    server
                        .hq(&["job", "list"])
                        .output()
                        .expect("hq")
                        .status
                        .success()
                });
                server.spawn(&["worker", "start", "--cpus=2"]);
            }
            None => write_program(&program, STAND_IN),
        }
        server
    }

    fn hq(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.root.path().join("hq"));
        command
            .args(arguments)
            .env("HQ_SERVER_DIR", self.root.path());
        command
    }

    fn spawn(&mut self, arguments: &[&str]) {
        let mut command = self.hq(arguments);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.real.push(child.expect("hq"));
    }

    fn place(&self) -> Place {
        let root = self.root.path().display();
        Place::Hq(HqOptions {
            environment: vec![
                ("PATH".to_owned(), format!("{root}:/usr/bin:/bin")),
                ("HQ_SERVER_DIR".to_owned(), root.to_string()),
            ],
            poll: Duration::from_millis(100),
            grace: Duration::from_secs(2),
            ..HqOptions::default()
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in &mut self.real {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn every_task_is_done_once() {
    let server = Server::start();
    let change = |number: usize, task: &mut serde_json::Value, _: &std::path::Path| {
        if number == 5 {
            task["fail"] = json!("it differs");
        }
    };
    let trial = Trial::new(20, 3, change);
    let (rest, events) = trial.run(&server.place());
    assert_eq!(rest.missing, [], "{events:?}");
    assert_eq!(done(&events), (0..7).collect::<Vec<_>>());
    trial.assert_complete();
    assert_eq!(trial.begun(), (0..20).map(|n| (n, 1)).collect());
    let here = Trial::new(20, 3, change);
    assert_eq!(here.run(&Place::Local).0.missing, []);
    assert_eq!(trial.values(), here.values());
    if let Ok(calls) = std::fs::read_to_string(server.root.path().join("calls")) {
        let submit = calls
            .lines()
            .find(|line| line.contains("submit"))
            .expect("a submission");
        assert!(
            submit.contains(" --array 0-6 ") && submit.contains(" --cpus=all "),
            "{submit}"
        );
    }
}

#[test]
fn a_chunk_that_ends_its_worker_is_missing() {
    let server = Server::start();
    let trial = Trial::named("it's odd", 6, 1, |number, task, root| {
        if number == 2 || number == 4 {
            task["once"] = json!(root.join(format!("died {number}")));
        }
    });
    let (rest, events) = trial.run(&server.place());
    let [(2, why), (4, _)] = &rest.missing[..] else {
        panic!("{rest:?}")
    };
    assert!(
        why.contains("HyperQueue ended 1_2 without a result (failed"),
        "{why}"
    );
    assert!(why.ends_with("task 2 ends the worker"), "{why}");
    assert_eq!(
        (done(&events), failed(&events)),
        (vec![0, 1, 3, 5], vec![2, 4])
    );
    let (rest, events) = trial.run(&server.place());
    assert_eq!((rest.missing, done(&events)), (vec![], vec![2, 4]));
    trial.assert_complete();
}

#[test]
fn chunks_in_the_queue_are_not_submitted_again() {
    let server = Server::start();
    let trial = Trial::new(12, 2, |_, task, _| task["ms"] = json!(100));
    let cut_off = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(&trial.job, &server.place(), &worker(), &mut |event| {
            assert!(!matches!(event, Event::Note(_)), "the command ends");
        })
    }));
    assert!(cut_off.is_err());
    let (rest, events) = trial.run(&server.place());
    assert_eq!(rest.missing, []);
    let note = |event: &Event| match event {
        Event::Note(text) => Some(text.clone()),
        _ => None,
    };
    let notes: Vec<String> = events.iter().filter_map(note).collect();
    let [note] = &notes[..] else {
        panic!("{notes:?}")
    };
    assert!(
        note.ends_with("chunks are in the queue of HyperQueue already"),
        "{note}"
    );
    trial.assert_complete();
    assert_eq!(trial.begun(), (0..12).map(|n| (n, 1)).collect());
}

#[test]
fn what_is_not_there_is_named() {
    let trial = Trial::new(1, 1, |_, _, _| ());
    let folder = tempfile::tempdir().expect("a directory");
    let fails = || {
        let place = Place::Hq(HqOptions {
            environment: vec![("PATH".to_owned(), folder.path().display().to_string())],
            ..HqOptions::default()
        });
        run(&trial.job, &place, &worker(), &mut |_| ()).expect_err("no HyperQueue")
    };
    let error = fails();
    assert!(
        matches!(error, NodesError::Program { program: "hq", .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("github.com/It4innovations/hyperqueue"),
        "{error}"
    );
    // What it says without a server, and in a form that it may have one day.
    let hq = folder.path().join("hq");
    write_program(&hq, r#"echo '{"error": "No online server"}'; exit 1"#);
    let error = fails().to_string();
    assert!(
        error.starts_with("hq refuses: No online server (exit status: 1)"),
        "{error}"
    );
    write_program(&hq, "echo '{}'");
    let error = fails().to_string();
    assert!(
        error.contains("hq job list") && error.contains("its answer cannot be read"),
        "{error}"
    );
}
