//! `cere instrument --split`: regions inside a loop whose estimate missed them, in a build that is up to date.

use crate::common::{has, json, run, succeed, text};
use std::path::Path;

/// The loop over characters counts no steps, and that of three steps is short: neither is a region by itself.
const MAIN: &str = "#include <stdio.h>
int exchange(void);
static double u[512];
int main(void) {
    int n = 0;
    const char *names[] = {\"a\", \"bcd\", \"ef\"};
    for (int t = 0; t < 40; t++) {
        n += exchange();
        for (const char *p = names[t % 3]; *p; p++)
            n += *p;
        for (int k = 0; k < 3; k++)
            u[k + t] = n;
        for (int i = 1; i < 512 + n % 2; i++)
            u[i % 512] += u[i - 1];
    }
    printf(\"%d %g\\n\", n, u[7]);
    return 0;
}
";

/// Another unit does not know that this writes and reads.
const EXCHANGE: &str = "#include <unistd.h>
static double x[100];
int exchange(void) {
    static int way[2];
    char c = 1;
    if (!way[1] && pipe(way)) return -1;
    for (int i = 1; i < 100 + way[0] % 2; i++)
        x[i % 100] += i;
    return (int)(write(way[1], &c, 1) + read(way[0], &c, 1));
}
";

const MAKEFILE: &str = "step: main.o libx.a
\t$(CC) -o $@ main.o libx.a
main.o: main.c
\t$(CC) -O2 -c -o $@ main.c
libx.a: exchange.o
\tar rcs $@ exchange.o
exchange.o: exchange.c
\t$(CC) -O2 -c -o $@ exchange.c
";

fn outlined(at: &Path) -> Vec<String> {
    let list = json(at, "regions --json");
    let list = list.as_array().expect("a list").iter();
    let outlined = list.filter(|r| r["outlined"] == true);
    outlined
        .map(|r| r["name"].as_str().expect("a name").to_owned())
        .collect()
}

fn place() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let files = [
        ("main.c", MAIN),
        ("exchange.c", EXCHANGE),
        ("Makefile", MAKEFILE),
    ];
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a source");
    }
    directory
}

const PLAIN: [&str; 3] = ["main@main.c:7", "main@main.c:13", "exchange@exchange.c:7"];
const SPLIT: [&str; 5] = [
    "main@main.c:7",
    "main@main.c:13",
    "main@main.c:9",
    "main@main.c:11",
    "exchange@exchange.c:7",
];

fn same(found: &[String], wanted: &[&str]) {
    let sorted = |names: &mut Vec<String>| names.sort();
    let (mut found, mut wanted) = (
        found.to_vec(),
        wanted.iter().map(|w| (*w).to_owned()).collect(),
    );
    sorted(&mut found);
    sorted(&mut wanted);
    assert_eq!(found, wanted);
}

#[test]
fn a_build_that_is_up_to_date_gets_the_regions_inside_and_keeps_them() {
    let directory = place();
    let at = directory.path();
    succeed(at, "instrument -- make");
    same(&outlined(at), &PLAIN);
    let before = text(
        &std::process::Command::new(at.join("step"))
            .output()
            .expect("it runs")
            .stdout,
    );

    // The capture of the outer loop names the way; that of the inner one needs none.
    let refused = run(at, "capture main@main.c:7 --invocation 1 -- ./step");
    let said = text(&refused.stderr);
    has(
        &said,
        "2 loops inside are no regions: `cere instrument --split 'main@main.c:7' -- BUILD`",
    );
    succeed(at, "capture main@main.c:13 --invocation 2 -- ./step");
    succeed(at, "replay main@main.c:13");

    succeed(at, "instrument --split main@main.c:7 -- make");
    same(&outlined(at), &SPLIT);
    let after = text(
        &std::process::Command::new(at.join("step"))
            .output()
            .expect("it runs")
            .stdout,
    );
    assert_eq!(before, after);
    succeed(
        at,
        "capture main@main.c:9 main@main.c:13 --invocation 2 -- ./step",
    );
    // A verdict other than exact is a status other than 0.
    succeed(at, "replay main@main.c:9");
    succeed(at, "replay main@main.c:13");

    // Later builds keep it, and the choice may be made again.
    succeed(at, "instrument -- make -B");
    same(&outlined(at), &SPLIT);
    succeed(at, "instrument --split main@main.c:7 -- make");

    // A loop that moves has to be named anew.
    std::fs::write(at.join("main.c"), format!("// moved\n{MAIN}")).expect("a source");
    let moved = succeed(at, "instrument -- make");
    has(&text(&moved.stderr), "which --split named");
    assert_eq!(outlined(at).len(), PLAIN.len());
}

#[test]
fn what_the_build_did_not_link_is_linked_again() {
    let directory = place();
    let at = directory.path();
    succeed(at, "instrument -- make");
    // A build command that makes nothing.
    succeed(at, "instrument --split main@main.c:7 -- true");
    same(&outlined(at), &SPLIT);
    succeed(at, "capture main@main.c:9 --invocation 2 -- ./step");

    // From an archive only the build can.
    let other = place();
    let at = other.path();
    let archived = MAKEFILE
        .replace("main.o libx.a\n\t", "libx.a\n\t")
        .replace("$@ main.o libx.a", "$@ libx.a")
        .replace(
            "libx.a: exchange.o\n\tar rcs $@ exchange.o",
            "libx.a: main.o exchange.o\n\tar rcs $@ main.o exchange.o",
        );
    std::fs::write(at.join("Makefile"), archived).expect("a makefile");
    succeed(at, "instrument -- make");
    let error = run(at, "instrument --split main@main.c:7 -- true");
    assert!(!error.status.success());
    has(&text(&error.stderr), "still holds it as it was");
    succeed(at, "instrument -- make");
    succeed(at, "capture main@main.c:9 --invocation 2 -- ./step");
}

#[test]
fn errors_say_what_to_do() {
    let directory = place();
    let at = directory.path();
    for (line, expected) in [
        ("instrument --split main -- true", "no build is recorded"),
        ("instrument -- make", ""),
        (
            "instrument --split main@main.c:8 -- make",
            "near: main@main.c:7",
        ),
        ("instrument --split main -- make", "begins 2 names"),
        (
            "instrument --split exchange -- make",
            "has no loop inside that is not a region already",
        ),
    ] {
        let output = run(at, line);
        assert_eq!(output.status.success(), expected.is_empty(), "{line}");
        has(&text(&output.stderr), expected);
    }
    // Nothing of that is kept.
    assert!(!at.join(".cere/split.json").exists());
    // The recorded command does not work any more.
    std::fs::write(at.join("main.c"), "int main(void) {").expect("a source");
    let output = run(at, "instrument --split main@main.c:7 -- make");
    assert!(!output.status.success());
    has(
        &text(&output.stderr),
        "could not be compiled again as in the last build",
    );
}
