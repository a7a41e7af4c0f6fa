//! Compiles the C++ shim against the headers of LLVM 22.

use std::process::Command;

const SOURCES: [&str; 20] = [
    "src/shim.cpp",
    "src/extract.cpp",
    "src/functions.cpp",
    "src/stack.cpp",
    "src/short.cpp",
    "src/nested.cpp",
    "src/exceptions.cpp",
    "src/arguments.cpp",
    "src/results.cpp",
    "src/stores.cpp",
    "src/types.cpp",
    "src/forks.cpp",
    "src/shapes.cpp",
    "src/count.cpp",
    "src/labels.cpp",
    "src/alike.cpp",
    "src/pairing.cpp",
    "src/bridge.cpp",
    "src/ablate.cpp",
    "src/cross.cpp",
];

fn main() {
    for file in SOURCES
        .iter()
        .chain(&["src/extract.h", "src/pairing.h", "src/stores.h"])
    {
        println!("cargo:rerun-if-changed={file}");
    }
    // One unit of all: reading LLVM's headers takes most of the time of each.
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let all = format!(
        "{}/all.cpp",
        std::env::var("OUT_DIR").expect("cargo sets it")
    );
    let includes = SOURCES.map(|file| format!("#include \"{here}/{file}\"\n"));
    std::fs::write(&all, includes.concat()).expect("OUT_DIR can be written");
    let output = Command::new("llvm-config-22")
        .arg("--includedir")
        .output()
        .expect("llvm-config-22 runs");
    let include = String::from_utf8(output.stdout).expect("a path");
    // For another architecture, that of its cross compiler.
    let [host, target] = ["HOST", "TARGET"].map(|name| std::env::var(name).expect("cargo sets it"));
    let mut shim = cc::Build::new();
    if host == target {
        shim.compiler("g++");
    }
    shim.cpp(true)
        .file(all)
        .flag("-isystem")
        .flag(include.trim())
        .flag("-std=c++17")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .warnings(true)
        .extra_warnings(true)
        .compile("cere_shim");
}
