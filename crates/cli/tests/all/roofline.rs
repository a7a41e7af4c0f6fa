//! `cere roofline`: work and traffic of kernels against their formulas, what binds, what has no point, and bad input.
//!
//! Formulas, of n doubles or n x n matrices, and the caches of `examples/roofline/yonah.json` are those of the ETH thesis on
//! roofline plots, 6.1. Traffic is compared within 5 %: caches of 8 ways keep a little less, or more, than a formula that
//! knows their size alone.

use crate::common::{cere, has, machine, parsed, refused, run, succeed, text, write};
use cere_format::machine::Machine;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn example(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/roofline");
    root.join(name).to_string_lossy().into_owned()
}

/// A directory with a store, the machine, and a cache of L2 with so many KiB.
fn directory(kib: u64) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let level = |name, size: u64| json!({"name": name, "size": size, "line": 64, "ways": 8});
    let geometry =
        json!({"name": "test", "levels": [level("L1", 32 << 10), level("L2", kib << 10)]});
    let machine = serde_json::to_string(&machine()).expect("JSON");
    let files = [
        ("machine.json", machine.as_str()),
        ("caches.json", &geometry.to_string()),
    ];
    write(directory.path(), &files);
    std::fs::create_dir(directory.path().join(".cere")).expect("a directory");
    directory
}

/// `cere roofline` of a kernel; `more` may name other caches.
fn roofline(directory: &Path, kernel: &str, sizes: &str, more: &[&str]) -> Value {
    let words = [
        "roofline",
        "--json",
        "--kernel",
        kernel,
        "--sizes",
        sizes,
        "--machine",
        "machine.json",
        "--reps",
        "3",
    ];
    let output = succeed(directory, &[&words[..], more].concat());
    parsed(&output)
}

const OWN: [&str; 2] = ["--geometry", "caches.json"];
const COLD: [&str; 2] = ["--state", "data=cold,code=warm"];

/// Work and bytes from memory of the first point.
fn first(document: &Value) -> (f64, f64) {
    let point = &document["points"][0];
    let number = |v: &Value| v.as_f64().unwrap_or_else(|| panic!("{document}"));
    (number(&point["flops"]), number(&point["bytes"]["memory"]))
}

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found / expected - 1.0).abs() <= tolerance,
        "{found} instead of {expected}"
    );
}

#[test]
fn daxpy_writes_back_what_does_not_fit() {
    let directory = directory(2048);
    let yonah = example("yonah.json");
    let more = [
        "--geometry",
        &yonah,
        "--state",
        "data=cold,code=warm",
        "--state",
        "data=warm,code=warm",
        "--svg",
        "roof.svg",
    ];
    let document = roofline(
        directory.path(),
        &example("daxpy.c"),
        "100000:1000000:10",
        &more,
    );
    let points = document["points"].as_array().expect("points");
    let intensity = |n: usize| points[n]["intensity"]["memory"].as_f64();
    let flops = |n: usize| points[n]["flops"].as_u64();
    assert_eq!((flops(0), flops(2)), (Some(200_000), Some(2_000_000)));
    // 1.6 MB fit: each line comes in once and none goes out; from warm caches nothing moves.
    near(intensity(0).unwrap(), 1.0 / 8.0, 0.01);
    assert_eq!(
        (intensity(1), &points[1]["bytes"]["memory"]),
        (None, &json!(0))
    );
    // 16 MB do not: all lines of y go out, but those that are in the cache at the end, half of its 2 MiB.
    near(2e6 / intensity(2).unwrap(), 24e6 - f64::from(1 << 20), 0.01);
    near(intensity(3).unwrap(), 1.0 / 12.0, 0.01);

    for point in points {
        let number = |name: &str| {
            point[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {point}"))
        };
        let speed = number("flops") / number("seconds");
        near(number("flops_per_second"), speed, 1e-9);
        near(number("share_of_roof"), speed / number("ceiling"), 1e-9);
        let of = |name: &str, n: usize| point[name][n].as_f64().expect("seconds");
        let rising = [
            of("seconds_whiskers", 0),
            of("seconds_box", 0),
            number("seconds"),
            of("seconds_box", 1),
            of("seconds_whiskers", 1),
        ];
        assert!(rising.is_sorted() && rising[0] > 0.0, "{rising:?}");
        // A byte from memory stops a tenth of what one from L2 does here.
        let bound = if point["bytes"]["memory"] == 0 {
            "L"
        } else {
            "memory load, 1 core"
        };
        assert!(
            point["bound_by"]
                .as_str()
                .is_some_and(|b| b.starts_with(bound)),
            "{point}"
        );
    }
    assert_eq!(document["machine"]["here"], false);
    assert!(
        document["notes"]
            .to_string()
            .contains("another machine, a machine of a test"),
        "{document}"
    );
    assert_eq!(document["series"][0]["points"], json!([0, 2]), "{document}");
    assert_eq!(document["equal"][1]["points"], json!([2, 3]), "{document}");
    let svg = std::fs::read_to_string(directory.path().join("roof.svg")).expect("the plot");
    assert!(
        svg.contains("memory load, 1 core") && svg.contains("daxpy.c"),
        "{svg}"
    );
    assert_eq!(svg.matches("class=\"box\"").count(), 4, "{svg}");
    // What is kept is not measured again.
    let again = roofline(
        directory.path(),
        &example("daxpy.c"),
        "100000:1000000:10",
        &more,
    );
    assert_eq!(document, again);
}

#[test]
fn dgemv_reads_the_matrix_once() {
    let directory = directory(2048);
    let yonah = example("yonah.json");
    let more = [&["--geometry", &yonah][..], &COLD].concat();
    let document = roofline(directory.path(), &example("dgemv.c"), "700", &more);
    let (flops, bytes) = first(&document);
    assert_eq!(flops, 2.0 * 700.0 * 700.0);
    // n^2 for A, 2 n for the vectors.
    near(bytes, 8.0 * (700.0 * 700.0 + 2.0 * 700.0), 0.01);
    near(flops / bytes, 0.25, 0.05);
}

/// B does not fit in 128 KiB from n = 128 on, as it does not fit in the 2 MiB of the thesis from n = 512 on: 19 times the work.
#[test]
fn dgemm_reads_b_for_each_row() {
    let directory = directory(128);
    let more = [OWN, COLD].concat();
    let document = roofline(directory.path(), &example("dgemm.c"), "200", &more);
    let (flops, bytes) = first(&document);
    let n = 200.0;
    assert_eq!(flops, 2.0 * n * n * n);
    // B n times; A and C once, C back.
    near(bytes, 8.0 * (n * n * n + 3.0 * n * n), 0.01);
    near(flops / bytes, 0.25, 0.05);
}

/// Blocks of 50 in 1 MiB: a row of blocks of A and a column of B fit, which is what an LRU cache needs to keep A; B does not.
#[test]
fn dgemm_in_blocks_keeps_a_row_of_them() {
    let directory = directory(1024);
    let more = [&OWN[..], &COLD, &["--build-flags", "-O2 -DBLOCK=50"]].concat();
    let document = roofline(directory.path(), &example("dgemm.c"), "400", &more);
    let (flops, bytes) = first(&document);
    let n = 400.0;
    assert_eq!(flops, 2.0 * n * n * n);
    // B for each row of blocks. Lower order: A and C once, C back.
    let lower = 8.0 * 3.0 * n * n;
    near(bytes, 8.0 * n * n * n / 50.0 + lower, 0.05);
    near(flops / (bytes - lower), 12.5, 0.05);
}

/// Blocks of 50 in 128 KiB: three blocks fit, a row of them does not. The thesis has that from n = 5243 on.
#[test]
fn dgemm_in_blocks_keeps_three_of_them() {
    let directory = directory(128);
    let more = [&OWN[..], &COLD, &["--build-flags", "-O2 -DBLOCK=50"]].concat();
    let document = roofline(directory.path(), &example("dgemm.c"), "400", &more);
    let (flops, bytes) = first(&document);
    let n = 400.0;
    let each = 8.0 * n * n * n / 50.0;
    // Rows of a block of B, 400 bytes, come in as 7 lines, 448 bytes; those of A follow one another, and share lines. Lower order:
    // C once, and back.
    let lower = each * (448.0 / 400.0 - 1.0) + 8.0 * 2.0 * n * n;
    near(bytes, 2.0 * each + lower, 0.05);
    near(flops / (bytes - lower), 6.25, 0.05);
}

#[test]
fn fft_has_ten_operations_a_butterfly() {
    let directory = directory(128);
    let more = [OWN, COLD].concat();
    let document = roofline(directory.path(), &example("fft.c"), "1024", &more);
    let (flops, _) = first(&document);
    // n / 2 butterflies in each of 10 stages; 8 for each rotation, n - 1 in all; 4 for each stage's angles.
    assert_eq!(flops, 10.0 * 512.0 * 10.0 + 8.0 * 1023.0 + 4.0 * 10.0);
}

const SUMS: &str = "
#include <stddef.h>
size_t cere_bytes(long n) { return n * 8; }
#ifdef WHOLE
void cere_init(long n, void *memory) { long *x = memory; for (long i = 0; i < n; i++) x[i] = i; }
void cere_kernel(long n, void *memory) { long *x = memory; for (long i = 0; i < n; i++) x[i] = x[i] * 3 + 1; }
#else
void cere_init(long n, void *memory) { double *x = memory; for (long i = 0; i < n; i++) x[i] = 0.3 + i; }
void cere_kernel(long n, void *memory) {
  double *x = memory;
  for (long i = 0; i < n; i++) x[i] = (x[i] + 1e16) - 1e16;
}
#endif
";

/// Runs `cere roofline` on `SUMS`; its status and document.
fn sums(directory: &Path, more: &[&str]) -> (Option<i32>, Value) {
    write(directory, &[("sums.c", SUMS)]);
    let words = [
        "roofline",
        "--json",
        "--kernel",
        "sums.c",
        "--sizes",
        "500",
        "--machine",
        "machine.json",
        "--reps",
        "3",
    ];
    let output = run(directory, &[&words[..], &OWN, &COLD, more].concat());
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)));
    (output.status.code(), document)
}

#[test]
fn code_without_floating_point_stands_apart() {
    let directory = directory(128);
    let (status, document) = sums(directory.path(), &["--build-flags", "-O2 -DWHOLE"]);
    assert_eq!(status, Some(0), "{document}");
    assert_eq!(document["points"], json!([]));
    let apart = &document["apart"][0];
    assert_eq!(apart["codelet"], "sums.c:500", "{document}");
    assert!(
        apart["reason"]
            .as_str()
            .is_some_and(|r| r.contains("no floating-point")),
        "{apart}"
    );
}

#[test]
fn another_result_is_no_point() {
    let directory = directory(128);
    // With -ffast-math the sum and the difference cancel.
    let (status, document) = sums(directory.path(), &["--flags", "", "--flags", "-ffast-math"]);
    assert_eq!(status, Some(1), "{document}");
    let points = document["points"].as_array().expect("points");
    assert_eq!(points.len(), 1, "{document}");
    assert_eq!(points[0]["flags"], "");
    let apart = &document["apart"][0];
    assert_eq!(apart["flags"], "-ffast-math", "{document}");
    let reason = apart["reason"].as_str().expect("a reason");
    has(reason, "its result is different");
}

#[test]
fn bad_input() {
    let directory = directory(128);
    let path = directory.path();
    let other = Machine {
        version: 99,
        ..machine()
    };
    let flat = Machine {
        peaks: Vec::new(),
        bandwidths: Vec::new(),
        ..machine()
    };
    let text_of = |m: &Machine| serde_json::to_string(m).expect("JSON");
    let broken = SUMS.replace("size_t cere_bytes", "size_t broken(;\nsize_t cere_bytes");
    let huge = SUMS.replace("return n * 8;", "return (size_t)-1;");
    write(
        path,
        &[
            ("other.json", &text_of(&other)),
            ("flat.json", &text_of(&flat)),
            ("text.json", "{}"),
            ("broken.c", &broken),
            ("huge.c", &huge),
            ("sums.c", SUMS),
        ],
    );
    let kernel = |more: &[&'static str]| {
        [
            &["roofline", "--machine", "machine.json", "--kernel"][..],
            more,
        ]
        .concat()
    };
    let checks: [(Vec<&str>, &str); 10] = [
        (
            vec!["roofline", "none@*", "--machine", "machine.json"],
            "none@*",
        ),
        (
            vec!["roofline", "x@*", "--machine", "missing.json"],
            "missing.json",
        ),
        (
            vec!["roofline", "x@*", "--machine", "text.json"],
            "no measurement",
        ),
        (
            vec!["roofline", "x@*", "--machine", "other.json"],
            "version 99",
        ),
        (
            vec!["roofline", "x@*", "--machine", "flat.json"],
            "neither peaks nor bandwidths",
        ),
        (
            kernel(&["sums.c", "--sizes", "1:99999999999999999999:2"]),
            "from 1 to",
        ),
        (kernel(&["sums.c", "--sizes", "8:4:2"]), "8 is above 4"),
        (
            kernel(&["sums.c", "--sizes", "8", "--geometry", "none"]),
            "traffic needs caches",
        ),
        (kernel(&["missing.c", "--sizes", "8"]), "missing.c"),
        (
            kernel(&["sums.c", "--sizes", "8", "--level", "L9", "--svg", "x.svg"]),
            "--level L9: there are L1",
        ),
    ];
    for (words, part) in &checks {
        refused(path, words, part);
    }
    for (file, part) in [
        ("broken.c", "broken(;"),
        (
            "huge.c",
            "no memory for 18446744073709551615 bytes at n = 8",
        ),
    ] {
        let output = run(path, &kernel(&[file, "--sizes", "8"]));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(part) && said.contains(file), "{said}");
    }
    let state = run(path, "roofline x@* --state warm");
    has(&text(&state.stderr), "data=cold,code=warm");
    let home: PathBuf = path.join("home");
    let none = cere(path, "roofline x@*")
        .env("XDG_CACHE_HOME", &home)
        .output()
        .expect("cere runs");
    assert_eq!(none.status.code(), Some(1));
    has(&text(&none.stderr), "run `cere machine`");
}
