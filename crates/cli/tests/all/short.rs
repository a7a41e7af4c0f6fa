//! Loops that are too short for a probe: by the code, by a profile, and all the same.

use crate::common::{has, json, run, succeed, text};
use std::path::Path;

/// `steps` is bounded by nothing that the code shows, `bits` by 8, `fill` takes long.
const MAIN: &str = "#include <stdio.h>
unsigned bits(unsigned v) { unsigned n = 0; for (int i = 0; i < 8; i++) n += v >> i & 1; return n; }
unsigned steps(unsigned a, unsigned b) { while (b) { unsigned t = a % b; a = b; b = t; } return a; }
static unsigned values[1000];
void fill(unsigned v) { for (unsigned i = 0; i < 1000; i++) values[i] += v; }
int main(void) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 200000; i++) {
        sum += bits(i) + steps(i, 360);
        if (i % 1000 == 0) fill(sum);
    }
    printf(\"%u %u\\n\", sum, values[7]);
}
";

fn build(at: &Path, options: &[&str]) {
    let line = ["--", "sh", "-c", "$CC -O2 main.c -o app"];
    succeed(at, &[&["instrument"], options, &line].concat());
}

/// Name and index of each region, with why it is refused.
fn regions(at: &Path) -> Vec<(String, u64, String)> {
    let list = json(at, "regions --json");
    let row = |r: &serde_json::Value| {
        let reason = r["reason"].as_str().unwrap_or_default();
        assert_eq!(r["outlined"] == true, reason.is_empty());
        let name = r["name"].as_str().expect("a name").to_owned();
        (name, r["index"].as_u64().expect("an index"), reason.into())
    };
    list.as_array().expect("a list").iter().map(row).collect()
}

fn reasons(at: &Path) -> Vec<String> {
    regions(at).into_iter().map(|r| r.2).collect()
}

#[test]
fn by_the_code_by_a_profile_and_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    std::fs::write(at.join("main.c"), MAIN).expect("a source");
    build(at, &["--all-loops"]);
    let all = regions(at);
    assert!(
        all.len() == 4 && all.iter().all(|r| r.2.is_empty()),
        "{all:?}"
    );
    // Who wants all loops hears nothing of it.
    let quiet = succeed(at, "profile -- ./app");
    assert!(!text(&quiet.stderr).contains("too short"));

    build(at, &[]);
    let found = reasons(at);
    let at_most = "too short: at most 1000 instructions, in a function that is called in loops";
    assert_eq!(found, [at_most, "", "", ""]);
    let profile = succeed(at, "profile -- ./app");
    let said = text(&profile.stderr);
    has(&said, "probes slow the program down: steps@main.c:3.");

    // The profile counts from the next build on, and a further one does not forget it.
    for _ in 0..2 {
        build(at, &[]);
        let found = reasons(at);
        assert_eq!((&*found[0], &*found[2], &*found[3]), (at_most, "", ""));
        assert!(
            found[1].ends_with("cycles an invocation in a profile"),
            "{found:?}"
        );
        let profile = succeed(at, "profile -- ./app");
        assert!(!text(&profile.stderr).contains("too short"));
    }
    let names =
        |of: &[(String, u64, String)]| of.iter().map(|r| (r.0.clone(), r.1)).collect::<Vec<_>>();
    assert_eq!(names(&regions(at)), names(&all));
    build(at, &["--all-loops"]);
    assert_eq!(regions(at), all);

    std::fs::write(
        at.join(".cere/short.json"),
        "{\"version\": 2, \"loops\": []}",
    )
    .expect("a file");
    let line = "instrument -- sh -c '$CC -O2 main.c -o app'";
    let failed = run(at, line);
    assert!(!failed.status.success());
    assert!(text(&failed.stderr).contains("short.json has version 2"));
}
