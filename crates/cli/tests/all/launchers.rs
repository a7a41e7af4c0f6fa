//! Programs as they are started: by launchers, scripts, and in ranks.

use crate::common::{
    directory_with, has, instrument, json, make_executable, refused, run, succeed, text, write,
};
use cere_format::package::Manifest;
use cere_format::profile::{Profile, RankProfile};
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
        let profile: Profile = serde_json::from_slice(&profile).expect("JSON");
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

/// MPI libraries and their launchers.
const LIBRARIES: [(&str, &str); 2] = [
    ("mpich", "mpirun.mpich"),
    ("openmpi", "mpirun.openmpi --oversubscribe"),
];

/// The command, also as root.
fn mpi(at: &Path, line: &str) -> std::process::Output {
    let output = crate::common::cere(at, line)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output();
    output.expect("cere runs")
}

/// The same, which has to succeed.
fn under_mpi(at: &Path, line: &str) -> std::process::Output {
    let output = mpi(at, line);
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    output
}

/// The two processes of both MPI libraries, and four on two cores.
#[test]
fn ranks_of_mpi() {
    for (library, launcher) in LIBRARIES {
        let directory = directory_with(&[("ring.c", RING)]);
        let at = directory.path();
        instrument(at, &format!("mpicc.{library} -O2 ring.c -o ring"));
        let cere = |line: &str| under_mpi(at, line);
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

/// Ranks that print in an order that changes. Rank 1 alone adds fractions, whose sum depends on the order.
const PRINTS: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static double a[20000];
__attribute__((noinline)) static double total(int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += a[i];
    return s;
}
__attribute__((noinline)) static double one_by_one(int i) { return i < 0 ? 0 : one_by_one(i - 1) + a[i]; }
int main(int c, char **v) {
    MPI_Init(&c, &v);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 20000; i++) a[i] = rank == 1 ? 1.0 / (i + 3) : i % 100;
    double s = 0;
    for (int t = 0; t < 20; t++) s = total(20000);
    if (c > 1 && *v[1] != 'l' && s != one_by_one(19999)) { if (*v[1] == 'a') abort(); exit(3); }
    /* Each run begins with another rank. */
    usleep((rank + getppid()) % 2 * 20000);
    printf("rank %d of %d: %.17g\n", rank, size, s);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d ends\n", rank);
    MPI_Finalize();
    if (c > 1 && *v[1] == 'l' && rank == 1) {
        /* After rank 0, which its launcher would end. */
        usleep(200000);
        return s != one_by_one(19999) ? 3 : 0;
    }
    return 0;
}
"#;

#[test]
fn a_hybrid_is_verified_in_every_rank() {
    for (library, launcher) in LIBRARIES {
        let directory = directory_with(&[("prints.c", PRINTS)]);
        let at = directory.path();
        instrument(at, &format!("mpicc.{library} -O1 prints.c -o prints"));
        let flags = |flags: &str| {
            let file = format!(
                "version = 1\n[[region]]\nname = \"total@prints.c:9\"\nflags = \"{flags}\"\n"
            );
            write(at, &[("f", &file)]);
        };
        let hybrid = |command: &str| {
            let line = "hybrid -o h --flags-file f --rounds 1 --no-levels --json --";
            let made = crate::common::parsed(&under_mpi(at, &format!("{line} {command}")));
            let why = made["regions"][0]["reason"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            (made["ranks"].clone(), why)
        };
        let names = serde_json::json!(["0", "1"]);
        let all = |apart: bool| serde_json::json!({"names": names, "others": [], "apart": apart});
        let command = format!("{launcher} -n 2 ./prints");
        flags("-O2");
        let (ranks, why) = hybrid(&command);
        assert_eq!(ranks, all(true), "{library}");
        assert!(!why.contains("output"), "{library}: {why}");
        flags("-O3 -ffast-math");
        let (_, why) = hybrid(&command);
        has(&why, "the output is another: rank 1: \"rank 1 of 2: ");
        let (_, why) = hybrid(&format!("{command} exit"));
        has(&why, "rank 1 ended with status 3");
        let (_, why) = hybrid(&format!("{command} abort"));
        // MPICH may name a rank that it killed itself.
        match library {
            "mpich" => has(&why, "(rank "),
            _ => has(&why, "process rank 1 "),
        }
        // What a script makes of the output is not of one rank or another, whatever starts them.
        if library != "mpich" {
            continue;
        }
        let script = format!("sh -c '{command} | grep -v ends'");
        under_mpi(at, &format!("profile -- {script}"));
        let (ranks, why) = hybrid(&script);
        assert_eq!(ranks, all(false), "{library}");
        has(&why, "the output is another: \"rank 1 of 2: ");
        // Nor does a script show how a rank ends.
        let script = format!("sh -c '{command} late | grep -v of'");
        under_mpi(at, &format!("profile -- {script}"));
        let (_, why) = hybrid(&script);
        has(
            &why,
            "in rank 1 it ended with status 3, and the plain build ended with status 0",
        );
    }
}

/// A rank without this command's environment runs the plain build, and nobody would know; one of another program is left alone.
#[test]
fn every_rank_has_to_run_the_hybrid() {
    for (library, launcher) in LIBRARIES {
        let other = "int main(int c, char **v) { MPI_Init(&c, &v); MPI_Barrier(MPI_COMM_WORLD); return MPI_Finalize(); }\n";
        let other = format!("#include <mpi.h>\n{other}");
        let directory = directory_with(&[("prints.c", PRINTS), ("other.c", &other)]);
        let at = directory.path();
        instrument(at, &format!("mpicc.{library} -O1 prints.c -o prints"));
        let plain = format!("mpicc.{library} other.c -o other");
        let built = std::process::Command::new("sh")
            .args(["-c", &plain])
            .current_dir(at)
            .status();
        assert!(built.expect("a compiler").success());
        let file = "version = 1\n[[region]]\nname = \"total@prints.c:9\"\nflags = \"-O2\"\n";
        write(at, &[("f", file)]);
        let line = "hybrid -o h --flags-file f --rounds 1 --no-levels --json --";
        let (nothing, names, other) = match library {
            "mpich" => ("-env LD_PRELOAD ''", &["0", "1"][..], "2"),
            _ => ("-x LD_PRELOAD=", &["0"][..], "1"),
        };
        let ranks = format!("-n {} ./prints : -n 1 ./other", names.len());
        let made = under_mpi(at, &format!("{line} {launcher} {ranks}"));
        let ranks = &crate::common::parsed(&made)["ranks"];
        let expected = serde_json::json!({"names": names, "others": [other], "apart": true});
        assert_eq!(*ranks, expected, "{library}");
        let command = format!("{line} {launcher} -n 2 ./prints : -n 1 {nothing} ./prints");
        let output = mpi(at, &command);
        assert!(!output.status.success(), "{library}");
        has(&text(&output.stderr), "rank 2 of ");
        has(&text(&output.stderr), "ran without saying");
    }
}

/// Threads that do most in the last rank; rank 0 has a parallel region of its own.
const TEAMS: &str = r#"
#include <mpi.h>
#include <stdio.h>
enum { N = 400000 };
static double x[N], y[N];
__attribute__((noinline)) static void smooth(int n) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++) y[i] = 0.5 * x[i] + 0.25 * (x[i - 1] + x[i + 1]);
}
__attribute__((noinline)) static void alone(int n) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++) x[i] = y[i] / 3 + i;
}
int main(int c, char **v) {
    int rank, size, got;
    MPI_Init_thread(&c, &v, MPI_THREAD_FUNNELED, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double all = 0;
    for (int t = 0; t < 20; t++) {
        smooth(rank == size - 1 ? N : N / 2);
        if (rank == 0) alone(N);
        MPI_Allreduce(&y[5], &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("%d %g\n", rank, all);
    MPI_Finalize();
    return 0;
}
"#;

/// Its parts add up: those of the profile with the profile's number of threads.
#[test]
fn a_run_is_predicted_by_its_slowest_rank() {
    for (library, launcher) in LIBRARIES {
        let directory = directory_with(&[("teams.c", TEAMS)]);
        let at = directory.path();
        instrument(
            at,
            &format!("mpicc.{library} -O2 -fopenmp teams.c -o teams"),
        );
        let command = format!("env OMP_NUM_THREADS=1 {launcher} -n 2 ./teams");
        under_mpi(at, &format!("capture smooth* --rank 1 -- {command}"));
        let output = under_mpi(
            at,
            "predict --threads 1,2 --no-run --rounds 1 --reps 3 --json",
        );
        let found = crate::common::parsed(&output);
        let profile = std::fs::read(at.join(".cere/profile.json")).expect("a profile");
        let profile: Profile = serde_json::from_slice(&profile).expect("JSON");
        assert_eq!(found["rank"], "1", "{library}");
        let number = |of: &serde_json::Value| of.as_f64().expect("a number");
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{library}: {a} {b}: {found}");
        for run in found["runs"].as_array().expect("runs") {
            let ranks = &run["ranks"];
            let each = ranks["ranks"].as_array().expect("ranks");
            let [work, mpi] = ["work_seconds", "mpi_seconds"].map(|part| number(&ranks[part]));
            near(number(&run["predicted_seconds"]), work + mpi);
            let region = run["regions"]
                .as_array()
                .expect("regions")
                .iter()
                .find(|r| r["name"].as_str().is_some_and(|n| n.starts_with("smooth")));
            let region = region.expect("the region");
            assert_eq!(region["reason"], serde_json::Value::Null, "{run}");
            let mut most = 0.0;
            for (found, rank) in each.iter().zip(&profile.ranks) {
                assert_eq!(found["rank"], *rank.rank);
                near(number(&found["mpi_seconds"]), rank.mpi_seconds);
                let of = |rank: &RankProfile| {
                    let all = rank
                        .regions
                        .iter()
                        .filter(|r| r.name == region["name"].as_str().unwrap_or_default());
                    all.map(|r| r.inclusive_seconds).sum::<f64>()
                };
                let work = number(&found["work_seconds"]);
                let outside = f64::max(rank.seconds - rank.mpi_seconds - of(rank), 0.0);
                match &*rank.rank {
                    "1" => near(work, outside + number(&region["predicted_seconds"])),
                    // How the region changes there is what the unit tests say.
                    _ => assert!(work > outside, "{library}: {outside}: {found}"),
                }
                most = f64::max(most, work);
            }
            near(work, most);
        }
        let notes = found["notes"].to_string();
        has(&notes, "rank 0 spends ");
        has(
            &notes,
            "in parallel regions that rank 1 does not run, as alone@teams.c",
        );
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(
            notes.contains("2 ranks x 2 threads are more than the"),
            cores < 4,
            "{notes}"
        );
        write(at, &[("flags", "-O3\n")]);
        let output = under_mpi(at, "predict --flags-file flags --rounds 1 --reps 3 --json");
        let flags = crate::common::parsed(&output);
        let (built, work) = (&flags["ranks"], |r: &RankProfile| r.seconds - r.mpi_seconds);
        let slowest = profile
            .ranks
            .iter()
            .max_by(|a, b| work(a).total_cmp(&work(b)));
        let slowest = slowest.expect("ranks");
        assert_eq!(
            (&flags["rank"], &built["slowest"]),
            (&"1".into(), &serde_json::json!(slowest.rank))
        );
        near(number(&built["work_seconds"]), work(slowest));
        near(number(&built["mpi_seconds"]), slowest.mpi_seconds);
        let table = text(&under_mpi(at, "predict --threads 1 --no-run --rounds 1 --reps 3").stdout);
        has(&table, "\n2 x 1 ");
        has(
            &table,
            "by the codelets of rank 1, and that rank's time in MPI as measured",
        );
        // One rank is like a program without any.
        let alone = command.replace("-n 2", "-n 1");
        under_mpi(at, &format!("capture smooth* -- {alone}"));
        let output = under_mpi(
            at,
            "predict --threads 1 --measure --rounds 1 --reps 3 --json",
        );
        let found = crate::common::parsed(&output);
        assert_eq!(
            found["runs"][0]["ranks"],
            serde_json::Value::Null,
            "{library}"
        );
        has(&found["notes"].to_string(), "one rank of it ran");
    }
}
