//! `cere explain`: causes that are known, changed replays that do the same work, and those that do not.

use crate::common::{built_from, json, refused, run, succeed, text};
use crate::schemas::conforms;
use cere_format::store::Store;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

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

/// The region's assembly, with `ablation` taken out of the code: the compile that `cere replay --keep` leaves, with another plan.
fn assembly(here: &Path, ablation: Option<&str>) -> String {
    let kept = here.join("kept");
    let plan = kept.join("unit0.bind.json");
    let mut plan: Value =
        serde_json::from_slice(&std::fs::read(plan).expect("a plan")).expect("JSON");
    if let Some(ablation) = ablation {
        plan["ablation"] = ablation.into();
    }
    std::fs::write(kept.join("changed.json"), plan.to_string()).expect("a plan");
    let script = std::fs::read_to_string(kept.join("build.sh")).expect("a script");
    let line = script.lines().find(|line| line.contains("-c unit0.bc"));
    let line = line
        .expect("a compile")
        .replace("unit0.bind.json", "changed.json");
    let line = line.replace("-c unit0.bc -o unit0.o", "-S unit0.bc -o -");
    let done = Command::new("sh")
        .arg("-c")
        .arg(line)
        .current_dir(&kept)
        .output();
    let done = done.expect("a shell");
    assert!(done.status.success(), "{}", text(&done.stderr));
    text(&done.stdout)
}

#[test]
fn what_is_taken_out_of_the_code_is_gone_and_the_rest_stays() {
    let directory = captured();
    let here = directory.path();
    succeed(here, &["replay", "quotient*", "--keep", "kept"]);
    let count = |text: &str, name: &str| {
        let words = text.lines().filter_map(|l| l.split_whitespace().next());
        words.filter(|word| word.starts_with(name)).count()
    };
    let plain = assembly(here, None);
    let without = assembly(here, Some("divisions"));
    assert!(count(&plain, "divpd") > 0, "{plain}");
    assert_eq!(count(&without, "div"), 0, "{without}");
    let [quotients, products] = ["div", "mul"].map(|name| count(&plain, name));
    assert_eq!(quotients + products, count(&without, "mul"), "{without}");
    assert_eq!(count(&plain, "add"), count(&without, "add"));

    let stores = |text: &str| {
        let stores = |l: &&str| l.contains("movup") && l.trim_end().ends_with(')');
        text.lines().filter(stores).count()
    };
    let without = assembly(here, Some("stores"));
    assert!(stores(&plain) > stores(&without), "{without}");
    assert_eq!(
        count(&plain, "divpd"),
        count(&without, "divpd"),
        "{without}"
    );
}

#[test]
fn what_cannot_be_explained_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    refused(directory.path(), &["explain", "nothing*"], "nothing*");
    let help = text(&run(directory.path(), &["explain", "--help"]).stdout);
    assert!(help.contains("taken out one by one"), "{help}");
}
