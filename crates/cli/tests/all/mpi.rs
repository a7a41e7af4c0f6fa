//! Profiles of programs that use MPI, with the libraries that are installed.

use crate::common::{built_from, cere, has, json, make_executable, succeed, text, write};
use cere_format::mpi::decode;
use cere_format::package::{MEMBER_MPI, MEMBER_TABLE};
use cere_package::io::{NewMember, Package, encode_table, read_package, write_package};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const RING: &str = r#"#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
static double cells[4000], got[4000];
void mpi_barrier_(MPI_Fint *, MPI_Fint *);
static __attribute__((noinline)) void work(int n) { for (int i = 1; i < n; i++) cells[i] = cells[i - 1] * 0.5 + 1; }
static __attribute__((noinline)) void turn(int n, int rank, int size) {
    MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), failed = 1;
    for (int t = 0; t < n; t++) {
        /* Twelve arguments: six of them on the stack. */
        MPI_Status status;
        cells[0] = rank;
        if (rank == 0) usleep(1000);
        MPI_Sendrecv(cells, 4000, MPI_DOUBLE, (rank + 1) % size, 7, got, 4000, MPI_DOUBLE, (rank + size - 1) % size, 7,
            MPI_COMM_WORLD, &status);
        int count, from = (rank + size - 1) % size;
        MPI_Get_count(&status, MPI_DOUBLE, &count);
        if (count != 4000 || status.MPI_SOURCE != from || status.MPI_TAG != 7 || got[0] != from) abort();
        work(4000);
        mpi_barrier_(&world, &failed);
        if (failed) abort();
    }
}
static int nothing(void *a, void *b) { (void)a; (void)b; return 0; }
static void add(void *from, void *to, int *n, MPI_Datatype *type) {
    (void)type; nothing(from, to);
    for (int i = 0; i < *n; i++) ((double *)to)[i] += ((double *)from)[i];
}
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    turn(50, rank, size);
    MPI_Op op;
    double x = rank, sum = 0;
    MPI_Op_create(add, 1, &op);
    MPI_Request request;
    MPI_Iallreduce(&x, &sum, 1, MPI_DOUBLE, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (sum != size * (size - 1) / 2) abort();
    MPI_Finalize();
    return 0;
}
"#;

fn installed(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|output| output.status.success())
}

fn seconds(of: &Value, field: &str) -> f64 {
    of[field].as_f64().expect("seconds")
}

fn region<'a>(profile: &'a Value, function: &str) -> &'a Value {
    let all = profile["regions"].as_array().expect("regions");
    let is = |r: &&Value| r["name"].as_str().is_some_and(|n| n.starts_with(function));
    let found = all.iter().find(is);
    found.unwrap_or_else(|| panic!("no {function} in {profile}"))
}

#[test]
fn time_in_mpi_is_no_work() {
    let libraries = [
        ("openmpi", "--oversubscribe", "-lmpi_mpifh"),
        ("mpich", "", "-lmpichfort"),
    ];
    for (library, options, fortran) in libraries {
        if !installed(&format!("mpirun.{library}")) || !installed(&format!("mpicc.{library}")) {
            continue;
        }
        let build = format!("mpicc.{library} -O1 ring.c -o app {fortran}");
        let directory = built_from(&[("ring.c", RING)], &build);
        let at = directory.path();
        for ranks in [2, 4] {
            let start = format!("#!/bin/sh\nexec mpirun.{library} {options} -n {ranks} ./app\n");
            write(at, &[("start", &start)]);
            make_executable(&at.join("start"));
            let output = cere(at, "profile --json -- ./start")
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .output()
                .expect("cere runs");
            assert!(output.status.success(), "{}", text(&output.stderr));
            let profile: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let (turn, work) = (region(&profile, "turn@"), region(&profile, "work@"));
            assert_eq!(
                (&turn["invocations"], &work["invocations"]),
                (&1.into(), &50.into())
            );
            assert!(seconds(turn, "mpi_seconds") > 0.0, "{library} {profile}");
            assert_eq!(work["mpi_seconds"], 0.0);
            // The run holds the parts; start and end of MPI are in no region.
            let parts = ["self_seconds", "mpi_seconds"].map(|field| seconds(turn, field));
            let parts = parts[0] + parts[1] + seconds(work, "inclusive_seconds");
            let whole = seconds(turn, "inclusive_seconds");
            assert!((parts - whole).abs() < 0.01 * whole, "{parts} {whole}");
            assert!(seconds(&profile, "mpi_seconds") > seconds(turn, "mpi_seconds"));
            assert!(seconds(&profile, "mpi_seconds") <= seconds(&profile, "seconds"));
        }
    }
}

#[test]
fn programs_without_mpi_see_none() {
    let source = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
extern int MPI_Init(int *, char ***) __attribute__((weak));
static int calls;
__attribute__((noinline)) int MPI_Send(int n) { for (int i = 0; i < n; i++) calls += i; return calls; }
int main(void) { printf("%d %d %d\n", MPI_Init != 0, dlsym(RTLD_DEFAULT, "MPI_Recv") != 0, MPI_Send(10)); return 0; }
"#;
    let directory = built_from(
        &[("main.c", source)],
        "$CC -O1 -rdynamic main.c -o app -ldl",
    );
    let at = directory.path();
    let said = text(&succeed(at, "profile -- ./app").stdout);
    has(&said, "0 0 45\n");
    let profile = json(at, "profile --json -- ./app");
    assert_eq!(profile["mpi_seconds"], 0.0);
}

/// Loops that call MPI in all ways that a replay answers: `point` to `neighbours` are regions with calls inside.
const CALLS: &str = r#"/* Most kinds of calls, each in a loop of its own. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { N = 3000 };
static double *u, *v, *w;
static int rank, size, left, right;
static MPI_Comm comm, cart;
static double total;
#define NOINLINE __attribute__((noinline))
NOINLINE static void point(int n) {
    for (int t = 0; t < n; t++) {
        MPI_Request q[4]; MPI_Status s[4]; double in[2];
        MPI_Irecv(&in[0], 1, MPI_DOUBLE, left, t, comm, &q[0]);
        MPI_Irecv(&v[0], N, MPI_DOUBLE, right, 100 + t, comm, &q[1]);
        MPI_Isend(&u[N - 1], 1, MPI_DOUBLE, right, t, comm, &q[2]);
        MPI_Isend(u, N, MPI_DOUBLE, left, 100 + t, comm, &q[3]);
        for (int i = 0; i < N; i++) w[i] = u[i] * 0.5 + i;
        MPI_Waitall(4, q, s);
        int got; MPI_Get_count(&s[1], MPI_DOUBLE, &got);
        total += in[0] + got;
        for (int i = 0; i < N; i++) u[i] = 0.25 * v[i] + w[i] * 1e-3 + in[0] * 1e-6;
    }
}
NOINLINE static void polled(int n) {
    for (int t = 0; t < n; t++) {
        MPI_Request q; int flag = 0; double x; long spins = 0;
        MPI_Irecv(&x, 1, MPI_DOUBLE, left, 7, comm, &q);
        MPI_Send(&u[t], 1, MPI_DOUBLE, right, 7, comm);
        while (!flag) { MPI_Test(&q, &flag, MPI_STATUS_IGNORE); spins++; }
        for (int i = 0; i < N; i++) u[i] += x * 1e-5;
        total += spins > 0;
    }
}
NOINLINE static void derived(MPI_Datatype column, int n) {
    for (int t = 0; t < n; t++) {
        MPI_Sendrecv(&u[3], 1, column, right, 1, &v[5], 1, column, left, 1, comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) u[i] = 0.5 * u[i] + 0.125 * v[i];
    }
}
NOINLINE static void persistent(MPI_Request *q, int n) {
    for (int t = 0; t < n; t++) {
        MPI_Startall(2, q);
        for (int i = 0; i < N; i++) w[i] = u[i] * 1.5;
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 100; i++) u[i + 200] += v[i] * 0.01 + w[i];
    }
}
NOINLINE static void collective(int n) {
    int counts[64], places[64];
    double *all = malloc(sizeof(double) * 64 * 40);
    for (int t = 0; t < n; t++) {
        double s = 0, m[3];
        for (int i = 0; i < N; i++) s += u[i] * i;
        MPI_Allreduce(MPI_IN_PLACE, &s, 1, MPI_DOUBLE, MPI_SUM, comm);
        m[0] = s; m[1] = rank; m[2] = t;
        MPI_Bcast(m, 3, MPI_DOUBLE, t % size, comm);
        for (int i = 0; i < size; i++) { counts[i] = 5 + i; places[i] = 40 * i; }
        MPI_Allgatherv(u, 5 + rank, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, comm);
        MPI_Gather(u, 4, MPI_DOUBLE, all, 4, MPI_DOUBLE, 0, comm);
        MPI_Scatter(all, 4, MPI_DOUBLE, v, 4, MPI_DOUBLE, 0, comm);
        MPI_Alltoall(u, 3, MPI_DOUBLE, v + 100, 3, MPI_DOUBLE, comm);
        MPI_Reduce(u, w, 20, MPI_DOUBLE, MPI_MAX, 0, comm);
        MPI_Scan(u + 7, w + 50, 2, MPI_DOUBLE, MPI_SUM, comm);
        MPI_Barrier(comm);
        for (int i = 0; i < N; i++) u[i] += 1e-9 * (m[0] + v[i % 200] + w[i % 60]);
        total += s;
    }
    free(all);
}
NOINLINE static void probed(int n) {
    for (int t = 0; t < n; t++) {
        MPI_Status s; int count;
        MPI_Request q;
        MPI_Isend(u, 10 + t, MPI_DOUBLE, right, 3, comm, &q);
        MPI_Probe(MPI_ANY_SOURCE, 3, comm, &s);
        MPI_Get_count(&s, MPI_DOUBLE, &count);
        double *b = malloc(count * sizeof *b);
        MPI_Recv(b, count, MPI_DOUBLE, s.MPI_SOURCE, 3, comm, &s);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) u[i] += b[i % count] * 1e-7;
        free(b);
    }
}
static void add(void *a, void *b, int *n, MPI_Datatype *t) {
    double *x = a, *y = b;
    for (int i = 0; i < *n; i++) y[i] += x[i] * 0.5;
}
NOINLINE static void own(MPI_Op op, int n) {
    for (int t = 0; t < n; t++) {
        MPI_Allreduce(u, v, 50, MPI_DOUBLE, op, comm);
        for (int i = 0; i < N; i++) u[i] += v[i % 50] * 1e-8;
    }
}
NOINLINE static void neighbours(int n) {
    for (int t = 0; t < n; t++) {
        MPI_Neighbor_alltoall(u, 8, MPI_DOUBLE, v, 8, MPI_DOUBLE, cart);
        MPI_Comm c; int r;
        MPI_Comm_dup(comm, &c); MPI_Comm_rank(c, &r); MPI_Comm_free(&c);
        for (int i = 0; i < N; i++) u[i] += v[i % 16] * 1e-8 + r;
    }
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank); MPI_Comm_size(comm, &size);
    left = (rank + size - 1) % size; right = (rank + 1) % size;
    u = malloc(N * 8); v = malloc(N * 8); w = malloc(N * 8);
    for (int i = 0; i < N; i++) { u[i] = i % 97 + rank; v[i] = w[i] = 0; }
    MPI_Datatype column; MPI_Type_vector(40, 2, 17, MPI_DOUBLE, &column); MPI_Type_commit(&column);
    MPI_Request q[2];
    MPI_Send_init(u + 10, 100, MPI_DOUBLE, right, 9, comm, &q[0]);
    MPI_Recv_init(v, 100, MPI_DOUBLE, left, 9, comm, &q[1]);
    MPI_Op op; MPI_Op_create(add, 0, &op);
    int dims = size, periods = 1;
    MPI_Cart_create(comm, 1, &dims, &periods, 0, &cart);
    for (int k = 0; k < 6; k++) {
        point(10); polled(10); derived(column, 10); persistent(q, 10); collective(10); probed(10); own(op, 10); neighbours(4);
    }
    double s = 0;
    for (int i = 0; i < N; i++) s += u[i] * i;
    printf("rank %d %.15g %.15g\n", rank, s, total);
    MPI_Finalize();
}
"#;

/// Loops that call what no replay answers, and ranks that end in the midst of a capture: `k` kills one, `a` aborts, `m` asks for calls of
/// several threads.
const REFUSED: &str = r#"#include <mpi.h>
#include <signal.h>
static double u[4000], w[4000];
static MPI_Win win;
#define NOINLINE __attribute__((noinline))
NOINLINE static void put(int n, int r) {
    for (int t = 0; t < n; t++) {
        MPI_Put(u, 10, MPI_DOUBLE, r, 0, 10, MPI_DOUBLE, win);
        MPI_Win_fence(0, win);
        for (int i = 0; i < 4000; i++) u[i] += w[i] * 0.5 + t;
    }
}
NOINLINE static void file(int n, MPI_File f) {
    for (int t = 0; t < n; t++) {
        MPI_File_write(f, u, 10, MPI_DOUBLE, MPI_STATUS_IGNORE);
        for (int i = 0; i < 4000; i++) u[i] += t;
    }
}
NOINLINE static void ends(int n, int how) {
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < 4000; i++) u[i] += t;
        if (how == 'a' && t == 5) MPI_Abort(MPI_COMM_WORLD, 3);
        if (how == 'k' && t == 5) raise(SIGKILL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}
NOINLINE static void inner(void *a, void *b, int *n, MPI_Datatype *t) {
    (void)t;
    for (int i = 0; i < *n; i++) ((double *)b)[i] += ((double *)a)[i] * 0.5;
}
NOINLINE static void calls_back(int n, MPI_Op op) {
    for (int t = 0; t < n; t++) {
        MPI_Allreduce(u, w, 4000, MPI_DOUBLE, op, MPI_COMM_WORLD);
        for (int i = 0; i < 4000; i++) u[i] += w[i] * 1e-9;
    }
}
int main(int argc, char **argv) {
    int rank, size, got, how = argc > 1 ? *argv[1] : 0;
    MPI_Init_thread(&argc, &argv, how == 'm' ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_create(w, sizeof w, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    put(10, (rank + 1) % size);
    MPI_File f;
    MPI_File_open(MPI_COMM_SELF, rank ? "f1" : "f0", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f);
    file(10, f);
    MPI_File_close(&f);
    MPI_Op op;
    MPI_Op_create(inner, 1, &op);
    calls_back(10, op);
    ends(10, rank == (how == 'k') ? how : 0);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
"#;

const LIBRARIES: [(&str, &str); 2] = [
    ("mpich", "mpirun.mpich"),
    ("openmpi", "mpirun.openmpi --oversubscribe"),
];

/// Runs the command in a directory whose program uses MPI, as root perhaps.
fn mpi(at: &Path, line: &str) -> Output {
    let output = cere(at, line)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output();
    output.expect("cere runs")
}

/// The names of the outermost loops of the functions that call MPI, in the order of the source.
fn outermost(at: &Path) -> Vec<String> {
    let regions = json(at, "regions --json");
    let regions = regions.as_array().cloned();
    let regions = regions.unwrap_or_else(|| panic!("{}", json(at, "regions --json")));
    let names = regions.iter().filter_map(|r| r["name"].as_str());
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let function = name.split('@').next().unwrap_or_default();
        let calls = !["main", "add"].contains(&function);
        if calls && !found.iter().any(|known| known.starts_with(function)) {
            found.push(name.to_owned());
        }
    }
    found
}

#[test]
fn calls_inside_regions_are_answered() {
    for (library, launcher) in LIBRARIES {
        if !installed(&format!("mpirun.{library}")) || !installed(&format!("mpicc.{library}")) {
            continue;
        }
        let directory = built_from(
            &[("all.c", CALLS)],
            &format!("mpicc.{library} -O2 all.c -o all"),
        );
        let at = directory.path();
        let regions = outermost(at);
        assert_eq!(regions.len(), 8, "{regions:?}");
        for (ranks, regions) in [(2, &regions[..]), (4, &regions[4..5])] {
            let plain = mpi_run(at, &format!("{launcher} -n {ranks} ./all"));
            for region in regions {
                let line =
                    format!("capture {region} --invocation 3 -- {launcher} -n {ranks} ./all");
                let output = mpi(at, &line);
                assert!(
                    output.status.success(),
                    "{library}: {}",
                    text(&output.stderr)
                );
                // The program computes what it does without a capture.
                assert_eq!(
                    lines(&output.stdout),
                    lines(&plain.stdout),
                    "{library}: {region}"
                );
                for flags in ["", "-O3 -ffast-math -march=native"] {
                    let line = format!("replay {region}:3 --json --reps 3");
                    let mut command = cere(at, line.as_str());
                    if !flags.is_empty() {
                        command.arg(format!("--flags={flags}"));
                    }
                    let output = command.output().expect("cere runs");
                    let replay = crate::common::parsed(&output);
                    let verdict = replay["verdict"].as_str().unwrap_or_default();
                    let rounds = flags.contains("fast") && verdict == "tolerance";
                    assert!(
                        verdict == "exact" || rounds,
                        "{library} {region} {flags}: {replay}"
                    );
                    let notes = replay["notes"].to_string();
                    has(&notes, "answered as in vivo; that time is none of its own");
                }
            }
        }
        if library == "mpich" {
            what_is_sent_counts(at);
        }
    }
}

/// The lines that ranks print, in any order.
fn lines(output: &[u8]) -> Vec<String> {
    let output = text(output);
    let ranks = output.lines().filter(|line| line.starts_with("rank "));
    let mut lines: Vec<String> = ranks.map(str::to_owned).collect();
    lines.sort();
    lines
}

fn mpi_run(at: &Path, line: &str) -> Output {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap_or_default())
        .args(words)
        .current_dir(at)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output();
    output.expect("the program runs")
}

/// A replay that sends other bytes, passes another number or makes fewer calls than the captured invocation is another, and says
/// where.
fn what_is_sent_counts(at: &Path) {
    let list = json(at, "codelets --json");
    let own = list.as_array().into_iter().flatten().find(|c| {
        let name = c["name"].as_str();
        name.is_some_and(|name| name.starts_with("own@"))
    });
    let file = own
        .and_then(|c| c["file"].as_str())
        .map(|file| at.join(file));
    let file = file.unwrap_or_else(|| panic!("{list}"));
    let calls = |list: &[u8]| decode("calls", list, 100).expect("calls");
    let altered = |change: &dyn Fn(&mut Vec<u8>)| {
        let Package {
            mut manifest,
            pages,
            mut members,
        } = read_package(&file, 1 << 30).expect("a package");
        change(members.get_mut(MEMBER_MPI).expect("calls"));
        if let Some(mpi) = &mut manifest.mpi {
            mpi.bytes = members[MEMBER_MPI].len() as u64;
            mpi.calls = calls(&members[MEMBER_MPI]).len() as u64;
        }
        let order = manifest.members.clone();
        let each = order.iter().map(|member| match member.name.as_str() {
            MEMBER_TABLE => NewMember::bytes(MEMBER_TABLE, encode_table(&pages)),
            name => NewMember::bytes(name, members[name].clone()),
        });
        let each: Vec<NewMember> = each.collect();
        let to = at.join("altered.codelet");
        write_package(&to, &mut manifest, &each).expect("a package");
        cere(at, "replay altered.codelet --json --reps 3")
            .output()
            .expect("cere runs")
    };
    let place = |output: &Output| {
        let replay = crate::common::parsed(output);
        assert_eq!(replay["verdict"], "different", "{replay}");
        replay["comparison"]["first"][0]["place"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let sent = altered(&|list| {
        let at = calls(list)[4].sent[0].bytes.start;
        list[at + 8 + 6] ^= 0x20;
    });
    let expected = "byte 8 of what argument 1 of call 5 of MPI, MPI_Allreduce sends";
    assert_eq!(place(&sent), expected);
    // The count, after three words and two arguments.
    let argument = altered(&|list| list[8 * (3 + 2 * 2 + 1)] ^= 1);
    assert_eq!(
        place(&argument),
        "argument 3 of call 1 of MPI, MPI_Allreduce"
    );
    let received = altered(&|list| {
        let calls = calls(list);
        let at = calls
            .iter()
            .find_map(|call| call.left.iter().find(|piece| piece.bytes.len() > 64));
        let at = at.expect("what was received").bytes.start;
        list[at + 7] ^= 1;
    });
    assert_eq!(crate::common::parsed(&received)["verdict"], "different");
    let more = altered(&|list| {
        let first = list.clone();
        list.extend(first);
    });
    has(
        &place(&more),
        "number of calls of MPI, at call 11 of MPI, MPI_Allreduce",
    );
    let fewer = altered(&|list| list.clear());
    assert!(!fewer.status.success());
    let why = "the region calls MPI_Allreduce as call 1 of MPI, and the captured invocation made 0 calls of MPI";
    has(&text(&fewer.stderr), why);
}

#[test]
fn calls_that_no_replay_answers_are_named() {
    for (library, launcher) in LIBRARIES {
        if !installed(&format!("mpirun.{library}")) || !installed(&format!("mpicc.{library}")) {
            continue;
        }
        let directory = built_from(
            &[("no.c", REFUSED)],
            &format!("mpicc.{library} -O2 no.c -o no"),
        );
        let at = directory.path();
        let regions = outermost(at);
        let region = |function: &str| {
            let mut all = regions.iter();
            let found = all.find(|name| name.starts_with(function));
            found.unwrap_or_else(|| panic!("{regions:?}")).clone()
        };
        let why = |function: &str, how: &str| {
            let line = format!(
                "capture {} --invocation 1 --rank 0 -- {launcher} -n 2 ./no {how}",
                region(function)
            );
            text(&mpi(at, &line).stderr)
        };
        has(
            &why("put", ""),
            "calls MPI_Put: other ranks reach memory without a call of this one",
        );
        has(
            &why("file", ""),
            "calls MPI_File_write: it reads or writes files",
        );
        has(
            &why("ends", "m"),
            "calls MPI_Barrier: several threads may call MPI (MPI_THREAD_MULTIPLE)",
        );
        has(&why("ends", "a"), "calls MPI_Abort: it ends the program");
        // The rank that is captured waits for one that is killed: its launcher ends both.
        let killed = format!(
            "capture {} --invocation 1 --rank 0 -- {launcher} -n 2 ./no k",
            region("ends")
        );
        let output = mpi(at, &killed);
        assert!(
            !json(at, "codelets --json").to_string().contains("ends@"),
            "{}",
            text(&output.stderr)
        );
        // MPI runs the program's own reduction, whose loop is a region that is not wanted: no matter.
        let line = format!(
            "capture {} --invocation 1 -- {launcher} -n 2 ./no",
            region("calls_back")
        );
        assert!(mpi(at, &line).status.success());
        let replay = json(at, "replay calls_back* --json --reps 3");
        assert_eq!(replay["verdict"], "exact", "{library} {replay}");
    }
}
