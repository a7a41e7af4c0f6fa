//! Profiles of programs that use MPI, with the libraries that are installed.

use crate::common::{built_from, cere, has, json, make_executable, succeed, text, write};
use serde_json::Value;
use std::process::Command;

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
