//! Errors and reasons carry the code of their entry in the catalogue, and `cere explain` prints it.

use crate::common::{
    cere, directory_with, has, instrument, instrumented, json, make_executable, run, succeed, text,
    write,
};
use std::path::Path;
use std::process::Output;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static double cells[20000];
static void smooth(void) {
    for (int s = 0; s < 200; s++) for (int i = 1; i < 19999; i++) cells[i] = cells[i] * 0.5 + i;
}
static void unused(int n) { for (int i = 0; i < n; i++) cells[i] += cells[i / 2]; }
int main(int argc, char **argv) {
    smooth();
    if (argc > 5) unused(argc);
    if (argc > 1 && argv[1][0] == 'c') abort();
    printf("%g\n", cells[7]);
    return argc > 1 ? 3 : 0;
}
"#;

/// Fails unless the output is one error of the kind `code` that begins with `cause`, and no panic.
#[track_caller]
fn is(output: &Output, code: u16, cause: &str) {
    let said = text(&output.stderr);
    assert!(!output.status.success(), "it succeeded: {said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(said.matches("cere: error").count(), 1, "{said}");
    has(&said, &format!("cere: error[CERE-{code}]: {cause}"));
}

/// The same of a command line.
#[track_caller]
fn fails(at: &Path, line: &str, code: u16, cause: &str) {
    is(&run(at, line), code, cause);
}

#[test]
fn explained() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let shown = text(&succeed(at, "explain cere-2003").stdout);
    has(&shown, "CERE-2003: the program was not built under cere");
    for head in ["message  ", "cause  ", "do  ", "example  "] {
        has(&shown, &format!("\n  {head}"));
    }
    let list = text(&succeed(at, "explain --list").stdout);
    has(&list, "CERE-2003  the program was not built");
    // Every code of the list is explained.
    let codes: Vec<&str> = list.lines().filter_map(|line| line.get(..9)).collect();
    assert!(codes.len() > 400, "{}", codes.len());
    let all = text(&succeed(at, &[&["explain"], &codes[..]].concat()).stdout);
    assert_eq!(all.matches("  do  ").count(), codes.len());
    fails(
        at,
        "explain CERE-9999",
        4025,
        "there is no message CERE-9999",
    );
    fails(
        at,
        "explain",
        8003,
        "a region, a codelet or the code of a message is needed",
    );
}

#[test]
fn without_a_store_or_a_build() {
    let directory = directory_with(&[("main.c", PROGRAM)]);
    let at = directory.path();
    fails(at, "regions", 4003, "no build is recorded in ");
    fails(at, "replay 'smooth@*'", 4002, "there is no store ");
    fails(
        at,
        "replay x.codelet",
        4019,
        "there is no codelet file x.codelet",
    );
    fails(at, "replay .", 4019, ". is a directory, not a codelet");
    fails(
        at,
        "instrument -- ./no-such-build",
        7001,
        "cannot run ./no-such-build",
    );
    fails(
        at,
        "instrument -- false",
        1015,
        "the build command `false` failed",
    );
    fails(at, "instrument -- true", 1002, "the build compiled nothing");
    std::fs::remove_dir_all(at.join(".cere")).expect("a store");
    std::fs::create_dir(at.join(".cere")).expect("a store");
    fails(at, "regions", 4003, "no build is recorded in ");
    fails(
        at,
        "--store x manual .",
        4001,
        "`cere manual` has no option --store",
    );
    fails(
        at,
        "guard",
        6101,
        "there is no folder cere-guard here or above",
    );
}

#[test]
fn programs_that_cannot_be_profiled() {
    let directory = instrumented(PROGRAM);
    let at = directory.path();
    fails(at, "profile -- ./gone", 2001, "there is no program ./gone");
    fails(
        at,
        "profile -- no-such-program",
        2001,
        "there is no program no-such-program in PATH",
    );
    let lines = "/usr/bin/gcc main.c -o plain; /usr/bin/gcc -static main.c -o static; /usr/bin/gcc -c main.c; printf text > text";
    let made = std::process::Command::new("sh")
        .args(["-ec", lines])
        .current_dir(at)
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    make_executable(&at.join("text"));
    fails(at, "profile -- ./plain", 2003, "");
    fails(
        at,
        "profile -- ./static",
        2006,
        "./static ended with status 0 without a profile: it is linked statically",
    );
    fails(
        at,
        "profile -- ./main.o",
        7003,
        "cannot run ./main.o: Permission denied",
    );
    fails(at, "profile -- ./text", 2002, "");
    // It is the program of another store.
    let other = directory_with(&[(
        "other.c",
        "int main(void) { double s = 0; for (int i = 0; i < 9000; i++) s += i * s; return s > 1; }",
    )]);
    instrument(other.path(), "$CC -O2 other.c -o app");
    std::fs::copy(other.path().join("app"), at.join("other")).expect("a copy");
    fails(at, "profile -- ./other", 2005, "");
    // The program fails: its profile up to there is kept.
    fails(
        at,
        "profile -- ./app 1",
        2008,
        "./app ended with status 3; the profile up to there",
    );
    fails(
        at,
        "profile -- ./app c",
        2008,
        "./app ended with status 134 (signal: 6 (SIGABRT)); the profile up to there",
    );
    // A script that starts no program of the build.
    write(at, &[("run.sh", "#!/bin/sh\nexit 0\n")]);
    make_executable(&at.join("run.sh"));
    fails(
        at,
        "profile -- ./run.sh",
        2006,
        "./run.sh ended with status 0 without a profile: it started no program",
    );
    fails(at, "profile --timeout 1 -- sleep 9", 2003, "");
}

#[test]
fn names_and_numbers_on_the_command_line() {
    let directory = instrumented(PROGRAM);
    let at = directory.path();
    fails(
        at,
        "regions 'smoth@*'",
        4010,
        "nothing is called smoth@* (near: smooth@main.c:6)",
    );
    fails(at, "check", 6001, "there is no profile in ");
    succeed(at, "profile -- ./app");
    fails(
        at,
        "replay 'smooth@*'",
        5001,
        "the region smooth@main.c:6 has no codelet",
    );
    fails(
        at,
        "replay smoth@main.c:5:1",
        6003,
        "smoth@main.c:5:1: the store ",
    );
    fails(
        at,
        "capture 'smooth@*' --invocation x -- ./app",
        3012,
        "--invocation x: `x` is not the number",
    );
    fails(
        at,
        "capture 'smooth@*' --invocation 0 -- ./app",
        3012,
        "--invocation 0: ",
    );
    fails(at, "tune --space lvels", 6406, "there is no space lvels");
    fails(at, "hybrid -o x -- ./app", 6502, "nothing in ");
    fails(at, "replay 'smooth@*' --affinity near", 8004, "");
    succeed(at, "capture 'smooth@*' --invocation 1 -- ./app");
    fails(
        at,
        "replay smoth@main.c:5:1",
        4010,
        "nothing is called smoth@main.c:5:1 (near: smooth@main.c:6",
    );
    fails(at, "replay 'smooth@*' --flags -DN=2", 5014, "");
    fails(at, "replay 'smooth@*' --flags -fno-such-flag", 5037, "");
    fails(
        at,
        "replay 'smooth@*' --warmup working-set --warm-to l2",
        5025,
        "--warm-to goes with --warmup cold",
    );
    fails(
        at,
        "count 'smooth@*' --geometry larg",
        6201,
        "--geometry larg: it is neither here",
    );
    fails(at, "replay 'smooth@*' --affinity 9000", 5026, "");
    fails(at, "export 'smooth@*' .", 6408, "");
}

#[test]
fn reasons_have_codes() {
    let source = "#include <setjmp.h>\njmp_buf b;\nint main(int n, char **v) { double s = 0; for (int i = 0; i < n * 9000; i++) { if (setjmp(b)) s += 1; s += i * s; } return s > 1; }\n";
    let directory = directory_with(&[("main.c", PROGRAM), ("jump.c", source)]);
    let at = directory.path();
    instrument(at, "$CC -O2 main.c -o app && $CC -O2 jump.c -o jump");
    let table = text(&succeed(at, "regions").stdout);
    has(&table, "refused: setjmp in the loop [CERE-1102]");
    let regions = json(at, "regions --json");
    let of = |file: &str| {
        let all = regions.as_array().expect("regions").iter();
        all.filter(|region| region["file"].as_str().is_some_and(|f| f.ends_with(file)))
            .map(|region| region["code"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("jump.c"), ["CERE-1102"]);
    assert!(of("main.c").iter().all(serde_json::Value::is_null));
    let capture = [
        "capture",
        "unused@*",
        "--invocation",
        "1",
        "--json",
        "--",
        "./app",
    ];
    let output = run(at, &capture);
    is(&output, 3006, "nothing was captured");
    has(
        &text(&output.stderr),
        "it never ran with these arguments [CERE-3102]",
    );
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["skipped"][0]["code"], "CERE-3102");
}

#[test]
fn damaged_and_foreign_files() {
    let directory = instrumented(PROGRAM);
    let at = directory.path();
    succeed(at, "profile -- ./app");
    let profile = at.join(".cere/profile.json");
    let whole = std::fs::read_to_string(&profile).expect("a profile");
    std::fs::write(&profile, &whole[..whole.len() / 2]).expect("a file");
    fails(at, "select", 4009, "");
    std::fs::write(&profile, &whole).expect("a file");
    // The build is another one.
    let changed = PROGRAM.replace("* 0.5", "* 0.25");
    write(at, &[("main.c", &changed)]);
    instrument(at, "$CC -O2 main.c -o app");
    fails(at, "check", 6002, "the profile in ");
    write(at, &[("half.codelet", "CERE")]);
    let output = run(at, "replay half.codelet");
    let said = text(&output.stderr);
    assert!(
        said.contains("cere: error[CERE-4022]: ") && !said.contains("panicked"),
        "{said}"
    );
}

/// Tools that are missing, and a stdout that nobody reads.
#[test]
fn surroundings() {
    let directory = directory_with(&[("main.c", PROGRAM)]);
    let at = directory.path();
    std::fs::create_dir(at.join("bin")).expect("a directory");
    for tool in ["sh", "env"] {
        std::os::unix::fs::symlink(format!("/bin/{tool}"), at.join("bin").join(tool))
            .expect("a link");
    }
    let output = cere(at, &["instrument", "--", "sh", "-c", "cc -c main.c"])
        .env("PATH", at.join("bin"))
        .output()
        .expect("cere runs");
    is(&output, 1001, "clang-22 is not in PATH: install LLVM 22");
    let closed = format!(
        "'{}' explain --list | true",
        crate::common::built().display()
    );
    let piped = std::process::Command::new("sh")
        .args(["-c", &closed])
        .output()
        .expect("sh");
    assert!(!text(&piped.stderr).contains("panicked") && piped.stderr.is_empty());
}

/// Places where nothing can be written, for a user who is not root: a full disk, and one that is read only.
#[test]
fn places_that_cannot_be_written() {
    let directory = directory_with(&[("main.c", PROGRAM)]);
    let at = directory.path();
    let shell = |lines: &str| {
        let cere = crate::common::built().display().to_string();
        let inside = format!("set -e; cd '{}'; {lines}", at.display());
        let output = std::process::Command::new("unshare")
            .args(["--mount", "--map-root-user", "sh", "-c", &inside])
            .env("CERE", cere)
            .output();
        output.expect("unshare runs")
    };
    std::fs::create_dir(at.join("full")).expect("a directory");
    let full = "mount -t tmpfs -o size=64k tmpfs full; head -c 60k /dev/zero > full/x; \"$CERE\" instrument --store full/s -- sh -ec '$CC -O2 main.c -o app'";
    let output = shell(full);
    let said = text(&output.stderr);
    assert!(
        !output.status.success() && !said.contains("panicked"),
        "{said}"
    );
    has(&said, "cere: error[CERE-7002]: ");
    let read_only = "mount -t tmpfs -o ro tmpfs full; \"$CERE\" instrument --store full/s -- true";
    is(&shell(read_only), 4005, "cannot create ");
}
