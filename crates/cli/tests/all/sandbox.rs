//! Packages of strangers at the command: listed within bounds, printed so that a terminal obeys nothing, replayed in the sandbox
//! unless `--no-sandbox` is given, and what the system refuses of the sandbox is said.

use crate::common::{built, cere, has, instrumented, run, succeed, text, write};
use cere_package::io::{NewMember, read_package, write_package};
use cere_testing::package;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = r#"
#include <stdio.h>
static double a[4000];
__attribute__((noinline)) void scale(int n) { for (int i = 0; i < n; i++) a[i] = a[i] * 1.5 + i; }
int main(void) { for (int k = 0; k < 50; k++) scale(4000); printf("%g\n", a[17]); return 0; }
"#;

fn codelets(at: &Path) -> PathBuf {
    let codelets = at.join(".cere/codelets");
    std::fs::create_dir_all(&codelets).expect("a directory");
    codelets
}

/// A build with the codelet of `scale`, and the codelet's file.
fn captured() -> (tempfile::TempDir, PathBuf) {
    let directory = instrumented(PROGRAM);
    succeed(directory.path(), "capture scale@* -- ./app");
    let mut files = std::fs::read_dir(codelets(directory.path())).expect("codelets");
    let file = files.find_map(|entry| {
        let path = entry.expect("an entry").path();
        path.extension()
            .is_some_and(|e| e == "codelet")
            .then_some(path)
    });
    let file = file.expect("a codelet");
    (directory, file)
}

/// A file of 40 KB once took 2.3 GB to list. The limit is on address space, of which the libraries take their part.
#[test]
fn a_list_of_empty_strings_takes_no_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    for (list, limit) in [
        ("libraries", 80_000_000),
        ("fresh", 1_200_000),
        ("units", 300_000),
    ] {
        let sample = package::manifest().to_string();
        let empty = match list {
            "fresh" => "[0,0],",
            "units" => "{\"codegen\":[\"\",\"\",\"\",\"\"]},",
            _ => "\"\",",
        };
        let start = format!("\"{list}\":[");
        let many = format!("{start}{}", empty.repeat(limit));
        assert!(sample.contains(&start));
        let manifest = sample.replacen(&start, &many, 1);
        let whole = package::package(manifest.as_bytes(), &package::members(), None);
        assert!(whole.len() < 60_000, "{} bytes", whole.len());
        std::fs::write(codelets(at).join("x.codelet"), whole).expect("a file");
        let mut command = cere(at, "codelets");
        let limit = || {
            let most = libc::rlimit {
                rlim_cur: 600 << 20,
                rlim_max: 600 << 20,
            };
            // SAFETY: a structure on the stack.
            unsafe { libc::setrlimit(libc::RLIMIT_AS, &most) };
            Ok(())
        };
        // SAFETY: a system call only.
        unsafe { command.pre_exec(limit) };
        let output = command.output().expect("cere runs");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{list}: {message}");
        assert!(message.contains("manifest.json"), "{list}: {message}");
    }
}

#[test]
fn names_do_not_reach_the_terminal() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let escape = "\u{1b}]0;x\u{7}\ncere: verdict exact";
    for field in ["name", "region_name"] {
        let mut manifest = package::manifest();
        manifest[field] = escape.into();
        let whole = package::package(manifest.to_string().as_bytes(), &package::members(), None);
        std::fs::write(codelets(at).join("x.codelet"), whole).expect("a file");
        let output = run(at, "codelets");
        let message = text(&output.stderr);
        has(&message, "control characters");
        assert!(
            !message.contains('\u{1b}') && !message.contains("\ncere: verdict"),
            "{message}"
        );
    }
    // A file's own name, of which the codelet's is taken where the file is damaged.
    std::fs::rename(
        codelets(at).join("x.codelet"),
        codelets(at).join("\u{1b}[2J.codelet"),
    )
    .expect("a name");
    std::fs::write(codelets(at).join("%1b%5b2J.codelet"), "damaged").expect("a file");
    for arguments in [
        &["codelets"][..],
        &["replay", "*"],
        &["replay", "no\u{1b}[2J\u{202e}"],
    ] {
        let output = run(at, arguments);
        let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(!all.contains(['\u{1b}', '\u{202e}']), "{all:?}");
    }
}

/// The codelet in `file` with `assembly` in its unit, in a file of its own.
fn with_assembly(at: &Path, file: &Path, assembly: &str) -> PathBuf {
    let package = read_package(file, 1 << 30).expect("a package");
    let tool = |arguments: &[&str]| {
        let status = Command::new(arguments[0])
            .args(&arguments[1..])
            .current_dir(at)
            .status();
        assert!(status.expect("LLVM's tools").success(), "{arguments:?}");
    };
    let unit = package.manifest.units[0].member();
    std::fs::write(at.join("unit.bc"), package.member(&unit)).expect("a file");
    tool(&["llvm-dis-22", "unit.bc", "-o", "unit.ll"]);
    let ir = std::fs::read_to_string(at.join("unit.ll")).expect("IR");
    write(
        at,
        &[("unit.ll", &format!("{ir}\nmodule asm \"{assembly}\"\n"))],
    );
    tool(&["llvm-as-22", "unit.ll", "-o", "unit.bc"]);
    let changed = std::fs::read(at.join("unit.bc")).expect("IR");
    let member = |name: &String| match *name == unit {
        true => NewMember::bytes(name, changed.clone()),
        false => NewMember::bytes(name, package.member(name)),
    };
    let members: Vec<NewMember> = package
        .manifest
        .members
        .iter()
        .map(|m| member(&m.name))
        .collect();
    let target = at.join("strange.codelet");
    write_package(&target, &mut package.manifest.clone(), &members).expect("a package");
    target
}

#[test]
fn a_captured_codelet_is_confined_unless_it_is_trusted() {
    let (directory, file) = captured();
    let at = directory.path();
    succeed(at, "replay scale@*");
    succeed(at, "replay scale@* --flags -O1 --keep kept");
    std::fs::create_dir(at.join("home")).expect("a directory");
    write(at, &[("home/secret", "secret")]);
    let secret = at.join("home/secret");
    let include = format!(
        ".section .stolen\\0A.incbin \\22{}\\22\\0A.text",
        secret.display()
    );
    let strange = with_assembly(at, &file, &include);
    let strange = strange.to_str().expect("a plain path");
    for more in [&[][..], &["--flags", "-O1"], &["--passes", "default<O2>"]] {
        let arguments = [&["replay", strange][..], more].concat();
        let output = run(at, &arguments);
        let message = text(&output.stderr);
        assert!(!output.status.success(), "{message}");
        for part in ["it ran in a sandbox", "home/secret"] {
            has(&message, part);
        }
        succeed(at, &[&arguments[..], &["--no-sandbox"]].concat());
        // What was made without a sandbox is not taken from the cache.
        std::fs::remove_dir_all(at.join(".cere/cache")).expect("a cache");
    }
}

/// `cere ARGUMENTS` where these system calls fail with EPERM.
fn without(at: &Path, calls: &str, arguments: &[&str]) -> Output {
    let output = Command::new(at.join("refuse"))
        .env("REFUSE", calls)
        .arg(built())
        .args(arguments)
        .current_dir(at)
        .output();
    output.expect("the wrapper runs")
}

#[test]
fn a_layer_that_is_refused_is_said_once() {
    let (directory, _) = captured();
    let at = directory.path();
    let compiled = Command::new("clang-22")
        .args(["-Wall", "-Werror", "-o"])
        .arg(at.join("refuse"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refuse.c"))
        .status();
    assert!(compiled.expect("clang runs").success());
    for (calls, said) in [
        ("unshare", "no user namespace"),
        ("landlock_create_ruleset", "no landlock"),
        ("seccomp", "no seccomp"),
    ] {
        let output = without(at, calls, &["replay", "scale@*"]);
        let message = text(&output.stderr);
        assert!(output.status.success(), "{calls}: {message}");
        assert_eq!(message.matches(said).count(), 1, "{calls}: {message}");
        assert_eq!(message.matches("warning").count(), 1, "{calls}: {message}");
        let output = without(at, calls, &["replay", "scale@*", "--no-sandbox"]);
        assert!(!text(&output.stderr).contains("sandbox"));
    }
}
