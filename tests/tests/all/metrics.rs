//! `cere metrics`: closed forms, what has to hold of every vector, and what is refused. No clock decides anything here.

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::{capture, instrumented, refused};
use cere_tests::tools::{cere, json, output, succeed, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const KERNELS: &str = include_str!("../../metrics/kernels.c");
/// As in the kernels.
const N: f64 = 4096.0;
const ROUNDS: f64 = 16.0;

/// A directory with the program `source`, built with `flags`, and codelets of all regions.
fn captured(source: &str, flags: &str) -> Result<tempfile::TempDir> {
    captured_of("clang-22", "main.c", source, flags)
}

fn captured_of(compiler: &str, file: &str, source: &str, flags: &str) -> Result<tempfile::TempDir> {
    let build = format!("{compiler} {flags} {file} -o program -lm");
    let directory = instrumented(&[(file, source)], &build)?;
    let mut capture = capture(directory.path(), &["*", "--invocation", "1"]);
    succeed(capture.env("OMP_NUM_THREADS", "2"))?;
    Ok(directory)
}

/// What `cere metrics --json` says, by the function of the region.
fn metrics(directory: &Path, arguments: &[&str]) -> Result<BTreeMap<String, Value>> {
    let mut command = cere(directory);
    command.args(["metrics", "--json", "*"]).args(arguments);
    let (found, run) = json(&mut command)?;
    ensure!(run.status.success(), "{command:?}\n{}", text(&run));
    let found = found.as_array().context("a list")?;
    let mut named = BTreeMap::new();
    for vector in found {
        let name = vector["codelet"].as_str().context("a name")?;
        // The kernels have one region each.
        let name = match name.split_once('@') {
            Some((function, _)) if !function.eq_ignore_ascii_case("main") => function,
            _ => name,
        };
        let before = named.insert(name.to_owned(), vector.clone());
        ensure!(before.is_none(), "{name}: two codelets");
    }
    Ok(named)
}

/// The value of a metric of a function's region.
fn value(vectors: &BTreeMap<String, Value>, function: &str, metric: &str) -> Result<f64> {
    let vector = vectors
        .get(function)
        .with_context(|| format!("no {function}"))?;
    vector["metrics"][metric]
        .as_f64()
        .with_context(|| format!("{function}: no {metric}: {}", vector["missing"][metric]))
}

/// What has to hold of every vector.
fn consistent(vector: &Value) -> Result<()> {
    let name = &vector["codelet"];
    let metrics = vector["metrics"].as_object().context("metrics")?;
    let known = |metric: &str| metrics[metric].as_f64();
    ensure!(vector["verdict"] == "exact", "{vector}");
    ensure!(metrics.len() == cere_count::metrics::METRICS.len());
    for metric in cere_count::metrics::METRICS.iter() {
        let value = metrics.get(metric.name).context(metric.name)?;
        let why = &vector["missing"][metric.name];
        ensure!(
            value.is_number() != why.is_string(),
            "{name} {}",
            metric.name
        );
        // Ratios of two kinds of things may exceed 1.
        let share = metric.unit == "1"
            && !metric.name.ends_with("_ratio")
            && !["loads_per_store", "register_uses", "l1_replacement"].contains(&metric.name);
        if let Some(x) = value.as_f64() {
            ensure!(x >= 0.0, "{name} {}: {x}", metric.name);
            ensure!(!share || x <= 1.0 + 1e-9, "{name} {}: {x}", metric.name);
        }
    }
    let mix = metrics.iter().filter(|(name, _)| name.starts_with("mix_"));
    let sum: f64 = mix.filter_map(|(_, value)| value.as_f64()).sum();
    ensure!((sum - 1.0).abs() < 1e-9, "{name}: shares add up to {sum}");
    let rising = |prefix: &str, steps: &[u32]| -> Vec<String> {
        steps.iter().map(|n| format!("{prefix}_{n}")).collect()
    };
    for steps in [
        rising("ilp", &[32, 64, 128, 256, 512]),
        rising("dependence", &[1, 2, 4, 8, 16]),
        rising("reuse", &[8, 64, 512, 4096, 16384, 65536]),
        rising("stride_load", &[0, 8, 64, 512]),
        rising("stride_any_store", &[0, 8, 64]),
        ["ilp_512", "ilp_unlimited"].map(str::to_owned).into(),
        ["reuse_same", "reuse_8"].map(str::to_owned).into(),
        ["model_port_1", "model_port_most"]
            .map(str::to_owned)
            .into(),
    ] {
        let values: Vec<f64> = steps.iter().filter_map(|step| known(step)).collect();
        ensure!(values.is_sorted(), "{name}: {steps:?} {values:?}");
    }
    for window in [32, 64, 128, 256, 512] {
        let ilp = known(&format!("ilp_{window}")).context("a window")?;
        ensure!(ilp >= 0.99 && ilp <= f64::from(window), "{name}: {ilp}");
    }
    let coverage = known("model_coverage").unwrap_or(0.0);
    ensure!(coverage > 0.95, "{name}: the model covers {coverage}");
    Ok(())
}

/// `found` is `expected` within what the few instructions around the loop add.
fn near(found: f64, expected: f64, what: &str) -> Result<()> {
    let most = 0.01 * expected.abs().max(0.2);
    ensure!(
        (found - expected).abs() <= most,
        "{what}: {found}, not {expected}"
    );
    Ok(())
}

/// Cycles of an iteration of a loop, by llvm-mca itself.
fn cycles(body: &str) -> Result<f64> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("loop.s"), body)?;
    let mut command = Command::new("llvm-mca-22");
    command.current_dir(directory.path()).args([
        "-mtriple=x86_64",
        "-mcpu=icelake-server",
        "-iterations=10000",
        "loop.s",
    ]);
    let printed = String::from_utf8(succeed(&mut command)?.stdout)?;
    let total = printed
        .lines()
        .find_map(|l| l.strip_prefix("Total Cycles:"))
        .context("cycles")?;
    Ok(total.trim().parse::<f64>()? / 10_000.0)
}

fn entropy(p: f64) -> f64 {
    -p * p.log2() - (1.0 - p) * (1.0 - p).log2()
}

#[test]
fn kernels_have_closed_forms() -> Result<()> {
    let directory = captured(KERNELS, "-O1 -fno-unroll-loops")?;
    let vectors = metrics(directory.path(), &["--no-time"])?;
    for vector in vectors.values() {
        consistent(vector)?;
    }
    let expect = |function: &str, metric: &str, expected: f64| {
        let found = value(&vectors, function, metric)?;
        near(found, expected, &format!("{function} {metric}"))
    };
    // An addition for each element, each after the one before; addition, increment, comparison, branch.
    expect("serial", "instructions", 4.0 * N)?;
    expect("serial", "float_chain", 1.0)?;
    expect("serial", "ilp_512", 4.0)?;
    expect("serial", "flops_per_instruction", 0.25)?;
    expect("serial", "stride_load_8", 1.0)?;
    expect("serial", "stride_regular", 1.0)?;
    expect("serial", "accesses_per_line", 8.0)?;
    expect("serial", "footprint_density", 64.0)?;
    expect("serial", "footprint_lines", N / 8.0)?;
    expect("serial", "sd_share", 0.25)?;
    let body = "\taddsd x(,%rax,8), %xmm0\n\tincq %rax\n\tcmpq %rax, %rcx\n\tjne x\n";
    expect("serial", "model_cycles", N * cycles(body)?)?;
    ensure!(value(&vectors, "serial", "model_dependency_stall")? > 0.5);
    // Four chains.
    expect("four", "float_chain", 0.25)?;
    expect("four", "model_cycles", N / 4.0 * cycles(body)?)?;
    // No element waits for another: only the counter does, so that a window holds 32 iterations of one cycle each at most.
    ensure!(value(&vectors, "scale", "ilp_128")? > 4.5);
    ensure!(value(&vectors, "scale", "memory_dependence")? < 0.01);
    expect("scale", "loads_per_store", 1.0)?;
    expect("scale", "footprint_written", 0.5)?;
    expect("scale", "reuse_cold", 1.0 / 8.0)?;
    // Each load reads what the iteration before stored.
    expect("carry", "memory_dependence", 1.0)?;
    expect("carry", "float_chain", 1.0)?;
    ensure!(value(&vectors, "carry", "ilp_512")? < 4.0);
    // A node is a line, and the next is 1543 away.
    expect("chase", "stride_load_4096", 0.0)?;
    expect("chase", "reuse_cold", 1.0)?;
    expect("chase", "footprint_density", 8.0)?;
    ensure!(value(&vectors, "chase", "stride_regular")? < 0.5);
    // The same lines again after all others.
    expect("sweep", "reuse_cold", 1.0 / ROUNDS)?;
    expect("sweep", "reuse_512", 0.0)?;
    expect("sweep", "reuse_4096", 1.0 - 1.0 / ROUNDS)?;
    expect("sweep", "reuse_mean", (N / 4.0).log2())?;
    expect("columns", "stride_load_64", 0.0)?;
    expect("columns", "stride_load_512", 1.0)?;
    expect("columns", "footprint_pages", N / 8.0)?;
    // The coin and the loop; what is around it is executed once.
    let mut state: u64 = 1;
    let tosses: Vec<bool> = (0..N as usize)
        .map(|_| {
            state = (state * 1_103_515_245 + 12_345) & 0x7fff_ffff;
            (state >> 16).is_multiple_of(4)
        })
        .collect();
    let heads = tosses.iter().filter(|t| **t).count() as f64 / N;
    let turns = tosses.windows(2).filter(|w| w[0] != w[1]).count() as f64 / N;
    let rest = entropy(1.0 / N);
    expect("toss", "branch_entropy", (entropy(heads) + rest) / 2.0)?;
    expect("toss", "branch_turns", turns / 2.0)?;
    expect("toss", "branch_bias", (1.0 - heads + 1.0) / 2.0)?;
    expect("toss", "branch_hard", 0.5)?;
    Ok(())
}

#[test]
fn vectors_are_consistent_and_reproducible() -> Result<()> {
    let directory = captured(KERNELS, "-O3 -mavx2 -mfma -ffast-math")?;
    let at = directory.path();
    let first = metrics(at, &["--no-time"])?;
    let second = metrics(at, &["--no-time"])?;
    ensure!(first == second, "two runs differ");
    for vector in first.values() {
        consistent(vector)?;
    }
    ensure!(value(&first, "serial", "vector_ratio_add")? > 0.9);
    ensure!(value(&first, "serial", "vector_share_256")? > 0.2);
    ensure!(value(&first, "serial", "flops_per_float_instruction")? > 3.5);
    ensure!(value(&first, "serial", "vector_load_share")? > 0.9);
    // Flags change the code, not the work.
    let scalar = metrics(
        at,
        &["--no-time", "--flags", "-fno-vectorize -fno-slp-vectorize"],
    )?;
    ensure!(value(&scalar, "serial", "vector_share_256")? < 0.01);
    let flops = |vectors| -> Result<f64> {
        Ok(value(vectors, "scale", "instructions")?
            * value(vectors, "scale", "flops_per_instruction")?)
    };
    near(flops(&scalar)?, flops(&first)?, "work")?;
    // A part of it tells nearly the same of a loop whose iterations are alike.
    let part = metrics(at, &["--no-time", "--budget", "20000", "--flags", "-O1"])?;
    let whole = metrics(at, &["--no-time", "--flags", "-O1"])?;
    ensure!(
        part["sweep"]["pieces"].as_u64() > Some(1),
        "{}",
        part["sweep"]
    );
    for metric in ["ilp_32", "ilp_512", "stride_load_64", "float_chain"] {
        let found = value(&part, "sweep", metric)?;
        near(found, value(&whole, "sweep", metric)?, metric)?;
    }
    // With a time, and as a table.
    let timed = metrics(at, &["--reps", "3"])?;
    let seconds = value(&timed, "sweep", "seconds")?;
    let work =
        value(&timed, "sweep", "instructions")? * value(&timed, "sweep", "flops_per_instruction")?;
    near(
        value(&timed, "sweep", "mflops")?,
        1e-6 * work / seconds,
        "mflops",
    )?;
    let table = succeed(cere(at).args(["metrics", "*", "--csv", "--no-time"]))?;
    let table = String::from_utf8(table.stdout)?;
    let rows: Vec<&str> = table.split_terminator("\r\n").collect();
    ensure!(rows.len() == 1 + first.len(), "{table}");
    let width = 9 + cere_count::metrics::METRICS.len();
    for row in rows {
        ensure!(row.split(',').count() == width, "{row}");
    }
    Ok(())
}

#[test]
fn teams_have_vectors() -> Result<()> {
    let source = "#include <stdio.h>\n#define N 20000\ndouble x[N], y[N];\nint main(void) {\n\
                  #pragma omp parallel for schedule(static)\n  for (int i = 0; i < N; i++) y[i] = 2 * x[N - 1 - i] + i;\n\
                  printf(\"%g\\n\", y[7]);\n  return 0;\n}\n";
    let directory = captured(source, "-O1 -fopenmp")?;
    let vectors = metrics(directory.path(), &["--no-time"])?;
    let vector = vectors
        .values()
        .find(|v| v["threads"] == 2)
        .context("a team")?;
    ensure!(vector["verdict"] == "exact", "{vector}");
    let metric = |name: &str| vector["metrics"][name].as_f64().context("a metric");
    near(metric("loads_per_store")?, 1.0, "loads_per_store")?;
    // Each thread goes through its own half.
    near(metric("stride_load_8")?, 1.0, "stride_load_8")?;
    near(
        metric("footprint_lines")?,
        2.0 * 20_000.0 / 8.0,
        "footprint_lines",
    )?;
    near(metric("reuse_cold")?, 1.0 / 8.0, "reuse_cold")?;
    Ok(())
}

#[test]
fn the_model_knows_the_code_of_all_languages() -> Result<()> {
    let fortran = "program main\n  real(8) :: a(3000), b(3000), s\n  integer :: i, k\n  do i = 1, 3000\n    a(i) = mod(i, 7)\n  end do\n\
                   \x20 s = 0\n  do k = 1, 20\n    call step(a, b, s)\n  end do\n  print *, s\ncontains\n\
                   \x20 subroutine step(a, b, s)\n    real(8) :: a(:), b(:), s\n    integer :: i\n    do i = 2, size(a) - 1\n\
                   \x20     b(i) = a(i - 1) + a(i) * a(i + 1)\n      if (b(i) > 5) s = s + sqrt(b(i))\n    end do\n\
                   \x20 end subroutine\nend program\n";
    let cpp = "#include <cstdio>\n#include <map>\n#include <vector>\nstruct Shape { virtual double area() const = 0; double side = 2; };\n\
               struct Square : Shape { double area() const override { return side * side; } };\n\
               struct Disc : Shape { double area() const override { return 3.14 * side * side; } };\n\
               __attribute__((noinline)) double sum(const std::vector<Shape *> &all) {\n  double s = 0;\n\
               \x20 for (auto *one : all) s += one->area();\n  return s;\n}\n\
               int main() {\n  std::vector<Shape *> all;\n  for (int i = 0; i < 3000; i++)\n\
               \x20   if (i % 3) all.push_back(new Square); else all.push_back(new Disc);\n\
               \x20 std::printf(\"%g\\n\", sum(all));\n}\n";
    for (compiler, file, source, flags) in [
        ("flang-22", "main.f90", fortran, "-O2"),
        ("flang-22", "main.f90", fortran, "-O3 -mavx2 -g"),
        ("clang++-22", "main.cpp", cpp, "-O2 -g"),
        ("clang++-22", "main.cpp", cpp, "-O0"),
    ] {
        let directory = captured_of(compiler, file, source, flags)?;
        let vectors = metrics(directory.path(), &["--no-time"])?;
        ensure!(
            vectors.len() > 1,
            "{compiler} {flags}: {} codelets",
            vectors.len()
        );
        for vector in vectors.values() {
            consistent(vector).with_context(|| format!("{compiler} {flags}"))?;
        }
    }
    Ok(())
}

#[test]
fn what_is_wrong_has_a_name() -> Result<()> {
    let directory = captured(KERNELS, "-O1")?;
    let at = directory.path();
    for (arguments, part) in [
        (&[][..], "CODELET"),
        (&["nothing@*"], "nothing@*"),
        (&["serial@*", "--geometry", "none"], "caches"),
        (&["serial@*", "--geometry", "no-such"], "no-such"),
        (&["serial@*", "--budget", "0"], "--budget"),
        (&["serial@*", "--list"], "--list"),
        (&["serial@*", "--flags", "-O9x"], "-O9x"),
    ] {
        refused(cere(at).arg("metrics").args(arguments), part)?;
    }
    // The processor's counters, or why there are none.
    let run = output(cere(at).args(["metrics", "serial@*", "--hardware", "--json", "--no-time"]))?;
    let message = String::from_utf8_lossy(&run.stderr);
    if run.status.success() {
        let found: Value = serde_json::from_slice(&run.stdout)?;
        ensure!(found[0]["hardware"]["events"].is_array(), "{found}");
    } else {
        ensure!(
            message.contains("no hardware counter works"),
            "{}",
            text(&run)
        );
    }
    // Without the model's tool.
    let tools = tempfile::tempdir()?;
    for tool in ["clang-22", "ld.lld-22", "llvm-objcopy-22", "opt-22", "sh"] {
        let found = succeed(Command::new("sh").args(["-c", &format!("command -v {tool}")]))?;
        let path = String::from_utf8(found.stdout)?;
        std::os::unix::fs::symlink(path.trim(), tools.path().join(tool))?;
    }
    let mut command = cere(at);
    command.args(["metrics", "serial@*", "--no-time"]);
    let run = refused(command.env("PATH", tools.path()), "llvm-mca-22")?;
    ensure!(run.status.code() == Some(1), "{}", text(&run));
    // All of them are listed, without a store.
    let empty = tempfile::tempdir()?;
    let list = succeed(cere(empty.path()).args(["metrics", "--list"]))?;
    let list = String::from_utf8(list.stdout)?;
    for metric in cere_count::metrics::METRICS.iter() {
        ensure!(list.contains(metric.definition), "{}", metric.name);
    }
    Ok(())
}
