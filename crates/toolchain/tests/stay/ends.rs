//! Servers that are killed, tools that cannot stay, and what is left when the process of the servers ends. Each case runs in a
//! process of its own: this test again, with the case's name in its environment.

use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Instant;

const ENV_CASE: &str = "CERE_STAY_CASE";

/// Starts this test again, for `case` in `place`.
fn again(case: &str, place: &Path, change: impl FnOnce(&mut Command)) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "ends::case", "--ignored", "--nocapture"]);
    command.env(ENV_CASE, case).current_dir(place);
    change(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    command.spawn().unwrap()
}

fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// Waits until `what` holds; it has to within a minute.
fn until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn runs(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended.
    state
        .rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[test]
#[ignore = "run by the others"]
fn case() {
    let none = Sandbox::none();
    let here = std::env::current_dir().unwrap();
    let compile = || run(&line(CLANG, &["-c", "a.c"], &here), "a test").map(drop);
    match std::env::var(ENV_CASE).unwrap_or_default().as_str() {
        "waits" => {
            let pid = server(CLANG, &Sandbox::none()).pid();
            println!("server {pid}");
            let (line, _) = waiting(&here);
            match run(&line, "a test") {
                Ok(_) => println!("it ended well"),
                Err(error) => println!("{error}"),
            }
            println!("now {}", server(CLANG, &none).pid());
        }
        "three runs" => {
            allow();
            for _ in 0..3 {
                compile().unwrap();
            }
            assert!(stay::server(CLANG, &none).is_none());
        }
        case => panic!("{case}"),
    }
}

/// The server and its child that waits for a source, in the process that `again` started.
fn at_work(child: &mut Child) -> (BufReader<std::process::ChildStdout>, u32, u32) {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let pid = number(&mut lines, "server ");
    until(|| !children(pid).is_empty());
    (lines, pid, children(pid)[0])
}

fn number(lines: &mut impl BufRead, start: &str) -> u32 {
    let mut lines = lines.lines().map(Result::unwrap);
    let found = lines.find_map(|l| l.split_once(start).map(|(_, pid)| pid.parse().unwrap()));
    found.expect("it says so")
}

fn kill(pid: u32, signal: &str) {
    let killed = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
}

#[test]
fn a_run_whose_server_is_killed_is_done_again() {
    let place = directory(&[("a.c", C)]);
    let mut child = again("waits", place.path(), |_| {});
    let (mut lines, pid, worker) = at_work(&mut child);
    kill(pid, "-KILL");
    until(|| !runs(worker));
    std::fs::write(place.path().join("pipe.c"), C).unwrap();
    assert_ne!(number(&mut lines, "now "), pid);
    assert!(child.wait().unwrap().success());
    assert!(place.path().join("made").exists());
    until(|| !runs(pid));
}

#[test]
fn a_run_that_is_killed_fails_alone() {
    for (signal, said) in [
        ("-KILL", "signal: 9"),
        // What it says of its crash depends on where it was.
        ("-SEGV", "clang-22 failed on a test"),
    ] {
        let place = directory(&[]);
        let mut child = again("waits", place.path(), |_| {});
        let (mut lines, pid, worker) = at_work(&mut child);
        kill(worker, signal);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut lines, &mut text).unwrap();
        assert!(
            text.contains(said) && text.contains(&format!("now {pid}")),
            "{text}"
        );
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn nothing_is_left_of_servers_whose_process_is_killed() {
    let place = directory(&[]);
    let mut child = again("waits", place.path(), |_| {});
    let (_, pid, worker) = at_work(&mut child);
    assert!(runs(pid) && runs(worker));
    child.kill().unwrap();
    child.wait().unwrap();
    until(|| !runs(pid) && !runs(worker));
}

/// Its standard error, after three compiles by the `clang-22` at `tool`.
fn with_tool(place: &Path, tool: &Path) -> String {
    allow();
    let path = std::env::var("PATH").unwrap();
    let child = again("three runs", place, |command| {
        command.env(
            "PATH",
            format!("{}:{path}", tool.parent().unwrap().display()),
        );
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_script_is_started_each_time() {
    let place = directory(&[("a.c", C)]);
    let tool = place.path().join("bin/clang-22");
    std::fs::create_dir(tool.parent().unwrap()).unwrap();
    let script =
        "#!/bin/sh\necho run >> runs\nexec /usr/bin/env -S PATH=/usr/bin:/bin clang-22 \"$@\"\n";
    std::fs::write(&tool, script).unwrap();
    assert!(
        Command::new("chmod")
            .arg("+x")
            .arg(&tool)
            .status()
            .unwrap()
            .success()
    );
    assert!(!with_tool(place.path(), &tool).contains("does not stay"));
    assert_eq!(
        std::fs::read_to_string(place.path().join("runs")).unwrap(),
        "run\n".repeat(3)
    );
}

#[test]
fn a_tool_that_does_not_load_the_library_is_started_and_said() {
    let place = directory(&[("a.c", C), ("tool.c", "int main(void) { return 0; }\n")]);
    let tool = place.path().join("bin/clang-22");
    std::fs::create_dir(tool.parent().unwrap()).unwrap();
    started(
        CLANG,
        &["-static", "tool.c", "-o", "tool"],
        place.path(),
        "tool",
    );
    let built = Command::new(CLANG)
        .args(["-static", "tool.c", "-o"])
        .arg(&tool)
        .current_dir(place.path())
        .status();
    assert!(built.unwrap().success());
    let said = with_tool(place.path(), &tool);
    assert_eq!(said.matches("clang-22 does not stay").count(), 1, "{said}");
}
