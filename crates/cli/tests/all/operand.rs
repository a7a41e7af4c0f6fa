//! Operands in states of their own: which names mean what, and that a state is what the region meets.

use crate::common::{built_from, cere, has, json, refused, run, succeed, text};
use serde_json::Value;
use std::path::Path;

/// Arrays of 16 KiB, each line with the place of the next one, in an order that nothing guesses. A region follows `a`, one
/// `b`, one a block. They fit in every first level together.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define LINES 256
#define N (8 * LINES)
_Alignas(64) long a[N], b[N], c[N];
static long hidden[N];
extern long other(void);
long *block;
static void chain(long *t) {
  for (long i = 0; i < LINES; i++) t[i * 8] = ((i * 1664525 + 1013904223) % LINES) * 8;
}
#define FOLLOW(name, t) __attribute__((noinline)) long name(long n) { \
  long at = 0; \
  for (long i = 0; i < n; i++) at = t[at]; \
  return at; }
FOLLOW(first, a)
FOLLOW(second, b)
__attribute__((noinline)) long third(long *pointer, long n) {
  long at = 0;
  for (long i = 0; i < n; i++) at = block[at] + hidden[i & 7] + pointer[0] - pointer[0];
  return at;
}
int main(void) {
  long s = 0;
  block = malloc(N * sizeof *block);
  chain(a); chain(b); chain(c); chain(block);
  for (int i = 0; i < N; i++) hidden[i] = (long)block & 1;
  for (int i = 0; i < 30; i++) s += first(LINES) + second(LINES) + third(block, LINES) + other();
  printf("%ld\n", s + c[8]);
}
"#;

const OTHER: &str = "
static long hidden[64];
long other(void) { for (int i = 0; i < 64; i++) hidden[i] += i; return hidden[3]; }
";

fn captured(files: &[(&str, &str)], build: &str, regions: &[&str]) -> tempfile::TempDir {
    let directory = built_from(files, build);
    let mut line = vec!["capture"];
    line.extend(regions);
    line.extend(["--invocation", "20", "--", "./app"]);
    succeed(directory.path(), &line);
    directory
}

fn program() -> tempfile::TempDir {
    let build = "$CC -O1 -c main.c && $CC -O1 -c other.c && $CC main.o other.o -o app";
    let regions = ["first*", "second*", "third*"];
    captured(&[("main.c", MAIN), ("other.c", OTHER)], build, &regions)
}

fn replay(at: &Path, region: &str, operands: &str) -> Value {
    let line = ["replay", region, "--reps", "40", "--json"];
    let named = ["--operand", operands];
    let found = json(at, &[&line[..], &named].concat());
    assert_eq!(found["verdict"], "exact", "{operands}: {found}");
    found
}

/// The least seconds with each of `operands`, of windows in alternation.
fn least(at: &Path, region: &str, operands: &[&str]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; operands.len()];
    for _ in 0..3 {
        for (least, operand) in least.iter_mut().zip(operands) {
            let seconds = &replay(at, region, operand)["seconds"]["min"];
            *least = least.min(seconds.as_f64().expect("seconds"));
        }
    }
    least
}

#[test]
fn a_region_meets_each_operand_in_its_state() {
    let directory = program();
    let at = directory.path();
    let own = least(at, "first*", &["a=warm", "a=cold", "data=cold,a=warm"]);
    assert!(own[1] > 3.0 * own[0], "warm {}, cold {}", own[0], own[1]);
    assert!(
        own[1] > 2.0 * own[2],
        "the rest cold {}, all {}",
        own[2],
        own[1]
    );
    let other = least(at, "second*", &["a=warm", "a=cold", "b=cold"]);
    assert!(
        other[2] > 3.0 * other[1],
        "what it reads {}, what it does not {}",
        other[2],
        other[1]
    );
    for name in ["*block", "pointer"] {
        let block = least(
            at,
            "third*",
            &[&format!("{name}=warm"), &format!("{name}=cold")],
        );
        assert!(block[1] > 2.0 * block[0], "{name}: {block:?}");
    }
    let all = least(
        at,
        "first*",
        &["data=warm,code=warm", "data=cold,code=warm"],
    );
    assert!(all[1] > 2.0 * all[0], "{all:?}");
}

#[test]
fn every_state_is_exact_and_told() {
    let directory = program();
    let at = directory.path();
    let levels = Path::new("/sys/devices/system/cpu/cpu0/cache/index2").is_dir();
    let mut states = vec!["warm", "cold"];
    states.extend(levels.then_some(["l2", "llc"]).into_iter().flatten());
    for state in &states {
        let found = replay(at, "first*", &format!("a={state},b=cold,code={state}"));
        let operands = found["operands"].as_array().expect("operands");
        assert_eq!(operands.len(), 3);
        assert_eq!(operands[0]["name"], "a");
        assert_eq!(operands[0]["kind"], "variable");
        assert_eq!(operands[0]["state"], *state);
        assert_eq!(operands[0]["bytes"], 16384);
        assert_eq!(operands[2]["kind"], "code");
        assert!(operands[2]["bytes"].as_u64() > Some(100));
        assert_eq!(found["batch"], 1);
    }
    let line = "replay first* --operand a=cold,data=warm";
    let said = text(&succeed(at, line).stdout);
    has(&said, "a cold, 16384 bytes (variable)");
    has(&said, "data warm, ");
    // Without operands nothing is known of them, and their records are not those of a plain replay.
    let plain = json(at, "replay first* --json");
    assert_eq!(plain["operands"], Value::Array(Vec::new()));
    let records = json(at, "results --json");
    let records = records.as_array().expect("records").iter();
    let settings: Vec<&str> = records
        .filter_map(|r| r["setting"]["operands"].as_str())
        .collect();
    assert!(settings.contains(&"") && settings.contains(&"a=cold,data=warm"));
}

#[test]
fn names_that_cannot_be() {
    let directory = program();
    let at = directory.path();
    let third = |operand: &str, part: &str| {
        refused(at, &["replay", "third*", "--operand", operand], part);
    };
    third("blok=cold", "near: block");
    third("block2=warm", "--operand list");
    third("hidden=cold", "main.c:hidden");
    third("a", "no state");
    third("a=hot", "hot is no state of a");
    third("main.c:hidden=cold,main.c:hidden=warm", "named twice");
    third("*block=cold,pointer=warm", "*block and pointer overlap");
    third("c=cold", "did not touch its pages");
    third("0x10+64=cold", "did not touch its pages");
    let found = replay(at, "third*", "main.c:hidden=cold");
    // Its first page alone is touched.
    let bytes = found["operands"][0]["bytes"].as_u64();
    assert!(bytes > Some(0) && bytes <= Some(4096), "{found}");
    assert!(found["notes"].to_string().contains("of 16384 bytes"));
    let known = json(at, "replay third* --operand list --json");
    let known = known["operands"].as_array().expect("operands");
    let of = |name: &str| {
        let found = known.iter().find(|k| k["name"] == name);
        found.unwrap_or_else(|| panic!("{name} of {known:?}"))
    };
    assert_eq!(of("pointer")["kind"], "argument");
    assert_eq!(of("*block")["kind"], "block");
    assert_eq!(of("*block")["address"], of("pointer")["address"]);
    let address = of("*block")["address"].as_u64().expect("an address");
    let by_address = format!("{address:#x}+8192=cold");
    let found = replay(at, "third*", &by_address);
    assert_eq!(found["operands"][0]["bytes"], 8192);
    assert_eq!(found["operands"][0]["kind"], "range");
    let listed = text(&run(at, "replay third* --operand '?'").stdout);
    has(&listed, "main.c:hidden");
    // Without flushing by address no operand is cold alone.
    let mut command = cere(at, "replay third* --operand *block=cold");
    let output = command.env("CERE_REPLAY_NO_FLUSH", "1").output();
    let output = output.expect("cere runs");
    assert!(!output.status.success());
    has(&text(&output.stderr), "--warmup cold");
}

/// Some 60 KiB of code, each part run once.
const CODE: &str = r#"
#include <stdio.h>
#define ONE(i) if (x & 1L << (i) % 40) x = x * 77 + (i); else x ^= (x >> 7) + (i);
#define TEN(i) ONE(i + 1) ONE(i + 2) ONE(i + 3) ONE(i + 4) ONE(i + 5) ONE(i + 6) ONE(i + 7) ONE(i + 8) ONE(i + 9) ONE(i)
#define HUNDRED(i) TEN(i) TEN(i + 10) TEN(i + 20) TEN(i + 30) TEN(i + 40) TEN(i + 50) TEN(i + 60) TEN(i + 70) TEN(i + 80) \
  TEN(i + 90)
long state;
__attribute__((noinline)) void step(long n) {
  long x = state;
  for (long k = 0; k < n; k++) {
    HUNDRED(0) HUNDRED(100) HUNDRED(200) HUNDRED(300) HUNDRED(400) HUNDRED(500) HUNDRED(600) HUNDRED(700) HUNDRED(800)
  }
  state = x;
}
int main(void) {
  for (int i = 0; i < 40; i++) step(2);
  printf("%ld\n", state);
}
"#;

#[test]
fn code_and_data_are_apart() {
    let build = "$CC -O1 main.c -o app";
    let directory = captured(&[("main.c", CODE)], build, &["step*"]);
    let states = [
        "data=warm,code=warm",
        "data=cold,code=warm",
        "data=warm,code=cold",
        "data=cold,code=cold",
    ];
    let found = least(directory.path(), "step*", &states);
    assert!(found[2] > 2.0 * found[0], "{found:?}");
    assert!(found[3] > 1.5 * found[1], "{found:?}");
}

const TEAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define N 65536
static double grid[N], next[N];
static __attribute__((noinline)) void step(void) {
  #pragma omp parallel for
  for (int i = 1; i < N - 1; i++) next[i] = grid[i - 1] + grid[i + 1];
}
static __attribute__((noinline)) void scale(double *cells, int n) {
  #pragma omp parallel for
  for (int i = 0; i < n; i++) cells[i] *= 0.5;
}
int main(void) {
  double *cells = calloc(N, sizeof *cells);
  for (int i = 0; i < N; i++) grid[i] = i;
  for (int i = 0; i < 20; i++) step(), scale(cells, N);
  printf("%g\n", next[5]);
}
"#;

#[test]
fn a_team_reads_and_flushes_together() {
    let build = "$CC -O1 -fopenmp main.c -o app";
    let directory = captured(&[("main.c", TEAM)], build, &["step*", "scale*"]);
    let at = directory.path();
    // A parameter that the region gets by the address of its slot.
    for name in ["cells", "*cells.addr"] {
        let found = replay(at, "scale*", &format!("{name}=cold"));
        let bytes = found["operands"][0]["bytes"].as_u64();
        assert!(bytes >= Some(524_288 - 16), "{found}");
        assert_eq!(found["operands"][0]["kind"], "argument");
    }
    for operands in ["grid=cold", "grid=warm,next=cold", "data=warm,code=cold"] {
        let found = replay(at, "step*", operands);
        let bytes = found["operands"][0]["bytes"].as_u64();
        assert!(bytes >= Some(524_288), "{found}");
    }
}

const FORTRAN: &str = "
module cells
  real(8) :: field(4096)
end module
subroutine relax
  use cells
  real(8) :: old(4096)
  common /work/ old
  integer :: i
  do i = 2, 4095
    field(i) = old(i - 1) + old(i + 1)
  end do
end subroutine
program main
  use cells
  real(8) :: old(4096)
  common /work/ old
  integer :: i
  do i = 1, 4096
    old(i) = i
  end do
  do i = 1, 30
    call relax
    old(1) = field(7)
  end do
  print *, field(9)
end program
";

#[test]
fn modules_and_common_blocks_of_fortran() {
    let build = "$FC -O1 -c main.f90 && $FC main.o -o app";
    let directory = captured(&[("main.f90", FORTRAN)], build, &["relax*"]);
    let at = directory.path();
    for name in ["field", "cells::field", "work", "work_"] {
        let found = replay(at, "relax*", &format!("{name}=cold"));
        assert_eq!(found["operands"][0]["bytes"], 32768, "{name}");
        assert_eq!(found["operands"][0]["kind"], "variable");
    }
}
