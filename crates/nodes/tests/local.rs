//! Jobs on this machine, and what holds of a job at every place.

mod support;

use cere_nodes::{Job, NodesError, Place, Worker, run, work};
use cere_system::events::Events;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use support::{Small, Trial, done, failed, wait_until, worker, workers};

#[test]
fn every_task_is_done_once() {
    let trial = Trial::new(23, 5, |number, task, _| {
        if number % 7 == 0 {
            task["fail"] = json!("it differs");
        }
    });
    let (rest, events) = trial.run(&Place::Local);
    assert_eq!(rest.missing, []);
    assert_eq!(done(&events), [0, 1, 2, 3, 4]);
    trial.assert_complete();
    assert_eq!(trial.begun(), (0..23).map(|n| (n, 1)).collect());
    // What is done is not done again, by whoever asks.
    assert_eq!(trial.run(&Place::Local), Default::default());
    let refuse: &mut dyn FnMut(&Value) -> Result<Value, String> = &mut |_| panic!("done twice");
    work(trial.job.directory(), 3, "here", refuse, &Events::ignored()).expect("done");
    assert_eq!(trial.begun().len(), 23);
    let Trial { root, job, .. } = trial;
    job.remove().expect("removed");
    assert!(!root.path().join("job").exists());
}

#[test]
fn a_job_without_tasks_is_done() {
    let trial = Trial::new(0, 5, |_, _, _| ());
    assert_eq!(trial.run(&Place::Local), Default::default());
    trial.assert_complete();
}

#[test]
fn a_second_call_goes_on() {
    let trial = Trial::new(12, 3, |number, task, root| {
        if number == 4 {
            task["once"] = json!(root.join("died"));
        }
    });
    let (rest, events) = trial.run(&Place::Local);
    let [(1, why)] = &rest.missing[..] else {
        panic!("{rest:?}")
    };
    assert!(
        why.contains("exit status: 3") && why.contains("task 4 ends the worker"),
        "{why}"
    );
    assert_eq!((done(&events), failed(&events)), (vec![0, 2, 3], vec![1]));
    assert_eq!(
        trial
            .job
            .results()
            .expect("results")
            .iter()
            .flatten()
            .count(),
        9
    );
    let (rest, events) = trial.run(&Place::Local);
    assert_eq!((rest.missing, done(&events)), (vec![], vec![1]));
    trial.assert_complete();
    let twice = [3, 4];
    assert_eq!(
        trial.begun(),
        (0..12)
            .map(|n| (n, 1 + usize::from(twice.contains(&n))))
            .collect()
    );
}

#[test]
fn results_that_are_none_are_made_again() {
    let trial = Trial::new(12, 3, |_, _, _| ());
    assert_eq!(trial.run(&Place::Local).0.missing, []);
    let file = |chunk: usize| trial.job.directory().join(format!("results/{chunk}.json"));
    let whole = fs::read_to_string(file(0)).expect("a result");
    fs::write(file(0), &whole[..whole.len() / 2]).expect("a truncated file");
    fs::write(file(1), &whole).expect("a result of another chunk");
    fs::write(file(2), whole.replace("abc-1", "abc-2")).expect("one of another job");
    assert_eq!(trial.job.missing(&mut |_| ()).expect("chunks"), [0, 1, 2]);
    let (rest, events) = trial.run(&Place::Local);
    assert_eq!((rest.missing, done(&events)), (vec![], vec![0, 1, 2]));
    trial.assert_complete();
}

#[test]
fn another_job_is_refused() {
    let trial = Trial::new(12, 3, |_, _, _| ());
    let directory = trial.job.directory();
    let tasks = vec![json!(1); 12];
    let again = |kind, id, tasks: &[Value]| Job::create_or_resume(directory, kind, id, tasks, 4);
    // Chunks are those of the first call.
    assert_eq!(
        again("measure", "abc-1", &tasks)
            .expect("the same")
            .chunks(),
        4
    );
    for (kind, id, tasks) in [
        ("measure", "abc-2", &tasks[..]),
        ("tune", "abc-1", &tasks),
        ("measure", "abc-1", &tasks[..11]),
    ] {
        let error = again(kind, id, tasks).expect_err("another job");
        assert!(matches!(error, NodesError::OtherJob { .. }), "{error}");
        assert!(
            error.to_string().contains("measure abc-1, 12 tasks"),
            "{error}"
        );
    }
    let file = directory.join("job.json");
    let record = fs::read_to_string(&file).expect("a record");
    fs::write(&file, record.replace("\"version\":1", "\"version\":2")).expect("a record");
    let error = again("measure", "abc-1", &tasks).expect_err("another version");
    assert!(
        matches!(error, NodesError::Version { version: 2, .. }),
        "{error}"
    );
    let error = Job::open(trial.root.path())
        .expect_err("no job")
        .to_string();
    assert!(error.starts_with("cannot find a job in"), "{error}");
}

#[test]
fn one_process_runs_a_job() {
    let trial = Trial::new(3, 3, |_, task, _| task["ms"] = json!(300));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| trial.run(&Place::Local));
        while trial.begun().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let job = Job::open(trial.job.directory()).expect("the job");
        let error = run(&job, &Place::Local, &worker(), &mut |_| ()).expect_err("in use");
        assert!(matches!(error, NodesError::InUse { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        assert!(matches!(job.remove(), Err(NodesError::InUse { .. })));
        assert_eq!(first.join().expect("a run").0.missing, []);
    });
    trial.assert_complete();
}

#[test]
fn two_workers_of_a_chunk_do_it_once() {
    let trial = Trial::new(4, 4, |_, task, _| task["ms"] = json!(50));
    let start = || {
        let mut command = Command::new(worker().program);
        command.arg("work").arg(trial.job.directory()).arg("0");
        command.spawn().expect("a worker")
    };
    let both = [start(), start()];
    for mut child in both {
        assert!(child.wait().expect("an end").success());
    }
    trial.assert_complete();
    assert_eq!(trial.begun(), (0..4).map(|n| (n, 1)).collect());
}

#[test]
fn a_worker_that_is_not_there_is_named() {
    let trial = Trial::new(3, 3, |_, _, _| ());
    let worker = Worker {
        program: "/nowhere/cere".into(),
        ..worker()
    };
    let error = run(&trial.job, &Place::Local, &worker, &mut |_| ()).expect_err("no worker");
    assert!(error.to_string().contains("/nowhere/cere"), "{error}");
}

#[test]
fn a_full_disk_is_named_before_work_is_done() {
    let trial = Trial::new(12, 3, |_, _, _| ());
    let results = trial.job.directory().join("results");
    let small = Small::full(&results);
    let (rest, _) = trial.run(&Place::Local);
    let (missing, why): (Vec<usize>, Vec<&String>) =
        rest.missing.iter().map(|(n, w)| (*n, w)).unzip();
    assert_eq!(missing, [0, 1, 2, 3]);
    assert!(
        why.iter().all(|why| why.contains("the disk is full")),
        "{why:?}"
    );
    assert_eq!(trial.begun().len(), 0, "work whose result has no room");
    let names: Vec<_> = fs::read_dir(&results)
        .expect("results")
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert_eq!(names, ["ballast"], "half files");
    fs::remove_file(results.join("ballast")).expect("room");
    assert_eq!(trial.run(&Place::Local).0.missing, []);
    trial.assert_complete();
    drop(small);
}

/// Where space cannot be had before, the write itself is what fails.
#[test]
fn a_result_that_outgrows_the_disk_is_named() {
    let trial = Trial::new(1, 1, |_, _, _| ());
    let results = trial.job.directory().join("results");
    let small = Small::mount(&results, 64 << 10);
    let long = Value::from("x".repeat(1 << 20));
    let error = work(
        trial.job.directory(),
        0,
        "here",
        &mut |_| Ok(long.clone()),
        &Events::ignored(),
    )
    .expect_err("full");
    assert!(matches!(error, NodesError::Space { .. }), "{error}");
    assert_eq!(
        fs::read_dir(&results).expect("results").count(),
        0,
        "half files"
    );
    drop(small);
}

/// A command that gets SIGINT names it as the reason; SIGKILL ends its worker as well.
#[test]
fn a_command_that_ends_keeps_what_is_done() {
    for (signal, said) in [
        ("-INT", "ended by signal 2, which came while "),
        ("-KILL", ""),
    ] {
        let trial = Trial::new(9, 3, |number, task, root| {
            if number == 4 {
                task["hang"] = json!(root.join("hangs"));
            }
        });
        // Behind a shell's `&` interrupts are ignored, and so they would be here.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(worker().program);
        command.arg("run").arg(trial.job.directory());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a command");
        wait_until("task 4", || trial.root.path().join("hangs").exists());
        let id = child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("kill").success());
        wait_until("its end", || child.try_wait().is_ok_and(|s| s.is_some()));
        let output = child.wait_with_output().expect("an end");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.starts_with(said), "{text}");
        assert_eq!(
            text.contains("finished chunks are kept"),
            signal == "-INT",
            "{text}"
        );
        wait_until("the end of the worker", || workers(&trial).is_empty());
        let (rest, events) = trial.run(&Place::Local);
        assert_eq!((rest.missing, done(&events)), (vec![], vec![1, 2]));
        trial.assert_complete();
        let begun = |n| (n, 1 + usize::from(n == 3 || n == 4));
        assert_eq!(trial.begun(), (0..9).map(begun).collect());
    }
}

#[test]
fn records_that_lie_are_refused() {
    let trial = Trial::new(12, 3, |_, _, _| ());
    let file = trial.job.directory().join("job.json");
    let record = fs::read_to_string(&file).expect("a record");
    for (from, to, why) in [
        (
            "\"tasks\":12",
            "\"tasks\":11000000000000000000",
            "more than",
        ),
        (
            "\"per_chunk\":3",
            "\"per_chunk\":0",
            "12 tasks are not 4 chunks of 0",
        ),
        (
            "\"chunks\":4",
            "\"chunks\":40",
            "12 tasks are not 40 chunks of 3",
        ),
        ("abc-1", "../abc", "the id `../abc` is not"),
        ("{", "", "is damaged"),
    ] {
        fs::write(&file, record.replacen(from, to, 1)).expect("a record");
        let error = Job::open(trial.job.directory()).expect_err("no job");
        assert!(matches!(error, NodesError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    fs::write(&file, &record).expect("a record");
    fs::write(trial.job.directory().join("chunks/1.json"), "[]").expect("a chunk");
    let (rest, _) = trial.run(&Place::Local);
    let [(1, why)] = &rest.missing[..] else {
        panic!("{rest:?}")
    };
    assert!(
        why.contains("chunks/1.json is damaged (it has other tasks)"),
        "{why}"
    );
    let error = work(
        trial.job.directory(),
        4,
        "here",
        &mut |_| panic!("done"),
        &Events::ignored(),
    )
    .expect_err("none");
    assert!(
        error.to_string().contains("has no chunk 4: it has 4"),
        "{error}"
    );
}

/// Numbers come back as they were.
#[test]
fn values_are_kept_to_the_last_bit() {
    let values = [0.1 + 0.2, 1e-310, f64::MAX, 123456789.12345679, 5e-324];
    let trial = Trial::new(values.len(), 2, |_, _, _| ());
    let mut left = values.iter();
    for chunk in 0..3 {
        let mut each = |_: &Value| Ok(json!([left.next(), null, u64::MAX]));
        work(
            trial.job.directory(),
            chunk,
            "here",
            &mut each,
            &Events::ignored(),
        )
        .expect("done");
    }
    let results = trial.job.results().expect("results");
    for (value, outcome) in values.iter().zip(results) {
        let outcome = outcome.expect("an outcome");
        let found = outcome.value.expect("a value");
        assert_eq!(found[0].as_f64().map(f64::to_bits), Some(value.to_bits()));
        assert_eq!(
            (found[1].is_null(), found[2].as_u64()),
            (true, Some(u64::MAX))
        );
        assert_eq!(outcome.host, "here");
    }
}

#[test]
fn the_page_of_formats_names_the_fields() {
    let page = include_str!("../../../docs/formats.md");
    let version = cere_nodes::JOB_VERSION;
    assert!(page.contains(&format!("| jobs in chunks | {version} |")));
    let trial = Trial::new(2, 1, |_, _, _| ());
    assert_eq!(trial.run(&Place::Local).0.missing, []);
    for file in ["job.json", "chunks/0.json", "results/0.json"] {
        let text = fs::read_to_string(trial.job.directory().join(file)).expect("a file");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let first = value.get("results").and_then(|results| results.get(0));
        let parts = [Some(&value), value.get(0), first];
        for part in parts.into_iter().flatten() {
            for name in part
                .as_object()
                .into_iter()
                .flat_map(|object| object.keys())
            {
                assert!(page.contains(&format!("`{name}`")), "{file}: {name}");
            }
        }
    }
}
