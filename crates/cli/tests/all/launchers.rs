//! Programs as they are started: by launchers, scripts, and in ranks.

use crate::common::{
    directory_with, has, instrument, json, make_executable, refused, run, succeed, text, write,
};
use cere_format::package::Manifest;
use std::path::Path;

/// Writes its first argument, so that it is known that it ran as given.
const SERIAL: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static double a[20000];
__attribute__((noinline)) static void sweep(int r) {
    for (int i = 1; i < 20000; i++) a[i] = a[i - 1] * 0.5 + i + r;
}
int main(int c, char **v) {
    for (int r = 0; r < 30; r++) sweep(r);
    printf("%s %g\n", c > 1 ? v[1] : "none", a[19999]);
    return c > 2 ? atoi(v[2]) : 0;
}
"#;

/// A time loop that exchanges values with its neighbours; the work grows with the rank.
const RING: &str = r#"
#include <mpi.h>
#include <stdio.h>
static double a[400000], b[400000];
__attribute__((noinline)) static double sweep(int n) {
    double s = 0;
    for (int i = 1; i < n - 1; i++) {
        b[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1];
        s += b[i];
    }
    return s;
}
int main(int c, char **v) {
    MPI_Init(&c, &v);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = 60000 * (1 + rank);
    for (int i = 0; i < n; i++) a[i] = (i * 37 + rank) % 101;
    double all = 0;
    for (int t = 0; t < 12; t++) {
        MPI_Sendrecv(&a[n - 2], 1, MPI_DOUBLE, (rank + 1) % size, 0, &a[0], 1, MPI_DOUBLE, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double own = sweep(n);
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (!rank) printf("%.12g\n", all);
    MPI_Finalize();
}
"#;

/// Lines of a script that starts two processes, the one of MINE=1 with ten times the work, in either order, by turns.
const TURNS: &str = "#!/bin/sh
if [ -e flip ]; then rm flip; a=0 b=1; else : > flip; a=1 b=0; fi
MINE=$a ./two & sleep 0.05
MINE=$b ./two & wait
";
const TWO: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static double a[400000];
__attribute__((noinline)) static void work(int n) {
    for (int i = 1; i < n; i++) a[i] = a[i - 1] * 0.5 + i;
}
int main(void) {
    int mine = atoi(getenv("MINE"));
    for (int t = 0; t < 20; t++) { work(mine ? 400000 : 40000); usleep(5000); }
    printf("%g\n", a[100]);
}
"#;

fn serial() -> tempfile::TempDir {
    let directory = directory_with(&[
        ("main.c", SERIAL),
        ("run.sh", "#!/bin/sh\nexec ./app \"$@\"\n"),
    ]);
    let at = directory.path();
    make_executable(&at.join("run.sh"));
    instrument(at, "$CC -O2 main.c -o app");
    directory
}

fn manifest(directory: &Path, name: &str) -> Manifest {
    let file = directory
        .join(".cere/codelets")
        .join(format!("{name}.codelet"));
    cere_package::io::read_manifest(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

#[test]
fn the_program_is_what_runs() {
    let directory = serial();
    let at = directory.path();
    let program = at.canonicalize().expect("a path").join("app");
    let hash = |at: &Path| {
        let profile = std::fs::read(at.join(".cere/profile.json")).expect("a profile");
        let profile: cere_format::profile::Profile =
            serde_json::from_slice(&profile).expect("JSON");
        (profile.process.program, profile.program)
    };
    succeed(at, "profile -- ./app given");
    let direct = hash(at);
    assert_eq!(direct.0, program);
    for launcher in [
        "env A=1 ./app",
        "nice ./app",
        "timeout 60 ./app",
        "taskset -c 0 ./app",
        "stdbuf -oL ./app",
        "numactl --all ./app",
        "./run.sh",
        "sh -c './app \"$0\"'",
        "perl -e 'system(\"./app\", @ARGV)'",
    ] {
        let output = succeed(at, &*format!("profile -- {launcher} given"));
        has(&text(&output.stdout), "given ");
        has(&text(&output.stdout), "sweep@main.c");
        assert_eq!(hash(at), direct, "{launcher}");
    }
}

#[test]
fn codelets_under_a_launcher() {
    let directory = serial();
    let at = directory.path();
    succeed(at, "capture sweep* --invocation 7 -- timeout 60 ./app x");
    let replay = json(at, "replay --json --reps 1 sweep*");
    assert_eq!(replay["verdict"], "exact", "{replay}");
    // The program is linked again, and runs under the launcher.
    let counted = json(at, "check --counted --geometry none --json");
    let found = &counted["codelets"][0];
    assert_eq!(found["verdict"], "exact", "{counted}");
    let flags = "version = 1\n[[region]]\nname = \"sweep*\"\nflags = \"-O0\"\n";
    let name = manifest(at, &codelet(at)).region_name;
    write(at, &[("own.flags", &flags.replace("sweep*", &name))]);
    let line = "hybrid -o app.tuned --flags-file own.flags --rounds 1 --no-levels --json -- timeout 60 ./app x";
    let made = json(at, line);
    assert!(made.is_object(), "{made}");
    // A script does the same, and has nothing that could be replaced in it.
    succeed(at, "profile -- ./run.sh x");
    let made = json(at, &*line.replace("timeout 60 ./app", "./run.sh"));
    assert!(made.is_object(), "{made}");
    // The launcher's status is the program's.
    assert_eq!(
        run(at, "profile -- timeout 60 ./app x 3").status.code(),
        Some(3)
    );
}

/// Pages of a codelet.
fn pages(at: &Path, name: &str) -> u64 {
    let all = json(at, "codelets --json");
    let mut all = all.as_array().expect("a list").iter();
    let found = all.find(|c| c["name"] == name).expect("the codelet");
    found["pages"].as_u64().expect("a number")
}

/// The only codelet's name.
fn codelet(at: &Path) -> String {
    let all = json(at, "codelets --json");
    let all = all.as_array().expect("a list");
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]["name"].as_str().expect("a name").to_owned()
}

#[test]
fn what_no_launcher_can_help() {
    let directory = serial();
    let at = directory.path();
    refused(
        at,
        "profile -- env -i ./app",
        "does not pass the environment of this command on",
    );
    write(at, &[("f", "version = 1\nrest = \"-O1\"\n")]);
    refused(
        at,
        "hybrid -o h --flags-file f -- sh -c './app x'",
        "no run has shown yet which program it starts",
    );
    let inside = crate::common::cere(at, "profile -- ./app")
        .env("OMPI_COMM_WORLD_SIZE", "4")
        .env("OMPI_COMM_WORLD_RANK", "2")
        .output()
        .expect("cere runs");
    has(&text(&inside.stderr), "this is rank 2 of 4");
    assert!(!inside.status.success());
    // One process of a launcher is nothing special.
    let alone = crate::common::cere(at, "profile -- ./app")
        .env("OMPI_COMM_WORLD_SIZE", "1")
        .output();
    assert!(alone.expect("cere runs").status.success());
}

/// Whatever the order in which they start: a codelet is of the process that it names, with that one's time.
#[test]
fn processes_by_what_numbers_them() {
    let directory = directory_with(&[("two.c", TWO), ("run.sh", TURNS)]);
    let at = directory.path();
    make_executable(&at.join("run.sh"));
    instrument(at, "$CC -O2 two.c -o two");
    let output = succeed(at, "profile -- ./run.sh");
    has(&text(&output.stderr), "MINE numbers the processes");
    for _ in 0..2 {
        succeed(at, "profile -- ./run.sh");
        for key in ["0", "1"] {
            succeed(
                at,
                &*format!("capture work* --invocation 5 --rank {key} -- ./run.sh"),
            );
            let name = codelet(at);
            let manifest = manifest(at, &name);
            assert_eq!(manifest.run.and_then(|run| run.rank).as_deref(), Some(key));
            // The work of one is a tenth of the other's: 80 pages and 782.
            let pages = pages(at, &name);
            let large = pages > 400;
            assert_eq!(large, key == "1", "rank {key}: {pages} pages");
            assert!(manifest.in_vivo.is_some(), "rank {key}");
        }
    }
    refused(
        at,
        "profile --rank 7 -- ./run.sh",
        "no process of the run had the rank 7",
    );
}

/// The two processes of both MPI libraries, and four on two cores.
#[test]
fn ranks_of_mpi() {
    for (library, launcher) in [
        ("mpich", "mpirun.mpich"),
        ("openmpi", "mpirun.openmpi --oversubscribe"),
    ] {
        let directory = directory_with(&[("ring.c", RING)]);
        let at = directory.path();
        instrument(at, &format!("mpicc.{library} -O2 ring.c -o ring"));
        let cere = |line: &str| {
            let output = crate::common::cere(at, line)
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .output()
                .expect("cere runs");
            assert!(output.status.success(), "{line}: {}", text(&output.stderr));
            output
        };
        for ranks in [2, 4] {
            let profile = crate::common::parsed(&cere(&format!(
                "profile --json -- {launcher} -n {ranks} ./ring"
            )));
            let all = profile["ranks"].as_array().expect("ranks");
            let numbers: Vec<&str> = all.iter().filter_map(|r| r["rank"].as_str()).collect();
            let wanted: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
            assert_eq!(numbers, wanted, "{library}");
        }
        cere(&format!(
            "capture sweep* --invocation 4 --rank all -- {launcher} -n 2 ./ring"
        ));
        let codelets = json(at, "codelets --json");
        let names: Vec<&str> = codelets
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|c| c["name"].as_str())
            .collect();
        assert_eq!(names.len(), 2, "{library}: {names:?}");
        for (rank, name) in names.iter().enumerate() {
            assert!(name.ends_with(&format!(":4.r{rank}")), "{library}: {name}");
            let replay = json(at, &["replay", "--json", "--reps", "1", name]);
            assert_eq!(replay["verdict"], "exact", "{library}: {replay}");
            // Twice the work, twice the array: 117 and 234 pages.
            let pages = pages(at, name);
            assert_eq!(
                pages > 180,
                rank == 1,
                "{library}: rank {rank}: {pages} pages"
            );
        }
    }
}

/// Further runs that fail are said, and not merged.
#[test]
fn a_program_that_runs_once() {
    const ONCE: &str = r#"
#include <fcntl.h>
static double a[4000];
int main(int c, char **v) {
    if (open(v[1], O_CREAT | O_EXCL | O_RDWR, 0600) < 0) return 7;
    for (int t = 0; t < 200; t++)
        for (int i = 1; i < 4000; i++) a[i] = a[i - 1] * 0.5 + i + t;
    return 0;
}
"#;
    let directory = directory_with(&[("once.c", ONCE)]);
    let at = directory.path();
    instrument(at, "$CC -O2 once.c -o once");
    let output = succeed(at, "profile --runs 3 --json -- ./once flag");
    has(
        &text(&output.stderr),
        "run 2 ended with status 7, the first one with 0: it is not merged",
    );
    let profile = crate::common::parsed(&output);
    assert_eq!(profile["regions"][0]["invocations"], 1, "{profile}");
    for file in ["flag", ".cere/profile.json"] {
        std::fs::remove_file(at.join(file)).expect("a file");
    }
    let output = run(at, "capture * --invocation 1 -- ./once flag");
    has(
        &text(&output.stderr),
        "no times in vivo: ./once ended with status 7, the captured run with 0",
    );
    let replay = json(at, "replay --json --reps 1 *");
    assert_eq!(replay["verdict"], "exact", "{replay}");
}
