//! `cere try`: edited sources on captured codelets.

use crate::common::{
    cere, directory_with, has, instrument, json, parsed, refused, succeed, text, write,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

const HEADER: &str = "static inline double weight(double x) { return x * 0.25; }\n";

/// A loop with two results, one of them an integer.
const SMOOTH: &str = r#"
#include "weight.h"
#include <stdio.h>
#include <stdlib.h>
#define N 3000
static double w[N]; int calls;
__attribute__((noinline)) double smooth(double *a, double *b, int n, double c) {
    double s = 0; int last = 0;
    int m = n - 1; calls++;
    double scale = weight(c);
    for (int t = 0; t < 4; t++)
        for (int i = 1; i < m; i++) {
            b[i] = scale * (a[i - 1] + 2 * a[i] + a[i + 1]) * w[i];
            s += b[i];
            if (b[i] > 3) last = i;
        }
    return s + last;
}
int main(void) {
    double *a = malloc(N * 8), *b = calloc(N, 8);
    for (int i = 0; i < N; i++) { a[i] = i % 7; w[i] = 1 + i % 3; }
    double s = 0;
    for (int r = 0; r < 100; r++) s += smooth(a, b, N, 1.0 + r * 1e-3);
    printf("%.15g\n", s);
}
"#;

const BODY: &str = "            b[i] = scale * (a[i - 1] + 2 * a[i] + a[i + 1]) * w[i];
            s += b[i];
            if (b[i] > 3) last = i;
        }
";

/// The program with its loop captured.
fn captured() -> tempfile::TempDir {
    let directory = directory_with(&[("k.c", SMOOTH), ("weight.h", HEADER)]);
    let at = directory.path();
    instrument(at, "$CC -O2 -MMD k.c -o k");
    succeed(at, "profile -- ./k");
    succeed(at, "capture smooth* --invocation 50 -- ./k");
    directory
}

fn tried(at: &Path, line: &str) -> Value {
    parsed(
        &cere(at, &*format!("try --json --reps 3 {line}"))
            .output()
            .expect("cere runs"),
    )
}

/// The verdict on the source with `from` replaced by `to`, and the rest of the answer.
fn edited(at: &Path, from: &str, to: &str) -> (String, Value) {
    assert!(SMOOTH.contains(from), "{from}");
    write(at, &[("k.c", &SMOOTH.replace(from, to))]);
    let all = tried(at, "");
    let verdict = all[0]["verdict"].as_str().unwrap_or_default().to_owned();
    (verdict, all[0].clone())
}

#[test]
fn right_edits_are_exact() {
    let directory = captured();
    let at = directory.path();
    let sum = "            s += b[i];\n            if (b[i] > 3) last = i;\n        }\n";
    let split = format!(
        "        }}\n    for (int t = 0; t < 4; t++)\n        for (int i = 1; i < m; i++) {{\n{sum}"
    );
    for (what, from, to) in [
        ("split", sum, &*split),
        (
            "another bound",
            "i < m; i++) {\n            b",
            "i < n - 1; i++) {\n            b",
        ),
        (
            "tiled",
            "        for (int i = 1; i < m; i++) {\n            b",
            "        for (int k = 1; k < m; k += 64)\n        for (int i = k; i < (k + 64 < m ? k + 64 : m); i++) {\n            b",
        ),
        (
            "a helper and a table",
            "a[i - 1] + 2 * a[i] + a[i + 1]",
            "three(a + i)",
        ),
        (
            "a variable before the loop",
            "double scale = weight(c);",
            "double scale = weight(c); double *restrict r = b, twice = 2 * scale; b = r; scale = twice * 0.5;",
        ),
        (
            "an array before the loop",
            "double scale = weight(c);",
            "double scale = weight(c), row[4]; row[1] = scale; scale = row[1];",
        ),
        (
            "around it",
            "    for (int t = 0;",
            "    if (m > 2) for (int t = 0;",
        ),
        (
            "a pragma",
            "        for (int i = 1; i < m; i++) {\n            b",
            "#pragma clang loop unroll_count(4)\n        for (int i = 1; i < m; i++) {\n            b",
        ),
        ("another order behind", "return s + last", "return last + s"),
    ] {
        let helper = "static const double two[3] = {1, 2, 1};
static double three(const double *a) { return two[0] * a[-1] + two[1] * a[0] + two[2] * a[1]; }
__attribute__((noinline)) double smooth";
        let source = SMOOTH
            .replace(from, to)
            .replace("__attribute__((noinline)) double smooth", helper);
        assert_ne!(source, SMOOTH);
        write(at, &[("k.c", &source)]);
        let output = cere(at, "try --json --reps 3").output().expect("cere runs");
        let all = parsed(&output);
        assert_eq!(all[0]["verdict"], "exact", "{what}: {all}");
        assert_eq!(output.status.code(), Some(0), "{what}");
        assert!(
            all[0]["ratio"].is_number() && all[0]["program_ratio"].is_number(),
            "{what}: {all}"
        );
    }
    // Sums in another order are rounding.
    let (verdict, answer) = edited(
        at,
        BODY,
        &BODY.replace("s += b[i];", "(i & 1 ? s : odd) += b[i];"),
    );
    assert_eq!(verdict, "failed", "{answer}");
    has(answer["reason"].as_str().expect("a reason"), "odd");
    let source = SMOOTH
        .replace("double s = 0;", "double s = 0, odd = 0;")
        .replace("s += b[i];", "if (i & 1) s += b[i]; else odd += b[i];")
        .replace("return s + last", "return (s + odd) + last");
    write(at, &[("k.c", &source)]);
    assert_eq!(tried(at, "")[0]["verdict"], "tolerance");
}

#[test]
fn wrong_edits_are_different() {
    let directory = captured();
    let at = directory.path();
    for (from, to) in [
        (
            "i < m; i++) {\n            b",
            "i < m - 1; i++) {\n            b",
        ),
        ("for (int i = 1; i < m", "for (int i = 2; i < m"),
        ("+ 2 * a[i] +", "+ 3 * a[i] +"),
        ("if (b[i] > 3) last", "if (b[i] > 9) last"),
        ("int m = n - 1;", "int m = n - 2;"),
        (
            "double scale = weight(c);",
            "double scale = weight(c); w[3] = 5;",
        ),
        ("return s + last", "return s + 2 * last"),
        ("return s + last", "w[1] = 3; return s + last"),
        ("s += b[i];", "s += b[i]; if (i == 7) w[i] = 0;"),
    ] {
        let (verdict, answer) = edited(at, from, to);
        assert_eq!(verdict, "different", "{to}: {answer}");
        assert!(answer["ratio"].is_null(), "{to}: {answer}");
    }
    assert_eq!(
        cere(at, "try").output().expect("cere runs").status.code(),
        Some(1)
    );
}

#[test]
fn what_cannot_be_tried_is_named() {
    let directory = captured();
    let at = directory.path();
    refused(
        at,
        "try",
        "nothing to try: no source of the chosen codelets changed",
    );
    for (from, to, why) in [
        ("s += b[i];", "s += b[i]", "error: expected ';'"),
        (
            "static double w[N]",
            "static double w[N + 1]",
            "the variable w has 24008 bytes, and 24000 in the captured program",
        ),
        (
            "calls++;",
            "calls += 2;",
            "the code before it differs from that of the captured program, at line 9",
        ),
        (
            "return s + last",
            "return s * s",
            "the code behind it differs from that of the captured program, at line 17",
        ),
        (
            "s += b[i];",
            "s += b[i]; if (i == 5) *(volatile int *)8 = 1;",
            "0x8",
        ),
        ("s += b[i];", "s += b[i]; if (i == 5) abort();", "abort"),
    ] {
        let (verdict, answer) = edited(at, from, to);
        assert_eq!(verdict, "failed", "{to}: {answer}");
        has(answer["reason"].as_str().expect("a reason"), why);
    }
    // Endless.
    write(
        at,
        &[(
            "k.c",
            &SMOOTH.replace("s += b[i];", "s += b[i]; i -= i > 5;"),
        )],
    );
    let answer = tried(at, "--timeout 1");
    assert_eq!(answer[0]["verdict"], "failed", "{answer}");
    has(
        answer[0]["reason"].as_str().expect("a reason"),
        "ran longer than 1 s",
    );
    // By another name, if it is given.
    let renamed = SMOOTH.replace("smooth(", "smoothed(");
    write(at, &[("k.c", &renamed)]);
    has(
        &tried(at, "")[0]["reason"].to_string(),
        "the function smooth is not in the new source: name the one that stands for it by --as smooth=NEW",
    );
    assert_eq!(tried(at, "--as smooth=smoothed")[0]["verdict"], "exact");
    std::fs::remove_file(at.join("k.c")).expect("a file");
    refused(at, "try", "k.c is not there any more");
}

/// All files below the directory, but for the store, with their times.
fn files(at: &Path) -> BTreeMap<std::path::PathBuf, SystemTime> {
    let entries = std::fs::read_dir(at).expect("a directory").flatten();
    let paths = entries.map(|e| e.path()).filter(|p| !p.ends_with(".cere"));
    let each = paths.map(|p| {
        let time = p.metadata().and_then(|m| m.modified()).expect("a time");
        (p, time)
    });
    each.collect()
}

#[test]
fn variants_leave_the_build_alone() {
    let directory = captured();
    let at = directory.path();
    let faster = SMOOTH.replace("2 * a[i]", "a[i] + a[i]");
    let wrong = SMOOTH.replace("2 * a[i]", "3 * a[i]");
    std::fs::create_dir_all(at.join("tree")).expect("a directory");
    let patch = "--- a/k.c\n+++ b/k.c\n@@ -12,5 +12,5 @@\n         for (int i = 1; i < m; i++) {\n-            b[i] = scale * (a[i - 1] + 2 * a[i] + a[i + 1]) * w[i];\n+            b[i] = scale * (a[i - 1] + 5 * a[i] + a[i + 1]) * w[i];\n             s += b[i];\n             if (b[i] > 3) last = i;\n         }\n";
    write(
        at,
        &[
            ("other.c", &faster),
            ("tree/k.c", &wrong),
            ("tree/weight.h", HEADER),
            ("heavy.h", &HEADER.replace("0.25", "0.5")),
            ("idea.diff", patch),
        ],
    );
    let before = files(at);
    let all = tried(
        at,
        "--source k.c=other.c --source weight.h=heavy.h --patch idea.diff --dir tree smooth*",
    );
    let found: Vec<(&str, &str)> = all
        .as_array()
        .expect("a list")
        .iter()
        .map(|t| {
            (
                t["variant"].as_str().unwrap_or(""),
                t["verdict"].as_str().unwrap_or(""),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("k.c=other.c", "exact"),
            ("weight.h=heavy.h", "failed"),
            ("idea.diff", "different"),
            ("tree", "different")
        ],
        "{all}"
    );
    // What the loop gets from the header's function is another value now, which cannot be computed.
    has(&all[1]["reason"].to_string(), "`double c` (line 7)");
    assert_eq!(files(at), before);
    // A header that changed is a change.
    write(at, &[("weight.h", &HEADER.replace("x * 0.25", "0.25 * x"))]);
    assert_eq!(tried(at, "")[0]["verdict"], "exact");
    refused(
        at,
        "try --source other.c",
        "no source of the chosen codelets is called other.c",
    );
    refused(at, "try --patch k.c", "it holds no change of a file");
    let shown = text(
        &cere(at, "try --source k.c=other.c")
            .output()
            .expect("cere runs")
            .stdout,
    );
    has(&shown, "smooth@k.c:11");
    assert!(
        json(at, "codelets --json")
            .as_array()
            .is_some_and(|c| c.len() == 1)
    );
}

/// Two loops, functions around them, values before them.
const AROUND: &str = r#"
#include <stdio.h>
static double scale = 2.0, a[3000], b[3000], p[4], q[4];
__attribute__((noinline)) static void prepare(double *x, int k) { x[0] = k; x[1] = 2 * k; }
__attribute__((noinline)) static double end(double s) { return s * 1.5; }
__attribute__((noinline)) double one(int n) {
    double v[3], s = 0, t = 1, w[8] = {0};
    for (int i = 0; i < 3; i++) v[i] = i * .5;
    __asm__ volatile("" ::: "memory");
    prepare(a, n);
    for (int i = 0; i < n; i++) { s += a[i] * scale * v[i % 3]; t += b[i] * .5; w[i & 7] += a[i]; }
    if (n > 100) p[0] = q[0] + s;
    return end(s + t) + w[1] * w[2];
}
__attribute__((noinline)) double two(int n) {
    double s = 0;
    for (int i = 0; i < n; i++) b[i] = a[i] * 2 + 1;
    for (int i = 0; i < n; i++) s += b[i] * a[i];
    return s;
}
int main(void) {
    for (int i = 0; i < 3000; i++) { a[i] = i % 17; b[i] = i % 5; }
    double r = 0;
    for (int t = 0; t < 30; t++) r += one(3000) + two(3000);
    printf("%.15g\n", r);
}
"#;

/// What surrounds a region is never taken for tried.
#[test]
fn what_is_around_counts() {
    let directory = directory_with(&[("x.c", AROUND)]);
    let at = directory.path();
    instrument(at, "$CC -O2 x.c -o x");
    succeed(at, "profile -- ./x");
    succeed(at, "capture one* --invocation 9 -- ./x");
    succeed(at, "capture two* --invocation 9 -- ./x");
    for (from, to, verdict, said) in [
        (
            "2 * k",
            "3 * k",
            "failed",
            "the function prepare, which is called before it",
        ),
        (
            "scale = 2.0",
            "scale = 2.5",
            "failed",
            "the initial value of scale",
        ),
        (
            "s * 1.5",
            "s * 1.25",
            "exact",
            "not tried here, and changed as well: end",
        ),
        (
            "a[i] * 2 + 1",
            "a[i] * 3 + 1",
            "exact",
            "not tried here, and changed as well: two",
        ),
        ("s + t)", "t + s)", "exact", ""),
        ("w[", "ww[", "exact", ""),
        (
            "t += b[i] * .5; w[i & 7] += a[i]; }",
            "w[i & 7] += a[i]; } for (int i = 0; i < n; i++) t += b[i] * .5;",
            "exact",
            "",
        ),
    ] {
        assert!(AROUND.contains(from), "{from}");
        write(at, &[("x.c", &AROUND.replace(from, to))]);
        let all = tried(at, "one*");
        assert_eq!(all[0]["verdict"], verdict, "{to}: {all}");
        has(&all[0].to_string(), said);
    }
    write(
        at,
        &[("x.c", &AROUND.replace("a[i] * 2 + 1", "a[i] * 3 + 1"))],
    );
    let all = tried(at, "two*");
    let second = all.as_array().and_then(|all| all.last()).expect("a region");
    has(
        &second["notes"].to_string(),
        "not tried here, and changed as well: the loop at line",
    );
}

/// What another unit does before the region is not run by its codelet.
#[test]
fn other_units_that_changed_are_named() {
    const A: &str = r#"
#include <stdio.h>
void prepare(double *, int);
static double a[4000], b[4000];
__attribute__((noinline)) double one(int n) {
    double s = 0;
    prepare(a, n);
    for (int i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}
int main(void) {
    for (int i = 0; i < 4000; i++) { a[i] = i % 17; b[i] = i % 5 + 1; }
    double r = 0;
    for (int t = 0; t < 30; t++) r += one(4000);
    printf("%.15g\n", r);
}
"#;
    const B: &str = "void prepare(double *x, int k) { x[0] = k; x[1] = 2 * k; }\n";
    let directory = directory_with(&[("a.c", A), ("b.c", B)]);
    let at = directory.path();
    instrument(at, "$CC -O2 a.c b.c -o x");
    succeed(at, "profile -- ./x");
    succeed(at, "capture one* --invocation 9 -- ./x");
    write(at, &[("a.c", &A.replace("a[i] * b[i]", "b[i] * a[i]"))]);
    let named = "not tried here, and changed as well";
    let all = tried(at, "");
    assert!(!all.to_string().contains(named), "{all}");
    write(at, &[("b.c", &B.replace("2 * k", "3 * k"))]);
    let said = tried(at, "")[0]["notes"].to_string();
    has(&said, named);
    has(&said, "/b.c");
}

/// Of C++ with objects, templates and exceptions.
const BODIES: &str = r#"
#include <cmath>
#include <cstdio>
#include <vector>
struct body { double x, y, vx, vy, m; };
static void advance(std::vector<body> &bs, double dt) {
    for (size_t i = 0; i < bs.size(); i++) {
        for (size_t j = i + 1; j < bs.size(); j++) {
            double dx = bs[i].x - bs[j].x, dy = bs[i].y - bs[j].y;
            double d2 = dx * dx + dy * dy + 0.01;
            double mag = dt / (d2 * std::sqrt(d2));
            bs[i].vx -= dx * bs[j].m * mag; bs[i].vy -= dy * bs[j].m * mag;
            bs[j].vx += dx * bs[i].m * mag; bs[j].vy += dy * bs[i].m * mag;
        }
    }
    for (auto &b : bs) { b.x += dt * b.vx; b.y += dt * b.vy; }
}
int main() {
    std::vector<body> bs;
    for (int i = 0; i < 100; i++) bs.push_back({sin(i), cos(i), 0, 0, 1.0 + i % 3});
    for (int t = 0; t < 30; t++) advance(bs, 0.001);
    printf("%.12g\n", bs[3].x);
}
"#;

#[test]
fn code_with_objects() {
    let directory = directory_with(&[("m.cpp", BODIES)]);
    let at = directory.path();
    instrument(at, "$CXX -O2 m.cpp -o m");
    succeed(at, "capture advance@m.cpp:7 --invocation 12 -- ./m");
    let hoisted = BODIES
        .replacen("    for (size_t i = 0; i < bs.size(); i++) {\n        for (size_t j = i + 1; j < bs.size()", "    body *p = bs.data(); const size_t n = bs.size();\n    for (size_t i = 0; i < n; i++) {\n        for (size_t j = i + 1; j < n", 1)
        .replace("bs[i]", "p[i]")
        .replace("bs[j]", "p[j]");
    let lambda = BODIES.replace(
        "double mag = dt / (d2 * std::sqrt(d2));",
        "auto f = [&](double q) { return dt / (q * std::sqrt(q)); }; double mag = f(d2); if (d2 < 0) throw 1;",
    );
    for (what, source, expected) in [
        ("pointers before the loop", &hoisted, "exact"),
        ("a lambda, an exception", &lambda, "exact"),
        (
            "from itself on, twice",
            &BODIES.replace("dx * bs[i].m * mag;", "2 * dx * bs[i].m * mag;"),
            "different",
        ),
        (
            "another layout",
            &BODIES
                .replace("vy, m; };", "vy, m, pad; };")
                .replace("1.0 + i % 3}", "1.0 + i % 3, 0}"),
            "failed",
        ),
    ] {
        assert_ne!(source, BODIES, "{what}");
        write(at, &[("m.cpp", source)]);
        let answer = tried(at, "");
        assert_eq!(answer[0]["verdict"], expected, "{what}: {answer}");
    }
    has(
        &tried(at, "")[0]["reason"].to_string(),
        "the structure body is laid out otherwise than in the captured program",
    );
}

fn said(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Kind, line of the code, iterations and value of the first store that differs.
fn first(wrong: &Value) -> (&str, u64, Vec<u64>, &str) {
    let store = &wrong["first"];
    let iterations = store["iterations"].as_array().expect("a list");
    (
        said(&wrong["kind"]),
        store["line"].as_u64().expect("a line"),
        iterations
            .iter()
            .filter_map(|i| i["number"].as_u64())
            .collect(),
        said(&store["value"]),
    )
}

/// The line of the source, from 1, that has this code.
fn line_of(source: &str, code: &str) -> u64 {
    let found = source.lines().position(|line| line.contains(code));
    found.expect("it has the code") as u64 + 1
}

#[test]
fn the_wrong_store_is_named() {
    let directory = captured();
    let at = directory.path();
    let (store, sum) = (
        line_of(SMOOTH, "b[i] = scale"),
        line_of(SMOOTH, "s += b[i]"),
    );

    // One element, in each of the four passes: the first is where it begins, the last leaves the value.
    let (verdict, all) = edited(at, "* w[i];", "* (i == 7 ? 1 : w[i]);");
    let wrong = &all["wrong"];
    assert_eq!(verdict, "different");
    assert_eq!(wrong["last"]["line"], store);
    assert_eq!(wrong["last"]["iterations"][0]["number"], 4);
    assert_eq!(wrong["last"]["iterations"][1]["number"], 7);
    assert_eq!(
        wrong["last"]["iterations"][1]["line"],
        line_of(SMOOTH, "i < m; i++")
    );
    let (kind, line, iterations, value) = first(wrong);
    assert_eq!((kind, line, iterations), ("other", store, vec![1, 7]));
    let expected: f64 = said(&wrong["expected"]).parse().expect("a number");
    assert_eq!(expected, 2.0 * value.parse::<f64>().expect("a number"));

    // A sum that stays in a register.
    let (verdict, all) = edited(at, "s += b[i]", "s += i == 100 ? 0 : b[i]");
    let (kind, line, iterations, _) = first(&all["wrong"]);
    assert_eq!(verdict, "different");
    assert_eq!((kind, line, iterations), ("other", sum, vec![1, 100]));

    // What is left out, what is too much.
    let (_, all) = edited(at, "i < m; i++", "i < m - 1; i++");
    let (kind, line, iterations, _) = first(&all["wrong"]);
    assert_eq!((kind, line, iterations), ("missing", store, vec![1, 2998]));
    assert!(all["wrong"]["last"].is_null(), "{all}");
    let (_, all) = edited(
        at,
        "int i = 1; i < m; i++) {",
        "int i = 1; i < m; i++) { if (i == 3) b[0] = 9;",
    );
    let (kind, line, iterations, value) = first(&all["wrong"]);
    let added = line_of(SMOOTH, "int i = 1; i < m");
    assert_eq!(
        (kind, line, iterations, value),
        ("more", added, vec![1, 3], "9")
    );

    // In a function of the header, for people.
    write(
        at,
        &[(
            "k.c",
            &SMOOTH.replace("b[i] = scale", "put(b, i); b[i] = scale"),
        )],
    );
    let put = "static void put(double *b, int i) {\n  if (i == 5)\n    b[2999] = 4.5;\n}\n";
    write(at, &[("weight.h", &format!("{HEADER}{put}"))]);
    let output = cere(at, "try --reps 3").output().expect("cere runs");
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    for part in ["weight.h:4, iteration 1", "4.5", "stores nothing"] {
        has(&told, part);
    }
}

#[test]
fn what_the_optimiser_brings_about_is_said() {
    let source = r#"
#include <stdio.h>
int values[64];
short *view;
__attribute__((noinline)) int fill(int *a, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) {
        a[i] = i;
        s += a[i];
    }
    return s;
}
int main(void) { view = (short *)values; printf("%d\n", fill(values, 64)); }
"#;
    let directory = directory_with(&[("k.c", source)]);
    let at = directory.path();
    instrument(at, "$CC -O2 k.c -o k");
    succeed(at, "profile -- ./k");
    succeed(at, "capture fill* -- ./k");
    // The load sees what was stored as another type, or not.
    let aliased = source.replace("a[i] = i;", "a[i] = 1; view[2 * i] = (short)i;");
    write(at, &[("k.c", &aliased)]);
    let all = tried(at, "");
    assert_eq!(all[0]["verdict"], "different", "{all}");
    has(said(&all[0]["wrong"]["text"]), "undefined behaviour");
}

/// Two loops, of which the second one reads what the first one stored.
const TWICE: &str = r#"
#include <stdio.h>
#define N 400
static double a[N], b[N];
__attribute__((noinline)) void both(int n, double c, double d) {
    for (int i = 0; i < n; i++) {
        a[i] = 0;
        for (int j = 0; j < 20; j++)
            a[i] += c * j;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 20; j++)
            b[i] = b[i] + a[i] * d;
}
int main(void) {
    for (int r = 0; r < 50; r++) both(N, 1.5, 0.25);
    printf("%g %g\n", a[7], b[9]);
}
"#;

/// The verdicts on both loops, and what is said of the second one.
fn two(at: &Path, from: &str, to: &str) -> (String, String, Value) {
    assert!(TWICE.contains(from), "{from}");
    write(at, &[("k.c", &TWICE.replace(from, to))]);
    let all = tried(at, "");
    let of = |line: u64| {
        let name = format!("both@k.c:{line}");
        let mut each = all.as_array().expect("a list").iter();
        each.find(|one| one["name"] == *name)
            .expect("the loop")
            .clone()
    };
    let (first, second) = (
        of(line_of(TWICE, "i < n; i++) {")),
        of(line_of(TWICE, "b[i] =") - 2),
    );
    let verdict = |one: &Value| said(&one["verdict"]).to_owned();
    (verdict(&first), verdict(&second), second)
}

#[test]
fn a_loop_before_may_be_another_one() {
    let directory = directory_with(&[("k.c", TWICE)]);
    let at = directory.path();
    instrument(at, "$CC -O2 k.c -o k");
    succeed(at, "profile -- ./k");
    succeed(at, "capture both* -- ./k");

    // It takes other arguments, in another order.
    let summed = "double s = 0;
        for (int j = 0; j < 20; j++)
            s += c * j;
        a[i] = s;";
    let old =
        &TWICE[TWICE.find("a[i] = 0;").expect("it")..TWICE.find("    }\n    for").expect("it")];
    let (first, second, about) = two(at, old, summed);
    assert_eq!((&*first, &*second), ("exact", "exact"), "{about}");
    assert_eq!(about["code"], "identical");
    has(&about["notes"].to_string(), "the loop at line 6");

    // A wrong one is found where it is.
    let (first, second, _) = two(at, "a[i] += c * j", "a[i] += (c + d) * j");
    assert_eq!(first, "failed", "d was not captured");
    assert_eq!(second, "exact");
    let (first, second, _) = two(at, "a[i] += c * j", "a[i] += c * (n - j)");
    assert_eq!((&*first, &*second), ("different", "exact"));

    // Loops that change places are not taken for edited ones.
    let (start, end) = (
        TWICE.find("    for (int i = 0; i < n; i++) {").expect("it"),
        TWICE.find("}\nint main").expect("it"),
    );
    let middle = TWICE.find("    for (int i = 0; i < n; i++)\n").expect("it");
    let swapped = format!("{}{}", &TWICE[middle..end], &TWICE[start..middle]);
    let (first, second, about) = two(at, &TWICE[start..end], &swapped);
    assert_eq!((&*first, &*second), ("failed", "failed"), "{about}");
    has(&about["reason"].to_string(), "the captured program");
}
