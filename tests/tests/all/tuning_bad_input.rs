//! Wrong input for `cere tune`, `cere hybrid` and `cere predict --flags-file`: each case ends with a message that names the
//! cause, and leaves no half-written file.

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::{self, instrumented};
use cere_tests::sources::WORK;
use cere_tests::tools::{cere, output, shown, succeed, text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Counts its runs in a file; with "lines" it prints more from run to run, with "fails" it fails.
const MAIN: &str = r#"
#include <stdio.h>
#include <string.h>
long work(long n);
int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int runs = 0;
    FILE *file = fopen("counter", "r");
    if (file) {
        if (fscanf(file, "%d", &runs) != 1)
            runs = 0;
        fclose(file);
    }
    file = fopen("counter", "w");
    fprintf(file, "%d\n", runs + 1);
    fclose(file);
    printf("%ld\n", work(100000));
    for (int i = 0; !strcmp(what, "lines") && i < runs; i++)
        printf("run %d\n", i);
    long all = 0;
    for (int i = 0; i < argc; i++)
        all += argv[i][0];
    for (int i = 0; i < argc; i++)
        all ^= argv[i][0];
    printf("%ld\n", all);
    return !strcmp(what, "fails");
}
"#;

const BUILD: &str = "$CC -g -O1 -c work.c && $CC -g -O1 -c main.c && $CC main.o work.o -o program";

fn built() -> Result<tempfile::TempDir> {
    let directory = instrumented(&[("work.c", WORK), ("main.c", MAIN)], BUILD)?;
    std::fs::write(directory.path().join("good"), good("flags = \"-O2\""))?;
    Ok(directory)
}

/// A flags file with these lines for the region of `work`.
fn good(lines: &str) -> String {
    format!("version = 1\n[[region]]\nname = \"work@work.c:5\"\n{lines}\n")
}

/// The same with a codelet of it.
fn captured() -> Result<tempfile::TempDir> {
    let directory = built()?;
    succeed(cere(directory.path()).args(["capture", "work@*", "--", "./program"]))?;
    Ok(directory)
}

/// Files and what they hold; of the store only what is found or linked, and what a command leaves when it dies.
fn files(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for place in ["", ".cere", ".cere/tmp", ".cere/cache"] {
        let Ok(entries) = std::fs::read_dir(directory.join(place)) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let known = ["lock", "counter", "results.jsonl"].contains(&&*name);
            let scratch = name.contains("hybrid.") || name.ends_with(".new");
            if entry.file_type()?.is_file() && !known {
                found.insert(entry.path(), std::fs::read(entry.path())?);
            } else if scratch {
                found.insert(entry.path(), Vec::new());
            }
        }
    }
    Ok(found)
}

/// The command fails, with one message of CERE's own that holds `part`, and all files are as before.
fn refused(directory: &Path, command: &mut Command, part: &str) -> Result<Output> {
    let before = files(directory)?;
    let run = prepare::refused(command, part)?;
    let seen = || format!("{}\n{}", shown(command), text(&run));
    let after = files(directory)?;
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    ensure!(
        names(&before) == names(&after),
        "{:?} instead of {:?}: {}",
        names(&after),
        names(&before),
        seen()
    );
    ensure!(before == after, "a file changed: {}", seen());
    Ok(run)
}

/// `cere hybrid` of the flags file `flags`, linked as `output`.
fn hybrid(directory: &Path, flags: &str, output: &str) -> Command {
    let mut command = cere(directory);
    command.args(["hybrid", "-o", output, "--flags-file", flags]);
    command
}

/// As above, of the program, without running it.
fn linking(directory: &Path, flags: &str) -> Command {
    let mut command = hybrid(directory, flags, "tuned");
    command.args(["--image", "program"]);
    command
}

#[test]
fn spaces() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    let group = "[[group]]\nname = \"all\"\nchoices = [\"-O1\", \"-O2\"]\n";
    let with = |part: &str, other: &str| group.replace(part, other);
    for (space, part) in [
        (with("]]", "]"), "line 1 of the space"),
        (with("\"-O2\"]", "\"-O2\""), "of the space: unclosed"),
        (with("choices", "choice"), "line 3 of the space"),
        (with("choices", "choice"), "`choice`"),
        (with("-O2", "-fno-such-flag"), "-fno-such-flag"),
        (with("-O2", "-fno-such-flag"), "group all"),
        (with("-O2", "-mllvm -no-such-option"), "-no-such-option"),
        (with("-O2", "-flto"), "-flto"),
        (with("-O2", "O2"), "\"O2\" is no flag"),
        (format!("{group}changes-values = true\n"), "--change-values"),
        (String::new(), "empty"),
    ] {
        std::fs::write(directory.join("space.toml"), &space)?;
        let mut command = cere(directory);
        command.args(["tune", "--budget", "1", "--space", "space.toml"]);
        let run = refused(directory, &mut command, part)?;
        let message = String::from_utf8_lossy(&run.stderr).into_owned();
        ensure!(message.contains("space.toml"), "{message}");
    }
    for (option, part) in [("--space", "levels"), ("--show-space", "levls")] {
        let mut command = cere(directory);
        refused(directory, command.args(["tune", option, "levls"]), part)?;
    }
    Ok(())
}

#[test]
fn searches() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    for (arguments, part) in [
        (&["--budget", "0"][..], "nothing"),
        (&["--budget", "0s"], "nothing"),
        (&["--budget", "-3"], "\"-3\" is no budget"),
        (&["--budget", "nonsense"], "\"nonsense\" is no budget"),
        (&["--budget", "5d"], "\"5d\" is no budget"),
        (&["--search", "luck"], "\"luck\""),
        (&["--target", "0.5"], "above 1"),
        (&["--jobs", "0"], "'0'"),
        (&["--threads", "0"], "'0'"),
        (&["wrok@*"], "wrok@*"),
        (&["wrok"], "wrok"),
        (&["main@main.c:23"], "main@main.c:23 has no codelet"),
        (
            &["main@main.c:23"],
            "`cere capture main@main.c:23 -- ./program` takes one",
        ),
    ] {
        let mut command = cere(directory);
        command.args(["tune", "--space", "levels"]).args(arguments);
        refused(directory, &mut command, part)?;
    }
    Ok(())
}

#[test]
fn searches_without_what_they_need() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    let tune = |directory: &Path| {
        let mut command = cere(directory);
        command.args(["tune", "--space", "levels", "--budget", "1"]);
        command
    };
    refused(directory, &mut tune(directory), "cere profile")?;
    succeed(cere(directory).args(["profile", "--", "./program"]))?;
    refused(directory, &mut tune(directory), "cere capture")?;
    let elsewhere = tempfile::tempdir()?;
    let elsewhere = elsewhere.path();
    refused(elsewhere, &mut tune(elsewhere), "cere instrument")?;
    let mut command = hybrid(elsewhere, "good", "tuned");
    refused(elsewhere, &mut command, "cere instrument")?;
    Ok(())
}

#[test]
fn flags_files() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    succeed(&mut linking(directory, "good"))?;
    for (file, part) in [
        (good("flags = \"-fno-such-flag\""), "-fno-such-flag"),
        (good("flags = \"-mllvm -no-such-opt\""), "-no-such-opt"),
        (good("flags = \"-O2 -flto\""), "-flto"),
        (
            good("flags = \"\\\"open\""),
            "work@work.c:5: missing closing quote",
        ),
        (good("passes = \"no-such-pass\""), "no-such-pass"),
        (good("flag = \"-O2\""), "`flag`"),
        (good("flags = "), "file \"bad\" has an error"),
        (good("flags = "), "line 4"),
        (good("").replace("]]", "]"), "line 2"),
        (good("").replace("work@", "wrok@"), "wrok@work.c:5"),
        (good("").replace("work@work.c:5", "*"), "several regions"),
        (good("").replace('1', "9"), "version 9"),
        (String::new(), "`version`"),
        ("version = 1\n".into(), "no choices"),
        ("version = 1\nrest = \"-fno-such\"\n".into(), "-fno-such"),
        ("version = 1\nrest = \"-flto\"\n".into(), "-flto"),
        (good("threads = 3"), "forks no team"),
        (good("bind = \"spread\""), "forks no team"),
        (
            good("bind = \"loosely\""),
            "work@work.c:5: bind = \"loosely\"",
        ),
        (good("threads = -3"), "-3"),
    ] {
        std::fs::write(directory.join("bad"), &file)?;
        let part = part.replace("file \"bad\"", "file bad");
        refused(directory, &mut linking(directory, "bad"), &part).with_context(|| file)?;
    }
    refused(directory, &mut linking(directory, "absent"), "absent")?;
    Ok(())
}

/// Without a file, choices are those of `cere tune`, which may have found nothing.
#[test]
fn nothing_is_tuned() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    let hybrid = || {
        let mut command = cere(directory);
        command.args(["hybrid", "-o", "tuned", "--", "./program"]);
        command
    };
    refused(directory, &mut hybrid(), "`cere tune` finds")?;
    refused(directory, &mut hybrid(), "--flags-file")?;
    std::fs::write(directory.join(".cere/tuned.toml"), "version = 1\n")?;
    refused(directory, &mut hybrid(), "no choices")?;
    Ok(())
}

/// Lines move as a program is worked on: the only region of a function is meant still, one of several is not known.
#[test]
fn regions_that_moved() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    let write = |text: &str| std::fs::write(directory.join("old"), text);
    let old = |name: &str| good("flags = \"-O2\"").replace("work@work.c:5", name);
    write(&old("work@work.c:99"))?;
    let run = succeed(&mut linking(directory, "old"))?;
    let message = String::from_utf8_lossy(&run.stderr).into_owned();
    let taken = "work@work.c:5 is taken for work@work.c:99";
    ensure!(message.contains(taken), "{message}");
    let kept = std::fs::read_to_string(directory.join("tuned.flags"))?;
    ensure!(
        kept.contains("work@work.c:5") && !kept.contains("99"),
        "{kept}"
    );

    write(&old("main@main.c:99"))?;
    let name = "main@main.c:99, which this build does not have; 3 regions";
    refused(directory, &mut linking(directory, "old"), name)?;
    write(&(old("work@work.c:5") + &old("work@work.c:99").replace("version = 1\n", "")))?;
    refused(
        directory,
        &mut linking(directory, "old"),
        "work@work.c:5 twice",
    )?;
    Ok(())
}

/// Builds that are not any more what `cere instrument` saw.
#[test]
fn builds_that_changed() -> Result<()> {
    let object = "work.o was rebuilt since";
    for (change, part) in [
        ("clang-22 -O1 -c work.c", object),
        (": > work.o", object),
        ("rm work.o", "work.o, an input of the link of"),
        ("clang-22 -O1 main.c work.c -o program", "holds no code"),
        ("rm program", "program: No such file"),
        ("mv .cere/links .cere/gone", "no link of"),
    ] {
        let directory = built()?;
        let directory = directory.path();
        let mut command = Command::new("sh");
        succeed(command.args(["-c", change]).current_dir(directory))?;
        refused(directory, &mut linking(directory, "good"), part).with_context(|| change)?;
    }
    Ok(())
}

#[test]
fn images() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    for (image, part, as_program) in [
        ("absent", "absent", "absent"),
        (
            "/bin/true",
            "/bin/true holds no code",
            "is not instrumented",
        ),
        ("work.o", "no link of", "is an object file"),
    ] {
        let mut command = hybrid(directory, "good", "tuned");
        refused(directory, command.args(["--image", image]), part)?;
        let mut command = hybrid(directory, "good", "tuned");
        let program = match image {
            "absent" => "./absent",
            "work.o" => "./work.o",
            other => other,
        };
        refused(directory, command.args(["--", program]), as_program)?;
    }
    let mut command = hybrid(directory, "good", "tuned");
    refused(directory, command.args(["--image", "main.c"]), "main.c")?;
    // Which program, if none is named and none was profiled?
    let mut command = hybrid(directory, "good", "tuned");
    refused(directory, &mut command, "which program")?;
    Ok(())
}

#[test]
fn places_of_the_output() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    std::fs::create_dir(directory.join("place"))?;
    for (place, part) in [
        ("absent/tuned", "cannot write absent/tuned"),
        ("place", "place is a directory"),
        ("program", "the program itself"),
        ("place/../program", "the program itself"),
    ] {
        for last in [&["--image", "program"][..], &["--", "./program"]] {
            let mut command = hybrid(directory, "good", place);
            refused(directory, command.args(last), part)?;
        }
        let entries = std::fs::read_dir(directory.join("place"))?.count();
        ensure!(entries == 0, "something is in place/");
    }
    for (place, part) in [("absent/kept", "absent/kept"), ("place", "a directory")] {
        let mut command = linking(directory, "good");
        refused(directory, command.args(["--write-flags", place]), part)?;
    }
    Ok(())
}

/// Files of users that the outputs' names hit.
#[test]
fn outputs_over_inputs() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    let mut command = linking(directory, "good");
    refused(
        directory,
        command.args(["--write-flags", "program"]),
        "program",
    )?;
    let mut command = linking(directory, "good");
    refused(directory, command.args(["--write-flags", "tuned"]), "tuned")?;
    let mut command = hybrid(directory, "good", "good");
    refused(directory, command.args(["--image", "program"]), "good")?;
    // What is no plain file, like /dev/null, is not to be replaced by one.
    let socket = directory.join("socket");
    let _open = std::os::unix::net::UnixListener::bind(&socket)?;
    let mut command = hybrid(directory, "good", "socket");
    let run = output(command.args(["--image", "program"]))?;
    let kind = std::fs::symlink_metadata(&socket)?.file_type();
    ensure!(!kind.is_file(), "the socket is gone\n{}", text(&run));
    Ok(())
}

#[test]
fn teams_that_cannot_be() -> Result<()> {
    let program = "static long data[9];\nint main(void) {\n#pragma omp parallel for\n\
                   for (int i = 0; i < 9; i++) data[i] = i;\nreturn data[0]; }\n";
    let build = "$CC -g -O1 -fopenmp main.c -o program";
    let directory = instrumented(&[("main.c", program)], build)?;
    let directory = directory.path();
    for threads in ["0", "100000"] {
        let lines = format!("threads = {threads}");
        let file = good(&lines).replace("work@work.c:5", "main@main.c:3");
        std::fs::write(directory.join("bad"), file)?;
        refused(directory, &mut linking(directory, "bad"), &lines)?;
    }
    Ok(())
}

#[test]
fn programs() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    let running = |arguments: &[&str]| {
        let mut command = hybrid(directory, "good", "tuned");
        command.args(["--no-levels", "--rounds", "2"]);
        command.args(arguments);
        command
    };
    // A run that is refused leaves an earlier output as it was.
    succeed(&mut linking(directory, "good"))?;
    let lines = ["--", "./program", "lines"];
    let run = refused(directory, &mut running(&lines), "--ignore")?;
    let message = String::from_utf8_lossy(&run.stderr).into_owned();
    ensure!(
        message.contains("./program") && message.contains("run to run"),
        "{message}"
    );
    let fails = ["--", "./program", "fails"];
    let run = refused(directory, &mut running(&fails), "status 1")?;
    ensure!(String::from_utf8_lossy(&run.stderr).contains("./program"));
    refused(directory, &mut running(&["--", "./absent"]), "./absent")?;
    succeed(&mut running(&[
        "--ignore",
        "run ",
        "--",
        "./program",
        "lines",
    ]))?;
    Ok(())
}

#[test]
fn lists_of_flags() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    let predict = |arguments: &[&str]| {
        let mut command = cere(directory);
        command.args(["predict", "--flags-file", "sets"]);
        command.args(arguments);
        command
    };
    refused(directory, &mut predict(&[]), "sets")?;
    for (sets, part) in [
        ("-O1\n-O2 -fno-such-flag\n", "sets, line 2"),
        ("-O1\n-O2 -fno-such-flag\n", "-fno-such-flag"),
        ("-flto\n", "-flto"),
        ("-O1 [default<O1>\n", "closed"),
        ("# nothing\n", "lists no flags"),
        ("\"-O1\n", "quote"),
    ] {
        std::fs::write(directory.join("sets"), sets)?;
        refused(directory, &mut predict(&[]), part)?;
    }
    std::fs::write(directory.join("sets"), "-O1\n")?;
    for (arguments, part) in [
        (&["--threads", "2"][..], "--threads"),
        (&["--affinity", "compact"], "--affinity"),
        (&["--plot", "picture.svg"], "--plot"),
        (&["--rounds", "0"], "'0'"),
    ] {
        refused(directory, &mut predict(arguments), part)?;
    }
    Ok(())
}
