//! `cere explain`: causes that are known, changed replays that do the same work, and those that do not.

use crate::common::{built_from, json, refused, run, succeed, text};
use crate::schemas::conforms;
use cere_format::build::Ablation;
use cere_format::store::Store;
use cere_measure::{Replays, Settings};
use cere_system::events::Events;
use serde_json::Value;
use std::path::Path;

const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define N 1024
#define MANY (1 << 20)
#define BYTES (8L << 20)
__attribute__((noinline)) double sum(double *a, int times) {
  double s = 0;
  for (int t = 0; t < times; t++)
    for (int i = 0; i < N; i++) s += a[i];
  return s;
}
__attribute__((noinline)) void quotient(double *a, double *b, double *c, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < N; i++) a[i] = b[i] / c[i] + a[i];
}
__attribute__((noinline)) void fresh(char *a) {
  for (long i = 0; i < BYTES; i += 64) a[i] = 1;
}
/* What is read says how long the inner loop is. */
__attribute__((noinline)) long rows(int *length, long n) {
  long s = 0;
  for (long i = 0; i < n; i++) {
    for (int k = 0; k < length[i]; k++) { s += k; __asm__ volatile("" : "+r"(s)); }
  }
  return s;
}
__attribute__((noinline)) void stream(double *a, double *b, long n) {
  for (long i = 0; i < n; i++) a[i] = 2.0 * b[i];
}
int main(void) {
  static double a[N], b[N], c[N];
  double *x = malloc(MANY * sizeof(double)), *y = malloc(MANY * sizeof(double));
  int *length = malloc(MANY * sizeof(int));
  double s = 0;
  for (int i = 0; i < N; i++) a[i] = b[i] = 1 + i * 0.001, c[i] = 3;
  for (long i = 0; i < MANY; i++) x[i] = y[i] = i, length[i] = (i >> 10) % 4;
  for (int t = 0; t < 3; t++) {
    s += sum(b, 1000);
    quotient(a, b, c, 500);
    char *m = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(m, BYTES, MADV_NOHUGEPAGE);
    fresh(m);
    s += m[64];
    munmap(m, BYTES);
    s += rows(length, MANY);
    stream(x, y, MANY);
  }
  printf("%g\n", s + x[5] + a[7]);
}
"#;

fn captured() -> tempfile::TempDir {
    let directory = built_from(&[("main.c", MAIN)], "$CC -O2 -g main.c -o app");
    let regions = ["sum*", "quotient*", "fresh*", "rows*", "stream*"];
    let mut line = vec!["capture"];
    line.extend(regions);
    line.extend(["--invocation", "2", "--", "./app"]);
    succeed(directory.path(), &line);
    directory
}

fn explained(directory: &Path, region: &str) -> Value {
    let found = json(directory, &["explain", region, "--json"]);
    conforms("explain", &found);
    found[0].clone()
}

/// The what-if of this name.
fn what_if<'a>(found: &'a Value, change: &str) -> &'a Value {
    let all = found["what_if"].as_array().expect("what-ifs");
    let one = all.iter().find(|w| w["change"] == change);
    one.unwrap_or_else(|| panic!("no {change}: {found}"))
}

#[test]
fn causes_that_are_known_and_replays_that_do_other_work() {
    let directory = captured();
    let here = directory.path();

    let sum = explained(here, "sum*");
    assert_eq!(sum["cause"], "chain", "{sum}");
    assert!(what_if(&sum, "no iteration waits for the one before")["seconds"].is_number());
    assert!(sum["line"].is_number() && sum["file"].as_str().is_some_and(|f| f.ends_with("main.c")));

    let quotient = explained(here, "quotient*");
    assert_eq!(quotient["cause"], "divisions", "{quotient}");

    let fresh = explained(here, "fresh*");
    assert_eq!(fresh["cause"], "page-faults", "{fresh}");

    // Data decides how long its loops are: frames that pages share change that.
    let rows = explained(here, "rows*");
    let compact = rows["what_if"].as_array().expect("what-ifs").iter();
    let compact: Vec<&Value> = compact
        .filter(|w| w["change"] == "all data in L1")
        .collect();
    for one in compact.iter().filter(|w| w["found"] == "replayed") {
        assert!(one["seconds"].is_null(), "{rows}");
        let why = one["how"].as_str().expect("a reason");
        assert!(why.contains("branches depend on the values"), "{rows}");
    }

    let stream = explained(here, "stream*");
    let l1 = what_if(&stream, "all data in L1");
    assert_eq!(l1["found"], "replayed", "{stream}");
    assert!(
        l1["seconds"].as_f64() < stream["seconds"].as_f64(),
        "{stream}"
    );

    // What is kept is the last one.
    let store = Store::new(here.join(".cere"));
    let unit = sum["unit"].as_str().expect("a unit");
    let index = sum["index"].as_u64().expect("an index") as u32;
    let kept = cere_explain::kept::kept(&store, unit, index).expect("a kept explanation");
    assert_eq!(serde_json::json!(kept)["sentence"], sum["sentence"]);

    let shown = text(&succeed(here, &["explain", "quotient*"]).stdout);
    assert!(
        shown.contains("It divides or takes roots") && shown.contains("replayed"),
        "{shown}"
    );
}

#[test]
fn what_is_taken_out_of_the_code_is_gone_and_the_rest_stays() {
    let directory = captured();
    let store = Store::new(directory.path().join(".cere"));
    let events = Events::ignored();
    let replays = Replays::open(&store, &events).expect("a cache");
    let assembly = |region: &str, ablation: Option<Ablation>| {
        let files = cere_store::find::all(&store, &[region.to_owned()], &events).expect("codelets");
        let (package, manifest, _) = replays.unpack(&files[0]).expect("a package");
        let settings = Settings { ..settings() };
        let mut options = replays.options(&settings, None).expect("options");
        options.ablation = ablation;
        let texts = cere_replay::compile::assembly(&package, &manifest, &options);
        texts.expect("assembly").concat()
    };
    let count = |text: &str, name: &str| {
        let words = text.lines().filter_map(|l| l.split_whitespace().next());
        words.filter(|word| word.starts_with(name)).count()
    };
    let plain = assembly("quotient*", None);
    let without = assembly("quotient*", Some(Ablation::Divisions));
    let both = |name| (count(&plain, name), count(&without, name));
    assert!(both("divpd").0 > 0, "{plain}");
    assert_eq!(both("div").1, 0, "{without}");
    assert_eq!(
        count(&plain, "mul") + count(&plain, "div"),
        count(&without, "mul")
    );
    assert_eq!(both("add").0, both("add").1);

    let stored = |text: &str| {
        let stores = |l: &&str| l.contains("movup") && l.trim_end().ends_with(')');
        text.lines().filter(stores).count()
    };
    let without = assembly("quotient*", Some(Ablation::Stores));
    assert!(stored(&plain) > stored(&without), "{without}");
    assert_eq!(both("divpd").0, count(&without, "divpd"), "{without}");
}

fn settings() -> Settings {
    Settings {
        flags: Vec::new(),
        passes: None,
        repetitions: Default::default(),
        warmup: None,
        operands: Vec::new(),
        compare: true,
        tolerance: Default::default(),
        timeout: None,
        team: Default::default(),
        energy: None,
        beside: Some(0),
        sandbox: cere_sandbox::Sandbox::new(),
    }
}

#[test]
fn what_cannot_be_explained_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    refused(directory.path(), &["explain", "nothing*"], "nothing*");
    let help = text(&run(directory.path(), &["explain", "--help"]).stdout);
    assert!(help.contains("taken out one by one"), "{help}");
}
