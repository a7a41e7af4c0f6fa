//! Work of threads beside the first, in profiles.

use crate::common::{built_from, has, json, parsed, run, succeed, text};
use serde_json::Value;
use std::path::Path;

/// A region over all threads.
fn over<'a>(profile: &'a Value, name: &str) -> &'a Value {
    let all = profile["over_threads"].as_array().expect("regions");
    let found = all.iter().find(|region| region["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {profile}"))
}

fn seconds(of: &Value, field: &str) -> f64 {
    of[field].as_f64().expect("seconds")
}

/// Times that each thread but the first entered the region, by rising number.
fn entries(profile: &Value, name: &str) -> Vec<u64> {
    let threads = profile["threads"].as_array().expect("threads");
    let others = threads.iter().filter(|thread| thread["number"] != 0);
    let of = |thread: &Value| {
        let regions = thread["regions"].as_array().expect("regions");
        let own = regions.iter().filter(|region| region["region"] == name);
        own.map(|region| region["invocations"].as_u64().expect("a count"))
            .sum()
    };
    others.map(of).collect()
}

/// Sums that hold whatever the machine does beside.
fn adds_up(profile: &Value) {
    let processor = &profile["processor"];
    assert!(seconds(processor, "covered") <= seconds(processor, "seconds"));
    for region in profile["over_threads"].as_array().expect("regions") {
        let own = seconds(region, "self_seconds");
        assert!(seconds(region, "waiting_seconds") <= own, "{region}");
        assert!(
            own <= seconds(region, "inclusive_seconds") * 1.000001 + 1e-6,
            "{region}"
        );
        let name = &region["name"];
        let of = |thread: &Value, field| {
            let regions = thread["regions"].as_array().expect("regions").clone();
            let own = regions.into_iter().filter(|r| r["region"] == *name);
            own.map(|r| seconds(&r, field)).sum::<f64>()
        };
        let threads = profile["threads"].as_array().expect("threads");
        for field in ["self_seconds", "invocations"] {
            let sum: f64 = threads.iter().map(|thread| of(thread, field)).sum();
            assert!(
                (sum - seconds(region, field)).abs() < 1e-6,
                "{field} {region}"
            );
        }
    }
}

#[test]
fn a_pool_of_threads() {
    let source = "#include <thread>
#include <vector>
static double cells[5][20000];
static __attribute__((noinline)) void work(double *v, int n) { for (int i = 1; i < n; i++) v[i] = v[i - 1] * 0.5 + v[i]; }
static __attribute__((noinline)) void turns(double *v, int n) { for (int r = 0; r < n; r++) work(v, 20000); }
static __attribute__((noinline)) void join(std::vector<std::thread> &all) { for (auto &thread : all) thread.join(); }
int main() {
    std::vector<std::thread> all;
    for (int t = 0; t < 4; t++) all.emplace_back([t] { turns(cells[t], 200 * (t + 1)); });
    turns(cells[4], 50);
    join(all);
}
";
    let directory = built_from(
        &[("main.cpp", source)],
        "$CXX -O1 -fno-vectorize main.cpp -o app -pthread",
    );
    let at = directory.path();
    let profile = json(at, "profile --json -- ./app");
    let work = over(&profile, "work@main.cpp:4");
    assert_eq!(work["invocations"], 2050);
    assert_eq!(work["threads"], 5);
    let turns = over(&profile, "turns@main.cpp:5");
    assert_eq!(turns["invocations"], 5);
    assert_eq!(entries(&profile, "work@main.cpp:4"), [200, 400, 600, 800]);
    adds_up(&profile);
    let first = seconds(work, "first_share");
    assert!(first > 0.0 && first < 1.0, "{work}");
    // The loop that waits is not where the work is.
    let join = over(&profile, "join@main.cpp:6");
    assert!(seconds(join, "waiting_seconds") > 0.5 * seconds(join, "self_seconds"));
    // Nor is its time what it waits.
    let own = profile["regions"].as_array().expect("regions");
    let own = own.iter().find(|r| r["name"] == join["name"]);
    let own = own.expect("the first thread's");
    let cycles = own["cycles"]["mean"].as_f64().expect("cycles");
    let whole = seconds(own, "inclusive_seconds");
    let hertz = profile["tsc_hz"].as_f64().expect("a frequency");
    assert!(cycles < 0.5 * whole * hertz, "{own}");
    assert_eq!(profile["over_threads"][0]["name"], "work@main.cpp:4");
    let table = text(&succeed(at, "profile -- ./app").stdout);
    let line = table.lines().nth(1).unwrap_or("");
    assert!(line.starts_with("work@main.cpp:4"), "{table}");
    for part in ["threads", "first's", "waits", "regions of all threads"] {
        has(&table, part);
    }
    // The loop that joins is refused; what the workers do is captured in one of them.
    succeed(at, "capture -- ./app");
    succeed(at, "capture turns@* --thread 4 --invocation 1 -- ./app");
    has(
        &text(&succeed(at, "codelets").stdout),
        "turns@main.cpp:5:1.t4",
    );
    is_exact(at, "*");
    let refused = run(at, "capture join@* -- ./app");
    has(&text(&refused.stderr), "calls pthread_join");
    has(
        &text(&succeed(at, "select --coverage 80").stdout),
        "of processor time in all threads covered",
    );
    let chosen = json(at, "select --json --coverage 80");
    assert!(seconds(&chosen, "of_all_threads") > 0.8, "{chosen}");
    let table = text(&run(at, "check --rounds 2").stdout);
    has(&table, "of the processor time of all threads");
}

/// Replays of the codelets leave the original's state.
fn is_exact(at: &Path, names: &str) {
    let output = succeed(at, format!("replay {names} --reps 3 --json").as_str());
    let replays = parsed(&output);
    let several = replays.as_array().cloned();
    let replays = several.unwrap_or_else(|| vec![replays]);
    assert!(!replays.is_empty());
    for replay in replays {
        assert_eq!(replay["verdict"], "exact", "{replay}");
    }
}

#[test]
fn jobs_on_the_stack_of_another_thread() {
    // The pool's jobs work on arrays on the stack of main, which rests in a wait meanwhile.
    let source = "#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>
static __attribute__((noinline)) void sweep(const double *in, double *out, int n, int turns) { for (int r = 0; r < turns; r++) for (int i = 1; i + 1 < n; i++) out[i] = 0.25 * in[i - 1] + 0.5 * in[i] + 0.25 * in[i + 1] + r; }
struct Pool {
    std::mutex lock; std::condition_variable some, none; std::queue<std::function<void()>> jobs; int left = 0; bool over = false;
    std::vector<std::thread> threads;
    Pool(int n) { for (int i = 0; i < n; i++) threads.emplace_back([this] { run(); }); }
    void run() { for (;;) { std::function<void()> job; { std::unique_lock<std::mutex> l(lock); some.wait(l, [&] { return over || !jobs.empty(); }); if (jobs.empty()) return; job = jobs.front(); jobs.pop(); } job(); std::lock_guard<std::mutex> l(lock); if (--left == 0) none.notify_all(); } }
    void add(std::function<void()> job) { { std::lock_guard<std::mutex> l(lock); jobs.push(job); left++; } some.notify_one(); }
    void wait() { std::unique_lock<std::mutex> l(lock); none.wait(l, [&] { return left == 0; }); }
    ~Pool() { { std::lock_guard<std::mutex> l(lock); over = true; } some.notify_all(); for (auto &t : threads) t.join(); }
};
int main() {
    double small[4096], result[4096];
    for (int i = 0; i < 4096; i++) small[i] = i % 17, result[i] = 0;
    { Pool pool(4);
      for (int step = 0; step < 60; step++) {
        for (int part = 0; part < 8; part++) pool.add([&, part] { sweep(small + part * 512, result + part * 512, 512, 20); });
        pool.wait();
      } }
    printf(\"%.12g\\n\", result[700]);
}
";
    let directory = built_from(&[("main.cpp", source)], "$CXX -O2 main.cpp -o app -pthread");
    let at = directory.path();
    let profile = json(at, "profile --json -- ./app");
    let sweep = over(&profile, "sweep@main.cpp:8");
    assert_eq!(sweep["invocations"], 480);
    let plain = std::process::Command::new(at.join("app")).output();
    let plain = plain.expect("the program runs").stdout;
    // Which thread gets a job is chance: each gets some.
    let mut taken = 0;
    for thread in 1..=4 {
        let line = format!("capture sweep@main.cpp:8 --thread {thread} --invocation 1-9 -- ./app");
        let output = run(at, line.as_str());
        assert!(
            text(&output.stdout).starts_with(&text(&plain)),
            "{}",
            text(&output.stderr)
        );
        taken += text(&output.stdout).matches(&format!(".t{thread}")).count();
    }
    assert!(taken > 4, "{taken}");
    is_exact(at, "sweep*");
}

#[test]
fn a_thread_that_ends_inside() {
    let source = "#include <pthread.h>
static double cells[2][4000];
static __attribute__((noinline)) void leave(double *v, int n) { for (int i = 0; i < n; i++) { v[i] = v[i] * 0.5 + i; if (i == n / 2) pthread_exit(0); } }
static __attribute__((noinline)) void work(double *v, int n) { for (int i = 0; i < n; i++) v[i] = v[i] * 0.9 + i; }
static void *other(void *x) { for (int r = 0; r < 50; r++) work(x, 4000); leave(x, 4000); return x; }
int main(void) {
    pthread_t two[2];
    for (int t = 0; t < 2; t++) pthread_create(&two[t], 0, other, cells[t]);
    for (int t = 0; t < 2; t++) pthread_join(two[t], 0);
    return 0;
}
";
    for flags in ["-O1", "-O1 -fno-asynchronous-unwind-tables"] {
        let build = format!("$CC {flags} main.c -o app -pthread");
        let directory = built_from(&[("main.c", source)], &build);
        let at = directory.path();
        let output = run(
            at,
            "capture leave@* work@* --thread 2 --invocation 1 --json -- ./app",
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report = parsed(&output);
        // With the end of the thread as an exception it is one way out of the region; without, nobody knows that it ended.
        let leave = report["skipped"].as_array().expect("a list");
        assert!(
            leave.is_empty()
                || leave[0]["reason"]
                    .to_string()
                    .contains("its thread ends inside"),
            "{report}"
        );
        is_exact(at, "work*");
    }
    let directory = built_from(&[("main.c", source)], "$CC -O1 main.c -o app -pthread");
    let at = directory.path();
    let refused = run(at, "capture work@* --thread 3 --invocation 1 -- ./app");
    has(&text(&refused.stderr), "thread 3");
    let late = run(at, "capture work@* --thread 1 --invocation 51 -- ./app");
    has(
        &text(&late.stderr),
        "invocation 51 never came: thread 1 entered it 50 times",
    );
}

#[test]
fn threads_from_before_there_are_regions() {
    // The program itself has none: the library that it loads later does.
    let host = "#include <dlfcn.h>
#include <pthread.h>
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static void *early(void *x) { pthread_mutex_lock(&held); return x; }
int main(void) {
    pthread_t two[2];
    pthread_mutex_lock(&held);
    pthread_create(&two[0], 0, early, 0);
    void *library = dlopen(\"./plug.so\", RTLD_NOW);
    pthread_create(&two[1], 0, (void *(*)(void *))dlsym(library, \"work\"), 0);
    pthread_join(two[1], 0);
    pthread_mutex_unlock(&held);
    pthread_join(two[0], 0);
    return 0;
}
";
    let plug = "static double v[4000];
void *work(void *x) { for (int r = 0; r < 200; r++) for (int i = 1; i < 4000; i++) v[i] = v[i - 1] * 0.5 + i + r; return x; }
";
    let directory = built_from(
        &[("host.c", host), ("plug.c", plug)],
        "$CC -O1 -shared -fPIC plug.c -o plug.so; env -u LD_PRELOAD nice /usr/bin/clang-22 -O1 host.c -o app -pthread",
    );
    let at = directory.path();
    let profile = json(at, "profile --json -- ./app");
    let threads = profile["threads"].as_array().expect("threads");
    let enters = |thread: &&Value| thread["regions"].as_array().is_some_and(|r| !r.is_empty());
    let numbers: Vec<_> = threads
        .iter()
        .filter(enters)
        .map(|t| t["number"].as_u64())
        .collect();
    assert_eq!(numbers, [Some(2)]);
    // Captures mean the same thread by that number.
    succeed(at, "capture work@* --thread 2 --invocation 1 -- ./app");
    is_exact(at, "work*");
}

#[test]
fn threads_that_come_and_go() {
    let source = "#include <pthread.h>
static double cells[2000];
static __attribute__((noinline)) void work(int n) { for (int i = 1; i < n; i++) cells[i] = cells[i - 1] * 0.5 + i; }
static __attribute__((noinline)) void leave(int n) { for (int i = 1; i < n; i++) { cells[i] += i; if (i == n / 2) pthread_exit(0); } }
static pthread_key_t key;
static void last(void *x) { (void)x; work(2000); }
static void *other(void *x) { pthread_setspecific(key, &key); work(2000); if (x) leave(2000); return x; }
int main(void) {
    pthread_key_create(&key, last);
    for (int i = 0; i < 1500; i++) {
        pthread_t two[2];
        for (int t = 0; t < 2; t++) pthread_create(&two[t], 0, other, i % 3 ? 0 : two);
        for (int t = 0; t < 2; t++) pthread_join(two[t], 0);
    }
    work(2000);
    return 0;
}
";
    let directory = built_from(&[("main.c", source)], "$CC -O1 main.c -o app -pthread");
    let profile = json(directory.path(), "profile --json -- ./app");
    let work = over(&profile, "work@main.c:3");
    assert_eq!(work["invocations"], 6001);
    let leave = over(&profile, "leave@main.c:4");
    assert_eq!(leave["invocations"], 1000);
    assert_eq!(leave["threads"], 1000);
    adds_up(&profile);
    // Each of them once, though blocks are used again; a thread whose destructors run late may count twice.
    let threads = work["threads"].as_u64().expect("a count");
    assert!((3001..=6001).contains(&threads), "{threads}");
    assert!(profile["threads"].as_array().expect("threads").len() <= 1024);
}

#[test]
fn teams_beside_other_threads() {
    let source = "#include <pthread.h>
#include <omp.h>
static double cells[3][10000];
static __attribute__((noinline)) void work(double *v, int n) { for (int i = 1; i < n; i++) v[i] = v[i - 1] * 0.5 + i; }
static __attribute__((noinline)) void team(int n) {
    #pragma omp parallel num_threads(2)
    for (int r = 0; r < n; r++) work(cells[omp_get_thread_num()], 10000);
}
static void *other(void *x) { for (int r = 0; r < 300; r++) work(cells[2], 10000); return x; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, other, 0);
    for (int i = 0; i < 20; i++) team(10);
    pthread_join(thread, 0);
    return 0;
}
";
    let directory = built_from(
        &[("main.c", source)],
        "$CC -O1 -fopenmp main.c -o app -pthread",
    );
    let profile = json(directory.path(), "profile --json -- ./app");
    let all = profile["over_threads"].as_array().expect("regions");
    let of = |place: &str| {
        let found = all
            .iter()
            .find(|r| r["name"].as_str().is_some_and(|n| n.starts_with(place)));
        found.unwrap_or_else(|| panic!("no {place} in {profile}"))
    };
    // What the team runs is the parallel region's; what the other thread runs is not, whatever the first is in.
    assert_eq!(of("work@")["invocations"], 300);
    assert_eq!(of("work@")["threads"], 1);
    assert_eq!(of("team@")["invocations"], 20);
    assert_eq!(of("team@")["waiting_seconds"], 0.0);
    adds_up(&profile);
}

#[test]
fn results_beside_control_blocks() {
    // Results right above the stack of a thread that waits, in the outermost frame of the captured one, and on the page of its
    // control block.
    let source = "#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
typedef struct { char stack[65536]; double result[96]; } Part;
static Part part __attribute__((aligned(4096))), odd __attribute__((aligned(4096)));
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER; static int over;
static __attribute__((noinline)) void fill(double *v, int n, int r) { for (int k = 0; k < 300; k++) for (int i = 0; i < n; i++) v[i] = v[i] * 0.5 + i + r; }
static __attribute__((noinline)) void wear(double *v, int n, int r) { for (int k = 0; k < 300; k++) for (int i = 0; i < n; i++) v[i] = v[i] * 0.25 + i + r; }
static void *waits(void *x) { pthread_mutex_lock(&m); while (!over) pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m); return x; }
static void *works(void *x) { double own[96] = {0}; for (int r = 0; r < 9; r++) fill(part.result, 96, r), wear(own, 96, r); *(double *)x = own[7]; return x; }
static void run(pthread_t *t, void *stack, void *(*what)(void *), void *x) { pthread_attr_t a; pthread_attr_init(&a); if (stack) pthread_attr_setstack(&a, stack, 65536); pthread_create(t, &a, what, x); }
int main(void) {
    pthread_t t[3]; double last[2];
    run(&t[0], part.stack, waits, 0);
    usleep(20000);
    run(&t[1], 0, works, &last[0]);
    pthread_join(t[1], 0);
    run(&t[2], odd.stack + 48, works, &last[1]);
    pthread_join(t[2], 0);
    pthread_mutex_lock(&m); over = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m);
    pthread_join(t[0], 0);
    printf(\"%g %g\\n\", part.result[90], last[0]);
    return 0;
}
";
    let directory = built_from(&[("main.c", source)], "$CC -O1 main.c -o app -pthread");
    let at = directory.path();
    let capture =
        |thread| format!("capture fill@* wear@* --thread {thread} --invocation 3 -- ./app");
    succeed(at, capture(2).as_str());
    for name in ["fill*", "wear*"] {
        is_exact(at, name);
        let said = text(&succeed(at, format!("replay {name} --reps 3").as_str()).stdout);
        let changed = said
            .split(" of which the region changed")
            .next()
            .unwrap_or("");
        let changed = changed.rsplit(' ').next().unwrap_or("");
        assert!(
            changed.parse::<u64>().is_ok_and(|bytes| bytes > 600),
            "{said}"
        );
    }
    let refused = run(at, capture(3).as_str());
    has(
        &text(&refused.stderr),
        "share a page with its thread's control block",
    );
}
