//! Wrong input from users: each case ends with a message that says what to do, without a panic, and no half-written file counts
//! as complete.

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::{codelets, instrument, refused};
use cere_tests::tools::{cere, json, output, succeed, text};
use std::io::{BufRead, BufReader};
use std::path::Path;
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

const BUILD: &str = "$CC -O1 main.c -o program";

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
    instrument(directory, BUILD)?;
    succeed(cere(directory).args(["capture", "work@*", "--", "./program"]))?;
    Ok(())
}

/// The bytes of the codelet.
fn codelet() -> Result<Vec<u8>> {
    let (_, file) = codelets(study())?.pop().context("one codelet")?;
    Ok(std::fs::read(file)?)
}

fn copy(bytes: &[u8]) -> Result<tempfile::NamedTempFile> {
    let file = tempfile::Builder::new().suffix(".codelet").tempfile()?;
    std::fs::write(file.path(), bytes)?;
    Ok(file)
}

/// A package of these bytes is refused.
fn replay_refused(bytes: &[u8], part: &str) -> Result<Output> {
    let file = copy(bytes)?;
    refused(cere(study()).arg("replay").arg(file.path()), part)
}

#[test]
fn a_sound_package_replays_without_a_store() -> Result<()> {
    let file = copy(&codelet()?)?;
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
    let whole = codelet()?;
    for length in [
        0,
        1,
        10,
        40,
        whole.len() / 4,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        replay_refused(&whole[..length], "codelet").with_context(|| format!("{length} bytes"))?;
    }
    Ok(())
}

#[test]
fn damaged_packages() -> Result<()> {
    let whole = codelet()?;
    for step in 0..24 {
        let mut bytes = whole.clone();
        let at = whole.len() * step / 24;
        bytes[at] ^= 0x40;
        replay_refused(&bytes, "codelet").with_context(|| format!("byte {at}"))?;
    }
    Ok(())
}

#[test]
fn not_a_package() -> Result<()> {
    let script = b"#!/bin/sh\necho this is a script, not a codelet, and long enough to be one\n";
    replay_refused(script, "not")?;
    for name in [".", "absent.codelet"] {
        refused(cere(study()).args(["replay", name]), name)?;
    }
    Ok(())
}

#[test]
fn programs_that_do_not_fit() -> Result<()> {
    let _alone = alone();
    for command in ["profile", "capture"] {
        for (program, part) in [
            ("./absent", "absent"),
            ("/bin/true", "instrument"),
            ("./main.c", "main.c"),
        ] {
            refused(cere(study()).args([command, "--", program]), part)?;
        }
        refused(cere(study()).args([command]), "--")?;
    }
    Ok(())
}

#[test]
fn a_store_of_another_build() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    refused(cere(path).args(["regions"]), "cere instrument")?;
    refused(cere(path).args(["replay", "work"]), "work")?;
    prepare(path)?;
    std::fs::rename(path.join("program"), path.join("old"))?;
    std::fs::remove_dir_all(path.join(".cere"))?;
    std::fs::write(path.join("main.c"), PROGRAM.replace("+= i;", "+= 2 * i;"))?;
    instrument(path, BUILD)?;
    let capture = ["capture", "work@*", "--", "./old"];
    refused(cere(path).args(capture), "instrument").map(drop)
}

#[test]
fn unknown_regions_and_lists() -> Result<()> {
    let _alone = alone();
    let capture = ["capture", "wrok@main.c", "--", "./program"];
    refused(cere(study()).args(capture), "work@main.c")?;
    refused(cere(study()).args(["replay", "wrok"]), "wrok")?;
    refused(cere(study()).args(["regions", "nothing*"]), "nothing")?;
    for list in ["0", "1,,2", "3-1", "x", "1;2", "99999999999999999999", "7"] {
        let mut command = cere(study());
        command.args(["capture", "work@*", "--invocation", list]);
        refused(command.args(["--", "./program"]), list)?;
    }
    Ok(())
}

#[test]
fn flags_that_a_replay_refuses() -> Result<()> {
    for (option, value, parts) in [
        ("--flags", "-mno-such-thing", &["-mno-such-thing"][..]),
        ("--flags", "-O9x", &["-O9x"]),
        ("--flags", "-march=z80", &["-march=z80"]),
        ("--flags", "--no-such-flag", &["--no-such-flag"]),
        ("--flags", "-mllvm -no-such-option", &["-no-such-option"]),
        ("--flags", "\"open", &["quote"]),
        ("--passes", "no-such-pass", &["no-such-pass"]),
        // What the compiler takes, and a replay cannot follow.
        ("--flags", "-static", &["linked", "-static"]),
        ("--flags", "-fPIE", &["addresses", "-fPIE"]),
        (
            "--flags",
            "-finstrument-functions",
            &["functions", "-finstrument-functions"],
        ),
        ("--flags", "--version", &["writes", "--version"]),
        ("--flags", "-O3 -m32", &["target", "-m32"]),
        ("--passes", " ", &["pipeline"]),
    ] {
        for part in parts {
            refused(
                cere(study()).args(["replay", "work@*", option, value]),
                part,
            )?;
        }
    }
    Ok(())
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
        let run = refused(command, "No such file")?;
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
        let part = format!("`cere capture {quoted} -- ./program");
        let run = refused(cere(study()).args(["replay", what]), &part)?;
        ensure!(text(&run).contains("has no codelet"), "{}", text(&run));
    }
    let (result, _) = json(cere(study()).args(["replay", "--json", "--reps", "1", "work:1"]))?;
    ensure!(result["codelet"] == "work@main.c:8:1", "{result}");
    refused(cere(study()).args(["replay", "work:2"]), "work:2").map(drop)
}

#[test]
fn stores_that_cannot_be_written() -> Result<()> {
    let build = ["sh", "-c", "$CC -O1 main.c -o other"];
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("main.c"), PROGRAM)?;
    for place in ["/proc/store", "main.c/store"] {
        let mut command = cere(directory.path());
        command.args(["instrument", "--store", place, "--"]);
        refused(command.args(build), place)?;
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
    ensure!(!text(&run).contains("panicked"), "{}", text(&run));
    ensure!(codelets(directory.path())?.is_empty());
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
        .args(["capture", "spin@*", "--invocation", "1"])
        .args(["--", "./program", "spin"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut lines = BufReader::new(first.stdout.take().context("a pipe")?).lines();
    while lines.next().context("the program never spun")?? != "spinning" {}
    let capture = ["capture", "work@*", "--", "./program"];
    refused(cere(path).args(capture), "in use")?;
    first.kill()?;
    first.wait()?;
    // The program must have gone with the command: its end of the pipe closes.
    for line in lines {
        line?;
    }
    ensure!(codelets(path)?.is_empty());
    succeed(cere(path).args(capture))?;
    Ok(())
}

#[test]
fn time_limits() -> Result<()> {
    let _alone = alone();
    for command in ["profile", "capture"] {
        let arguments = [command, "--timeout", "1", "--", "./program", "spin"];
        refused(cere(study()).args(arguments), "timeout")?;
    }
    // What a capture had finished by then is kept.
    let directory = tempfile::tempdir()?;
    prepare(directory.path())?;
    std::fs::remove_dir_all(directory.path().join(".cere/codelets"))?;
    let mut command = cere(directory.path());
    command.args(["capture", "work@*", "--invocation", "1", "--timeout", "1"]);
    refused(command.args(["--", "./program", "spin"]), "timeout")?;
    ensure!(codelets(directory.path())?.len() == 1);
    Ok(())
}

#[test]
fn programs_that_fail() -> Result<()> {
    let _alone = alone();
    for (arguments, part) in [
        (&["profile", "--", "./program", "3"][..], "3"),
        (
            &["capture", "crash@*", "--", "./program", "crash"],
            "signal",
        ),
    ] {
        let run = output(cere(study()).args(arguments))?;
        ensure!(!run.status.success(), "{}", text(&run));
        let message = String::from_utf8_lossy(&run.stderr);
        ensure!(message.contains(part), "no `{part}`\n{}", text(&run));
    }
    Ok(())
}

#[test]
fn builds_without_a_compiler() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let instrument = |arguments: &[&str]| {
        let mut command = cere(directory.path());
        command.args(["instrument", "--"]).args(arguments);
        command
    };
    refused(&mut instrument(&["true"]), "compile")?;
    let run = output(&mut instrument(&["sh", "-c", "exit 3"]))?;
    ensure!(run.status.code() == Some(3), "{}", text(&run));
    let absent = "no-such-build-tool";
    refused(&mut instrument(&[absent]), absent).map(drop)
}

#[test]
fn names_that_are_not_utf8() -> Result<()> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let odd = OsStr::from_bytes(b"pr\xf6g");
    let mut command = cere(study());
    command
        .args(["capture", "--"])
        .arg(Path::new(".").join(odd));
    refused(&mut command, r#"the argument "./pr\xF6g" is not UTF-8"#)?;
    let mut command = cere(study());
    command.args(["codelets", "--store"]).arg(odd);
    refused(&mut command, r#"the argument "pr\xF6g" is not UTF-8"#)?;
    let directory = study().join(odd);
    std::fs::create_dir_all(&directory)?;
    let build = ["instrument", "--", "true"];
    refused(cere(&directory).args(build), "give it another name")?;
    std::os::unix::fs::symlink(&directory, study().join("plain"))?;
    let part = "the directory that holds the store is called";
    refused(cere(study()).args(["codelets", "--store", "plain"]), part).map(drop)
}
