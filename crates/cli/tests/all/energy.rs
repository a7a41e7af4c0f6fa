//! Energy, by counters of a stand-in tree that a thread moves at a known power.

use crate::common::{built_from, cere, has, parsed, succeed, text};
use crate::schemas::conforms;
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const MAIN: &str = r#"
#include <stdio.h>
#define N 20000
static double a[N], b[N];
__attribute__((noinline)) void step(int n) {
  for (int r = 0; r < 40; r++)
    for (int i = 0; i < n; i++) a[i] = a[i] * 0.99 + b[i] / (1.0 + a[i] * a[i]);
}
__attribute__((noinline)) double slow(int n) {
  double s = 0;
  for (int r = 0; r < 1000; r++)
    for (int i = 0; i < n; i++) s += a[i] / (1.0 + s * s);
  return s;
}
int main(void) {
  for (int i = 0; i < N; i++) b[i] = i;
  for (int k = 0; k < 60; k++) step(N);
  printf("%g %g\n", a[7], slow(N));
}
"#;

/// Watts of the package and of its memory.
const WATTS: [f64; 2] = [40.0, 10.0];
/// Microjoules at which counters begin again: more than a round takes, and little enough that some do in each test.
const RANGE: u64 = 150_000_000;

/// Counters that move.
struct StandIn {
    tree: tempfile::TempDir,
    over: Arc<AtomicBool>,
    /// The longest time between two values, in nanoseconds.
    gap: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

fn zone(root: &Path, zone: &str, name: &str) -> File {
    let zone = root.join(zone);
    std::fs::create_dir(&zone).expect("a zone");
    std::fs::write(zone.join("name"), name).expect("a name");
    std::fs::write(zone.join("max_energy_range_uj"), RANGE.to_string()).expect("a range");
    let file = File::create(zone.join("energy_uj")).expect("a counter");
    write(&file, 0);
    file
}

/// In one piece, as the kernel's are read.
fn write(file: &File, microjoules: u64) {
    let text = format!("{microjoules:020}\n");
    file.write_all_at(text.as_bytes(), 0).expect("written");
}

impl StandIn {
    fn new() -> Self {
        let tree = tempfile::tempdir().expect("a directory");
        let files = [("intel-rapl:0", "package-0"), ("intel-rapl:0:1", "dram")];
        let files = files.map(|(path, name)| zone(tree.path(), path, name));
        // It would count twice.
        write(&zone(tree.path(), "intel-rapl:0:0", "core"), 7);
        let (over, gap) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stop, longest) = (over.clone(), gap.clone());
        let writer = std::thread::spawn(move || {
            let began = Instant::now();
            let mut last = 0;
            while !stop.load(Relaxed) {
                let now = began.elapsed();
                for (file, watts) in files.iter().zip(WATTS) {
                    let all = RANGE - 1_000_000 + (now.as_secs_f64() * watts * 1e6) as u64;
                    write(file, all % RANGE);
                }
                let now = now.as_nanos() as u64;
                longest.fetch_max(now - last, Relaxed);
                last = now;
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        Self {
            tree,
            over,
            gap,
            writer: Some(writer),
        }
    }

    fn json(&self, at: &Path, line: &str) -> Value {
        let mut command = cere(at, line);
        let output = command.env("CERE_POWERCAP", self.tree.path()).output();
        let output = output.expect("cere runs");
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        let value = parsed(&output);
        conforms(line.split(' ').next().expect("a command"), &value);
        value
    }

    /// Fails unless `watts` are those of the counters, as far as their steps tell in rounds of 0.1 s of work and as much of preparing.
    fn tells(&self, watts: &Value) {
        let gap = self.gap.load(Relaxed) as f64 * 1e-9;
        let all: f64 = WATTS.iter().sum();
        let most = all * (0.001 + 4.0 * gap / 0.1);
        let watts = watts.as_f64().expect("watts");
        assert!(
            (watts - all).abs() <= most,
            "{watts} W, {most} W off at most"
        );
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// The program, built and captured at this level.
fn captured(level: &str) -> tempfile::TempDir {
    let build = format!("$CC {level} main.c -o app");
    let directory = built_from(&[("main.c", MAIN)], &build);
    succeed(directory.path(), "capture -- ./app");
    directory
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn what_replays_measure_adds_up_to_a_run() {
    let directory = captured("-O2");
    let (at, counters) = (directory.path(), StandIn::new());
    for region in ["step*", "slow*"] {
        for replay in list(counters.json(at, &format!("replay {region} --energy --json"))) {
            let energy = &replay["energy"];
            counters.tells(&energy["watts"]);
            assert_eq!(energy["counters"], "package-0 + package-0 dram");
            let [joules, seconds] = [&energy["joules"]["median"], &energy["seconds"]].map(number);
            assert!((number(&energy["watts"]) * seconds / joules - 1.0).abs() < 1e-9);
            assert!((number(&energy["joule_seconds"]) / joules / seconds - 1.0).abs() < 1e-9);
            assert_eq!(energy["rounds"].as_array().map(Vec::len), Some(7));
        }
    }
    // A replay without energy takes nothing of what is known.
    assert_eq!(
        list(counters.json(at, "replay step* --json"))[0]["energy"],
        Value::Null
    );
    let records = counters.json(at, "results --json");
    let records = records.as_array().expect("records");
    let found = counters.json(at, "predict --energy --json");
    for region in found["regions"].as_array().expect("regions") {
        counters.tells(&region["watts"]);
        let own =
            |record: &&Value| record["region"] == region["name"] && record["energy"] != Value::Null;
        let all: Vec<&Value> = records.iter().filter(own).collect();
        if let [one] = &all[..] {
            let each = number(&one["energy"]["joules"]);
            let all = each * number(&region["invocations"]);
            assert!(
                number(&region["joules"]) <= all * 1.000_001,
                "{region}, {one}"
            );
        }
    }
    let sum: f64 = found["regions"]
        .as_array()
        .expect("regions")
        .iter()
        .map(|r| number(&r["joules"]))
        .sum();
    assert!(
        (number(&found["joules"]) / sum - 1.0).abs() < 1e-9,
        "{found}"
    );
    let whole = counters.json(at, "profile --energy --json --runs 3 -- ./app");
    let energy = &whole["energy"];
    counters.tells(&energy["watts"]);
    assert_eq!(energy["runs"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        counters.json(at, "profile --json -- ./app")["energy"],
        Value::Null
    );
    succeed(at, "report -o page.html");
    let page = std::fs::read_to_string(at.join("page.html")).expect("a page");
    has(&page, "<button type=\"button\">Energy</button>");
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(all) => all,
        one => vec![one],
    }
}

#[test]
fn with_constant_power_less_time_is_less_energy() {
    let directory = captured("-O0");
    let counters = StandIn::new();
    for goal in ["energy", "edp"] {
        let line = format!("tune step* --space levels --goal {goal} --budget 6 --json");
        let found = counters.json(directory.path(), &line);
        assert_eq!(found["goal"], goal);
        let region = &found["regions"][0];
        // Without optimisation it takes some times as long, so any level is chosen rather than none.
        assert!(
            region["flags"]
                .as_str()
                .is_some_and(|f| f.starts_with("-O")),
            "{found}"
        );
        assert!(number(&region["gain_low"]) > 1.0, "{region}");
        assert_eq!(found["common"], Value::Null);
    }
}

#[test]
fn without_counters_it_is_an_error_that_says_so() {
    let directory = captured("-O2");
    let at = directory.path();
    let tree = tempfile::tempdir().expect("a directory");
    let refused = |line: &str, root: &Path, why: &str| {
        let output = cere(at, line).env("CERE_POWERCAP", root).output();
        let output = output.expect("cere runs");
        assert!(!output.status.success(), "{line}");
        has(&text(&output.stderr), why);
    };
    let commands = [
        "replay step* --energy",
        "tune step* --goal energy",
        "profile --energy -- ./app",
    ];
    for line in commands {
        refused(
            line,
            &tree.path().join("none"),
            "this machine shows no energy counters",
        );
        refused(
            line,
            tree.path(),
            "is empty; virtual machines usually hide them",
        );
    }
    refused(
        "predict --energy",
        tree.path(),
        "no region's energy is known",
    );
    refused(
        "tune --goal power",
        tree.path(),
        "power is no goal: time, energy or edp",
    );
    // Counters that count nothing.
    zone(tree.path(), "intel-rapl:0", "package-0");
    for line in commands {
        refused(line, tree.path(), "package-0 did not move while");
    }
    std::fs::write(tree.path().join("intel-rapl:0/energy_uj"), "much\n").expect("written");
    for line in commands {
        refused(
            line,
            tree.path(),
            "energy_uj holds `much`, not a number of microjoules",
        );
    }
    // Nothing of that matters to whoever does not ask for it.
    let plain = cere(at, "replay step* --json")
        .env("CERE_POWERCAP", tree.path())
        .output();
    assert!(plain.expect("cere runs").status.success());
}
