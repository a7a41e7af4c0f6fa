//! Tools that stay, against the same tools started anew: what they make, how they fail, what they may do, how they end.

mod ends;
mod sandbox;

use cere_sandbox::Sandbox;
use cere_system::console;
use cere_testing::built::part;
use cere_toolchain::command::{Line, run, run_with_input};
use cere_toolchain::stay::{self, Server};
use cere_toolchain::unit::{CLANG, FLANG, LLD, OBJCOPY, OPT};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Once};
use std::time::Duration;

const C: &str = "static double scale = 2;\nvoid scale_all(double *a, int n) { for (int i = 0; i < n; i++) a[i] *= scale; }\n";
const CXX: &str = "#include <vector>\ndouble sum(const std::vector<double> &v) { double s = 0; for (double x : v) s += x; return s; }\n";
const FORTRAN: &str = "subroutine saxpy(n, a, x, y)\n integer :: n, i\n real(8) :: a, x(n), y(n)\n do i = 1, n\n  y(i) = y(i) + a * x(i)\n \
                       end do\nend subroutine\n";

/// Lets tools stay.
fn allow() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let given = std::env::var_os("CERE_TEST_STAY").map(PathBuf::from);
        let library = given.unwrap_or_else(|| part("libcere_stay.so"));
        stay::allow(library, &console::events());
    });
}

/// The server of `tool`, once it has run often enough.
fn server(tool: &str, sandbox: &Sandbox) -> Arc<Server> {
    allow();
    let mut found = (0..3).filter_map(|_| stay::server(tool, sandbox));
    found.next().expect("a tool that runs often stays")
}

/// A directory with `files`.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// What `tool` with `arguments` makes in `directory` of the files `made`, started by itself.
fn started(tool: &str, arguments: &[&str], directory: &Path, made: &str) -> Vec<u8> {
    let mut command = Command::new(tool);
    let output = command
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let path = directory.join(made);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    bytes
}

fn line(tool: &str, arguments: &[&str], directory: &Path) -> Line {
    Line::new(tool).args(arguments).directory(directory)
}

#[test]
fn what_they_make_is_what_started_tools_make() {
    let none = Sandbox::none();
    let sources = [
        ("a.c", C),
        ("b.cpp", CXX),
        ("c.f90", FORTRAN),
        ("start.s", ".globl _start\n_start: ret\n"),
    ];
    let place = directory(&sources);
    let place = place.path();
    let mut cases: Vec<(&str, Vec<&str>)> = Vec::new();
    let flags = [
        &["-O0", "-g"][..],
        &["-O2", "-march=native"],
        &[
            "-O3",
            "-ffast-math",
            "-funroll-loops",
            "-mllvm",
            "-force-vector-width=2",
        ],
        &["-Os", "-fno-vectorize"],
    ];
    for flags in flags {
        let clang = |source| [&["-c", source, "-o", "made"], flags].concat();
        cases.extend([(CLANG, clang("a.c")), (CLANG, clang("b.cpp"))]);
        let fortran = flags
            .iter()
            .filter(|f| !f.starts_with("-mno") && **f != "-Os");
        let fortran: Vec<&str> = fortran.copied().collect();
        cases.push((
            FLANG,
            [&["-c", "c.f90", "-o", "made"], &fortran[..]].concat(),
        ));
    }
    for (compiler, source, bitcode) in [(CLANG, "a.c", "a.bc"), (FLANG, "c.f90", "c.bc")] {
        started(
            compiler,
            &["-O1", "-c", "-emit-llvm", source, "-o", bitcode],
            place,
            bitcode,
        );
        let kept = line(
            compiler,
            &["-O1", "-c", "-emit-llvm", source, "-o", bitcode],
            place,
        );
        run(&kept, source).unwrap();
        cases.push((
            compiler,
            vec!["-O3", "-x", "ir", "-c", bitcode, "-o", "made"],
        ));
        cases.push((
            OPT,
            vec!["-passes=default<O3>,loop-unroll", bitcode, "-o", "made"],
        ));
    }
    run(&line(CLANG, &["-c", "start.s", "a.c"], place), "parts").unwrap();
    cases.push((LLD, vec!["-e", "_start", "start.o", "a.o", "-o", "made"]));
    cases.push((LLD, vec!["-r", "start.o", "a.o", "-o", "made"]));
    cases.push((
        OBJCOPY,
        vec!["--redefine-sym=scale_all=other", "a.o", "made"],
    ));
    for (tool, arguments) in cases {
        let anew = started(tool, &arguments, place, "made");
        server(tool, &none);
        run(&line(tool, &arguments, place), "a test").unwrap();
        let stayed = std::fs::read(place.join("made")).unwrap();
        assert!(anew == stayed, "{tool} {arguments:?}");
        std::fs::remove_file(place.join("made")).unwrap();
    }
}

#[test]
fn a_run_has_its_own_input_output_and_environment() {
    server(CLANG, &Sandbox::none());
    let headers = directory(&[("only_here.h", "int here;\n")]);
    let place = directory(&[]);
    let arguments = ["-E", "-P", "-x", "c", "-"];
    let new = || line(CLANG, &arguments, place.path());
    let text = "#include <only_here.h>\nint there;\n";
    let with = new().variable("CPATH", headers.path());
    assert_eq!(
        run_with_input(&with, "a test", text).unwrap().0,
        "int here;\nint there;\n"
    );
    let error = run_with_input(&new(), "a test", text)
        .unwrap_err()
        .to_string();
    assert!(error.contains("'only_here.h' file not found"), "{error}");
    assert!(
        run(
            &line(CLANG, &["-print-resource-dir"], place.path()),
            "a test"
        )
        .unwrap()
        .contains("clang/22")
    );
}

#[test]
fn a_crash_is_that_run_alone() {
    let none = Sandbox::none();
    let before = server(CLANG, &none).pid();
    let place = directory(&[("a.c", C)]);
    for how in ["crash", "llvm_fatal_error"] {
        let text = format!("#pragma clang __debug {how}\n");
        let arguments = ["-c", "-x", "c", "-fno-crash-diagnostics", "-", "-o", "made"];
        let error = run_with_input(&line(CLANG, &arguments, place.path()), "a test", &text);
        let error = error.expect_err(how).to_string();
        let said = match how {
            "llvm_fatal_error" => "error in backend",
            _ => "clang frontend command failed",
        };
        assert!(error.contains(said), "{how}: {error}");
    }
    run(&line(CLANG, &["-c", "a.c"], place.path()), "a test").unwrap();
    assert_eq!(server(CLANG, &none).pid(), before);
}

/// A compile that waits for its source until somebody writes it to the pipe.
fn waiting(place: &Path) -> (Line, PathBuf) {
    let pipe = place.join("pipe.c");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    (
        line(
            CLANG,
            &["-c", "-fno-crash-diagnostics", "pipe.c", "-o", "made"],
            place,
        ),
        pipe,
    )
}

#[test]
fn what_takes_too_long_is_killed_and_others_need_not_wait() {
    let none = Sandbox::none();
    let before = server(CLANG, &none).pid();
    let place = directory(&[("a.c", C)]);
    let (slow, _) = waiting(place.path());
    std::thread::scope(|scope| {
        let late = scope.spawn(|| run(&slow.clone().limit(Duration::from_secs(2)), "a test"));
        let fast: Vec<_> = (0..4)
            .map(|at| {
                let made = format!("made{at}");
                let line = line(CLANG, &["-c", "a.c", "-o", &made], place.path());
                scope.spawn(move || run(&line, "a test").map(drop))
            })
            .collect();
        for fast in fast {
            fast.join().unwrap().unwrap();
        }
        assert!(!late.is_finished());
        let error = late.join().unwrap().unwrap_err().to_string();
        assert!(
            error.contains("ran longer than 2 s and was killed"),
            "{error}"
        );
    });
    assert_eq!(server(CLANG, &none).pid(), before);
}
