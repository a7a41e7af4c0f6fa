//! A program in C and in C++, compiled against an installed tree by what pkg-config says.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command; what it prints.
fn run(command: &mut Command) -> String {
    let out = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        out.status.success(),
        "{command:?}\n{}{}",
        text(&out.stdout),
        text(&out.stderr)
    );
    text(&out.stdout)
}

/// Installs the library that was built with this test, in a tree that is then moved: cere.pc names no fixed path.
fn installed(folder: &Path) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (first, tree) = (folder.join("first"), folder.join("tree"));
    run(Command::new("make")
        .args(["-s", "install-timer", "DESTDIR="])
        .arg(format!("PREFIX={}", first.display()))
        .arg(format!(
            "BUILT={}",
            test.parent().expect("a folder").display()
        ))
        .current_dir(root));
    std::fs::rename(&first, &tree).expect("a move");
    tree
}

fn pkg_config(tree: &Path, arguments: &[&str]) -> Vec<String> {
    let said = run(Command::new("pkg-config")
        .args(arguments)
        .arg("cere")
        .env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig")));
    said.split_whitespace().map(str::to_owned).collect()
}

/// Compiles the program and runs it.
fn compile_and_run(tree: &Path, compiler: &str, language: &[&str], linked: &[&str]) {
    let program = tree.join("api");
    let warnings = ["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
    run(Command::new(compiler)
        .args(language)
        .args(warnings)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/api.c"))
        .args(pkg_config(tree, linked))
        .arg("-o")
        .arg(&program));
    let said = run(Command::new(program).env("LD_LIBRARY_PATH", tree.join("lib")));
    assert_eq!(said, "all\n");
}

/// What the example prints, built by its Makefile.
fn example(tree: &Path) -> String {
    let folder = tree.join("example");
    std::fs::create_dir(&folder).expect("a folder");
    for name in ["Makefile", "dot.c"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples/c")
            .join(name);
        std::fs::copy(from, folder.join(name)).expect("a copy");
    }
    run(Command::new("make")
        .args(["-s", "run", "CFLAGS=-O2 -Wall -Wextra -Wpedantic -Werror"])
        .current_dir(folder)
        .env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig")))
}

#[test]
fn programs_in_c_and_cpp() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = installed(folder.path());
    let version = pkg_config(&tree, &["--modversion"]);
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);
    let example = example(&tree);
    assert!(example.contains("Warm timing picks"), "{example}");
    let shared = ["--cflags", "--libs"];
    compile_and_run(&tree, "cc", &["-std=c99"], &shared);
    compile_and_run(&tree, "c++", &["-std=c++11", "-x", "c++"], &shared);
    std::fs::remove_file(tree.join("lib/libcere_timer.so")).expect("the shared library");
    compile_and_run(
        &tree,
        "cc",
        &["-std=c99"],
        &["--static", "--cflags", "--libs"],
    );
}
