//! What a replay runs as captured, whatever the flags, is named.

use crate::common::{built_from, has, instrument, json, succeed, text, write};
use serde_json::json as value;

const LIBRARY: &str = "double apply(double (*f)(double), const double *v, int n) { double s = 0; for (int i = 0; i < n; i++) s += f(v[i]); return s; }\n";
const RAW: &str = "static double state = 1;
static __attribute__((noinline)) double keep(double x) { return state = state / 2 + x; }
double raw(double x) { return keep(x) * 2; }
";
const PROGRAM: &str = r#"
#include <cstdio>
#include <cmath>
extern "C" double apply(double (*f)(double), const double *v, int n);
extern "C" double raw(double x);
static double values[1000], weight = 0.75;
static double weighted(double x) { return x * weight; }
static double unused(double x) { return x + weight; }
__attribute__((noinline)) static double all(int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += raw(values[i]) + std::sin(s);
    return s;
}
int main(int argc, char **) {
    for (int i = 0; i < 1000; i++) values[i] = i * 37 % 101;
    double sum = all(1000) + apply(argc > 5 ? unused : weighted, values, 1000);
    std::printf("%.17g\n", sum);
}
"#;

#[test]
fn callbacks_and_code_without_ir() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let files = [("apply.c", LIBRARY), ("raw.c", RAW), ("main.cpp", PROGRAM)];
    write(at, &files);
    let build = "$CC -O2 -fPIC -shared apply.c -o libapply.so && env -u LD_PRELOAD nice /usr/bin/clang-22 -O2 -c raw.c && $CXX -O2 -c main.cpp && $CXX -o app main.o raw.o -L. -lapply -Wl,-rpath,'$ORIGIN'";
    instrument(at, build);
    succeed(at, "capture apply* all* -- ./app");

    let replay = |what: &str| {
        json(
            at,
            &["replay", "--json", "--flags", "-O3", "--reps", "1", what],
        )
    };
    let callback = replay("apply*");
    let weighted = value!({"name": "weighted", "image": "app", "other_image": true});
    assert_eq!(callback["captured_code"], value!([weighted]), "{callback}");
    // The library's own sine is no captured code; the static function has no IR and no unit either.
    let without = replay("all*");
    let mut names: Vec<&str> = without["captured_code"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|f| f["name"].as_str().expect("a name"))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["keep", "raw"]);

    let line = text(&succeed(at, "replay --reps 1 apply*").stdout);
    let part = "1 function may have run as captured machine code, which flags do not change: weighted (from app)";
    has(&line, part);
    let line = text(&succeed(at, "replay --reps 1 all*").stdout);
    has(&line, "2 functions may have run");
    has(&line, "(built without the wrappers)");
}

#[test]
fn nothing_to_name() {
    let source = "#include <stdio.h>\n#include <math.h>\nint main(int c, char **v) { double s = c; for (int i = 0; i < 100; i++) s += sin(s); printf(\"%g\\n\", s); }\n";
    let directory = built_from(&[("main.c", source)], "$CC -O2 main.c -o app -lm");
    let at = directory.path();
    succeed(at, "capture main* -- ./app");
    let replay = json(at, "replay --json --reps 1 main*");
    assert_eq!(replay["captured_code"], value!([]), "{replay}");
    let shown = text(&succeed(at, "replay --reps 1 main*").stdout);
    assert!(!shown.contains("captured"), "{shown}");
}
