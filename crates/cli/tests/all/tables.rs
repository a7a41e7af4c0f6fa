//! Tables and names on screens of several widths, colours, and what shells complete.

use crate::common::{built, cere, directory_with, has, instrument, json, run, succeed, text};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names of up to 380 characters.
const LONG: &str = r#"
#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>
int main() {
    std::mt19937_64 g(3);
    std::uniform_real_distribution<double> u(0, 1);
    std::vector<double> v(200000);
    for (auto &x : v) x = u(g);
    std::sort(v.begin(), v.end(), [](double a, double b) { return a > b; });
    std::map<std::string, std::vector<double>> m;
    for (int i = 0; i < 20000; i++) m["key" + std::to_string(i % 500)].push_back(v[i]);
    double s = 0;
    for (auto &e : m) for (double x : e.second) s += x;
    std::printf("%g\n", s);
}
"#;

/// The program, profiled and captured.
fn captured() -> tempfile::TempDir {
    let directory = directory_with(&[("k.cpp", LONG)]);
    let at = directory.path();
    instrument(at, "$CXX -O2 -g k.cpp -o k");
    succeed(at, "capture -- ./k");
    directory
}

/// What a command prints for a screen of so many columns, which every line has to fit.
fn within(at: &Path, columns: usize, line: &str) -> String {
    let output = cere(at, line).env("COLUMNS", columns.to_string()).output();
    let output = output.expect("cere runs");
    let shown = text(&output.stdout);
    assert!(!shown.is_empty(), "{line}: {}", text(&output.stderr));
    for row in shown.lines() {
        let taken = row.chars().count();
        assert!(
            taken <= columns,
            "cere {line} in {columns} has {taken}: {row}\n{shown}"
        );
    }
    shown
}

#[test]
fn every_line_fits_the_screen_and_names_select() {
    let directory = captured();
    let at = directory.path();
    let lists = [
        "regions",
        "profile --show",
        "codelets",
        "select --coverage 20",
        "results",
        "replay main@k.cpp:15",
        "replay main@k.cpp:15 --operand list",
        "count main@k.cpp:15",
        "asm main@k.cpp:15",
        "metrics main@k.cpp:15",
        "check --rounds 1",
        "doctor",
    ];
    succeed(at, "check --rounds 0");
    for line in lists {
        within(at, 80, line);
    }
    for line in &lists[..6] {
        for columns in [20, 40, 61, 100, 200] {
            within(at, columns, line);
        }
    }

    let all = json(at, "regions --json");
    let all: Vec<&str> = all
        .as_array()
        .expect("a list")
        .iter()
        .map(|r| r["name"].as_str().expect("a name"))
        .collect();
    let longest = all.iter().map(|name| name.len()).max();
    assert!(longest > Some(150), "{all:#?}");
    for columns in [80, 100, 140] {
        let shown = within(at, columns, "regions");
        let names: Vec<&str> = shown
            .lines()
            .filter(|l| !l.starts_with(' ') && l.contains('@'))
            .collect();
        assert_eq!(names.len(), all.len(), "{shown}");
        for row in names {
            // A name may hold blanks, but not two of them.
            let name = row.split("  ").next().expect("a name");
            let met = json(at, &["regions", "--json", name]);
            assert_eq!(met.as_array().expect("a list").len(), 1, "{name}");
        }
    }

    // A pipe and --wide get all of it.
    let (piped, wide) = (
        run(at, "regions"),
        cere(at, "regions --wide").env("COLUMNS", "40").output(),
    );
    let (piped, wide) = (text(&piped.stdout), text(&wide.expect("cere runs").stdout));
    assert!(
        all.iter()
            .all(|name| piped.contains(name) && wide.contains(name))
    );
    assert!(wide.contains("lpad.cere") && !piped.contains('\x1b'));
}

/// What a terminal of so many columns gets of lines that a shell runs in it.
fn in_terminal(at: &Path, columns: usize, term: &str, line: &str) -> String {
    let command = format!("stty cols {columns} rows 40; {line}");
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(at)
        .env("TERM", term)
        .env("CERE", built())
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .env_remove("FORCE_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("script runs");
    text(&output.stdout).replace('\r', "")
}

#[test]
fn terminals_have_a_width_and_colours() {
    let directory = captured();
    let at = directory.path();
    succeed(at, "check --rounds 0");
    for columns in [80, 40, 20] {
        let shown = in_terminal(
            at,
            columns,
            "dumb",
            "\"$CERE\" regions; \"$CERE\" profile --show; \"$CERE\" codelets",
        );
        assert!(shown.contains("main@k.cpp:15"), "{shown}");
        for row in shown.lines() {
            assert!(row.chars().count() <= columns, "{columns}: {row}\n{shown}");
        }
        assert!(!shown.contains('\x1b'), "{shown}");
    }
    let green = "\x1b[32mexact\x1b[0m";
    let colored = in_terminal(
        at,
        100,
        "xterm",
        "\"$CERE\" codelets; \"$CERE\" replay nothing",
    );
    has(&colored, green);
    has(&colored, "\x1b[1m\x1b[31mcere: error");
    let plain = in_terminal(at, 100, "xterm", "NO_COLOR=1 \"$CERE\" codelets");
    assert!(
        plain.contains("exact") && !plain.contains('\x1b'),
        "{plain}"
    );
    let forced = cere(at, "codelets")
        .env("CLICOLOR_FORCE", "1")
        .output()
        .expect("cere runs");
    has(&text(&forced.stdout), green);
    let json = cere(at, "codelets --json")
        .env("CLICOLOR_FORCE", "1")
        .output()
        .expect("cere runs");
    assert!(!text(&json.stdout).contains('\x1b'));
}

#[test]
fn odd_widths_and_names_do_no_harm() {
    let function = "f".repeat(4000);
    let source = format!(
        "#include <stdio.h>\nstatic double a[1000];\nvoid {function}(void) {{ for (int i = 0; i < 1000; i++) a[i] += i; }}\n\
         void 計算する(void) {{ for (int i = 0; i < 1000; i++) a[i] *= 2; }}\n\
         int main(void) {{ {function}(); 計算する(); printf(\"%g\\n\", a[7]); }}\n"
    );
    let directory = directory_with(&[("k.c", &source)]);
    let at = directory.path();
    let odd = "k\u{202e}\u{1b}[31m.c";
    std::fs::write(
        at.join(odd),
        "double b[9]; void g(double x) { for (int i = 0; i < 9; i++) b[i] += x; }",
    )
    .expect("a source");
    instrument(
        at,
        &format!("$CC -O1 -g -c k.c; $CC -O1 -g k.o '{odd}' -o k"),
    );
    for columns in ["0", "-1", "many", "", "18446744073709551616"] {
        let output = cere(at, "regions")
            .env("COLUMNS", columns)
            .output()
            .expect("cere runs");
        has(&text(&output.stdout), &function);
    }
    for columns in [20, 33, 80] {
        let shown = cere(at, "regions")
            .env("COLUMNS", columns.to_string())
            .output();
        let shown = text(&shown.expect("cere runs").stdout);
        let wide = |c: char| if c.is_ascii() { 1 } else { 2 };
        for row in shown.lines() {
            assert!(row.chars().map(wide).sum::<usize>() <= columns, "{row}");
        }
        has(&shown, "@k.c:4");
        assert!(!shown.contains(['\u{202e}', '\x1b']), "{shown}");
    }
    let shown = text(
        &cere(at, "regions")
            .env("COLUMNS", "1")
            .output()
            .expect("cere runs")
            .stdout,
    );
    assert!(
        shown.lines().all(|row| row.chars().count() <= 20),
        "{shown}"
    );
}

/// What an interactive shell prints that gets `lines`, whose tabs complete.
fn typed(at: &Path, shell: &str, lines: &[&str]) -> String {
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", shell, "/dev/null"])
        .current_dir(at)
        .env("TERM", "dumb")
        .env("COLUMNS", "200")
        .env(
            "PATH",
            format!(
                "{}:{}",
                at.join("bin").display(),
                std::env::var("PATH").expect("a path")
            ),
        )
        .env("HOME", at)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script runs");
    let mut keys = child.stdin.take().expect("stdin");
    for line in lines.iter().chain(&["exit"]) {
        // A shell that starts or runs a command drops what is typed meanwhile.
        std::thread::sleep(Duration::from_millis(1500));
        writeln!(keys, "{line}").expect("typed");
    }
    let output = child.wait_with_output().expect("it ends");
    text(&output.stdout)
}

#[test]
fn shells_complete_names() {
    let directory = captured();
    let at = directory.path();
    std::fs::create_dir(at.join("bin")).expect("a directory");
    symlink(built(), at.join("bin/cere")).expect("a link");
    succeed(at, "manual share");
    // What the lines select is written by the command that they run: a name was completed, and quoted as the shell needs it.
    let lines = [
        "cere regions --json std::__introsort_l\t> a.json",
        "cere regions --json 'std::__introsort_l\t> b.json",
    ];
    for (shell, setup) in [
        (
            "bash --norc --noprofile -i",
            "source share/bash-completion/completions/cere",
        ),
        (
            "zsh -f -i",
            "fpath=(share/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D",
        ),
    ] {
        let mut all = vec![setup];
        all.extend(lines);
        let shown = typed(at, shell, &all);
        for name in ["a.json", "b.json"] {
            let found = std::fs::read(at.join(name)).expect("it was written");
            let found: serde_json::Value =
                serde_json::from_slice(&found).unwrap_or_else(|e| panic!("{shell}: {e}\n{shown}"));
            let regions = found.as_array().expect("a list");
            assert_eq!(regions.len(), 1, "{shell}: {shown}");
            has(
                regions[0]["name"].as_str().expect("a name"),
                "std::__introsort_loop<__gnu_cxx::__normal_iterator<",
            );
            std::fs::remove_file(at.join(name)).expect("removed");
        }
    }
    let fish = |line: &str| {
        let asked =
            format!("source share/fish/vendor_completions.d/cere.fish; complete -C \"{line}\"");
        let output = Command::new("fish")
            .args(["--no-config", "-c", &asked])
            .current_dir(at)
            .env(
                "PATH",
                format!(
                    "{}:{}",
                    at.join("bin").display(),
                    std::env::var("PATH").expect("a path")
                ),
            )
            .env("HOME", at)
            .output()
            .expect("fish runs");
        text(&output.stdout)
    };
    has(
        &fish("cere regions std::__introsort_l"),
        "std::__introsort_loop<*>@stl_algo.h:",
    );
    has(&fish("cere replay main@k.cpp:15"), "main@k.cpp:15:1");
    has(&fish("cere --store .cere regions main"), "main@k.cpp:15\n");
    assert_eq!(fish("cere regions nothing_is_called_so"), "");
    // Nothing is said where there is no store.
    let none = tempfile::tempdir().expect("a directory");
    let output = run(none.path(), "complete words -- cere regions m");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
}
