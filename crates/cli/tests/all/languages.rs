//! Programs in other languages and by other front ends: from their own builds to exact replays.

use crate::common::{
    built, cere, directory_with, has, instrument, json, parsed, refused, run, succeed, text, write,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every codelet by its name: verdict, and whether the code is that of the program.
fn replayed(at: &Path, flags: &str) -> BTreeMap<String, (String, Option<bool>)> {
    let all = json(
        at,
        &["replay", "*", "--json", "--reps", "3", "--flags", flags],
    );
    let one = |replay: &Value| {
        let text = |key: &str| replay[key].as_str().unwrap_or_default().to_owned();
        (
            text("codelet"),
            (text("verdict"), replay["identical_code"].as_bool()),
        )
    };
    let list = match &all {
        Value::Array(list) => list.clone(),
        only => vec![only.clone()],
    };
    list.iter().map(one).collect()
}

/// Profiles, captures what covers the run, and checks that all of it is exact by the program's own code.
fn exact(at: &Path, command: &str) -> Vec<String> {
    succeed(at, &*format!("profile -- {command}"));
    succeed(at, &*format!("capture -- {command}"));
    let all = replayed(at, "");
    assert!(!all.is_empty(), "{command}: nothing was captured");
    for (name, found) in &all {
        assert_eq!(found, &("exact".to_owned(), Some(true)), "{name}");
    }
    all.into_keys().collect()
}

fn output_of(program: &Path) -> Vec<u8> {
    let output = Command::new(program).output().expect("the program runs");
    assert!(output.status.success(), "{}", program.display());
    output.stdout
}

const WORKSPACE: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[workspace]\nmembers = [\"app\", \"kern\", \"twice\"]\nresolver = \"2\"\n[profile.release]\nlto = \"thin\"\nstrip = true\n",
    ),
    (
        "kern/Cargo.toml",
        "[package]\nname = \"kern\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    ),
    ("kern/src/lib.rs", KERN),
    (
        "twice/Cargo.toml",
        "[package]\nname = \"twice\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[lib]\nproc-macro = true\n",
    ),
    (
        "twice/src/lib.rs",
        "use proc_macro::TokenStream;\n#[proc_macro]\npub fn twice(input: TokenStream) -> TokenStream {\n    let mut n = 0;\n    \
         for _ in input.to_string().bytes() { n += 2; }\n    n.to_string().parse().unwrap()\n}\n",
    ),
    (
        "app/Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\nbuild = \"build.rs\"\n[dependencies]\nkern = { path = \"../kern\" }\ntwice = { path = \"../twice\" }\n",
    ),
    ("app/build.rs", BUILD),
    (
        "app/c.c",
        "double scale(double *a, int n) { double s = 0; for (int i = 0; i < n; i++) { a[i] *= 0.5; s += a[i]; } return s; }\n",
    ),
    ("app/src/main.rs", MAIN),
];

const BUILD: &str = r#"
use std::process::Command;
fn main() {
    let out = std::env::var("OUT_DIR").unwrap();
    let cc = std::env::var("CC").unwrap_or("cc".into());
    assert!(Command::new(cc).args(["-O2", "-fPIC", "-c", "c.c", "-o"]).arg(format!("{out}/c.o")).status().unwrap().success());
    assert!(Command::new("ar").arg("rcs").arg(format!("{out}/libc_part.a")).arg(format!("{out}/c.o")).status().unwrap().success());
    println!("cargo:rustc-link-search=native={out}\ncargo:rustc-link-lib=static=c_part\ncargo:rustc-env=TEXT=built");
    let mut n = 0u64;
    for i in 0..1000 { n = n.wrapping_mul(31) + i; }
    std::fs::write(format!("{out}/n.rs"), format!("{n}u64")).unwrap();
}
"#;

const KERN: &str = r#"#![no_std]
extern crate alloc;
use alloc::{boxed::Box, string::String, vec::Vec};

pub trait Kernel { fn eval(&self, r: f64) -> f64; }
pub struct Inverse { pub soft: f64 }
impl Kernel for Inverse { fn eval(&self, r: f64) -> f64 { 1.0 / (r + self.soft) } }

#[inline(never)]
pub fn relax(grid: &[f64], out: &mut [f64], w: usize, h: usize) {
    for y in 1..h - 1 {
        for x in 1..w - 1 {
            let i = y * w + x;
            out[i] = 0.25 * (grid[i - 1] + grid[i + 1] + grid[i - w] + grid[i + w]);
        }
    }
}

#[inline(never)]
pub fn potential<K: Kernel, const SKIP: usize>(k: &K, xs: &[f64]) -> f64 {
    xs.iter().skip(SKIP).map(|x| xs.iter().map(|y| k.eval((x - y) * (x - y))).sum::<f64>()).sum()
}

#[inline(never)]
pub fn dynamic(ks: &[Box<dyn Kernel>], xs: &[f64]) -> f64 {
    let mut total = 0.0;
    for k in ks { for x in xs { total += k.eval(x * x); } }
    total
}

/// What is larger than its tag: the rest of it is never set.
pub enum Value { Null, Number(f64), Text(String), List(Vec<Value>) }

#[inline(never)]
pub fn values(n: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for i in 0..n {
        all.push(match i % 4 {
            0 => Value::Null,
            1 => Value::Number(i as f64),
            2 => Value::Text(String::from("abc")),
            _ => Value::List(Vec::from([Value::Null, Value::Number(0.5)])),
        });
    }
    all
}

pub fn count(all: &[Value]) -> usize {
    all.iter().map(|v| match v { Value::Null => 1, Value::Number(_) => 2, Value::Text(t) => t.len(), Value::List(l) => count(l) }).sum()
}
"#;

const MAIN: &str = r#"
use kern::*;
use std::hash::{BuildHasherDefault, DefaultHasher};
unsafe extern "C" { fn scale(a: *mut f64, n: i32) -> f64; }

#[inline(never)]
fn checked(values: &[i32], limit: i32) -> i32 {
    let mut names: Vec<String> = Vec::new();
    let mut s = 0i32;
    for (k, v) in values.iter().enumerate() {
        s = s.checked_add(*v).expect("overflow");
        if s > limit { panic!("limit at {k}"); }
        if k % 1000 == 0 { names.push(format!("{k}:{s}")); }
    }
    s + names.len() as i32
}

fn main() {
    let (w, h) = (300, 300);
    let mut a: Vec<f64> = (0..w * h).map(|i| ((i * 37) % 101) as f64 * 0.01).collect();
    let mut b = a.clone();
    for _ in 0..40 { relax(&a, &mut b, w, h); std::mem::swap(&mut a, &mut b); }
    let xs: Vec<f64> = (0..600).map(|i| (i as f64 * 0.7) % 3.0).collect();
    let p = potential::<_, 2>(&Inverse { soft: 0.1 }, &xs);
    let ks: Vec<Box<dyn Kernel>> = vec![Box::new(Inverse { soft: 0.3 }), Box::new(Inverse { soft: 0.2 })];
    let d: f64 = (0..100).map(|_| dynamic(&ks, &xs)).sum();
    let numbers: Vec<i32> = (0..100_000).map(|i| (i % 7) - 3).collect();
    let ok = checked(&numbers, i32::MAX);
    std::panic::set_hook(Box::new(|_| {}));
    let bad = std::panic::catch_unwind(|| checked(&vec![1; 100_000], 50_000)).is_err();
    let mut words = std::collections::HashMap::with_hasher(BuildHasherDefault::<DefaultHasher>::default());
    for i in 0..20_000u64 { *words.entry(i * i % 503).or_insert(0usize) += 1; }
    let all = values(20_000);
    let t = std::thread::spawn(move || unsafe { (0..50).map(|_| scale(a.as_mut_ptr(), 10_000)).sum::<f64>() }).join().unwrap();
    let n: u64 = include!(concat!(env!("OUT_DIR"), "/n.rs"));
    println!("{p:.9} {d:.9} {ok} {bad} {} {} {t:.9} {n} {} {}", words.len(), count(&all), env!("TEXT"), twice::twice!(abc));
}
"#;

fn cargo(at: &Path, line: &str) -> Command {
    let mut command = cere(at, &["instrument", "--json", "--", "cargo"]);
    command.args(line.split(' ')).env_remove("RUSTFLAGS");
    command
}

#[test]
fn rust_from_cargo_to_a_verdict() {
    let directory = directory_with(WORKSPACE);
    let at = directory.path();
    let plain = Command::new("cargo")
        .args(["build", "--release", "--target-dir", "plain"])
        .current_dir(at)
        .output();
    assert!(plain.expect("cargo runs").status.success());

    let output = cargo(at, "build --release").output().expect("cere runs");
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    has(&said, "link-time optimisation is off");
    let built = parsed(&output);
    // The two crates and the C file; neither the build script nor the procedural macro.
    assert_eq!(built["units"], 3, "{built}");
    assert_eq!(built["without_units"], serde_json::json!([]), "{built}");
    let program = at.join("target/release/app");
    assert_eq!(
        output_of(&program),
        output_of(&at.join("plain/release/app"))
    );

    let regions = text(&succeed(at, "regions").stdout);
    for name in [
        "kern::relax@lib.rs:11",
        "kern::potential@lib.rs:21",
        "kern::dynamic@lib.rs:27",
        "app::checked@main.rs:10",
        "scale@c.c:1",
    ] {
        has(&regions, name);
    }
    let names = exact(at, "./target/release/app");
    for region in [
        "kern::relax",
        "kern::potential",
        "kern::dynamic",
        "kern::values",
        "app::checked",
    ] {
        assert!(
            names.iter().any(|name| name.starts_with(region)),
            "{region}: {names:?}"
        );
    }
    // The C part, in another thread.
    succeed(at, "capture scale* -- ./target/release/app");
    let scale = replayed(at, "");
    let scale: Vec<_> = scale
        .iter()
        .filter(|(name, _)| name.starts_with("scale"))
        .collect();
    assert!(
        !scale.is_empty() && scale.iter().all(|(_, found)| found.0 == "exact"),
        "{scale:?}"
    );
    // Other flags, in rustc's words.
    let native = replayed(at, "-C target-cpu=x86-64-v3 -C opt-level=2");
    for (name, (verdict, _)) in &native {
        assert!(
            verdict == "exact" || verdict == "tolerance",
            "{name}: {verdict}"
        );
    }
    assert!(
        native.values().any(|(_, code)| *code == Some(false)),
        "{native:?}"
    );
    refused(
        at,
        "replay kern::relax* --flags '-C panic=abort'",
        "changes nothing of a replay",
    );
}

#[test]
fn rust_is_tried_and_linked() {
    let directory = directory_with(WORKSPACE);
    let at = directory.path();
    assert!(
        cargo(at, "build --release")
            .status()
            .expect("cere runs")
            .success()
    );
    let command = "./target/release/app";
    succeed(at, &*format!("profile -- {command}"));
    succeed(
        at,
        &*format!("capture kern::relax* kern::dynamic* -- {command}"),
    );
    let verdict = |from: &str, to: &str| {
        assert!(KERN.contains(from), "{from}");
        // A line more: places in the source move.
        let edited = format!("// edited\n{}", KERN.replace(from, to));
        write(at, &[("kern/src/lib.rs", &edited)]);
        let all = parsed(&run(at, "try kern::relax* --json --reps 3"));
        write(at, &[("kern/src/lib.rs", KERN)]);
        all[0].clone()
    };
    let sum = "0.25 * (grid[i - 1] + grid[i + 1] + grid[i - w] + grid[i + w])";
    let slices = "for x in 1..w - 1 {";
    let right = verdict(
        sum,
        "{ let s = grid[i - 1] + grid[i + 1]; 0.25 * (s + grid[i - w] + grid[i + w]) }",
    );
    assert_eq!(right["verdict"], "exact", "{right}");
    let wrong = verdict(slices, "for x in 1..w - 2 {");
    assert_eq!(wrong["verdict"], "different", "{wrong}");
    let named = |edit: &Value| edit["wrong"]["first"].to_string();
    has(&named(&wrong), "lib.rs");
    // A file of the same name in the source's place.
    write(
        at,
        &[(
            "new/lib.rs",
            &KERN.replace(
                sum,
                "0.25 * (grid[i + 1] + grid[i - 1] + grid[i - w] + grid[i + w])",
            ),
        )],
    );
    let other = parsed(&run(
        at,
        "try kern::relax* --json --reps 3 --source new/lib.rs",
    ));
    assert_eq!(other[0]["verdict"], "exact", "{other}");

    write(
        at,
        &[(
            "flags",
            "version = 1\n[[region]]\nname = \"kern::relax@lib.rs:11\"\nflags = \"-O3 -march=x86-64-v3\"\n",
        )],
    );
    let linked = run(
        at,
        &*format!("hybrid -o tuned --flags-file flags --rounds 1 --no-levels -- {command}"),
    );
    if linked.status.success() {
        assert_eq!(
            output_of(&at.join("tuned")),
            output_of(&at.join("target/release/app"))
        );
    } else {
        panic!("{}{}", text(&linked.stdout), text(&linked.stderr));
    }
}

#[test]
fn rust_that_is_left_alone_says_so() {
    let directory = directory_with(&[(
        "k.rs",
        "fn main() { let mut s = 0u64; for i in 0..std::env::args().count() as u64 * 1000 { s = s * 3 + i; } println!(\"{s}\"); }\n",
    )]);
    let at = directory.path();
    let said = |line: &str| text(&succeed(at, &["instrument", "--", "sh", "-ec", line]).stderr);
    // What panics at once has no way out for an exception.
    said("rustc -O -C panic=abort k.rs -o k");
    has(&text(&succeed(at, "regions").stdout), "k::main@k.rs:1");
    // Unstable features stay refused, though the pass needs one of the compiler's.
    write(
        at,
        &[("n.rs", "#![feature(core_intrinsics)]\nfn main() {}\n")],
    );
    let output = run(at, &["instrument", "--", "rustc", "n.rs"]);
    assert!(!output.status.success());
    has(&text(&output.stderr), "error");
    // A compiler of another LLVM: only what it says of itself counts.
    let path = at.join("other");
    write(
        &path,
        &[(
            "rustc",
            "#!/bin/sh\ncase \"$*\" in -vV) echo 'rustc 1.70.0'; echo 'LLVM version: 16.0.2';; *) echo compiled; esac\n",
        )],
    );
    crate::common::make_executable(&path.join("rustc"));
    let mut command = cere(at, &["instrument", "--", "rustc", "k.rs"]);
    command.env(
        "PATH",
        format!(
            "{}:{}",
            path.display(),
            std::env::var("PATH").unwrap_or_default()
        ),
    );
    let output = command.output().expect("cere runs");
    has(&text(&output.stderr), "its LLVM is 16.0.2");
}

const C: &str = r#"
#include "w.h"
#include <stdio.h>
#include <stdlib.h>
double *a;
__attribute__((noinline)) double work(int n) {
    double s = 0;
    for (int t = 0; t < 20; t++)
        for (int i = 1; i < n - 1; i++) { a[i] = W * (a[i - 1] + a[i] + a[i + 1]); s += a[i]; }
    return s;
}
int main(void) {
    int n = 5000;
    a = calloc(n, sizeof *a);
    for (int i = 0; i < n; i++) a[i] = i % 13;
    double s = 0;
    for (int k = 0; k < 30; k++) s += work(n);
    printf("%.15g\n", s);
}
"#;

const CXX: &str = r#"
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
template <class T> struct Grid {
    std::vector<T> v;
    __attribute__((noinline)) T smooth() {
        T s = 0;
        for (size_t i = 1; i + 1 < v.size(); i++) { v[i] = (v.at(i - 1) + v.at(i) + v.at(i + 1)) / 3; s += v[i]; }
        return s;
    }
};
__attribute__((noinline)) int parse(const std::vector<std::string> &words) {
    std::map<std::string, int> seen;
    int bad = 0;
    for (auto &w : words) {
        try { if (w.size() % 5 == 4) throw std::runtime_error(w); seen[w]++; }
        catch (const std::exception &) { bad++; }
    }
    return bad + seen.size();
}
int main() {
    Grid<double> g;
    for (int i = 0; i < 20000; i++) g.v.push_back(i % 17);
    double s = 0;
    for (int k = 0; k < 40; k++) s += g.smooth();
    std::vector<std::string> words;
    for (int i = 0; i < 4000; i++) words.push_back("w" + std::to_string(i * i % 907));
    printf("%.12g %d\n", s, parse(words));
}
"#;

#[test]
fn front_ends_of_other_clangs() {
    for version in [14, 16, 19] {
        let directory = directory_with(&[("k.c", C), ("w.h", "#define W 0.33\n"), ("m.cpp", CXX)]);
        let at = directory.path();
        let name = format!("clang-{version}");
        let lines = "$CC -O2 -MMD -c k.c -o k.o\n$CC k.o -o k\n$CXX -O2 m.cpp -o m\n";
        let output = succeed(
            at,
            &["instrument", "--compiler", &name, "--", "sh", "-ec", lines],
        );
        has(&text(&output.stderr), &format!("version {version}."));
        let rule = std::fs::read_to_string(at.join("k.d")).expect("dependencies");
        assert!(rule.starts_with("k.o: k.c w.h"), "{rule}");
        let names = exact(at, "./k");
        assert!(
            names.iter().any(|name| name.starts_with("work@k.c:8")),
            "{names:?}"
        );
        exact(at, "./m");
        // Headers count as sources, and edits are read by the same front end.
        write(at, &[("w.h", "#define W 0.34\n")]);
        let tried = parsed(&run(at, "try work* --json --reps 3"));
        assert_eq!(tried[0]["verdict"], "different", "{name}: {tried}");
        let unit = json(at, "regions --json");
        assert!(unit.to_string().contains("k.c"), "{unit}");
    }
    let directory = directory_with(&[("k.c", C)]);
    refused(directory.path(), "instrument --compiler gcc-12 -- true", "");
    refused(
        directory.path(),
        "instrument --compiler no-such-clang -- true",
        "not in PATH",
    );
}

#[test]
fn standard_library_of_another_clang() {
    let directory = directory_with(&[("m.cpp", CXX)]);
    let at = directory.path();
    let lines = "$CXX -stdlib=libc++ -O2 m.cpp -o m\n";
    succeed(
        at,
        &[
            "instrument",
            "--compiler",
            "clang-16",
            "--",
            "sh",
            "-ec",
            lines,
        ],
    );
    exact(at, "./m");
}

#[test]
fn bitcode_as_input() {
    let directory = directory_with(&[("k.c", C), ("w.h", "#define W 0.33\n")]);
    let at = directory.path();
    let made = Command::new("sh")
        .args(["-ec", "for k in 14 16 19; do clang-$k -O2 -g -emit-llvm -Xclang -disable-llvm-passes -c k.c -o k$k.bc; done\n\
            clang-22 -O2 -S -emit-llvm -Xclang -disable-llvm-passes k.c -o k.ll\ncp k14.bc late.o\nhead -c 300 k14.bc > half.bc\n"])
        .current_dir(at)
        .status();
    assert!(made.expect("a shell").success());
    let lines = "$CC -O2 k14.bc -o k14\n$CC -O2 -c k16.bc -o k16.o\n$CC k16.o -o k16\n$CC -O2 -x ir k19.bc -o k19\n$CC -O2 k.ll -o k\n$CC -O2 late.o -o late\n";
    instrument(at, lines);
    let expected = output_of(&at.join("k"));
    for program in ["k14", "k16", "k19", "k", "late"] {
        assert_eq!(output_of(&at.join(program)), expected, "{program}");
        let names = exact(at, &format!("./{program}"));
        assert!(
            names
                .iter()
                .all(|name| name.contains("k.c:") || name.contains("k:")),
            "{names:?}"
        );
    }
    // What is linked again takes the code, whatever the build had in its place.
    for program in ["k14", "k19", "late"] {
        let names = exact(at, &format!("./{program}"));
        let codelet = names.iter().find(|name| name.starts_with("work@"));
        let (region, _) = codelet.and_then(|n| n.rsplit_once(':')).expect("a name");
        let flags = format!("version = 1\n[[region]]\nname = \"{region}\"\nflags = \"-O1\"\n");
        write(at, &[("flags", &flags)]);
        let line = "hybrid -o h --flags-file flags --rounds 1 --no-levels";
        succeed(at, &*format!("{line} -- ./{program}"));
        assert_eq!(output_of(&at.join("h")), expected, "{program}");
    }
    // Damaged input is the compiler's error, once.
    let output = run(
        at,
        &[
            "instrument",
            "--",
            "sh",
            "-ec",
            "$CC -O2 -c half.bc -o half.o",
        ],
    );
    assert!(!output.status.success());
    let said = text(&output.stderr);
    has(&said, "half.bc");
    assert!(!said.contains("panicked"), "{said}");
}

const UNSET: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct value { char tag; long rest[5]; };
struct value *all[4000];
__attribute__((noinline)) void make(struct value *to, int tag) {
    struct value v;
    v.tag = tag;
    if (tag == 3) v.rest[0] = tag;
    *to = v;
}
__attribute__((noinline)) long fill(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        all[i] = malloc(sizeof(struct value));
        make(all[i], i % 5);
        sum += all[i]->tag;
    }
    return sum;
}
int main(void) {
    long s = 0;
    for (int k = 0; k < 5; k++) s += fill(4000);
    printf("%ld\n", s);
}
"#;

#[test]
fn what_nobody_set_is_no_difference() {
    let directory = directory_with(&[("u.c", UNSET)]);
    let at = directory.path();
    instrument(at, "$CC -O0 u.c -o u");
    succeed(at, "profile -- ./u");
    succeed(at, "capture fill* --invocation 2 -- ./u");
    let replay = json(at, "replay fill* --json --reps 3");
    assert_eq!(replay["verdict"], "exact", "{replay}");
    let masked = replay["comparison"]["masked"].to_string();
    has(&masked, "copied without having been set");
    // What is set counts.
    let verdict = |from: &str, to: &str| {
        assert!(UNSET.contains(from), "{from}");
        write(at, &[("u.c", &UNSET.replace(from, to))]);
        let all = parsed(&run(at, "try fill* --json --reps 3"));
        all[0]["verdict"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(verdict("i % 5", "i % 4"), "different");
    // A wrong edit that reads what it has not set is no copy of the captured code's.
    assert_eq!(
        verdict("long sum = 0;\n    for", "long sum = 0, other;\n    for").as_str(),
        "exact"
    );
    assert_eq!(
        verdict("v.tag = tag;", "v.tag = (char)v.rest[2];"),
        "different"
    );
}

const FORTRAN: &str = "program p
  use mpi
  implicit none
  integer :: ierr, rank, i, k
  real(8) :: a(5000), s, all
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  do i = 1, 5000
    a(i) = mod(i * 5 + rank, 13)
  end do
  s = 0
  do k = 1, 200
    do i = 2, 4999
      a(i) = 0.25d0 * (a(i - 1) + 2 * a(i) + a(i + 1))
    end do
    s = s + a(77)
  end do
  call MPI_Allreduce(s, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(F18.9)', all
  call MPI_Finalize(ierr)
end program
";

#[test]
fn modules_of_gfortran() {
    for library in ["openmpi", "mpich"] {
        let header = FORTRAN.replace(
            "  use mpi\n  implicit none\n",
            "  implicit none\n  include 'mpif.h'\n",
        );
        let only = FORTRAN.replace("use mpi\n", "use mpi, only: MPI_Init, MPI_Comm_rank, MPI_Allreduce, MPI_Finalize, MPI_COMM_WORLD, MPI_DOUBLE_PRECISION, MPI_SUM\n");
        let directory = directory_with(&[("p.f90", FORTRAN), ("h.f90", &header), ("o.f90", &only)]);
        let at = directory.path();
        let output = instrument(
            at,
            &format!("for p in p h o; do mpif90.{library} -O2 $p.f90 -o $p; done"),
        );
        has(&text(&output.stderr), "the module mpi is made from");
        has(&text(&succeed(at, "regions").stdout), "p.f90:");
    }
    // A module of gfortran's that nothing is known of, and its source.
    let module =
        "module shared\n  use base\n  real(8), parameter :: factor = two * 0.125d0\nend module\n";
    let base = "module base\n  real(8), parameter :: two = 2\nend module\n";
    let user = "program u\n  use shared\n  real(8) :: a(1000)\n  a = 1\n  do i = 2, 1000\n    a(i) = a(i) + factor * a(i - 1)\n  end do\n  print *, a(1000)\nend program\n";
    let directory = directory_with(&[
        ("u.f90", user),
        ("gnu/zz.f90", base),
        ("gnu/shared.f90", module),
    ]);
    let at = directory.path();
    let Ok(gfortran) = Command::new("sh")
        .args(["-c", "command -v gfortran-12 gfortran"])
        .output()
    else {
        panic!("a shell")
    };
    let named = text(&gfortran.stdout);
    let gfortran = named
        .lines()
        .next()
        .expect("setup installs gfortran")
        .to_owned();
    let made = Command::new(gfortran)
        .args(["-c", "zz.f90", "shared.f90"])
        .current_dir(at.join("gnu"))
        .status();
    assert!(made.expect("gfortran runs").success());
    let line = "$FC -O2 -Ignu u.f90 -o u";
    let output = run(at, &["instrument", "--", "sh", "-ec", line]);
    assert!(!output.status.success());
    has(
        &text(&output.stderr),
        "the module shared (gnu/shared.mod) was compiled by gfortran",
    );
    succeed(
        at,
        &[
            "instrument",
            "--module-source",
            "gnu",
            "--",
            "sh",
            "-ec",
            line,
        ],
    );
    has(&text(&succeed(at, "regions").stdout), "u.f90:5");
    refused(
        at,
        "instrument --module-source . --module-source nowhere -- true",
        "cannot read",
    );
}

const D: &str = "import std.stdio;
struct Grid { double[] v; size_t w, h; }
void relax(ref const Grid a, ref Grid b) {
    foreach (y; 1 .. a.h - 1)
        foreach (x; 1 .. a.w - 1) {
            auto i = y * a.w + x;
            b.v[i] = 0.25 * (a.v[i - 1] + a.v[i + 1] + a.v[i - a.w] + a.v[i + a.w]);
        }
}
void main() {
    auto a = Grid(new double[40000], 200, 200), b = Grid(new double[40000], 200, 200);
    foreach (i, ref x; a.v) x = (i * 37) % 101;
    b.v[] = a.v[];
    foreach (k; 0 .. 50) { relax(a, b); relax(b, a); }
    double s = 0; foreach (x; a.v) s += x;
    writefln(\"%.6f\", s);
}
";

#[test]
fn d_by_ldc() {
    let directory = directory_with(&[("hot.d", D)]);
    let at = directory.path();
    let output = instrument(
        at,
        "ldc2 -O3 -release hot.d -of=hot\nldc2 -O3 -release -c hot.d -of=hot.o\nldc2 hot.o -of=two",
    );
    has(&text(&output.stderr), "optimised by LLVM 22");
    has(&text(&succeed(at, "regions").stdout), "hot.relax@hot.d:4");
    assert_eq!(output_of(&at.join("hot")), output_of(&at.join("two")));
    let names = exact(at, "./hot --DRT-gcopt=parallel:0");
    assert!(
        names.iter().any(|name| name.starts_with("hot.relax@")),
        "{names:?}"
    );
    write(at, &[("hot.d", &D.replace("0.25", "0.26"))]);
    let tried = parsed(&run(at, "try hot.relax* --json --reps 3"));
    assert_eq!(tried[0]["verdict"], "different", "{tried}");
}

const ZIG: &str = "const std = @import(\"std\");
fn relax(src: []const f64, dst: []f64, w: usize, h: usize) void {
    var y: usize = 1;
    while (y < h - 1) : (y += 1) {
        var x: usize = 1;
        while (x < w - 1) : (x += 1) {
            const i = y * w + x;
            dst[i] = 0.25 * (src[i - 1] + src[i + 1] + src[i - w] + src[i + w]);
        }
    }
}
var a: [40000]f64 = undefined;
var b: [40000]f64 = undefined;
pub fn main() void {
    for (&a, 0..) |*p, i| p.* = @floatFromInt((i * 37) % 101);
    b = a;
    var k: usize = 0;
    while (k < 100) : (k += 1) {
        relax(&a, &b, 200, 200);
        relax(&b, &a, 200, 200);
    }
    var s: f64 = 0;
    for (a) |v| s += v;
    std.debug.print(\"{d:.6}\\n\", .{s});
}
";

/// The directory of the compiler that `scripts/zig` has put beside the build.
fn zig() -> PathBuf {
    let place = built().with_file_name("../zig/compiler");
    let text = std::fs::read_to_string(&place);
    PathBuf::from(
        text.unwrap_or_else(|e| panic!("{}: {e}: run scripts/zig", place.display()))
            .trim(),
    )
}

#[test]
fn zig_by_bitcode() {
    let directory = directory_with(&[("hot.zig", ZIG)]);
    let at = directory.path();
    let path = format!(
        "{}:{}",
        zig().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut command = cere(
        at,
        &[
            "instrument",
            "--",
            "zig",
            "build-exe",
            "hot.zig",
            "-O",
            "ReleaseFast",
        ],
    );
    let output = command.env("PATH", &path).output().expect("cere runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    has(&text(&output.stderr), "linked to the C library");
    has(&text(&succeed(at, "regions").stdout), "relax@hot.zig:3");
    let names = exact(at, "./hot");
    assert!(
        names.iter().any(|name| name.starts_with("relax@hot.zig:3")),
        "{names:?}"
    );
}

#[test]
fn languages_that_emit_c() {
    let nim = "proc relax(a: seq[float], b: var seq[float], w, h: int) =\n  for y in 1 ..< h - 1:\n    for x in 1 ..< w - 1:\n      let i = y * w + x\n      b[i] = 0.25 * (a[i - 1] + a[i + 1] + a[i - w] + a[i + w])\n\
        var a = newSeq[float](40000)\nfor i in 0 ..< a.len: a[i] = float((i * 37) mod 101)\nvar b = a\nfor k in 0 ..< 50:\n  relax(a, b, 200, 200)\n  relax(b, a, 200, 200)\nvar s = 0.0\nfor x in a: s += x\necho s\n";
    let directory = directory_with(&[("hot.nim", nim)]);
    let at = directory.path();
    instrument(at, "nim c -d:release --nimcache:cache hot.nim");
    has(&text(&succeed(at, "regions").stdout), "relax__hot");
    let names = exact(at, "./hot");
    assert!(
        names.iter().any(|name| name.starts_with("relax")),
        "{names:?}"
    );
}

const PYX: &str = "# cython: boundscheck=False, wraparound=False, language_level=3
def smooth(double[:] a, int steps):
    cdef int i, k, n = a.shape[0]
    cdef double s = 0
    for k in range(steps):
        for i in range(1, n - 1):
            a[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1]
    for i in range(n):
        s += a[i]
    return s
";

#[test]
fn extensions_of_an_interpreter() {
    let script = "import array, ext\na = array.array('d', [((i * 37) % 101) * 0.5 for i in range(20000)])\nt = 0.0\nfor r in range(20):\n    t = ext.smooth(a, 20)\nprint('%.9f' % t)\n";
    let directory = directory_with(&[("ext.pyx", PYX), ("run.py", script)]);
    let at = directory.path();
    instrument(
        at,
        "cython3 -3 ext.pyx\n$CC -O2 -fPIC -shared $(/usr/bin/python3-config --includes) ext.c -o ext.so",
    );
    let names = exact(at, "/usr/bin/python3 run.py");
    assert!(
        names.iter().any(|name| name.contains("smooth@ext.c")),
        "{names:?}"
    );
    // Without one there is nothing.
    refused(
        at,
        &["profile", "--", "/usr/bin/python3", "-c", "print(1)"],
        "code in Python is interpreted",
    );
}
