//! `cere count` and `cere check --counted`: closed forms, another counter of instructions, the program itself, and what is
//! refused. No clock decides anything here.

use anyhow::{Context, Result, ensure};
use cere_count::class;
use cere_count::codelet::Counted;
use cere_format::count::{Access, LOAD, STORE, Shape};
use cere_sandbox::Sandbox;
use cere_tests::prepare::{capture, codelets, instrument, instrumented, options, refused};
use cere_tests::tools::{cere, json, output, succeed, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const KERNELS: &str = include_str!("../../count/kernels.c");
const ORACLE: &str = include_str!("../../count/oracle.c");

/// Builds `KERNELS`.
fn kernels(flags: &str) -> String {
    format!("$CC {flags} -fno-math-errno main.c -o program -lm")
}

/// A directory with the program `source`, built by `build` with `$FLAGS`, and codelets of the `invocations` of its regions.
fn captured(source: (&str, &str), build: &str, invocations: &str) -> Result<tempfile::TempDir> {
    let directory = instrumented(&[source], build)?;
    succeed(&mut capture(
        directory.path(),
        &["*", "--invocation", invocations],
    ))?;
    Ok(directory)
}

/// The function of a codelet's region, and its invocation.
fn key(name: &str) -> Result<(String, u64)> {
    let function = name.split('@').next().unwrap_or(name).to_owned();
    let invocation = name.rsplit(':').next().context("an invocation")?;
    Ok((function, invocation.parse()?))
}

/// Codelets by the function of their region and their invocation.
fn files(directory: &Path) -> Result<BTreeMap<(String, u64), PathBuf>> {
    let mut found = BTreeMap::new();
    for (name, file) in codelets(directory)? {
        let old = found.insert(key(&name)?, file);
        ensure!(old.is_none(), "{name}: a function with two regions");
    }
    Ok(found)
}

fn count_command(directory: &Path, what: &str, arguments: &[&str]) -> Command {
    let mut command = cere(directory);
    command.args(["count", "--json", what]).args(arguments);
    command
}

/// What `cere count --json` says of codelets.
fn counts(directory: &Path, what: &str, arguments: &[&str]) -> Result<Vec<Value>> {
    let mut command = count_command(directory, what, arguments);
    let (found, run) = json(&mut command)?;
    ensure!(run.status.success(), "{command:?}\n{}", text(&run));
    Ok(found.as_array().context("a list of counts")?.clone())
}

/// By the function of the region and the invocation.
fn by_function(counts: &[Value]) -> Result<BTreeMap<(String, u64), &Value>> {
    counts
        .iter()
        .map(|value| Ok((key(value["codelet"].as_str().context("a name")?)?, value)))
        .collect()
}

fn number(value: &Value, keys: &[&str]) -> Result<u64> {
    let found = keys.iter().fold(value, |value, key| &value[*key]);
    found
        .as_u64()
        .with_context(|| format!("no number {keys:?} in {value}"))
}

/// Elements of the kernels' arrays in their second run; the first has half.
const N: u64 = 4096;
const D: u64 = 64;

/// What a kernel does: its work on elements of 4 and of 8 bytes, and what it reads and writes of them at -O1.
struct Law {
    function: &'static str,
    work: (u64, u64),
    loads: (u64, u64),
    stores: (u64, u64),
}

/// The closed forms of a run over `n` elements and `rows` rows of the matrices.
fn laws(n: u64, rows: u64, inner: u64) -> Vec<Law> {
    // Multiplications of the matrix kernels, and points of the stencil.
    let (products, points) = (rows * D * D, inner * (D - 2));
    let law = |function, work, loads, stores| Law {
        function,
        work,
        loads,
        stores,
    };
    vec![
        // y[i] += s * x[i]
        law("daxpy", (0, 2 * n), (0, 2 * n), (0, n)),
        law("saxpy", (2 * n, 0), (2 * n, 0), (n, 0)),
        // sum += a[i][j] * x[j]; y[i] = sum
        law("dgemv", (0, 2 * rows * D), (0, 2 * rows * D), (0, rows)),
        // sum += a[i][k] * b[k][j]; c[i][j] = sum
        law("dgemm", (0, 2 * products), (0, 2 * products), (0, rows * D)),
        // c[i][j] += a[i][k] * b[k][j], a[i][k] once for the 8 values of j
        law(
            "blocked",
            (0, 2 * products),
            (0, 2 * products + products / 8),
            (0, products),
        ),
        // Three additions of neighbours, a multiplication, a subtraction; five points are read.
        law("stencil", (0, 5 * points), (0, 5 * points), (0, points)),
        // z[i] = x[i] + s * y[i]
        law("triad", (0, 2 * n), (0, 2 * n), (0, n)),
        // y[i] = x[index_of[i]]
        law("gather", (0, 0), (n, n), (0, n)),
        // p = p->next
        law("chase", (0, 0), (0, n), (0, 0)),
        // sum += sqrt(x[i]) / (x[i] + 1): root, addition, division, addition; one load.
        law("roots", (0, 4 * n), (0, n), (0, 0)),
        // whole[i] = whole[i] * 3 + index_of[i]
        law("integers", (0, 0), (2 * n, 0), (n, 0)),
        law("reads", (0, 0), (0, n), (0, 0)),
        law("writes", (0, 0), (0, 0), (0, n)),
    ]
}

/// Flags that this machine can run.
fn vector_flags() -> &'static str {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    match cpu.contains(" avx2") && cpu.contains(" fma") {
        true => "-O3 -mavx2 -mfma",
        false => "-O2",
    }
}

#[test]
fn floating_point_work_has_closed_forms() -> Result<()> {
    for flags in ["-O1", vector_flags()] {
        let directory = captured(("main.c", KERNELS), &kernels(flags), "1,2")?;
        let found = counts(directory.path(), "*", &["--geometry", "none"])?;
        let found = by_function(&found)?;
        ensure!(found.len() == 27, "{flags}: {:?}", found.keys());
        let runs = [laws(N / 2, D / 2, (D - 2) / 2), laws(N, D, D - 2)];
        for (half, whole) in runs[0].iter().zip(&runs[1]) {
            let of = |invocation| {
                let key = (whole.function.to_owned(), invocation);
                found.get(&key).context(format!("no {key:?}"))
            };
            let mut extra = Vec::new();
            for (law, value) in [(half, of(1)?), (whole, of(2)?)] {
                let at = || format!("{flags} {}: {value}", law.function);
                ensure!(value["verdict"] == "exact", "{}", at());
                // Values that fill no vector are work all the same; only as written does it count.
                let (single, double) = law.work;
                for (kind, work) in [("f32", single), ("f64", double), ("total", single + double)] {
                    ensure!(number(value, &["flops", kind])? == work, "{kind} {}", at());
                }
                if flags != "-O1" {
                    continue;
                }
                // What the register allocator adds is known; the rest is the region's own call.
                let own = |key| -> Result<u64> {
                    Ok(number(value, &[key])? - number(value, &["spills", key])?)
                };
                let ((l4, l8), (s4, s8)) = (law.loads, law.stores);
                extra.push([
                    own("loads")?.checked_sub(l4 + l8).with_context(at)?,
                    own("load_bytes")?
                        .checked_sub(4 * l4 + 8 * l8)
                        .with_context(at)?,
                    own("stores")?.checked_sub(s4 + s8).with_context(at)?,
                    own("store_bytes")?
                        .checked_sub(4 * s4 + 8 * s8)
                        .with_context(at)?,
                ]);
            }
            if let [first, second] = &extra[..] {
                // The call is the same whatever it works on: at most 6 saved registers, the return address, and arguments.
                ensure!(first == second, "{}: {first:?} {second:?}", whole.function);
                ensure!(
                    first[0] <= 12 && first[2] <= 8,
                    "{}: {first:?}",
                    whole.function
                );
            }
        }
    }
    Ok(())
}

/// A fully associative cache of 32 KiB with least recently used replacement.
const SMALL: &str =
    r#"{"name": "small", "levels": [{"name": "L1", "size": 32768, "line": 64, "ways": 512}]}"#;

/// Instructions, reads and writes of a function, as cachegrind counts: an instruction that reads and writes an address is a
/// read.
type Work = [u64; 3];

fn add(to: &mut Work, more: Work) {
    for (to, more) in to.iter_mut().zip(more) {
        *to += more;
    }
}

/// Words of the struct that the oracle's repeated string instructions copy.
const LARGE: u64 = 60;

/// The name in the program of a function of a replay.
fn plain(name: &str) -> &str {
    let rest = name
        .strip_prefix("cere.u")
        .and_then(|rest| rest.split_once('.'));
    let number = rest.filter(|(number, _)| number.bytes().all(|b| b.is_ascii_digit()));
    let rest = number.map_or(name, |(_, rest)| rest);
    rest.strip_prefix("at.").unwrap_or(rest)
}

/// Counts the codelet in `file`, unpacked to `directory`.
fn counted<T>(directory: &Path, file: &Path, then: impl FnOnce(&Counted) -> T) -> Result<T> {
    let package = tempfile::tempdir_in(directory)?;
    cere_package::io::unpack_package(file, package.path(), 1 << 32)?;
    let options = options(directory, 1, Sandbox::none())?;
    let counted = Counted::new(package.path(), &options)?;
    Ok(then(&counted))
}

/// Work of each function of a counted codelet that ran.
fn per_function(counted: &Counted) -> BTreeMap<String, Work> {
    let mut found: BTreeMap<String, Work> = BTreeMap::new();
    for (segment, &times) in counted.code.segments.iter().zip(&counted.tally.segments) {
        if times == 0 {
            continue;
        }
        let name = &counted.code.functions[segment.function as usize].name;
        let to = found.entry(plain(name).to_owned()).or_default();
        for instruction in &segment.instructions {
            let class = class::class(counted.code.name(instruction.name));
            add(to, [times * class.instructions, 0, 0]);
        }
        let name = |access: &Access| {
            let instruction = &segment.instructions[usize::from(access.instruction)];
            counted.code.name(instruction.name)
        };
        let class_of = |access: &Access| class::class(name(access));
        let is_locked = |access: &Access| {
            class_of(access).kind == class::Kind::Atomic && !name(access).starts_with("LCMPXCHG")
        };
        for access in &segment.accesses {
            let (read, write) = (u64::from(access.is(LOAD)), u64::from(access.is(STORE)));
            match access.shape {
                // Cachegrind counts each repetition as an instruction, and the one that finds none left.
                Shape::RepeatedCopy | Shape::RepeatedSet => {
                    let words = times * LARGE;
                    add(to, [words, read * words, write * words]);
                }
                // The library's own code has these.
                Shape::Copy | Shape::Set => {}
                // A locked instruction is a load, then a compare-and-swap, whose write counts as its read.
                // A compare-and-swap has no load of its own.
                _ if read > 0 && write > 0 && is_locked(access) => add(to, [0, 2 * times, 0]),
                // It reads the operand of a multiplication with addition lane by lane.
                _ if read > 0 => add(to, [0, times * fma_lanes(&class_of(access)), 0]),
                _ => add(to, [0, 0, times * write]),
            }
        }
    }
    found
}

/// Lanes that a multiplication with addition works on, 1 of anything else.
fn fma_lanes(class: &class::Class) -> u64 {
    match class.kind {
        class::Kind::Float(float, class::Operation::Fma) => class.width.lanes(float.bits()),
        _ => 1,
    }
}

/// Work of each function of a program, by cachegrind.
fn cachegrind(directory: &Path) -> Result<BTreeMap<String, Work>> {
    let mut command = Command::new("valgrind");
    command.current_dir(directory).args([
        "--tool=cachegrind",
        "--cache-sim=yes",
        "--branch-sim=yes",
        "--cachegrind-out-file=cachegrind.out",
        "./program",
    ]);
    succeed(&mut command)?;
    let text = std::fs::read_to_string(directory.join("cachegrind.out"))?;
    let events = text
        .lines()
        .find_map(|l| l.strip_prefix("events: "))
        .context("events")?;
    let events: Vec<&str> = events.split_whitespace().collect();
    let column = |event| events.iter().position(|e| *e == event).context("an event");
    let columns = [column("Ir")?, column("Dr")?, column("Dw")?];
    let mut found: BTreeMap<String, Work> = BTreeMap::new();
    let mut function = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            // The line of the source, then the events; zeroes at the end are left out.
            let numbers: Vec<u64> = line
                .split_whitespace()
                .skip(1)
                .map(str::parse)
                .collect::<Result<_, _>>()?;
            let to = found.entry(function.to_owned()).or_default();
            add(to, columns.map(|c| numbers.get(c).copied().unwrap_or(0)));
        }
    }
    Ok(found)
}

/// The counts of each function equal those of cachegrind, which knows nothing of the compiler.
fn agrees_with_cachegrind(source: (&str, &str), compiler: &str, flags: &str) -> Result<()> {
    // Cachegrind counts what pads loops as instructions; between functions nothing runs.
    let build = format!(
        "{compiler} {flags} -falign-loops=1 -fno-math-errno {} -o program -lm",
        source.0
    );
    let directory = captured(source, &build, "1")?;
    let oracle = cachegrind(directory.path())?;
    let mut wrong = Vec::new();
    let mut functions = 0;
    for ((region, _), file) in files(directory.path())? {
        let found = counted(directory.path(), &file, |counted| {
            (per_function(counted), counted.counts.verdict)
        })?;
        ensure!(
            found.1 == cere_format::replay::Verdict::Exact,
            "{flags} {region}: {:?}",
            found.1
        );
        for (function, work) in found.0 {
            functions += 1;
            let wanted = oracle.get(&function);
            if wanted != Some(&work) {
                wrong.push(format!(
                    "{flags} {region}: {function}: {work:?}, cachegrind {wanted:?}"
                ));
            }
        }
    }
    ensure!(functions >= 13, "{functions} functions");
    if !wrong.is_empty() {
        let kept = directory.keep();
        wrong.push(format!("kept in {}", kept.display()));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn functions_agree_with_cachegrind() -> Result<()> {
    for flags in ["-O2", "-O0", vector_flags()] {
        agrees_with_cachegrind(("main.c", ORACLE), "$CC", flags)?;
    }
    Ok(())
}

/// What streams must bring into a cache of 512 lines and take out of it. Each line of an array is touched at one time only;
/// at the end the return address is read, which nothing read before: one line comes in, and one leaves.
#[test]
fn streams_have_closed_forms_in_a_small_cache() -> Result<()> {
    /// Lines of an array of doubles, and of the links; lines of the cache.
    const DOUBLES: u64 = 8 * N / 64;
    const LINKS: u64 = N;
    const CACHE: u64 = 512;
    let directory = captured(("main.c", KERNELS), &kernels("-O1"), "2")?;
    std::fs::write(directory.path().join("small.json"), SMALL)?;
    let arguments = ["--geometry", "small.json", "--warmup", "cold"];
    let found = counts(directory.path(), "*", &arguments)?;
    let found = by_function(&found)?;
    for (function, read, written) in [
        // Only reads: nothing is written back.
        ("reads", LINKS, 0),
        ("chase", LINKS, 0),
        // All but the last lines, which are in the cache.
        ("writes", LINKS, LINKS - (CACHE - 1)),
        // Of the 511 lines at the end y has the half and the odd one, which was touched last.
        ("daxpy", 2 * DOUBLES, DOUBLES - CACHE / 2),
        // Of x, y, z, in this order, z has a third: 511 = 3 * 170 + 1.
        ("triad", 3 * DOUBLES, DOUBLES - 171),
        // Two arrays of floats fit; the line that leaves is the first of the array that is only read.
        ("saxpy", DOUBLES, 0),
        ("integers", DOUBLES, 0),
        // And the line of the constant 1.
        ("roots", DOUBLES + 1, 0),
    ] {
        let value = found.get(&(function.to_owned(), 2)).context(function)?;
        let exact =
            value["verdict"] == "exact" && value["warmup"] == "cold" && value["sampled"] == 1;
        ensure!(exact, "{value}");
        let level = &value["levels"][0];
        let bytes = [
            number(level, &["fills"])?,
            number(level, &["write_backs"])?,
            number(value, &["memory_read"])?,
            number(value, &["memory_written"])?,
            number(value, &["footprint_bytes"])?,
        ];
        let lines = [read + 1, written, read + 1, written, read + 1];
        ensure!(
            bytes == lines.map(|l| 64 * l),
            "{function}: {bytes:?}, not {lines:?} lines"
        );
    }
    Ok(())
}

#[test]
fn two_counts_are_the_same_bytes() -> Result<()> {
    for flags in ["-O0", "-O2", "-O3"] {
        let directory = captured(("main.c", KERNELS), &kernels(flags), "1")?;
        let what = "*";
        let count = || -> Result<Vec<u8>> {
            let run = succeed(&mut count_command(
                directory.path(),
                what,
                &["--geometry", "zen3"],
            ))?;
            Ok(run.stdout)
        };
        let (first, second) = (count()?, count()?);
        ensure!(first == second && first.len() > 1000, "{flags}");
    }
    Ok(())
}

/// `cere check --counted`: every region of the program has the blocks of its codelet.
fn same_blocks(directory: &Path, threads: &str, regions: usize) -> Result<Value> {
    let mut command = cere(directory);
    command.args(["check", "--counted", "--json", "--geometry", "zen3"]);
    let (found, run) = json(command.env("OMP_NUM_THREADS", threads))?;
    ensure!(run.status.success(), "{found}\n{}", text(&run));
    let codelets = found["codelets"].as_array().context("codelets")?;
    ensure!(codelets.len() == regions, "{found}");
    for codelet in codelets {
        ensure!(
            codelet["same_blocks"] == true && codelet["verdict"] == "exact",
            "{codelet}"
        );
        let (vivo, vitro) = (
            &codelet["in_vivo_instructions"],
            &codelet["in_vitro_instructions"],
        );
        ensure!(vivo == vitro && vivo.as_u64() > Some(0), "{codelet}");
        ensure!(
            codelet["levels"].as_array().is_some_and(|l| l.len() == 3),
            "{codelet}"
        );
    }
    Ok(found)
}

/// The program is built with two regions or more, profiled and captured.
fn compared(name: &str, source: &str, build: &str, threads: &str, regions: usize) -> Result<()> {
    let directory = instrumented(&[(name, source)], build)?;
    let mut profile = cere(directory.path());
    profile.args(["profile", "--", "./program"]);
    succeed(profile.env("OMP_NUM_THREADS", threads))?;
    let mut capture = capture(directory.path(), &["*", "--invocation", "1"]);
    succeed(capture.env("OMP_NUM_THREADS", threads))?;
    same_blocks(directory.path(), threads, regions).map(drop)
}

const ROWS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { ROWS = 1500, LENGTH = 66 };
static double *rows[ROWS];
static __attribute__((noinline)) void allocate(void) {
    for (int r = 0; r < ROWS; r++)
        if (!(rows[r] = malloc(LENGTH * sizeof(double)))) abort();
}
static __attribute__((noinline)) void fill(double x) {
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < LENGTH; i++) rows[r][i] = x + r + i;
}
int main(void) {
    allocate();
    fill(1);
    fill(2);
    printf("%g\n", rows[7][9]);
}
"#;

/// `fill` works on rows that a captured loop allocated: the codelet's take as many lines as the program's.
#[test]
fn rows_take_the_programs_lines() -> Result<()> {
    let directory = captured(("main.c", ROWS), "$CC -O2 main.c -o program", "1,2")?;
    let found = same_blocks(directory.path(), "1", 3)?;
    let codelets = found["codelets"].as_array().context("codelets")?.iter();
    let fills = codelets.filter(|c| {
        c["codelet"]
            .as_str()
            .is_some_and(|n| n.starts_with("fill@"))
    });
    let fills: Vec<&Value> = fills.collect();
    ensure!(fills.len() == 2, "{found}");
    for fill in fills {
        let level = &fill["levels"][0];
        let program = number(level, &["in_vivo"])?;
        for warmup in ["page-trace", "working-set", "cold"] {
            let replay = number(level, &["in_vitro", warmup])?;
            let near = program > 12_000 && program.abs_diff(replay) * 100 < program;
            ensure!(near, "{warmup}: {fill}");
        }
    }
    Ok(())
}

const SWEEPS: &str = r#"
#include <stdio.h>
enum { N = 50000 };
static double a[N];
static __attribute__((noinline)) void sweep(double x) {
    for (int i = 0; i < N; i++) a[i] = a[i] * x + i;
}
int main(void) {
    for (int time = 0; time < 4; time++) sweep(0.5);
    printf("%g\n", a[7]);
}
"#;

/// 400 KiB fit a second level of 512 KiB, unless their pages lie in few of its sets, which must be the same ones on both
/// sides.
#[test]
fn pages_lie_alike_in_the_program_and_in_replays() -> Result<()> {
    let directory = captured(("main.c", SWEEPS), "$CC -O2 main.c -o program", "3")?;
    let found = same_blocks(directory.path(), "1", 1)?;
    let levels = &found["codelets"][0]["levels"];
    for warmup in ["page-trace", "working-set"] {
        for (level, lines) in [(0, 6250), (1, 0)] {
            let program = number(&levels[level], &["in_vivo"])?;
            let replay = number(&levels[level], &["in_vitro", warmup])?;
            let near = |count: u64| count.abs_diff(lines) * 100 < 6250;
            ensure!(near(program) && near(replay), "{warmup}: {found}");
        }
    }
    Ok(())
}

const VIRTUAL: &str = r#"
#include <cstdio>
#include <memory>
#include <vector>
struct shape {
    virtual ~shape() = default;
    virtual double area(double) const = 0;
};
struct square : shape {
    double area(double x) const override { return x * x; }
};
struct circle : shape {
    double area(double x) const override { return x > 5 ? 3.14 * x * x : x; }
};
__attribute__((noinline)) double areas(const std::vector<std::unique_ptr<shape>> &shapes) {
    double sum = 0;
    for (const auto &shape : shapes)
        sum += shape->area(sum / 1000);
    return sum + 1;
}
__attribute__((noinline)) void fill(std::vector<long> &list) {
    for (auto &one : list)
        one += one % 3 ? one * one : one << 3;
}
int main() {
    std::vector<std::unique_ptr<shape>> shapes;
    for (int i = 0; i < 1000; i++) {
        if (i % 3)
            shapes.push_back(std::make_unique<square>());
        else
            shapes.push_back(std::make_unique<circle>());
    }
    std::vector<long> list(1000, 5);
    fill(list);
    std::printf("%g %ld\n", areas(shapes), list[7]);
}
"#;

const TEAM: &str = r#"
#include <stdio.h>
static double a[4000], b[4000];
static __attribute__((noinline)) void first(void) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < 4000; i++)
        a[i] = a[i] * 1.5 + b[i];
}
static __attribute__((noinline)) void second(void) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < 4000; i++)
        b[i] = a[i] > 3000 ? a[i] / 3 : a[i] - 1;
}
int main(void) {
    for (int i = 0; i < 4000; i++)
        a[i] = b[i] = i;
    first();
    second();
    printf("%g\n", a[17] + b[99]);
}
"#;

const FORTRAN: &str = r#"
program main
  implicit none
  integer, parameter :: n = 500
  real(8) :: a(n), b(n), total
  integer :: i
  do i = 1, n
    a(i) = i
    b(i) = n - i
  end do
  call scale(a, b, n)
  call reduce(a, n, total)
  print *, total
contains
  subroutine scale(a, b, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: a(n)
    real(8), intent(in) :: b(n)
    integer :: i
    do i = 1, n
      a(i) = a(i) * 2 + b(i) / 3
    end do
  end subroutine
  subroutine reduce(a, n, total)
    integer, intent(in) :: n
    real(8), intent(in) :: a(n)
    real(8), intent(out) :: total
    integer :: i
    total = 0
    do i = 1, n
      if (a(i) > 300) total = total + sqrt(a(i))
    end do
  end subroutine
end program
"#;

#[test]
fn the_program_runs_the_codelets_blocks() -> Result<()> {
    compared("main.c", KERNELS, &kernels("-O2"), "1", 14)
}

#[test]
fn virtual_calls_run_the_same_blocks() -> Result<()> {
    compared("main.cpp", VIRTUAL, "$CXX -O2 main.cpp -o program", "1", 6)
}

#[test]
fn fortran_runs_the_same_blocks() -> Result<()> {
    compared("main.f90", FORTRAN, "$FC -O1 main.f90 -o program", "1", 3)
}

#[test]
fn teams_run_the_same_blocks() -> Result<()> {
    for threads in ["1", "2"] {
        compared(
            "main.c",
            TEAM,
            "$CC -O2 -fopenmp main.c -o program",
            threads,
            3,
        )?;
    }
    Ok(())
}

/// What may be wrong, and what is not looked into.
const ODD: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))
long data[2000];
double real[2000];
char bytes[4000];
volatile double result;
static int before(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}
NOINLINE void assembles(void) {
    for (int i = 0; i < 100; i++)
        __asm__ volatile("addq $1, %0\n\tnop" : "+m"(data[i]));
}
NOINLINE void calls(void) {
    for (int i = 0; i < 5; i++) {
        memcpy(bytes + i, bytes + 2000, (size_t)(100 + i));
        memmove(bytes + 10, bytes + i, (size_t)(50 + i));
        memset(bytes + 500, i, (size_t)(30 + i));
        real[i] = sin(real[i]);
        qsort(data, 20, sizeof *data, before);
    }
}
NOINLINE void sums(void) {
    double sum = 0;
    for (int i = 0; i < 2000; i++)
        sum += real[i] / 3;
    result = sum;
}
int main(void) {
    for (int i = 0; i < 2000; i++) {
        data[i] = i * 31 % 57;
        real[i] = i * 0.1;
    }
    calls();
    sums();
    assembles();
}
"#;

fn odd() -> Result<tempfile::TempDir> {
    let build = "$CC -O1 -fno-builtin-memmove main.c -o program -lm";
    let directory = instrumented(&[("main.c", ODD)], build)?;
    let arguments = ["--no-trace", "*", "--invocation", "1"];
    succeed(&mut capture(directory.path(), &arguments))?;
    Ok(directory)
}

#[test]
fn what_is_wrong_has_a_name() -> Result<()> {
    let directory = odd()?;
    let refused = |what: &str, arguments: &[&str], part: &str| {
        refused(&mut count_command(directory.path(), what, arguments), part)
    };
    // Geometries.
    for (text, part) in [
        ("no JSON", "small.json"),
        (r#"{"name": "x"}"#, "levels"),
        (&SMALL.replace("512", "7"), "multiple"),
        (&SMALL.replace("32768", "0"), "0"),
        (&SMALL.replace("64", "63"), "power of two"),
        (
            &SMALL.replace("32768", "99999999999999999999"),
            "small.json",
        ),
    ] {
        std::fs::write(directory.path().join("small.json"), text)?;
        refused("sums@*", &["--geometry", "small.json"], part)?;
    }
    refused("sums@*", &["--geometry", "zen99"], "zen99")?;
    refused("sums@*", &["--geometry", "."], "--geometry .")?;
    refused("nothing@*", &[], "nothing")?;
    refused("sums@*", &["--budget", "0"], "--budget")?;
    // The package has no trace.
    let traced = ["--geometry", "zen3", "--warmup", "page-trace"];
    refused("sums@*", &traced, "trace")?;
    // A package with another byte.
    let all = files(directory.path())?;
    let file = all.get(&("sums".into(), 1)).context("sums")?;
    let bytes = std::fs::read(file)?;
    let damaged = |bytes: &[u8]| -> Result<()> {
        let name = "damaged.codelet";
        std::fs::write(directory.path().join(name), bytes)?;
        refused(name, &["--geometry", "none"], name).map(drop)
    };
    for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 40] {
        let mut other = bytes.clone();
        other[at] ^= 0x10;
        damaged(&other)?;
    }
    damaged(&bytes[..bytes.len() / 2])
}

#[test]
fn what_is_not_counted_is_listed() -> Result<()> {
    let directory = odd()?;
    let none = ["--geometry", "none"];
    let found = counts(directory.path(), "*", &none)?;
    let found = by_function(&found)?;
    let of = |function: &str| {
        found
            .get(&(function.to_owned(), 1))
            .context(function.to_owned())
    };
    // Assembly is one instruction.
    ensure!(
        number(of("assembles")?, &["assembly"])? == 100,
        "{}",
        of("assembles")?
    );
    // The arguments of the five calls of each: 100 + i, 50 + i, 30 + i bytes.
    let calls = of("calls")?;
    let library = &calls["library"];
    ensure!(number(library, &["load_bytes"])? == 510 + 260, "{calls}");
    ensure!(
        number(library, &["store_bytes"])? == 510 + 260 + 160,
        "{calls}"
    );
    let list = calls["calls"].as_array().context("calls")?;
    for name in ["qsort", "sin", "memcpy", "memmove", "memset"] {
        let called = list.iter().find(|c| c["name"] == name);
        ensure!(called.is_some_and(|c| c["calls"] == 5), "{name}: {calls}");
    }
    // Other flags, other sums.
    let fast = counts(
        directory.path(),
        "sums@*",
        &["--geometry", "none", "--flags", "-O3 -ffast-math"],
    )?;
    ensure!(fast[0]["verdict"] == "tolerance", "{}", fast[0]);
    // Few accesses: a sample of the lines.
    let few = counts(
        directory.path(),
        "sums@*",
        &["--geometry", "zen3", "--budget", "1000"],
    )?;
    ensure!(number(&few[0], &["sampled"])? > 1, "{}", few[0]);
    ensure!(
        few[0]["levels"][0]["misses_error"].is_number(),
        "{}",
        few[0]
    );
    let whole = counts(directory.path(), "sums@*", &["--geometry", "zen3"])?;
    ensure!(number(&whole[0], &["sampled"])? == 1, "{}", whole[0]);
    ensure!(
        whole[0]["levels"][0]["misses_error"].is_null(),
        "{}",
        whole[0]
    );
    Ok(())
}

/// Closes descriptors that it did not open: there is no codelet to count whose stream it could close.
const CLOSES: &str = r#"
#include <unistd.h>
long data[2000];
__attribute__((noinline)) void closes(void) {
    for (int fd = 3; fd < 1024; fd++)
        data[fd] = close(fd);
}
int main(void) {
    closes();
}
"#;

#[test]
fn a_region_that_closes_all_descriptors() -> Result<()> {
    let directory = instrumented(&[("main.c", CLOSES)], "$CC -O1 main.c -o program")?;
    let at = directory.path();
    let mut capture = capture(at, &["closes@*", "--invocation", "1"]);
    refused(&mut capture, "calls close on descriptor 3")?;
    refused(&mut count_command(at, "closes@*", &[]), "has no codelet").map(drop)
}

/// Programs of csmith: the counted code leaves the state that the codelet's own code leaves.
#[test]
fn counted_code_does_what_the_code_does() -> Result<()> {
    let mut compared = 0;
    for seed in 1..=10 {
        let directory = tempfile::tempdir()?;
        let mut command = Command::new("csmith");
        command.args(["--seed", &seed.to_string(), "-o", "p.c"]);
        command.args(["--max-funcs", "4", "--max-block-depth", "3"]);
        succeed(command.current_dir(directory.path()))?;
        let level = ["-O0", "-O1", "-O2", "-O3"][seed % 4];
        let build = format!("$CC {level} -w -I/usr/include/csmith p.c -o program -lm");
        instrument(directory.path(), &build)?;
        // Some run forever, some have no region that runs.
        let arguments = ["--timeout", "10", "*", "--invocation", "1"];
        if !output(&mut capture(directory.path(), &arguments))?
            .status
            .success()
        {
            continue;
        }
        for (_, file) in codelets(directory.path())?.iter().take(2) {
            let file = file.to_str().context("a name")?;
            let mut command = cere(directory.path());
            command.args(["replay", "--json", "--reps", "1", file]);
            let (plain, _) = json(&mut command)?;
            if plain["verdict"] != "exact" {
                continue;
            }
            compared += 1;
            let mut command = count_command(directory.path(), file, &["--geometry", "none"]);
            let (found, run) = json(&mut command)?;
            ensure!(
                found[0]["verdict"] == "exact",
                "seed {seed} {level}: {found}\n{}",
                text(&run)
            );
        }
    }
    ensure!(compared >= 5, "{compared} codelets");
    Ok(())
}
