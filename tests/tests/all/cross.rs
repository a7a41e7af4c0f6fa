//! Replays on other architectures, by an emulator, of what was captured on this one.

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::{capture, instrumented, refused};
use cere_tests::tools::{cere, json, succeed};
use std::path::Path;

/// What has to mean the same on another architecture, a region each.
const PROGRAM: &str = r#"
#include <algorithm>
#include <atomic>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <unistd.h>
#include <vector>
#define REGION __attribute__((noinline)) static
enum { N = 3000 };
struct Shape { virtual double area() const = 0; virtual ~Shape() {} double a = 1, b = 2; };
struct Square : Shape { double area() const override { return a * a; } };
struct Oblong : Shape { double area() const override { return a * b; } };
static Shape *shapes[N];
static double x[N], y[N], z[N];
static int small[N], order[N];
static uint64_t words[N];
static std::complex<double> c[N];
static thread_local double own[64];
static std::atomic<long> total;
typedef float four __attribute__((vector_size(16)));
static four v[N];
static unsigned __int128 wide;
static char text[64];
static long stamp;
static int (*table[4])(int);
static int twice(int i) { return 2 * i; }
static int square(int i) { return i * i; }
static int fails(int i) { if (i % 7 == 3) throw i; return i; }
REGION void contracted() { for (int i = 0; i < N; i++) z[i] = x[i] * y[i] + z[i]; }
REGION void virtuals() { for (int i = 0; i < N; i++) x[i] += shapes[i]->area(); }
REGION void pointers() { for (int i = 0; i < N; i++) small[i] += table[i & 3](i); }
REGION void locals() { for (int i = 0; i < N; i++) own[i & 63] += x[i]; }
REGION void throwing() { for (int i = 0; i < N; i++) try { small[i] += fails(i); } catch (int e) { small[i] -= e; } }
REGION void complexes() { for (int i = 1; i < N; i++) c[i] = c[i] * c[i - 1] + 0.25; }
REGION void quotients() { for (int i = 1; i < N; i++) c[i] = c[i] / (c[i] + 1.0); }
REGION void vectors() { for (int i = 1; i < N; i++) v[i] += v[i - 1] * v[i]; }
REGION void wides() { for (int i = 0; i < N; i++) { wide += (unsigned __int128)words[i] * words[N - 1 - i]; words[i] ^= words[i] << 7; } }
REGION void atomics() { for (int i = 0; i < N; i++) total.fetch_add(small[i], std::memory_order_relaxed); }
static int by(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
REGION void sorts() { for (int k = 0; k < 3; k++) { order[k] += 99; qsort(order, N, sizeof(int), by); } }
REGION void texts() { for (int i = 0; i < 50; i++) { std::snprintf(text, sizeof text, "%d %.17g %s", i, x[i], "end"); small[i] += (int)std::strlen(text); } }
REGION void times() { for (int i = 0; i < 5; i++) { timespec t; clock_gettime(CLOCK_REALTIME, &t); stamp += t.tv_nsec + getpid(); } }
REGION void blocks() { std::vector<std::string> all; for (int i = 0; i < 60; i++) { all.push_back(std::string(30 + i, 'a')); small[i] += (int)all.back().size(); } }
int main() {
  for (int i = 0; i < N; i++) {
    x[i] = i * 0.25; y[i] = 1.0 / (i + 1); z[i] = i % 7; words[i] = i * 0x9e3779b97f4a7c15ull; order[i] = (i * 7919) % N;
    c[i] = {1.0 / (i + 1), 0.5}; v[i] = four{1, 2, 3, 4} * 0.1f;
    shapes[i] = i % 3 ? (Shape *)new Square : (Shape *)new Oblong;
  }
  table[0] = twice; table[1] = square; table[2] = twice; table[3] = abs;
  for (int k = 0; k < 3; k++) {
    contracted(); virtuals(); pointers(); locals(); throwing(); complexes(); quotients(); vectors(); wides(); atomics(); sorts(); texts(); times(); blocks();
  }
  std::printf("%g %d %ld\n", x[5], small[7], total.load());
}
"#;

/// What only the captured architecture has, a region each, and the reason that is given.
const REFUSED: &str = r#"
#include <emmintrin.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
enum { N = 2000 };
static double x[N];
static float y[N];
static long double sums[8];
static unsigned words[N];
static int counts[4];
static char text[100];
static pthread_mutex_t lock[4];
static jmp_buf back;
__attribute__((noinline)) static void extended(void) { for (int i = 0; i < N; i++) sums[i & 7] += (long double)x[i] * x[i]; }
__attribute__((noinline)) static void intrinsics(void) { for (int i = 0; i < N; i += 4) counts[i & 3] += _mm_movemask_ps(_mm_loadu_ps(y + i)); }
__attribute__((noinline)) static void assembly(void) { for (int i = 0; i < N; i++) { unsigned v = words[i]; __asm__("bswap %0" : "+r"(v)); words[i] = v + i; } }
__attribute__((noinline)) static void listed(int n, ...) { va_list all; va_start(all, n); vsnprintf(text, sizeof text, "%d %d", all); va_end(all); }
__attribute__((noinline)) static void lists(void) { for (int i = 0; i < 50; i++) { listed(2, i, i + 1); words[i] += text[0]; } }
__attribute__((noinline)) static void locks(void) { for (int i = 0; i < 4; i++) { pthread_mutex_init(&lock[i], 0); words[i]++; } }
__attribute__((noinline)) static int jumps(int n) { for (int i = 0; i < n; i++) words[i] += 3; return n; }
static volatile double large = 1e20;
static const char *said[N];
__attribute__((noinline)) static void chooses(int n) { for (int i = 0; i < n; i++) said[i] = (int)(large + i) < 0 ? strerror(2) : strerror(3); }
int main(void) {
  for (int i = 0; i < N; i++) { x[i] = i * 0.3; y[i] = i - 9.0f; words[i] = i * 77; }
  for (int k = 0; k < 3; k++) { extended(); intrinsics(); assembly(); lists(); locks(); if (!setjmp(back)) jumps(N); chooses(N); }
  printf("%Lg %d %u %s\n", sums[1], counts[1], words[3], text);
}
"#;

/// Replays all codelets for `target`: name, verdict, reason, and the verdict with operations contracted.
fn replays(directory: &Path, target: &str) -> Result<Vec<[String; 4]>> {
    let (all, _) = json(cere(directory).args(["replay", "*", "--target", target, "--json"]))?;
    let all = all.as_array().context("a list of replays")?;
    let each = all.iter().map(|one| {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        ensure!(
            one["seconds"].is_null() && one["ratio"].is_null(),
            "a time of an emulator: {one}"
        );
        Ok([
            &one["codelet"],
            &one["verdict"],
            &one["reason"],
            &one["crossed"]["contracted"],
        ]
        .map(text))
    });
    each.collect()
}

#[test]
fn what_is_portable_ends_as_it_was_captured() -> Result<()> {
    let directory = instrumented(
        &[("program.cpp", PROGRAM)],
        "$CXX -O2 -o program program.cpp",
    )?;
    let directory = directory.path();
    succeed(&mut capture(directory, &["*", "--invocation", "2"]))?;
    let all = replays(directory, "aarch64-linux-gnu")?;
    for region in [
        "contracted",
        "virtuals",
        "pointers",
        "locals",
        "throwing",
        "complexes",
        "vectors",
        "wides",
        "atomics",
        "sorts",
        "texts",
        "times",
        "blocks",
    ] {
        let found = all
            .iter()
            .find(|one| one[0].starts_with(&format!("{region}@")));
        let [_, verdict, reason, fused] =
            found.with_context(|| format!("no codelet of {region}"))?;
        ensure!(verdict == "exact", "{region}: {verdict}: {reason}");
        // The target contracts what the captured processor could not.
        ensure!(
            region != "contracted" || fused == "tolerance",
            "{region}: {fused}"
        );
    }
    Ok(())
}

#[test]
fn what_only_one_architecture_has_is_refused_by_name() -> Result<()> {
    let directory = instrumented(
        &[("program.c", REFUSED)],
        "$CC -O2 -o program program.c -lpthread",
    )?;
    let directory = directory.path();
    succeed(&mut capture(directory, &["*", "--invocation", "2"]))?;
    let target = ["--target", "aarch64-linux-gnu"];
    for (region, why) in [
        ("extended@*", "it uses long double"),
        (
            "intrinsics@*",
            "an instruction of the captured architecture (llvm.x86.sse.movmsk.ps)",
        ),
        (
            "assembly@*",
            "inline assembly of the captured architecture: bswap",
        ),
        ("lists@*", "it takes arguments out of a list (va_list)"),
        ("locks@*", "it calls pthread_mutex_init"),
    ] {
        refused(cere(directory).args(["replay", region]).args(target), why)?;
    }
    let (exact, _) = json(
        cere(directory)
            .args(["replay", "jumps@*", "--json"])
            .args(target),
    )?;
    ensure!(exact["verdict"] == "exact", "{exact}");
    // A number that is out of range is another one there, and chooses another text of the C library: which one is not known.
    let args = ["replay", "chooses@*", "--json"];
    let (partly, _) = json(cere(directory).args(args).args(target))?;
    ensure!(partly["verdict"] == "partly", "{partly}");
    // Systems that are not there, or not of this kind.
    for (more, why) in [
        (&["--target", "aarch64_be-linux-gnu"][..], "big-endian"),
        (
            &["--target", "sparc-sun-solaris"],
            "is not an architecture that CERE makes code for",
        ),
        (
            &[
                "--target",
                "aarch64-linux-gnu",
                "--runner",
                "no-such-emulator",
            ],
            "no-such-emulator is not there",
        ),
        (
            &["--target", "aarch64-linux-gnu", "--sysroot", "."],
            "has no /lib/ld-linux-aarch64.so.1",
        ),
    ] {
        refused(cere(directory).args(["replay", "jumps@*"]).args(more), why)?;
    }
    Ok(())
}
