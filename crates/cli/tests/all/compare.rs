//! `cere compare`: two builds, states of the sources, sets of flags or machines.

use crate::common::{
    directory_with, has, instrument, json, parsed, refused, run, succeed, text, write,
};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
#define N 2000
__attribute__((noinline)) double sum(const double *a, int n) {
    double s = 0;
    for (int i = 0; i < n; i++)
        s += a[i] * 3;
    return s;
}
int main(void) {
    double *a = malloc(N * 8), s = 0;
    for (int i = 0; i < N; i++) a[i] = i % 7;
    for (int r = 0; r < 100; r++) s += sum(a, N);
    printf("%.15g\n", s);
}
"#;

const MORE: &str = "{ for (volatile int k = 0; k < 2; k++); s += a[i] * 3; }";

/// The program with its loop captured.
fn captured(flags: &str, source: &str) -> tempfile::TempDir {
    let directory = directory_with(&[("k.c", source)]);
    let at = directory.path();
    instrument(at, &format!("$CC {flags} k.c -o k"));
    succeed(at, "profile -- ./k");
    succeed(at, "capture sum* --invocation 50 -- ./k");
    directory
}

fn compared(at: &Path, line: &str) -> Value {
    let all = json(
        at,
        &*format!("compare --json --no-times --geometry zen3 {line}"),
    );
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
    all[0].clone()
}

/// Instructions of both sides.
fn instructions(answer: &Value) -> [u64; 2] {
    [0, 1].map(|side| {
        answer["counts"][side]["instructions"]
            .as_u64()
            .unwrap_or_else(|| panic!("{answer}"))
    })
}

#[test]
fn sources_flags_and_commits() {
    let directory = captured("-O2", PROGRAM);
    let at = directory.path();
    let git = |line: &str| {
        let words = format!("-c user.name=t -c user.email=t@localhost {line}");
        let words = shell_words::split(&words).expect("a line");
        let done = Command::new("git").args(words).current_dir(at).output();
        assert!(done.expect("git runs").status.success(), "{line}");
    };
    git("init -q");
    git("add k.c");
    git("commit -q -m first");

    let same = compared(at, "captured captured");
    assert_eq!(
        (&same["code"], &same["verdicts"][1]),
        (&"identical".into(), &"exact".into()),
        "{same}"
    );
    let [a, b] = instructions(&same);
    assert_eq!(a, b);
    let flags = compared(at, "captured flags:-O0");
    assert_eq!(flags["code"], "other", "{flags}");
    let [a, b] = instructions(&flags);
    assert!(b > 2 * a, "{flags}");
    assert!(flags["counts"][0]["memory bytes"].is_number());

    write(at, &[("k.c", &PROGRAM.replace("s += a[i] * 3;", MORE))]);
    let now = compared(at, "git:HEAD sources");
    let [a, b] = instructions(&now);
    assert!(
        b > 2 * a && now["verdicts"][0] == "exact" && now["verdicts"][1] == "exact",
        "{now}"
    );
    let back = compared(at, "captured git:HEAD");
    assert_eq!(back["code"], "identical", "{back}");
    write(at, &[("tree/k.c", &PROGRAM.replace("* 3", "* 4"))]);
    let wrong = run(at, "compare --json --no-times captured dir:tree");
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(parsed(&wrong)[0]["verdicts"][1], "different");
    let status = Command::new("git")
        .args(["status", "--porcelain", "k.c"])
        .current_dir(at)
        .output();
    assert_eq!(text(&status.expect("git runs").stdout), " M k.c\n");

    write(at, &[("k.c", "int;;; x")]);
    let failed = compared(at, "captured sources");
    assert_eq!(failed["verdicts"][1], "failed", "{failed}");
    has(&failed["reasons"][1].to_string(), "error:");
    refused(at, "compare captured git:no-such", "no-such");
    let failed = compared(at, "captured flags:--no-such-flag");
    assert_eq!(failed["verdicts"][1], "failed", "{failed}");
    has(&failed["reasons"][1].to_string(), "--no-such-flag");
    refused(
        at,
        "compare captured cc:gcc",
        "another compiler makes another build",
    );
    refused(
        at,
        "compare captured nowhere",
        "captured, sources, flags:FLAGS",
    );
}

#[test]
fn stores_and_records() {
    let first = captured("-O2", PROGRAM);
    let at = first.path();
    // A line more, so that the region has another name.
    let second = captured("-O0", &format!("\n{PROGRAM}"));
    let other = second.path().display().to_string();
    let both = compared(at, &format!(".cere {other}"));
    assert_eq!(
        (&both["name"], &both["other"]),
        (&"sum@k.c:6".into(), &"sum@k.c:7".into()),
        "{both}"
    );
    let [a, b] = instructions(&both);
    assert!(b > 2 * a, "{both}");

    let timed = json(
        at,
        &*format!("compare --json --seconds 0.2 --reps 3 . {other} --plot ratios.svg"),
    );
    assert!(
        timed[0]["ratio"].is_number() && timed[0]["seconds"][1].is_number(),
        "{timed}"
    );
    let plot = std::fs::read_to_string(at.join("ratios.svg")).expect("a picture");
    assert!(
        plot.starts_with("<svg") && plot.contains("sum@k.c:6"),
        "{plot}"
    );

    refused(
        at,
        "compare captured here.json",
        "captured, sources, flags:FLAGS",
    );
    succeed(at, "replay sum* --reps 10");
    let records = succeed(at, "results --json");
    write(
        at,
        &[("here.json", &text(&records.stdout)), ("wrong.json", "{}")],
    );
    succeed(at, "replay sum* --reps 10");
    let all = json(at, "compare --json here.json captured");
    assert!(
        all[0]["ratio"].is_number() && all[0]["counts"][0].is_null(),
        "{all}"
    );
    refused(
        at,
        "compare here.json wrong.json",
        "is not what `cere results --json` writes",
    );
    refused(
        at,
        "compare here.json sources",
        "records are compared with records",
    );
    refused(
        at,
        &*format!("compare here.json {other}"),
        "the two have no replay in common",
    );
    has(
        &text(&run(at, "compare here.json here.json").stdout),
        "1.000",
    );
}
