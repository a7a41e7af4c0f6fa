//! Jobs on Slurm: clusters of one node, each test's own. They need root.

mod support;

use cere_nodes::{Event, NodesError, Place, SlurmOptions, Worker, run};
use serde_json::json;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Trial, done, failed, kill, wait_until, worker, workers};
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
        let listen = || TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = |listener: &TcpListener| listener.local_addr().expect("a port").port();
        let listeners = [listen(), listen()];
        let [controller, daemon] = listeners.each_ref().map(port);
        drop(listeners);
        let home = root.path().display();
        // A node with processors that it does not have runs that many chunks at a time.
        let text = format!(
            "ClusterName=cere\nSlurmctldHost={node}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/none\n\
             CredType=cred/none\nAuthInfo=cred_expire=5\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nReturnToService=2\nSlurmdParameters=config_overrides\n\
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
        wait_until("the node", || {
            let listed = cluster.call("sinfo", &["-h", "-o", "%T"]);
            String::from_utf8_lossy(&listed.stdout).trim() == "idle"
        });
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
        self.call("scancel", &["--user=root", "--full", "--signal=KILL"]);
        for child in [&mut self.daemon, &mut self.controller] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn notes(events: &[Event]) -> Vec<&str> {
    let note = |event| match event {
        &Event::Note(ref text) => Some(text.as_str()),
        _ => None,
    };
    events.iter().filter_map(note).collect()
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
    let shared = Worker {
        exclusive: false,
        ..worker()
    };
    let mut events = Vec::new();
    let rest = run(&trial.job, &cluster.place(), &shared, &mut |event| {
        events.push(event)
    });
    assert_eq!(rest.expect("a run").missing, [], "{events:?}");
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
