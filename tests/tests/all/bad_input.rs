//! Wrong input from users: each case ends with a message that says what to do, without a panic, and no half-written file counts
//! as complete.

use anyhow::{Context, Result, ensure};
use cere_tests::tools::{cere, json, output, succeed, text};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static long data[5000];
static __attribute__((noinline)) long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += data[i % 5000] += i;
    return sum;
}
static __attribute__((noinline)) void spin(void) {
    printf("spinning\n");
    fflush(stdout);
    for (volatile long i = 0; i < 1000000000000; i++)
        ;
}
static __attribute__((noinline)) void crash(long n) {
    for (long i = 0; i < n; i++)
        *(volatile int *)(i * 8) = 1;
}
int main(int argc, char **argv) {
    printf("%ld\n", work(100000));
    if (argc > 1 && !strcmp(argv[1], "spin"))
        spin();
    if (argc > 1 && !strcmp(argv[1], "crash"))
        crash(atoi("10"));
    return argc > 1 ? atoi(argv[1]) : 0;
}
"#;

/// A directory with an instrumented program, a store, and one codelet `work@main.c:8:1`.
fn study() -> &'static Path {
    static STUDY: OnceLock<tempfile::TempDir> = OnceLock::new();
    STUDY
        .get_or_init(|| {
            let directory = tempfile::tempdir().expect("a directory");
            prepare(directory.path()).expect("an instrumented program");
            directory
        })
        .path()
}

/// Held by tests that run the shared program: only one at a time may write to a store.
fn alone() -> MutexGuard<'static, ()> {
    static WRITER: Mutex<()> = Mutex::new(());
    WRITER.lock().unwrap_or_else(|e| e.into_inner())
}

fn prepare(directory: &Path) -> Result<()> {
    std::fs::write(directory.join("main.c"), PROGRAM)?;
    succeed(cere(directory).args(["instrument", "--", "sh", "-c", "$CC -O1 main.c -o program"]))?;
    succeed(cere(directory).args(["capture", "work@*", "--", "./program"]))?;
    Ok(())
}

fn codelet() -> Result<PathBuf> {
    let (list, _) = json(cere(study()).args(["codelets", "--json"]))?;
    let file = list[0]["file"].as_str().context("one codelet")?;
    Ok(study().join(file))
}

/// The run failed, with one message of CERE's own that holds `part`.
fn refused(run: &Output, part: &str) -> Result<()> {
    let message = String::from_utf8_lossy(&run.stderr);
    ensure!(!run.status.success(), "it succeeded\n{}", text(run));
    ensure!(
        run.status.code().is_some(),
        "it was ended by a signal\n{}",
        text(run)
    );
    ensure!(!message.contains("panicked"), "a panic\n{}", text(run));
    ensure!(
        message.matches("cere: error:").count() == 1 || message.starts_with("error:"),
        "not one error\n{}",
        text(run)
    );
    ensure!(
        message.to_lowercase().contains(&part.to_lowercase()),
        "no word of \"{part}\"\n{}",
        text(run)
    );
    Ok(())
}

fn copy(bytes: &[u8]) -> Result<tempfile::NamedTempFile> {
    let file = tempfile::Builder::new().suffix(".codelet").tempfile()?;
    std::fs::write(file.path(), bytes)?;
    Ok(file)
}

fn replay_of(bytes: &[u8]) -> Result<Output> {
    let file = copy(bytes)?;
    output(cere(study()).arg("replay").arg(file.path()))
}

#[test]
fn a_sound_package_replays_without_a_store() -> Result<()> {
    let file = copy(&std::fs::read(codelet()?)?)?;
    let elsewhere = tempfile::tempdir()?;
    let (result, _) = json(
        cere(elsewhere.path())
            .args(["replay", "--json"])
            .arg(file.path()),
    )?;
    ensure!(result["verdict"] == "exact", "{result}");
    Ok(())
}

#[test]
fn truncated_packages() -> Result<()> {
    let whole = std::fs::read(codelet()?)?;
    for length in [
        0,
        1,
        10,
        40,
        whole.len() / 4,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        refused(&replay_of(&whole[..length])?, "codelet")
            .with_context(|| format!("{length} bytes"))?;
    }
    Ok(())
}

#[test]
fn damaged_packages() -> Result<()> {
    let whole = std::fs::read(codelet()?)?;
    for step in 0..24 {
        let mut bytes = whole.clone();
        let at = whole.len() * step / 24;
        bytes[at] ^= 0x40;
        refused(&replay_of(&bytes)?, "codelet").with_context(|| format!("byte {at}"))?;
    }
    Ok(())
}

#[test]
fn not_a_package() -> Result<()> {
    refused(
        &replay_of(
            b"#!/bin/sh\necho this is a script, not a codelet, and long enough to be one\n",
        )?,
        "not",
    )?;
    refused(&output(cere(study()).args(["replay", "."]))?, ".")?;
    refused(
        &output(cere(study()).args(["replay", "absent.codelet"]))?,
        "absent.codelet",
    )
}

#[test]
fn programs_that_do_not_fit() -> Result<()> {
    let _alone = alone();
    for command in ["profile", "capture"] {
        refused(
            &output(cere(study()).args([command, "--", "./absent"]))?,
            "absent",
        )?;
        refused(
            &output(cere(study()).args([command, "--", "/bin/true"]))?,
            "instrument",
        )?;
        refused(
            &output(cere(study()).args([command, "--", "./main.c"]))?,
            "main.c",
        )?;
        refused(&output(cere(study()).args([command]))?, "--")?;
    }
    Ok(())
}

#[test]
fn a_store_of_another_build() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    refused(&output(cere(path).args(["regions"]))?, "cere instrument")?;
    refused(&output(cere(path).args(["replay", "work"]))?, "work")?;
    prepare(path)?;
    std::fs::rename(path.join("program"), path.join("old"))?;
    std::fs::remove_dir_all(path.join(".cere"))?;
    std::fs::write(path.join("main.c"), PROGRAM.replace("+= i;", "+= 2 * i;"))?;
    succeed(cere(path).args(["instrument", "--", "sh", "-c", "$CC -O1 main.c -o program"]))?;
    refused(
        &output(cere(path).args(["capture", "work@*", "--", "./old"]))?,
        "instrument",
    )
}

#[test]
fn unknown_regions_and_lists() -> Result<()> {
    let _alone = alone();
    refused(
        &output(cere(study()).args(["capture", "wrok@main.c", "--", "./program"]))?,
        "work@main.c",
    )?;
    refused(&output(cere(study()).args(["replay", "wrok"]))?, "wrok")?;
    refused(
        &output(cere(study()).args(["regions", "nothing*"]))?,
        "nothing",
    )?;
    for list in ["0", "1,,2", "3-1", "x", "1;2", "99999999999999999999"] {
        let run = output(cere(study()).args([
            "capture",
            "work@*",
            "--invocation",
            list,
            "--",
            "./program",
        ]))?;
        refused(&run, list)?;
    }
    refused(
        &output(cere(study()).args(["capture", "work@*", "--invocation", "7", "--", "./program"]))?,
        "7",
    )
}

#[test]
fn flags_that_the_compiler_rejects() -> Result<()> {
    for flags in [
        "-mno-such-thing",
        "-O9x",
        "-march=z80",
        "--no-such-flag",
        "-mllvm -no-such-option",
    ] {
        refused(
            &output(cere(study()).args(["replay", "work@*", "--flags", flags]))?,
            flags.split(' ').next_back().unwrap_or(""),
        )?;
    }
    refused(
        &output(cere(study()).args(["replay", "work@*", "--passes", "no-such-pass"]))?,
        "no-such-pass",
    )?;
    refused(
        &output(cere(study()).args(["replay", "work@*", "--flags", "\"open"]))?,
        "quote",
    )
}

#[test]
fn flags_that_a_replay_cannot_follow() -> Result<()> {
    for (flags, reason) in [
        ("-static", "linked"),
        ("-fPIE", "addresses"),
        ("-finstrument-functions", "functions"),
        ("--version", "writes"),
        ("-O3 -m32", "target"),
    ] {
        let run = output(cere(study()).args(["replay", "work@*", "--flags", flags]))?;
        refused(&run, reason)?;
        refused(&run, flags.split(' ').next_back().unwrap_or(""))?;
    }
    let run = output(cere(study()).args(["replay", "work@*", "--passes", " "]))?;
    refused(&run, "pipeline")
}

#[test]
fn reasons_are_said_once() -> Result<()> {
    let mut without_tools = cere(study());
    without_tools.args(["replay", "work@*", "--flags", "-O1 -funroll-loops"]);
    without_tools.env("PATH", "/nowhere");
    for command in [
        cere(study()).args(["replay", "work@*", "--keep", "/proc/nope"]),
        &mut without_tools,
    ] {
        let run = output(command)?;
        refused(&run, "no such file")?;
        let message = String::from_utf8_lossy(&run.stderr).into_owned();
        ensure!(message.matches("No such file").count() == 1, "{message}");
    }
    Ok(())
}

#[test]
fn regions_without_a_codelet() -> Result<()> {
    for (what, quoted) in [
        ("spin", "spin"),
        ("spin@*", "'spin@*'"),
        ("spin@main.c", "spin@main.c"),
    ] {
        let run = output(cere(study()).args(["replay", what]))?;
        refused(&run, "has no codelet")?;
        refused(&run, &format!("`cere capture {quoted} -- ./program"))?;
    }
    let (result, _) = json(cere(study()).args(["replay", "--json", "--reps", "1", "work:1"]))?;
    ensure!(result["codelet"] == "work@main.c:8:1", "{result}");
    refused(&output(cere(study()).args(["replay", "work:2"]))?, "work:2")
}

#[test]
fn stores_that_cannot_be_written() -> Result<()> {
    let build = ["sh", "-c", "$CC -O1 main.c -o other"];
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("main.c"), PROGRAM)?;
    for place in ["/proc/store", "main.c/store"] {
        let run = output(
            cere(directory.path())
                .args(["instrument", "--store", place, "--"])
                .args(build),
        )?;
        refused(&run, place)?;
    }
    Ok(())
}

/// A limit on the size of files stands for the full disk: the write fails half way in the same manner.
#[test]
fn a_disk_that_fills_up() -> Result<()> {
    let directory = tempfile::tempdir()?;
    prepare(directory.path())?;
    for entry in std::fs::read_dir(directory.path().join(".cere/codelets"))? {
        std::fs::remove_file(entry?.path())?;
    }
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" capture 'work@*' -- ./program";
    let mut command = Command::new("sh");
    command
        .args(["-c", limited])
        .arg(cere_tests::tools::built().join("cere"))
        .current_dir(directory.path());
    let run = output(&mut command)?;
    ensure!(!run.status.success(), "{}", text(&run));
    ensure!(
        !String::from_utf8_lossy(&run.stderr).contains("panicked"),
        "{}",
        text(&run)
    );
    let (list, _) = json(cere(directory.path()).args(["codelets", "--json"]))?;
    ensure!(list.as_array().is_some_and(Vec::is_empty), "{list}");
    succeed(cere(directory.path()).args(["capture", "work@*", "--", "./program"]))?;
    Ok(())
}

#[test]
fn killed_half_way_and_two_at_once() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    prepare(path)?;
    std::fs::remove_dir_all(path.join(".cere/codelets"))?;
    let mut first = cere(path)
        .args([
            "capture",
            "spin@*",
            "--invocation",
            "1",
            "--",
            "./program",
            "spin",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut lines = BufReader::new(first.stdout.take().context("a pipe")?).lines();
    while lines.next().context("the program never spun")?? != "spinning" {}
    refused(
        &output(cere(path).args(["capture", "work@*", "--", "./program"]))?,
        "in use",
    )?;
    first.kill()?;
    first.wait()?;
    // The program must have gone with the command: its end of the pipe closes.
    for line in lines {
        line?;
    }
    let (list, _) = json(cere(path).args(["codelets", "--json"]))?;
    ensure!(list.as_array().is_some_and(Vec::is_empty), "{list}");
    succeed(cere(path).args(["capture", "work@*", "--", "./program"]))?;
    Ok(())
}

#[test]
fn time_limits() -> Result<()> {
    let _alone = alone();
    for command in ["profile", "capture"] {
        let run =
            output(cere(study()).args([command, "--timeout", "1", "--", "./program", "spin"]))?;
        refused(&run, "timeout")?;
    }
    // What a capture had finished by then is kept.
    let directory = tempfile::tempdir()?;
    prepare(directory.path())?;
    std::fs::remove_dir_all(directory.path().join(".cere/codelets"))?;
    let run = output(cere(directory.path()).args([
        "capture",
        "work@*",
        "--invocation",
        "1",
        "--timeout",
        "1",
        "--",
        "./program",
        "spin",
    ]))?;
    refused(&run, "timeout")?;
    let (list, _) = json(cere(directory.path()).args(["codelets", "--json"]))?;
    ensure!(list.as_array().is_some_and(|l| l.len() == 1), "{list}");
    Ok(())
}

#[test]
fn programs_that_fail() -> Result<()> {
    let _alone = alone();
    let run = output(cere(study()).args(["profile", "--", "./program", "3"]))?;
    ensure!(
        !run.status.success() && String::from_utf8_lossy(&run.stderr).contains('3'),
        "{}",
        text(&run)
    );
    let run = output(cere(study()).args(["capture", "crash@*", "--", "./program", "crash"]))?;
    ensure!(!run.status.success(), "{}", text(&run));
    ensure!(
        String::from_utf8_lossy(&run.stderr).contains("signal"),
        "{}",
        text(&run)
    );
    Ok(())
}

#[test]
fn builds_without_a_compiler() -> Result<()> {
    let directory = tempfile::tempdir()?;
    refused(
        &output(cere(directory.path()).args(["instrument", "--", "true"]))?,
        "compile",
    )?;
    let run = output(cere(directory.path()).args(["instrument", "--", "sh", "-c", "exit 3"]))?;
    ensure!(run.status.code() == Some(3), "{}", text(&run));
    refused(
        &output(cere(directory.path()).args(["instrument", "--", "no-such-build-tool"]))?,
        "no-such-build-tool",
    )
}

#[test]
fn names_that_are_not_utf8() -> Result<()> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let odd = OsStr::from_bytes(b"pr\xf6g");
    let run = output(
        cere(study())
            .args(["capture", "--"])
            .arg(Path::new(".").join(odd)),
    )?;
    refused(&run, r#"the argument "./pr\xF6g" is not UTF-8"#)?;
    let run = output(cere(study()).args(["codelets", "--store"]).arg(odd))?;
    refused(&run, r#"the argument "pr\xF6g" is not UTF-8"#)?;
    let directory = study().join(odd);
    std::fs::create_dir_all(&directory)?;
    let build = ["instrument", "--", "true"];
    refused(
        &output(cere(&directory).args(build))?,
        "give it another name",
    )?;
    std::os::unix::fs::symlink(&directory, study().join("plain"))?;
    let run = output(cere(study()).args(["codelets", "--store", "plain"]))?;
    refused(&run, "the directory that holds the store is called")
}
