//! Jobs on hosts by ssh: a server of the test's own on a loopback port, under several names.

mod support;

use cere_nodes::{Event, NodesError, Place, Rest, SshOptions, run};
use serde_json::json;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{Small, Trial, done, failed, free_port, wait_until, worker};
use tempfile::TempDir;

/// An OpenSSH server, and the configuration of a client that reaches it as `one`, `two` and `three`; `gone` has no server.
struct Server {
    root: TempDir,
    child: Child,
}

impl Server {
    fn start() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let file = |name: &str| root.path().join(name);
        for key in ["host", "user"] {
            let mut make = Command::new("ssh-keygen");
            let made = make
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(file(key))
                .status();
            assert!(
                made.expect("ssh-keygen: scripts/setup installs it")
                    .success()
            );
        }
        fs::copy(file("user.pub"), file("authorized")).expect("a key");
        let host_key = fs::read_to_string(file("host.pub")).expect("a key");
        let port = free_port();
        fs::create_dir_all("/run/sshd").expect("the server's directory: run the test as root");
        let home = root.path().display();
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host\nAuthorizedKeysFile {home}/authorized\nPidFile none\n\
             StrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nMaxStartups 100\nSetEnv CERE_JOBS={home}/jobs\n"
        );
        fs::write(file("sshd_config"), server).expect("a configuration");
        fs::write(file("known"), format!("[127.0.0.1]:{port} {host_key}")).expect("a known host");
        let client = format!(
            "Host gone\n  HostName 127.0.0.1\n  Port 1\nHost one two three\n  HostName 127.0.0.1\n  Port {port}\nHost *\n  IdentityFile {home}/user\n\
             \x20 IdentitiesOnly yes\n  UserKnownHostsFile {home}/known\n  StrictHostKeyChecking yes\n"
        );
        fs::write(file("config"), client).expect("a configuration");
        // It has to be started by its path.
        let mut server = Command::new("/usr/sbin/sshd");
        server.args(["-D", "-e", "-f"]).arg(file("sshd_config"));
        let log = fs::File::create(file("sshd.log")).expect("a log");
        let child = server.stderr(log).stdin(Stdio::null()).spawn();
        let mut child = child.expect("sshd: scripts/setup installs it");
        wait_until("the server", || {
            let ended = child.try_wait().expect("a state");
            assert!(
                ended.is_none(),
                "{:?}",
                fs::read_to_string(file("sshd.log"))
            );
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self { root, child }
    }

    fn jobs(&self) -> PathBuf {
        self.root.path().join("jobs")
    }

    fn place(&self, hosts: &str) -> Place {
        let Ok(Place::Ssh(options)) = Place::parse(&format!("ssh:{hosts}")) else {
            panic!("{hosts}")
        };
        let config = self.root.path().join("config").display().to_string();
        Place::Ssh(SshOptions {
            options: vec!["-F".to_owned(), config],
            program: Some(worker().program),
            ..options
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn dropped(events: &[Event]) -> Vec<(&str, &str)> {
    let of = events.iter().filter_map(|event| match event {
        Event::Dropped { host, why } => Some((host.as_str(), why.as_str())),
        _ => None,
    });
    of.collect()
}

fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

#[test]
fn hosts_share_the_chunks() {
    let server = Server::start();
    let trial = Trial::new(24, 2, |number, task, _| {
        task["ms"] = json!(20);
        if number == 5 {
            task["fail"] = json!("it differs");
        }
    });
    let (rest, events) = trial.run(&server.place("one,two,three"));
    assert_eq!(rest.missing, [], "{events:?}");
    assert_eq!(done(&events), (0..12).collect::<Vec<_>>());
    let hosts = |event: &Event| match event {
        Event::Done { host, .. } => Some(host.clone()),
        _ => None,
    };
    let hosts: std::collections::BTreeSet<_> = events.iter().filter_map(hosts).collect();
    assert_eq!(hosts.len(), 3, "{hosts:?}");
    trial.assert_complete();
    assert_eq!(trial.begun(), (0..24).map(|n| (n, 1)).collect());
    assert_eq!(entries(&server.jobs()), 0, "copies of the job are left");
    // The same as here.
    let here = Trial::new(24, 2, |number, task, _| {
        if number == 5 {
            task["fail"] = json!("it differs");
        }
    });
    assert_eq!(here.run(&Place::Local).0, Rest::default());
    assert_eq!(trial.values(), here.values());
}

#[test]
fn a_host_that_fails_is_dropped() {
    let server = Server::start();
    let trial = Trial::new(6, 1, |_, _, _| ());
    let (rest, events) = trial.run(&server.place("gone,one"));
    assert_eq!(rest.missing, []);
    let [("gone", why)] = dropped(&events)[..] else {
        panic!("{events:?}")
    };
    assert!(why.contains("Connection refused"), "{why}");
    trial.assert_complete();

    let trial = Trial::new(2, 1, |_, _, _| ());
    let (rest, events) = trial.run(&server.place("gone"));
    assert_eq!(rest.missing.len(), 2);
    assert!(failed(&events).is_empty());
    for (_, why) in &rest.missing {
        assert!(
            why.contains("no host is left (gone: no connection: "),
            "{why}"
        );
    }

    let Place::Ssh(options) = server.place("one") else {
        panic!("not ssh")
    };
    let place = Place::Ssh(SshOptions {
        program: Some("/nowhere/cere".into()),
        ..options
    });
    let (rest, _) = trial.run(&place);
    assert!(
        rest.missing[0].1.contains("cannot run /nowhere/cere there"),
        "{rest:?}"
    );
    assert_eq!(trial.run(&server.place("one")).0.missing, []);
    trial.assert_complete();
}

/// The servers that serve connections of the test's hosts, by the commands that they started.
fn sessions(server: &Server) -> Vec<i32> {
    let parent = server.child.id().to_string();
    let found = Command::new("ps")
        .args(["--ppid", &parent, "-o", "pid="])
        .output()
        .expect("ps");
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    text.split_whitespace()
        .map(|pid| pid.parse().expect("a number"))
        .collect()
}

#[test]
fn a_lost_connection_costs_its_chunk() {
    let server = Server::start();
    let trial = Trial::new(8, 1, |number, task, root| {
        if number == 2 {
            task["hang"] = json!(root.join("hangs"));
        }
    });
    let (rest, events) = std::thread::scope(|scope| {
        let run = scope.spawn(|| trial.run(&server.place("one,two")));
        // The other host is done then with all but this chunk.
        wait_until("the other tasks", || {
            trial.begun().len() == 8 && sessions(&server).len() == 1
        });
        let lost = sessions(&server)[0].to_string();
        assert!(
            Command::new("kill")
                .args(["-9", &lost])
                .status()
                .expect("kill")
                .success()
        );
        run.join().expect("a run")
    });
    // The other host has done it.
    assert_eq!(rest.missing, [], "{events:?}");
    assert_eq!(
        (dropped(&events).len(), failed(&events).len()),
        (1, 1),
        "{events:?}"
    );
    assert_eq!(done(&events), (0..8).collect::<Vec<_>>());
    trial.assert_complete();
    assert_eq!(
        trial.begun(),
        (0..8).map(|n| (n, 1 + usize::from(n == 2))).collect()
    );
    // The worker of the lost connection is gone.
    let job = trial
        .job
        .directory()
        .file_name()
        .expect("a name")
        .to_owned();
    let _ = job;
    let left = Command::new("pgrep")
        .args(["-f", &server.jobs().display().to_string()])
        .output();
    assert_eq!(
        String::from_utf8_lossy(&left.expect("pgrep").stdout),
        "",
        "workers are left"
    );
}

#[test]
fn a_chunk_that_ends_its_worker_is_tried_elsewhere() {
    let server = Server::start();
    let trial = Trial::new(6, 2, |number, task, root| {
        if number == 2 {
            task["once"] = json!(root.join("died"));
        }
    });
    let (rest, events) = trial.run(&server.place("one,two"));
    assert_eq!(rest.missing, [], "{events:?}");
    assert_eq!(failed(&events), [1], "{events:?}");
    trial.assert_complete();
}

#[test]
fn a_second_call_goes_on_with_the_copy() {
    let server = Server::start();
    let trial = Trial::new(6, 2, |number, task, root| {
        if number >= 2 {
            task["once"] = json!(root.join(format!("died {}", number / 2)));
        }
    });
    let (rest, events) = trial.run(&server.place("one"));
    let [(1, why), (2, _)] = &rest.missing[..] else {
        panic!("{rest:?}")
    };
    assert!(
        why.contains("one: the worker ended with") && why.contains("task 2 ends the worker"),
        "{why}"
    );
    assert_eq!(done(&events), [0]);
    let copies = fs::read_dir(server.jobs()).expect("copies");
    let copies: Vec<PathBuf> = copies.flatten().map(|entry| entry.path()).collect();
    let [copy] = &copies[..] else {
        panic!("{copies:?}")
    };
    // What is there is not sent again: the inputs are those that lie there now.
    fs::write(copy.join("inputs/factor"), "6.8").expect("the input");
    fs::remove_file(trial.root.path().join("died 2")).expect("a file");
    let (rest, events) = trial.run(&server.place("one"));
    assert_eq!(rest.missing.len(), 1, "{events:?}");
    assert_eq!(done(&events), [1], "{events:?}");
    let root = |task: usize| {
        let results = trial.job.results().expect("results");
        let outcome = results[task].clone().expect("an outcome");
        outcome.value.expect("a value")["root"].clone()
    };
    assert_eq!(root(2), json!((6.8f64 * 2.0).sqrt()));
    // An input of another size is.
    fs::write(trial.job.directory().join("inputs/factor"), "1.70").expect("the input");
    assert_eq!(trial.run(&server.place("one")).0.missing, []);
    assert_eq!(root(4), json!((1.7f64 * 4.0).sqrt()));
    assert_eq!(entries(&server.jobs()), 0, "copies of the job are left");
}

#[test]
fn full_disks_there_and_here_are_named() {
    let server = Server::start();
    let trial = Trial::new(4, 2, |_, _, _| ());
    let input = trial.job.directory().join("inputs/large");
    fs::write(input, vec![1; 1 << 20]).expect("an input");
    fs::create_dir_all(server.jobs()).expect("a directory");
    let there = Small::mount(&server.jobs(), 256 << 10);
    let (rest, events) = trial.run(&server.place("one"));
    assert_eq!(rest.missing.len(), 2);
    let [("one", why)] = dropped(&events)[..] else {
        panic!("{events:?}")
    };
    assert!(
        why.contains("cannot keep the job there") && why.contains("No space left"),
        "{why}"
    );
    drop(there);
    // What cannot be kept here is kept there.
    let here = Small::full(&trial.job.directory().join("results"));
    let place = server.place("one");
    let error = run(&trial.job, &place, &worker(), &mut |_| ()).expect_err("a full disk");
    assert!(matches!(error, NodesError::Space { .. }), "{error}");
    assert_eq!(trial.begun().len(), 2);
    drop(here);
    assert_eq!(trial.run(&server.place("one")).0.missing, []);
    trial.assert_complete();
    assert_eq!(trial.begun(), (0..4).map(|n| (n, 1)).collect());
}
