//! What `cere instrument` and `cere profile` say of compilers, objects and programs that are not what they seem to be.

use crate::common::{
    cere, directory_with, has, instrument, json, make_executable, refused, run, succeed, text,
    write,
};
use std::process::Command;

const MAIN: &str = "void other(void);\ndouble a[9000];\nint main(void) { for (int r = 0; r < 40; r++) for (int i = 0; i < 9000; i++) a[i] = a[i] * 0.5 + i; other(); return a[9] < 0; }\n";
const OTHER: &str = "extern double a[9000];\nvoid other(void) { for (int r = 0; r < 40; r++) for (int i = 0; i < 9000; i++) a[i] = a[i] * 0.25 + r; }\n";

#[test]
fn compilers_named_by_their_path() {
    let makefile = "CC = /usr/bin/gcc\nprog: main.o other.o\n\t$(CC) main.o other.o -o prog\n";
    let directory = directory_with(&[("Makefile", makefile), ("main.c", MAIN), ("other.c", OTHER)]);
    let at = directory.path();
    let report = json(at, "instrument --json -- make");
    assert_eq!(
        (&report["compiled"], &report["linked"]),
        (&2.into(), &1.into()),
        "{report}"
    );
    let warning = report["warnings"][0]["message"]
        .as_str()
        .unwrap_or_default();
    assert!(
        warning.contains("/usr/bin/gcc") && warning.contains("is replaced by"),
        "{report}"
    );
    assert_eq!(report["warnings"][0]["times"], 3);
    // The second `env` runs without the library, as a static program does: what it starts comes to light by what that makes.
    let unseen = "instrument --json -- env -u LD_PRELOAD env /usr/bin/gcc -c main.c -o new.o";
    let report = json(at, unseen);
    assert!(
        report["unseen"][0]["compiler"]
            .as_str()
            .is_some_and(|c| c.contains("GCC")),
        "{report}"
    );
    assert!(
        report["unseen"][0]["file"]
            .as_str()
            .is_some_and(|f| f.ends_with("/new.o")),
        "{report}"
    );
    let message = text(&run(at, unseen).stderr);
    assert!(!message.contains("everything is up to date"), "{message}");
}

#[test]
fn a_script_and_a_compiler_of_the_build_are_left_alone() {
    let script = "#!/bin/sh\nexec gcc -DSTEP=2 \"$@\"\n";
    let source =
        "long f(int n) { long s = 0; for (int i = 0; i < n; i += STEP) s ^= i * n; return s; }\n";
    let directory = directory_with(&[("tools/gcc", script), ("part.c", source)]);
    let at = directory.path();
    make_executable(&at.join("tools/gcc"));
    let report = json(
        at,
        "instrument --json -- sh -c '$PWD/tools/gcc -O2 -c part.c'",
    );
    assert_eq!(
        (&report["compiled"], &report["regions"]),
        (&1.into(), &1.into()),
        "{report}"
    );
    std::fs::copy("/bin/true", at.join("tools/cc")).expect("a copy");
    let report = json(at, "instrument --json -- sh -c '$PWD/tools/cc -c part.c'");
    assert_eq!(report["compiled"], 0, "{report}");
}

#[test]
fn objects_without_units() {
    let directory = directory_with(&[("main.c", MAIN), ("other.c", OTHER)]);
    let at = directory.path();
    instrument(
        at,
        "gcc -O2 -c main.c && gcc -O2 -c other.c && gcc main.o other.o -o prog",
    );
    let profile = json(at, "profile --json -- ./prog");
    assert_eq!(profile["without_units"], serde_json::json!([]));
    let plain = "clang-22 -O2 -c other.c && clang-22 main.o other.o -o prog";
    let built = Command::new("sh")
        .args(["-c", plain])
        .current_dir(at)
        .status();
    assert!(built.expect("sh runs").success());
    let again = succeed(at, "instrument -- true");
    has(&text(&again.stderr), "made again without cere's wrappers");
    let profile = json(at, "profile --json -- ./prog");
    let of = &profile["without_units"][0];
    assert_eq!(of["names"], serde_json::json!(["other.c"]));
    assert!(
        of["share"]
            .as_f64()
            .is_some_and(|share| share > 0.1 && share < 0.9),
        "{of}"
    );
    let linked = instrument(at, "gcc main.o other.o -o prog");
    has(&text(&linked.stderr), "is of no unit");
}

#[test]
fn a_program_without_loops() {
    let directory = directory_with(&[("empty.c", "int main(void) { return 0; }\n")]);
    let at = directory.path();
    let built = instrument(at, "cc empty.c -o empty");
    let cause = "no regions: its units have no loops";
    has(&text(&built.stderr), cause);
    refused(at, "profile -- ./empty", cause);
}

#[test]
fn unusual_directories() {
    let directory = directory_with(&[]);
    let at = directory.path().join("a b$x#'\u{fc}");
    write(
        &at,
        &[
            ("Makefile", "o r.o:\n\t$(CC) -O2 -c 'the other.c' -o r.o\n"),
            ("the other.c", OTHER),
        ],
    );
    let report = json(&at, "instrument --json -- make");
    assert_eq!(
        (&report["compiled"], &report["regions"]),
        (&1.into(), &1.into()),
        "{report}"
    );
}

#[test]
fn warnings_once_a_build() {
    let directory = directory_with(&[("a.c", OTHER), ("b.c", OTHER), ("c.c", OTHER)]);
    let at = directory.path();
    let built = instrument(
        at,
        "for i in a b c; do gcc -O2 -flto -c $i.c || exit 1; done",
    );
    let message = text(&built.stderr);
    assert_eq!(
        message
            .matches("warning[CERE-1016]: -flto is dropped")
            .count(),
        1,
        "{message}"
    );
    has(&message, "3 times in this build: -flto is dropped");
}

#[test]
fn modules() {
    let module = "export module calc;\nexport double sweep(double *v, int n) { double s = 0; for (int r = 0; r < 20; r++) for (int i = 1; i < n; i++) { v[i] = v[i - 1] * 0.25 + v[i] * 0.7; s += v[i]; } return s; }\n";
    let main =
        "import calc;\nint main() { static double v[100] = {1}; return sweep(v, 100) < 0; }\n";
    let directory = directory_with(&[("calc.cppm", module), ("main.cpp", main)]);
    let at = directory.path();
    let use_it = "c++ -std=c++20 -O2 -fmodule-file=calc=calc.pcm main.cpp calc.o -o prog && ./prog";
    for make in [
        "c++ -std=c++20 -O2 --precompile calc.cppm -o calc.pcm && c++ -std=c++20 -O2 -c calc.pcm -o calc.o",
        "c++ -std=c++20 -O2 -fmodule-output -c calc.cppm",
    ] {
        instrument(at, &format!("{make} && {use_it}"));
        let list = json(at, "regions --json");
        let names: Vec<&str> = list
            .as_array()
            .expect("an array")
            .iter()
            .filter_map(|r| r["name"].as_str())
            .collect();
        assert_eq!(names, ["sweep@calc@calc.cppm:2"], "{make}");
        std::fs::remove_dir_all(at.join(".cere")).expect("a store");
    }
}

/// A compiler's launcher that keeps objects, under the compiler's name in PATH.
#[test]
fn launchers_are_no_compilers() {
    let directory = directory_with(&[
        ("part.c", OTHER),
        ("bin/ccache", "#!/bin/sh\necho kept >&2\nexit 9\n"),
    ]);
    let at = directory.path();
    make_executable(&at.join("bin/ccache"));
    std::os::unix::fs::symlink("ccache", at.join("bin/clang-22")).expect("a link");
    let path = format!(
        "{}:{}",
        at.join("bin").display(),
        std::env::var("PATH").expect("PATH")
    );
    let output = cere(at, "instrument -- sh -c 'cc -O2 -c part.c'")
        .env("PATH", path)
        .output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn files_beside_objects() {
    let directory = directory_with(&[("main.c", MAIN), ("other.c", OTHER)]);
    let at = directory.path();
    instrument(
        at,
        "gcc --coverage -g -gsplit-dwarf -O1 main.c other.c -o prog && ./prog && gcc --coverage -c other.c",
    );
    for name in [
        "prog-main.gcno",
        "prog-main.gcda",
        "prog-other.gcno",
        "prog-main.dwo",
        "other.gcno",
    ] {
        assert!(at.join(name).is_file(), "{name}");
    }
    assert!(!at.join("prog-main.o").exists());
}

/// Make splits the value of CC at spaces.
#[test]
fn a_directory_with_a_space() {
    let makefile = "prog: main.c other.c\n\t$(CC) -O2 main.c other.c -o prog\n";
    let files = [
        ("a b/Makefile", makefile),
        ("a b/main.c", MAIN),
        ("a b/other.c", OTHER),
    ];
    let directory = directory_with(&files);
    let report = json(&directory.path().join("a b"), "instrument --json -- make");
    assert_eq!(
        (&report["compiled"], &report["linked"]),
        (&2.into(), &1.into()),
        "{report}"
    );
}
