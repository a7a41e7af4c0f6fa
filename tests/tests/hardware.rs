//! `cere count --hardware`. Where no hardware counter works, the message comes, and others stand for it: counters of software,
//! which are opened, switched and read alike, and the stops of a traced process, one an instruction.

use anyhow::{Context, Result, ensure};
use cere_count::hardware::{Kernel, gather};
use cere_replay::counters::Event;
use cere_sandbox::Sandbox;
use cere_tests::prepare::{capture, codelets, instrumented, options};
use cere_tests::step::stepped;
use cere_tests::tools::{cere, json, output, succeed, text};
use perf_event::Builder;
use perf_event::events::{Hardware, Software};
use serde_json::{Value, json};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Instructions of a window beyond the region's exact count: those that load the arguments from their block, call the region
/// and store what it returns. No kernel here has more than two arguments.
const ENTRY: f64 = 10.0;
/// On hardware each interrupt adds one.
const INTERRUPTS: f64 = 50.0;

const KERNELS: &str = r#"
#include <stdio.h>
#define N 3000
static double x[N], y[N];
static int keys[N];
__attribute__((noinline)) void scale(int n, double s) { for (int i = 0; i < n; i++) y[i] += s * x[i]; }
__attribute__((noinline)) int steps(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) { int k = keys[i]; while (k > 1) { k = k & 1 ? 3 * k + 1 : k / 2; sum++; } }
  return sum;
}
__attribute__((noinline)) int mixed(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) switch (keys[i] % 7) {
    case 0: sum += 3; break; case 1: sum ^= keys[i]; break; case 2: sum -= 1; break;
    case 3: keys[i]++; break; case 4: sum *= 3; break; default: sum++; }
  return sum;
}
int main(void) {
  for (int i = 0; i < N; i++) { x[i] = i; keys[i] = i % 40 + 1; }
  scale(N, 2.0);
  printf("%d %d %g\n", steps(100), mixed(N), y[N - 1]);
}
"#;

/// Threads write pages that nothing touched before.
const FRESH: &str = r#"
#include <stdio.h>
#define PAGES 120
static char fresh[PAGES][4096] __attribute__((aligned(4096)));
int main(void) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < PAGES; i++) fresh[i][7] = (char)i;
  printf("%d\n", fresh[PAGES - 1][7]);
}
"#;
const PAGES: f64 = 120.0;

/// A directory with `source`, built by `build`, and a codelet of each region.
fn captured(source: &str, build: &str, threads: &str) -> Result<tempfile::TempDir> {
    let directory = instrumented(&[("main.c", source)], build)?;
    succeed(capture(directory.path(), &["*"]).env("OMP_NUM_THREADS", threads))?;
    Ok(directory)
}

/// Without padding in loops, which hardware counts where it is fallen into, and which is no instruction in exact counts.
fn kernels() -> Result<tempfile::TempDir> {
    let build = "$CC -O2 -falign-loops=1 main.c -o program";
    captured(KERNELS, build, "1")
}

/// Exact instructions of a codelet.
fn exact(directory: &Path, name: &str) -> Result<f64> {
    let mut command = cere(directory);
    let (counts, run) = json(command.args(["count", "--json", "--geometry", "none", name]))?;
    let exact = counts[0]["instructions"].as_f64();
    exact.with_context(|| format!("no instructions\n{}", text(&run)))
}

#[test]
fn the_hardware_agrees_or_the_reason_is_given() -> Result<()> {
    let directory = kernels()?;
    let at = directory.path();
    let works = Builder::new(Hardware::INSTRUCTIONS).inherit(true).build();
    let mut command = cere(at);
    command.args(["count", "--hardware", "--json", "--geometry", "none", "*:1"]);
    if let Err(error) = works {
        let run = output(&mut command)?;
        let message = String::from_utf8_lossy(&run.stderr);
        ensure!(run.status.code() == Some(1), "{}", text(&run));
        ensure!(run.stdout.is_empty(), "{}", text(&run));
        for part in [
            "--hardware",
            "no hardware counter works",
            &error.to_string(),
        ] {
            ensure!(message.contains(part), "no `{part}` in\n{}", text(&run));
        }
        return Ok(());
    }
    let (counts, run) = json(&mut command)?;
    ensure!(run.status.success(), "{}", text(&run));
    let counts = counts.as_array().context("a list of counts")?;
    ensure!(counts.len() == 4, "{}", text(&run));
    for codelet in counts {
        let events = codelet["hardware"]["events"].as_array().context("events")?;
        let found = events.iter().find(|event| event["name"] == "instructions");
        let value = found.and_then(|event| event["value"].as_f64());
        let exact = codelet["instructions"].as_f64();
        let (value, exact) = value.zip(exact).context("instructions")?;
        ensure!(
            (-1.0..=ENTRY + INTERRUPTS).contains(&(value - exact)),
            "{codelet}"
        );
    }
    Ok(())
}

/// What a counter of instructions would count: those between the switches, the region's less nothing's.
#[test]
fn the_instructions_between_the_switches_are_those_that_are_counted_exactly() -> Result<()> {
    let directory = kernels()?;
    let at = directory.path();
    let codelets = codelets(at)?;
    ensure!(codelets.len() == 4, "{codelets:?}");
    // Any counters will do that can be switched.
    let counter = || Builder::new(Software::DUMMY).inherit(true).build();
    let counters = [counter()?, counter()?].map(|counter| (counter.as_raw_fd(), counter));
    for (name, _) in &codelets {
        let kept = at.join("kept");
        let keep = ["replay", "--reps", "1", name, "--keep"];
        succeed(cere(at).args(keep).arg(&kept))?;
        let plan = kept.join("plan.json");
        let mut changed: Value = serde_json::from_slice(&std::fs::read(&plan)?)?;
        let sets = json!([{"region": [counters[0].0], "nothing": [counters[1].0]}]);
        changed["counters"] = sets;
        changed["guard"] = Value::Null;
        changed["repetitions"]["least"] = 2.into();
        std::fs::write(&plan, serde_json::to_vec(&changed)?)?;
        let mut command = Command::new(kept.join("replay"));
        command
            .current_dir(&kept)
            .env("CERE_REPLAY_PLAN", "plan.json");
        let inherited = [counters[0].0, counters[1].0];
        // SAFETY: two system calls.
        unsafe {
            command.pre_exec(move || {
                for counter in inherited {
                    libc::fcntl(counter, libc::F_SETFD, 0);
                }
                libc::personality(0);
                Ok(())
            });
        }
        let found = stepped(&mut command)?;
        let of = |counter: i32| -> Vec<f64> {
            let found = found.iter().filter(|f| f.0 == counter as u64);
            found.map(|f| f.1 as f64).collect()
        };
        let (region, nothing) = (of(counters[0].0), of(counters[1].0));
        ensure!((region.len(), nothing.len()) == (2, 2), "{name}: {found:?}");
        let exact = exact(at, name)?;
        for (region, nothing) in region.iter().zip(&nothing) {
            let difference = region - nothing - exact;
            ensure!(
                exact > 1000.0 && (0.0..=ENTRY).contains(&difference),
                "{name}: {region} - {nothing} instructions, {exact} exactly: {difference}"
            );
        }
        std::fs::remove_dir_all(&kept)?;
    }
    Ok(())
}

#[test]
fn all_threads_of_a_team_are_counted() -> Result<()> {
    let directory = captured(FRESH, "$CC -O2 -fopenmp main.c -o program", "4")?;
    let codelets = codelets(directory.path())?;
    ensure!(codelets.len() == 1, "{codelets:?}");
    let package = tempfile::tempdir_in(directory.path())?;
    cere_package::io::unpack_package(&codelets[0].1, package.path(), 1 << 32)?;
    let mut options = options(directory.path(), 5, Sandbox::new())?;
    let events = [Event::new("page_faults", Software::PAGE_FAULTS)];
    for threads in [1, 2, 4] {
        options.settings.team.threads = Some(threads);
        let kernel = Kernel {
            package: package.path(),
            options: &options,
        };
        let found = gather(&events, &kernel)?;
        let event = &found.events[0];
        ensure!(
            event.value == Some(PAGES) && event.running == Some(1.0),
            "{threads} threads: {found:?}"
        );
    }
    Ok(())
}
