//! Whether a codelet and its time in vivo are of the same run, process and input; and runs that are not like others.

use crate::common::{
    built_from, cere, has, json, make_executable, parsed, refused, run, succeed, text, write,
};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

const WORK: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static double cells[2000000];
static __attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) cells[i] = cells[i] * 0.5 + i; }
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 0;
    if (argc < 2 && scanf("%d", &n) != 1) return 9;
    for (int r = 0; r < 3; r++) work(n);
    printf("%g\n", cells[n - 1]);
    return 0;
}
"#;

/// The program that works on as many cells as its argument or its input says.
fn built() -> tempfile::TempDir {
    built_from(&[("main.c", WORK)], "$CC -O2 main.c -o app")
}

fn reason(report: &Value) -> &str {
    report["skipped"][0]["reason"].as_str().expect("a reason")
}

fn script(at: &Path, lines: &str) {
    let path = at.join("run.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{lines}")).expect("a script");
    make_executable(&path);
}

#[test]
fn the_codelet_of_a_script_is_of_the_process_that_was_profiled() {
    let directory = built();
    let at = directory.path();
    script(at, "./app 1000\n./app 2000000\n./app 2000\n");
    let line = "capture work* --invocation 2 --json -- ./run.sh";
    let output = succeed(at, line);
    let codelet = &parsed(&output)["codelets"][0];
    assert!(codelet["pages"].as_u64() > Some(3900), "{codelet}");
    assert!(codelet["in_vivo_seconds"].is_f64(), "{codelet}");
    // No process of the second run has the arguments of one of the first.
    script(at, "./app 1000 $$\n./app 2000000 $$\n");
    let output = succeed(at, line);
    let codelet = &parsed(&output)["codelets"][0];
    assert!(codelet["in_vivo_seconds"].is_null(), "{codelet}");
    let message = text(&output.stderr);
    has(&message, "another process");
}

#[test]
fn a_profile_of_other_input_is_of_no_use() {
    let directory = built();
    let at = directory.path();
    write(at, &[("large", "2000000\n"), ("small", "3000\n")]);
    let from = |name: &str, line: &str| {
        let output = cere(at, line)
            .stdin(File::open(at.join(name)).expect("a file"))
            .output()
            .expect("cere runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        output
    };
    let capture = "capture work* --invocation 1 --json -- ./app";
    let again = |output: &Output| text(&output.stderr).contains("running once more");
    from("large", "profile -- ./app");
    let output = from("small", capture);
    assert!(again(&output));
    let time = parsed(&output)["codelets"][0]["in_vivo_seconds"].as_f64();
    let output = from("small", capture);
    assert!(!again(&output));
    let output = from("large", capture);
    assert!(again(&output));
    let large = parsed(&output)["codelets"][0]["in_vivo_seconds"].as_f64();
    assert!(
        large.expect("a time") > 10.0 * time.expect("a time"),
        "{large:?} {time:?}"
    );
    // The same name, another content.
    write(at, &[("large", "3000 \n")]);
    assert!(again(&from("large", capture)));
}

#[test]
fn a_pipe_that_stays_open() {
    let directory = built();
    let at = directory.path();
    let plain = std::process::Command::new(at.join("app"))
        .arg("500000")
        .output()
        .expect("the program runs");
    for (line, input) in [
        (&["capture", "--", "./app", "500000"][..], ""),
        (&["capture", "--", "./app"], "500000\n"),
    ] {
        let mut child = cere(at, line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("cere runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(input.as_bytes()).expect("a write");
        let output = child.wait_with_output().expect("cere ends");
        drop(pipe);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).starts_with(&text(&plain.stdout)));
    }
    // A program that waits for more ends with its time.
    let mut child = cere(at, "capture --timeout 1 -- ./app")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cere runs");
    let pipe = child.stdin.take();
    let output = child.wait_with_output().expect("cere ends");
    drop(pipe);
    assert!(text(&output.stderr).contains("--timeout of 1 s"));
}

#[test]
fn more_than_a_pipe_holds() {
    let source = r#"
#include <stdio.h>
static unsigned char bytes[3000000];
static __attribute__((noinline)) unsigned sum(long n) { unsigned s = 0; for (long i = 0; i < n; i++) s = s * 31 + bytes[i]; return s; }
int main(void) { long n = fread(bytes, 1, sizeof bytes, stdin); printf("%ld %u\n", n, sum(n)); return 0; }
"#;
    let directory = built_from(&[("main.c", source)], "$CC -O2 main.c -o app");
    let at = directory.path();
    let content: Vec<u8> = (0..2_500_000u32)
        .map(|i| (i.wrapping_mul(i) >> 7) as u8)
        .collect();
    std::fs::write(at.join("data"), content).expect("a file");
    let from_file = cere(at, "capture -- ./app")
        .stdin(File::open(at.join("data")).expect("a file"))
        .output()
        .expect("cere runs");
    let mut cat = std::process::Command::new("cat")
        .arg(at.join("data"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat runs");
    let pipe = cat.stdout.take().expect("a pipe");
    let piped = cere(at, "capture -- ./app")
        .stdin(pipe)
        .output()
        .expect("cere runs");
    cat.wait().expect("cat ends");
    let first = |output: &Output| text(&output.stdout).lines().next().map(str::to_owned);
    assert!(first(&piped).is_some_and(|line| line.starts_with("2500000 ")));
    assert_eq!(first(&piped), first(&from_file));
}

const PLUGGED: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static long cells[1000];
static int (*plug)(int);
static __attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) cells[i] += i; }
static __attribute__((noinline)) void plugged(int n) { for (int i = 0; i < n; i++) cells[i] += plug(i); }
int main(void) {
    if (system("cp plug.so gone.so")) return 1;
    char *place = realpath("gone.so", NULL);
    void *library = dlopen(place, RTLD_NOW);
    plug = (int (*)(int))dlsym(library, "plug");
    unlink("gone.so");
    work(1000);
    plugged(1000);
    printf("%ld\n", cells[5]);
    return 0;
}
"#;

#[test]
fn an_image_that_is_gone() {
    let library = "static int calls[1000]; int plug(int x) { return x + ++calls[x]; }\n";
    let directory = built_from(
        &[("main.c", PLUGGED), ("plug.c", library)],
        "$CC -O2 main.c -o app; env -u LD_PRELOAD nice /usr/bin/clang-22 -O2 -shared -fPIC plug.c -o plug.so",
    );
    let line = "capture * --invocation 1 --json -- ./app";
    let output = run(directory.path(), line);
    let report = parsed(&output);
    assert_eq!(report["codelets"].as_array().map(Vec::len), Some(1));
    assert!(
        report["codelets"][0]["region"]
            .as_str()
            .is_some_and(|name| name.starts_with("work@"))
    );
    assert!(reason(&report).contains("gone.so"), "{report}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn thread_locals_of_another_image() {
    let files = [
        (
            "main.c",
            "#include <stdio.h>
long tick(long), count(long), plain(long);
static long r[100];
static __attribute__((noinline)) void ticks(int n) { for (int i = 0; i < n; i++) r[i] = tick(i); }
static __attribute__((noinline)) void counts(int n) { for (int i = 0; i < n; i++) r[i] += count(i); }
static __attribute__((noinline)) void plains(int n) { for (int i = 0; i < n; i++) r[i] += plain(i); }
int main(void) { ticks(100); counts(100); plains(100); printf(\"%ld\\n\", r[99]); return 0; }
",
        ),
        (
            "b.c",
            "static __thread long acc[4] = {5, 6, 7, 8};
__thread long calls = 3;
long tick(long x) { acc[x & 3] += x; return acc[x & 3]; }
static __attribute__((noinline)) long add(long x) { return calls += x; }
long count(long x) { return add(x) + 1; }
long plain(long x) { return x * 3; }
",
        ),
    ];
    let directory = built_from(
        &files,
        "$CC -O2 -fPIC -shared b.c -o libb.so; $CC -O2 main.c -o app -L. -lb -Wl,-rpath,'$ORIGIN'",
    );
    let at = directory.path();
    let line = "capture * --invocation 1 --json -- ./app";
    let report = parsed(&run(at, line));
    let skipped = report["skipped"].as_array().expect("skipped");
    assert_eq!(skipped.len(), 2, "{report}");
    for skipped in skipped {
        let reason = skipped["reason"].as_str().expect("a reason");
        has(reason, "libb.so, which uses thread-local variables");
    }
    let replay = json(at, "replay --json --reps 2 plains*");
    assert_eq!(replay["verdict"], "exact", "{replay}");
}

#[test]
fn regions_of_other_threads() {
    let source = "#include <pthread.h>
#include <stdio.h>
static long cells[1000];
static __attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) cells[i] += i; }
static __attribute__((noinline)) void never(int n) { for (int i = 0; i < n; i++) cells[i] -= i; }
static void *other(void *x) { for (int r = 0; r < 40000; r++) work(1000); return x; }
static __attribute__((noinline)) void join(pthread_t *all, int n) { for (int i = 0; i < n; i++) pthread_join(all[i], 0); }
int main(int argc, char **argv) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, other, 0);
    join(threads, 2);
    if (argc > 5) never(argc);
    printf(\"%s\\n\", argv[0]);
    return 0;
}
";
    let directory = built_from(
        &[("main.c", source)],
        "$CC -O1 -fno-vectorize main.c -o app -pthread",
    );
    let at = directory.path();
    let profile = json(at, "profile --json -- ./app");
    let all = profile["over_threads"].as_array().expect("regions");
    let work = all
        .iter()
        .find(|e| e["name"] == "work@main.c:4")
        .expect("the region");
    assert_eq!(work["invocations"], 80000);
    assert_eq!(work["first_share"], 0.0);
    let processor = &profile["processor"];
    let (all, others) = (&processor["seconds"], &processor["others"]);
    let share = others.as_f64().expect("seconds") / all.as_f64().expect("seconds");
    assert!(share > 0.8, "{processor}");
    for more in [&[][..], &["--invocation", "1"]] {
        let mut arguments = vec!["capture", "work@main.c:4", "never@main.c:5"];
        arguments.extend(more);
        arguments.extend(["--", "./app"]);
        refused(at, &arguments, "never@main.c:5: it never ran with these");
        let kept = text(&succeed(at, "codelets").stdout);
        assert!(kept.contains(".t1 ") || kept.contains(".t2 "), "{kept}");
    }
    refused(
        at,
        "capture work@main.c:4 --thread 0 --invocation 1 -- ./app",
        "it ran in threads other than the program's first alone (80000 times): name one by --thread",
    );
    // Nearly all of the first thread's time, and no work.
    refused(
        at,
        "capture join@main.c:7 -- ./app",
        "calls pthread_join: it waits for another thread",
    );
    let chosen = text(&succeed(at, "select --coverage 50").stdout);
    has(&chosen, "of processor time in all threads covered");
}

#[test]
fn the_last_verdict_is_one_as_captured() {
    let directory = built();
    let at = directory.path();
    succeed(at, "capture work* -- ./app 3000");
    let verdict = || json(at, "codelets --json")[0]["verdict"].clone();
    assert!(verdict().is_null());
    run(at, "replay --reps 1 work* '--flags=-O3 -ffast-math'");
    assert!(verdict().is_null());
    succeed(at, "replay --reps 1 work*");
    assert_eq!(verdict(), "exact");
    succeed(at, "replay --reps 1 --no-check work*");
    assert_eq!(verdict(), "exact");
}

/// A terminal, and a shell with job control in it that runs `line`.
struct Session {
    terminal: File,
    shell: std::process::Child,
    seen: String,
}

impl Session {
    fn start(at: &Path, line: &str) -> Self {
        use std::os::fd::{FromRawFd, OwnedFd};
        use std::os::unix::process::CommandExt;
        let (mut outer, mut inner) = (0, 0);
        let null = std::ptr::null_mut();
        // SAFETY: two descriptors are written, both new and ours.
        let (terminal, inner) = unsafe {
            assert_eq!(
                libc::openpty(&mut outer, &mut inner, null, null.cast(), null.cast()),
                0
            );
            (File::from_raw_fd(outer), OwnedFd::from_raw_fd(inner))
        };
        let copy = || Stdio::from(inner.try_clone().expect("a descriptor"));
        let mut shell = std::process::Command::new("sh");
        shell.args(["-m", "-c", line]).current_dir(at);
        shell.stdin(copy()).stdout(copy()).stderr(copy());
        // SAFETY: two system calls without pointers.
        unsafe {
            shell.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        Session {
            terminal,
            shell: shell.spawn().expect("a shell"),
            seen: String::new(),
        }
    }

    /// Reads until `part` has come; false if that takes too long or the session ends.
    fn await_text(&mut self, part: &str) -> bool {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let started = Instant::now();
        while !self.seen.contains(part) && started.elapsed() < Duration::from_secs(60) {
            let mut event = libc::pollfd {
                fd: self.terminal.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one structure.
            if unsafe { libc::poll(&mut event, 1, 100) } == 1 {
                let mut bytes = [0; 4096];
                match self.terminal.read(&mut bytes) {
                    Ok(count) if count > 0 => self.seen.push_str(&text(&bytes[..count])),
                    _ => break,
                }
            }
        }
        self.seen.contains(part)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn a_run_that_is_stopped_at_the_terminal() {
    let source = r#"
#include <stdio.h>
static long cells[1000];
static __attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) cells[i] += i; }
int main(void) {
    char line[100];
    printf("ready\n");
    fflush(stdout);
    work(1000);
    if (!fgets(line, sizeof line, stdin)) return 9;
    printf("got %s", line);
    return 0;
}
"#;
    let directory = built_from(&[("main.c", source)], "$CC -O2 main.c -o app");
    let line = format!(
        "{} profile -- ./app; echo stopped $?; fg > /dev/null; echo ended $?",
        crate::common::built().display()
    );
    let mut session = Session::start(directory.path(), &line);
    assert!(session.await_text("ready"), "{}", session.seen);
    session.terminal.write_all(&[0x1a]).expect("a key");
    assert!(session.await_text("stopped 148"), "{}", session.seen);
    session.terminal.write_all(b"seven\n").expect("a line");
    assert!(session.await_text("got seven"), "{}", session.seen);
    assert!(session.await_text("ended 0"), "{}", session.seen);
}

const SHORT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static double cells[8];
static __attribute__((noinline)) void few(int n) { for (int i = 0; i < n; i++) cells[i] = cells[i] * 0.5 + i; }
static __attribute__((noinline)) void many(int n, int m) { for (int i = 0; i < n; i++) few(m); }
int main(int argc, char **argv) {
    FILE *log = fopen("runs", "a");
    fprintf(log, "run\n");
    fclose(log);
    many(atoi(argv[1]), argc + 6);
    printf("%g\n", cells[7]);
    return 0;
}
"#;

#[test]
fn where_probes_take_much_of_a_run_it_is_run_without_them_as_well() {
    let directory = built_from(&[("main.c", SHORT)], "$CC -O2 main.c -o app");
    let at = directory.path();
    let profile = |line: &[&str]| {
        let _ = std::fs::remove_file(at.join("runs"));
        let output = succeed(at, line);
        let runs = std::fs::read_to_string(at.join("runs")).expect("a log");
        (runs.lines().count(), text(&output.stderr), parsed(&output))
    };
    let (runs, message, alone) = profile(&["profile", "--json", "--", "./app", "1000000"]);
    assert_eq!(runs, 1);
    has(&message, "% of the run. That is subtracted, but");
    let line = ["profile", "--json", "--runs", "2", "--", "./app", "1000000"];
    let (runs, message, settled) = profile(&line);
    assert_eq!(runs, 4);
    has(&message, "run 2 of 2 for what the probes cost");
    // What is entered, and from where, is what all probes saw; no part is longer than the whole.
    let entered = |report: &Value| {
        let mut all: Vec<(String, u64)> = report["regions"]
            .as_array()
            .expect("regions")
            .iter()
            .map(|r| {
                (
                    r["name"].to_string(),
                    r["invocations"].as_u64().expect("a number"),
                )
            })
            .collect();
        all.sort();
        all
    };
    assert_eq!(entered(&alone), entered(&settled));
    assert!(entered(&settled).iter().any(|r| r.1 == 1_000_000));
    let kept: Value =
        serde_json::from_slice(&std::fs::read(at.join(".cere/profile.json")).expect("a profile"))
            .expect("JSON");
    let tree = kept["tree"].as_array().expect("a tree");
    let time = |node: &Value, of: &str| node[of].as_f64().expect("seconds");
    for (place, node) in tree.iter().enumerate() {
        let children = tree
            .iter()
            .filter(|n| n["parent"] == serde_json::json!(place));
        let inside: f64 = children.map(|n| time(n, "inclusive_seconds")).sum();
        let sum = time(node, "self_seconds") + inside;
        let whole = time(node, "inclusive_seconds");
        assert!(sum <= whole * (1.0 + 1e-9), "{sum} {whole}");
    }
    assert_eq!(tree[0]["inclusive_seconds"], kept["seconds"]);
    // Long invocations need none of it.
    let directory = built();
    let line = "profile --runs 2 -- ./app 2000000";
    let output = succeed(directory.path(), line);
    let message = text(&output.stderr);
    assert!(!message.contains("probes"), "{message}");
}
