//! Compiles the C++ shim against the headers of LLVM 22.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src/shim.cpp");
    println!("cargo:rerun-if-changed=src/extract.cpp");
    println!("cargo:rerun-if-changed=src/results.cpp");
    println!("cargo:rerun-if-changed=src/types.cpp");
    let output = Command::new("llvm-config-22")
        .arg("--includedir")
        .output()
        .expect("llvm-config-22 runs");
    let include = String::from_utf8(output.stdout).expect("a path");
    cc::Build::new()
        .cpp(true)
        .compiler("g++")
        .file("src/shim.cpp")
        .file("src/extract.cpp")
        .file("src/results.cpp")
        .file("src/types.cpp")
        .flag("-isystem")
        .flag(include.trim())
        .flag("-std=c++17")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .warnings(true)
        .extra_warnings(true)
        .compile("cere_shim");
}
