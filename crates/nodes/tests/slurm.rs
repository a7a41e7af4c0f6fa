//! Jobs on Slurm: clusters of one node, each test's own. They need root.

mod support;

use cere_nodes::{Event, NodesError, Place, SlurmOptions, run};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Small, Trial, done, failed, free_port, kill, wait_until, worker, workers};
use tempfile::TempDir;

/// A controller and a node, on this machine.
struct Cluster {
    root: TempDir,
    node: String,
    controller: Child,
    daemon: Child,
}

impl Cluster {
    /// With indices of arrays below `longest`.
    fn start(longest: usize) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let node = cere_nodes::host_name();
        let node = node.split('.').next().unwrap_or(&node).to_owned();
        let (controller, daemon) = (free_port(), free_port());
        let home = root.path().display();
        // A node with processors that it does not have runs that many chunks at a time.
        let text = format!(
            "ClusterName=cere\nSlurmctldHost={node}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/none\n\
             CredType=cred/none\nAuthInfo=cred_expire=5\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSlurmdTimeout=5\nReturnToService=2\nSlurmdParameters=config_overrides\n\
             SchedulerParameters=batch_sched_delay=0,sched_interval=1,default_queue_depth=1000\n\
             MaxArraySize={longest}\nSlurmctldPort={controller}\nSlurmdPort={daemon}\nStateSaveLocation={home}/state\n\
             SlurmdSpoolDir={home}/spool\nSlurmctldPidFile={home}/slurmctld.pid\nSlurmdPidFile={home}/slurmd.pid\n\
             NodeName={node} NodeAddr=127.0.0.1 CPUs=16\nPartitionName=main Nodes={node} Default=YES MaxTime=INFINITE State=UP\n"
        );
        fs::create_dir(root.path().join("state")).expect("a directory");
        fs::create_dir(root.path().join("spool")).expect("a directory");
        fs::write(root.path().join("slurm.conf"), text).expect("a configuration");
        let controller = Self::daemon(root.path(), "slurmctld", &[]);
        let daemon = Self::daemon(root.path(), "slurmd", &["-N", &node]);
        let cluster = Self {
            root,
            node,
            controller,
            daemon,
        };
        wait_until("the node", || cluster.state() == "idle");
        cluster
    }

    fn daemon(root: &Path, name: &str, arguments: &[&str]) -> Child {
        let log = root.join(format!("{name}.log"));
        let log = File::options()
            .append(true)
            .create(true)
            .open(log)
            .expect("a log");
        let mut daemon = Command::new(Path::new("/usr/sbin").join(name));
        daemon
            .arg("-D")
            .args(arguments)
            .env("SLURM_CONF", root.join("slurm.conf"));
        daemon
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        daemon
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}: scripts/setup installs it"))
    }

    fn call(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("SLURM_CONF", self.root.path().join("slurm.conf"));
        command
            .output()
            .expect("a command of Slurm: scripts/setup installs it")
    }

    /// That of the node.
    fn state(&self) -> String {
        let listed = self.call("sinfo", &["-h", "-o", "%T"]);
        String::from_utf8_lossy(&listed.stdout).trim().to_owned()
    }

    fn options(&self) -> SlurmOptions {
        let configuration = self.root.path().join("slurm.conf").display().to_string();
        SlurmOptions {
            environment: vec![("SLURM_CONF".to_owned(), configuration)],
            poll: Duration::from_millis(100),
            grace: Duration::from_secs(2),
            ..SlurmOptions::default()
        }
    }

    fn place(&self) -> Place {
        Place::Slurm(self.options())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for log in ["slurmctld.log", "slurmd.log"] {
                let text = fs::read_to_string(self.root.path().join(log)).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                eprintln!(
                    "{log}:\n{}",
                    lines[lines.len().saturating_sub(40)..].join("\n")
                );
            }
        }
        self.call("scancel", &["--user=root"]);
        // What ends a job outlives the node else, and looks for the controller.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10)
            && !self.call("squeue", &["-h"]).stdout.is_empty()
        {
            std::thread::sleep(Duration::from_millis(50));
        }
        for child in [&mut self.daemon, &mut self.controller] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn notes(events: &[Event]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        Event::Note(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// More chunks than an array may have.
#[test]
fn arrays_are_as_long_as_the_cluster_takes() {
    let cluster = Cluster::start(20);
    let change = |number: usize, task: &mut serde_json::Value, _: &Path| {
        if number == 7 {
            task["fail"] = json!("it differs");
        }
    };
    let trial = Trial::new(89, 2, change);
    let (rest, events) = trial.run_shared(&cluster.place());
    assert_eq!(rest.missing, [], "{events:?}");
    assert_eq!(done(&events), (0..45).collect::<Vec<_>>());
    let notes = notes(&events);
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(
        notes[2].starts_with("submitted 5 chunks to Slurm as "),
        "{notes:?}"
    );
    trial.assert_complete();
    assert_eq!(trial.begun(), (0..89).map(|n| (n, 1)).collect());
    let here = Trial::new(89, 2, change);
    assert_eq!(here.run(&Place::Local).0.missing, []);
    assert_eq!(trial.values(), here.values());
}

#[test]
fn a_chunk_that_is_cancelled_is_missing() {
    let cluster = Cluster::start(1001);
    let trial = Trial::new(12, 2, |number, task, root| {
        if number == 5 {
            task["hang"] = json!(root.join("hangs"));
        }
    });
    let (rest, events) = std::thread::scope(|scope| {
        let run = scope.spawn(|| trial.run(&cluster.place()));
        wait_until("task 5", || trial.root.path().join("hangs").exists());
        assert!(cluster.call("scancel", &["1_2"]).status.success());
        run.join().expect("a run")
    });
    let [(2, why)] = &rest.missing[..] else {
        panic!("{rest:?}")
    };
    assert!(
        why.contains("Slurm ended 1_2 without a result (JobState=CANCELLED "),
        "{why}"
    );
    assert_eq!(
        (done(&events), failed(&events)),
        (vec![0, 1, 3, 4, 5], vec![2])
    );
    let (rest, events) = trial.run(&cluster.place());
    assert_eq!((rest.missing, done(&events)), (vec![], vec![2]));
    trial.assert_complete();
    assert_eq!(
        trial.begun(),
        (0..12).map(|n| (n, 1 + usize::from(n / 2 == 2))).collect()
    );
}

impl Cluster {
    /// The node dies, with all that runs on it, and starts again when the controller has noticed.
    /// The chunks that were lost.
    fn kill_node(&mut self, trial: &Trial) -> BTreeSet<usize> {
        assert!(kill(self.daemon.id()), "the node is there");
        let _ = self.daemon.wait();
        let mut lost = BTreeSet::new();
        for (worker, chunk) in workers(trial) {
            // The step daemon first: it would report the end of the worker to the controller.
            let parent = Command::new("ps")
                .args(["-o", "ppid=", "-p", &worker.to_string()])
                .output();
            let parent = String::from_utf8(parent.expect("ps").stdout).expect("a number");
            // A worker may end meanwhile, and with its step daemon it does.
            if let Ok(parent) = parent.trim().parse()
                && kill(parent)
            {
                kill(worker);
                lost.insert(chunk);
            }
        }
        wait_until("the end of the node", || self.state().starts_with("down"));
        let node = self.node.clone();
        self.daemon = Self::daemon(self.root.path(), "slurmd", &["-N", &node]);
        lost
    }
}

/// 2,000 evaluations in 200 chunks, while the node dies half way: `--nocapture` prints the times.
#[test]
fn two_thousand_evaluations_outlast_their_node() {
    let mut cluster = Cluster::start(1001);
    let trial = Trial::new(2000, 10, |number, task, root| {
        if number == 905 {
            task["hang"] = json!(root.join("hangs"));
        }
    });
    let start = Instant::now();
    let place = cluster.place();
    let ((rest, events), lost) = std::thread::scope(|scope| {
        let run = scope.spawn(|| trial.run_shared(&place));
        wait_until("half of the tasks", || {
            trial.begun().len() >= 1000 && trial.root.path().join("hangs").exists()
        });
        println!("the node dies after {:.1?}", start.elapsed());
        let lost = cluster.kill_node(&trial);
        println!(
            "and is back after {:.1?}, lost are chunks {lost:?}",
            start.elapsed()
        );
        (run.join().expect("a run"), lost)
    });
    let missing: Vec<usize> = rest.missing.iter().map(|(chunk, _)| *chunk).collect();
    println!(
        "the call ends after {:.1?}: {} chunks done, missing {missing:?}, given up on the way {:?}",
        start.elapsed(),
        done(&events).len(),
        failed(&events)
    );
    // Slurm starts lost chunks again; had it not, this call would.
    assert!(missing.iter().all(|chunk| lost.contains(chunk)), "{rest:?}");
    let again: Vec<usize> = done(&trial.run_shared(&place).1);
    assert_eq!(again, missing);
    trial.assert_complete();
    assert!(lost.contains(&90));
    for (task, begun) in trial.begun() {
        let wanted = if lost.contains(&(task / 10)) {
            1..=2
        } else {
            1..=1
        };
        assert!(
            wanted.contains(&begun),
            "task {task} was begun {begun} times"
        );
    }
}

/// A command that ends leaves its chunks in the queue, and the next one finds them.
#[test]
fn chunks_in_the_queue_are_not_submitted_again() {
    let cluster = Cluster::start(1001);
    let trial = Trial::new(12, 2, |_, task, _| task["ms"] = json!(100));
    let cut_off = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(&trial.job, &cluster.place(), &worker(), &mut |event| {
            assert!(!matches!(event, Event::Note(_)), "the command ends");
        })
    }));
    assert!(cut_off.is_err());
    let (rest, events) = trial.run(&cluster.place());
    assert_eq!(rest.missing, []);
    let notes = notes(&events);
    assert!(
        notes
            .iter()
            .any(|n| n.ends_with("chunks are in the queue of Slurm already")),
        "{notes:?}"
    );
    assert!(
        notes.iter().all(|n| !n.starts_with("submitted")),
        "{notes:?}"
    );
    trial.assert_complete();
    assert_eq!(trial.begun(), (0..12).map(|n| (n, 1)).collect());
}

#[test]
fn a_scheduler_that_refuses_is_named() {
    let cluster = Cluster::start(4);
    let trial = Trial::new(6, 1, |_, _, _| ());
    let fails = |options: SlurmOptions| {
        let place = Place::Slurm(options);
        let error = run(&trial.job, &place, &worker(), &mut |_| ()).expect_err("refused");
        assert_eq!(trial.begun().len(), 0);
        error
    };
    let partition = Some("nowhere".to_owned());
    let error = fails(SlurmOptions {
        partition,
        ..cluster.options()
    });
    assert!(
        matches!(&error, NodesError::Refused { place, .. } if place == "sbatch"),
        "{error}"
    );
    assert!(
        error.to_string().contains("Invalid partition name"),
        "{error}"
    );

    let error = fails(cluster.with(&[("scontrol", "echo 'MaxArraySize            = 1'")]));
    assert!(error.to_string().contains("MaxArraySize is 1"), "{error}");

    let mut gone = cluster.options();
    gone.environment
        .push(("PATH".to_owned(), "/nowhere".to_owned()));
    let error = fails(gone);
    assert!(
        matches!(
            error,
            NodesError::Program {
                program: "scontrol",
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("slurm-client"), "{error}");

    // The second array is refused: the first goes on.
    let limit = r#"case "$*" in *-name=*.4*) echo 'sbatch: error: Job violates accounting/QOS policy' >&2; exit 1;; esac; exec /usr/bin/sbatch "$@""#;
    let (rest, events) = trial.run(&Place::Slurm(cluster.with(&[("sbatch", limit)])));
    assert_eq!(done(&events), [0, 1, 2, 3]);
    let missing: Vec<_> = rest
        .missing
        .iter()
        .map(|(chunk, why)| (*chunk, why.contains("QOS policy")))
        .collect();
    assert_eq!(missing, [(4, true), (5, true)], "{rest:?}");
    assert_eq!(trial.run(&cluster.place()).0.missing, []);
    trial.assert_complete();
}

impl Cluster {
    /// With other programs in place of some of Slurm's.
    fn with(&self, programs: &[(&str, &str)]) -> SlurmOptions {
        let folder = tempfile::tempdir_in(self.root.path())
            .expect("a directory")
            .keep();
        for (name, script) in programs {
            support::write_program(&folder.join(name), script);
        }
        let mut options = self.options();
        let path = format!("{}:/usr/bin:/bin", folder.display());
        options.environment.push(("PATH".to_owned(), path));
        options
    }
}

#[test]
fn a_controller_that_does_not_answer_is_asked_again() {
    let cluster = Cluster::start(1001);
    let trial = Trial::new(3, 1, |_, task, _| task["ms"] = json!(300));
    let flag = trial.root.path().join("silent");
    let silent = format!(
        "rm '{}' 2>/dev/null && echo 'squeue: error: no answer' >&2 && exit 1; exec /usr/bin/squeue \"$@\"",
        flag.display()
    );
    let place = Place::Slurm(cluster.with(&[("squeue", &silent)]));
    let mut events = Vec::new();
    let rest = run(&trial.job, &place, &worker(), &mut |event| {
        if matches!(event, Event::Note(_)) && events.is_empty() {
            File::create(&flag).expect("a file");
        }
        events.push(event);
    });
    assert_eq!(rest.expect("a run").missing, []);
    let notes = notes(&events);
    assert!(
        notes[1].contains("no answer") && notes[1].contains("results are waited for"),
        "{notes:?}"
    );
    trial.assert_complete();
}

#[test]
fn a_full_disk_on_the_node_is_named() {
    let cluster = Cluster::start(1001);
    let trial = Trial::new(4, 2, |_, _, _| ());
    fs::create_dir(trial.job.directory().join("log")).expect("a directory");
    let full = ["results", "log"].map(|part| Small::full(&trial.job.directory().join(part)));
    let (rest, _) = trial.run(&cluster.place());
    assert_eq!(rest.missing.len(), 2, "{rest:?}");
    for (_, why) in &rest.missing {
        assert!(
            why.contains("JobState=FAILED") && why.contains("the disk is full"),
            "{why}"
        );
    }
    assert_eq!(trial.begun().len(), 0);
    drop(full);
    assert_eq!(trial.run(&cluster.place()).0.missing, []);
    trial.assert_complete();
}

#[test]
fn odd_names_of_directories_are_kept() {
    let cluster = Cluster::start(1001);
    let trial = Trial::named("it's %A odd", 2, 1, |number, task, root| {
        if number == 1 {
            task["once"] = json!(root.join("died"));
        }
    });
    let (rest, _) = trial.run(&cluster.place());
    let [(1, why)] = &rest.missing[..] else {
        panic!("{rest:?}")
    };
    assert!(why.contains("task 1 ends the worker"), "{why}");
    assert_eq!(trial.run(&cluster.place()).0.missing, []);
    trial.assert_complete();
}
