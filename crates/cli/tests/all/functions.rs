//! `cere instrument --functions`: whole functions as regions, in a build that is up to date.

use crate::common::{has, json, run, succeed, text};
use std::path::Path;

const MAIN: &str = "#include <stdarg.h>
#include <stdio.h>
double smooth(double *x, int n);
double unknown(double *x, int n);
static double x[3000];
__attribute__((annotate(\"cere.region\"))) static unsigned tree(unsigned seed, int depth) {
    if (depth == 0) return seed * 2654435761u;
    return tree(seed * 3 + 1, depth - 1) ^ tree(seed ^ 77, depth - 1);
}
static __attribute__((noinline)) double sum_of(int n, ...) {
    va_list list;
    double sum = 0;
    va_start(list, n);
    for (int i = 0; i < 3000; i++) sum += i % n;
    sum += va_arg(list, double);
    va_end(list);
    return sum;
}
int main(void) {
    for (int i = 0; i < 3000; i++)
        x[i] = (i * 37 % 101) / 10.0;
    for (int t = 0; t < 3; t++)
        printf(\"%.12g\\n\", smooth(x, 3000));
    printf(\"%u %g\\n\", tree(1, 12), sum_of(3, 1.5));
    return 0;
}
";

const SMOOTH: &str = "#include <math.h>
double smooth(double *x, int n) {
    double last = x[0], sum = sqrt(last);
    for (int i = 1; i < n - 1; i++) {
        double here = x[i];
        x[i] = 0.2 * (last + x[i + 1]) + 0.6 * here;
        last = here;
    }
    for (int i = 0; i < n; i++)
        sum += pow(x[i], 1.5);
    return sum / n;
}
";

const MAKEFILE: &str = "program: main.o smooth.o
\t$(CC) -o $@ main.o smooth.o -lm
main.o: main.c
\t$(CC) -O2 -c -o $@ main.c
smooth.o: smooth.c
\t$(CC) -O2 -c -o $@ smooth.c
";

fn place() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let files = [
        ("main.c", MAIN),
        ("smooth.c", SMOOTH),
        ("Makefile", MAKEFILE),
    ];
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a source");
    }
    directory
}

/// Names and kinds of the outlined regions of a file.
fn outlined(at: &Path, file: &str) -> Vec<(String, String)> {
    let list = json(at, "regions --json");
    let list = list.as_array().expect("a list").iter();
    let here = list.filter(|r| r["outlined"] == true);
    let mut all: Vec<(String, String)> = here
        .map(|r| [&r["name"], &r["kind"]].map(|v| v.as_str().expect("a text").to_owned()))
        .map(|[name, kind]| (name, kind))
        .filter(|(name, _)| name.contains(file))
        .collect();
    all.sort();
    all
}

fn same(found: &[(String, String)], wanted: &[(&str, &str)]) {
    let found: Vec<(&str, &str)> = found.iter().map(|(n, k)| (&**n, &**k)).collect();
    assert_eq!(found, wanted);
}

const LOOPS: [(&str, &str); 2] = [("smooth@smooth.c:4", "loop"), ("smooth@smooth.c:9", "loop")];
const WHOLE: [(&str, &str); 1] = [("smooth@smooth.c:2", "function")];

#[test]
fn an_up_to_date_build_gets_the_functions_and_keeps_them() {
    let directory = place();
    let at = directory.path();
    succeed(at, "instrument -- make");
    same(&outlined(at, "smooth.c"), &LOOPS);
    let before = printed(at);

    // What the source marks is a region anyway; of its calls only the outermost one counts.
    succeed(at, "profile -- ./program");
    let profile = std::fs::read_to_string(at.join(".cere/profile.json")).expect("a profile");
    assert!(!profile.is_empty());
    succeed(at, "capture tree@main.c:6 --invocation 1 -- ./program");
    succeed(at, "replay tree@main.c:6");
    let second = run(at, "capture tree@main.c:6 --invocation 2 -- ./program");
    assert!(!second.status.success());

    let chosen = succeed(at, "instrument --functions smooth -- make");
    has(&text(&chosen.stderr), "smooth@smooth.c:2 is a region");
    has(
        &text(&chosen.stderr),
        "smooth.c again, as in the last build",
    );
    assert!(!text(&chosen.stderr).contains("main.c again"));
    same(&outlined(at, "smooth.c"), &WHOLE);
    assert_eq!(printed(at), before);
    succeed(at, "capture smooth@smooth.c:2 --invocation 2 -- ./program");
    // A verdict other than exact is a status other than 0.
    succeed(at, "replay smooth@smooth.c:2");
    succeed(at, "replay smooth@smooth.c:2 --flags -O3");

    // Later builds keep it; a command that makes nothing gets the image linked again.
    succeed(at, "instrument -- make -B");
    same(&outlined(at, "smooth.c"), &WHOLE);
    succeed(at, "instrument --functions '' -- true");
    same(&outlined(at, "smooth.c"), &LOOPS);
    assert_eq!(printed(at), before);
    succeed(at, "capture smooth@smooth.c:4 --invocation 2 -- ./program");
}

fn printed(at: &Path) -> String {
    let ran = std::process::Command::new(at.join("program")).output();
    text(&ran.expect("it runs").stdout)
}

#[test]
fn what_is_no_region_is_named() {
    let directory = place();
    let at = directory.path();
    // The first build of a directory.
    let smoth = succeed(at, "instrument --functions smoth -- make");
    has(
        &text(&smoth.stderr),
        "--functions smoth: the build has no function of that name (near: smooth)",
    );
    for (pattern, expected) in [
        ("nothing_like_it", "has no function of that name; patterns"),
        ("pow", "the build only declares pow"),
        (
            "sum_of",
            "sum_of@main.c:10 is no region as a whole: the function takes variable arguments",
        ),
        ("s*", "--functions s*: smooth@smooth.c:2 is a region"),
    ] {
        let build = succeed(at, &*format!("instrument --functions {pattern} -- make"));
        has(&text(&build.stderr), expected);
    }
    // Its loop is a region as before.
    let main = outlined(at, "main.c");
    assert!(main.contains(&("sum_of@main.c:14".into(), "loop".into())));

    std::fs::write(
        at.join(".cere/functions.json"),
        "{\"version\": 9, \"patterns\": []}",
    )
    .expect("a file");
    let error = run(at, "instrument --functions main -- make");
    assert!(!error.status.success());
    has(
        &text(&error.stderr),
        "remove it and name the functions again with `cere instrument --functions`",
    );
}
