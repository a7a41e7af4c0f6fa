//! Where personality() is refused, as in some containers, a run goes on with the addresses that it gets.

use crate::common::{built, directory_with, parsed, text};
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long value; };
static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int numbers[3000];
__attribute__((noinline)) long walk(struct node *n) { long s = 0; for (; n; n = n->next) s += n->value++; return s; }
__attribute__((noinline)) void shuffle(int times) {
    int local[500];
    for (int t = 0; t < times; t++) {
        for (int i = 0; i < 500; i++) local[i] = (i * 7919 + t) % 997;
        qsort(local, 500, sizeof *local, by_value);
        for (int i = 0; i < 500; i++) numbers[t * 500 + i] = local[i];
    }
}
int main(void) {
    struct node *list = 0;
    for (int i = 0; i < 4000; i++) { struct node *n = malloc(sizeof *n); n->next = list; n->value = i; list = n; }
    long s = 0;
    for (int i = 0; i < 20; i++) s += walk(list);
    shuffle(6);
    printf("%ld %d %p\n", s, numbers[1234], (void *)&s);
    return 0;
}
"#;

/// `cere ARGUMENTS` in `at`, where personality() is refused.
fn confined(at: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(at.join("refuse"))
        .arg(built())
        .args(arguments)
        .current_dir(at)
        .output()
        .expect("the wrapper runs");
    assert!(
        output.status.success(),
        "cere {arguments:?}: {}",
        text(&output.stderr)
    );
    output
}

#[test]
fn every_stage_goes_on() {
    let directory = directory_with(&[("main.c", PROGRAM)]);
    let at = directory.path();
    let wrapper = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refuse.c");
    let compiled = Command::new("clang-22")
        .args(["-Wall", "-Werror", "-o"])
        .arg(at.join("refuse"))
        .arg(wrapper)
        .status()
        .expect("clang-22 runs");
    assert!(compiled.success());

    let mut places = Vec::new();
    for flags in ["-O2 -fPIE -pie", "-O2 -no-pie"] {
        let build = format!("$CC {flags} main.c -o app");
        confined(at, &["instrument", "--", "sh", "-c", &build]);
        for _ in 0..2 {
            let run = confined(at, &["profile", "--json", "--", "./app"]);
            let printed = text(&run.stderr);
            places.push(
                printed
                    .split_whitespace()
                    .nth(2)
                    .expect("an address")
                    .to_owned(),
            );
            confined(at, &["capture", "*", "--", "./app"]);
            let output = confined(at, &["replay", "--json", "--reps", "2", "*"]);
            let all = parsed(&output);
            let all = all.as_array().expect("several codelets");
            assert!(all.len() >= 4, "{all:?}");
            for one in all {
                assert_eq!(one["verdict"], "exact", "{one}");
                assert_eq!(one["identical_code"], true, "{one}");
            }
        }
    }
    // Else the wrapper refused nothing, and this test shows nothing.
    places.sort();
    places.dedup();
    assert!(
        places.len() > 1,
        "the stack is at the same address in every run: {places:?}"
    );
}
