//! Zig.

use super::facts::{BackEnd, Call, Facts, Front, OBJECTS, Passed};
use std::path::{Path, PathBuf};

pub const FACTS: Facts = Facts {
    name: "Zig",
    extensions: &["zig"],
    drivers: &[("zig", "zig")],
    variables: &[],
    front: Front::Own(call),
    form: "",
    back_end: BackEnd::Clang,
    unwinds: false,
    is_library: |path| path.contains("/lib/std/"),
};

/// Options whose value is the next argument.
const WITH_VALUE: [&str; 25] = [
    "--stack",
    "--entry",
    "--version-script",
    "-O",
    "-target",
    "-mcpu",
    "--name",
    "--dep",
    "--cache-dir",
    "--global-cache-dir",
    "--zig-lib-dir",
    "--build-root",
    "--libc",
    "-x",
    "-D",
    "-I",
    "-isystem",
    "-idirafter",
    "-L",
    "-l",
    "--library",
    "-rpath",
    "--library-directory",
    "-cflags",
    "--color",
];

/// Takes a call of `zig build-exe`, `build-obj` or `build-lib` apart; the bitcode goes to `scratch`.
fn call(arguments: &[String], scratch: &Path) -> Result<Call, Passed> {
    let kind = arguments.first().map_or("", String::as_str);
    if matches!(kind, "cc" | "c++") {
        return Err(Passed::Driver);
    }
    if !matches!(kind, "build-exe" | "build-obj" | "build-lib")
        || arguments.iter().any(|a| a == "-h" || a == "--help")
    {
        return Err(Passed::Other);
    }
    let dynamic = arguments.iter().any(|a| a == "-dynamic");
    if kind == "build-lib" && !dynamic {
        return Err(Passed::Cannot(
            "it makes an archive: build an object (`zig build-obj`), and archive that by ar"
                .to_owned(),
        ));
    }
    if arguments.iter().any(|a| a == "--listen=-") {
        return Err(Passed::Cannot("`zig build` talks to its compiler, which cere cannot take the place of: compile by `zig build-exe`".to_owned()));
    }
    let mut level = "-O0";
    let mut sources = Vec::new();
    let mut front = vec!["build-obj".to_owned()];
    let mut link = Vec::new();
    let (mut name, mut output) = (None, None);
    let mut codegen: Vec<String> = Vec::new();
    let mut libc = false;
    let mut rest = arguments[1..].iter();
    while let Some(argument) = rest.next() {
        let value = if WITH_VALUE.contains(&&**argument) {
            rest.next().cloned()
        } else {
            None
        };
        match (argument.as_str(), &value) {
            ("-O", Some(mode)) => {
                level = level_of(mode);
                front.extend([argument.clone(), mode.clone()]);
            }
            ("-target", Some(target)) if !is_here(target) => {
                return Err(Passed::Cannot("it compiles for another machine".to_owned()));
            }
            ("--name", Some(given)) => name = Some(given.clone()),
            // For sources in C.
            ("-cflags", _) => {
                front.extend([argument.clone()].into_iter().chain(value));
                front.extend(rest.by_ref().take_while(|word| *word != "--").cloned());
                front.push("--".to_owned());
            }
            ("--stack", Some(size)) => link.push(format!("-Wl,-z,stack-size={size}")),
            ("--entry" | "--version-script", Some(what)) => {
                link.push(format!("-Wl,{argument},{what}"))
            }
            ("-rdynamic", None) => link.push(argument.clone()),
            ("-l" | "--library", Some(library)) => link.push(format!("-l{library}")),
            ("-L" | "--library-directory", Some(directory)) => link.push(format!("-L{directory}")),
            ("-rpath", Some(directory)) => link.push(format!("-Wl,-rpath,{directory}")),
            (word, None) if word.starts_with("-femit-bin=") => {
                output = Some(PathBuf::from(&word["-femit-bin=".len()..]))
            }
            (word, None) if word.starts_with("-O") => {
                level = level_of(&word[2..]);
                front.push(argument.clone());
            }
            ("-lc", None) => libc = true,
            (word, None) if word.starts_with("-l") || word.starts_with("-L") => {
                link.push(argument.clone())
            }
            (
                "-fllvm" | "-fno-llvm" | "-flto" | "-fno-lto" | "-dynamic" | "-fstrip"
                | "-fno-strip",
                None,
            ) => {}
            ("-static", None) => {
                return Err(Passed::Cannot(
                    "its program is static, and loads no library: leave -static out".to_owned(),
                ));
            }
            (word, None) if word.starts_with("-fno-emit-bin") => return Err(Passed::Other),
            (word, None) if !word.starts_with('-') && linked(word) => link.push(argument.clone()),
            (word, _) => {
                if word.ends_with(".zig") {
                    sources.push(word.rsplit('=').next().unwrap_or(word).to_owned());
                }
                front.push(argument.clone());
                front.extend(value);
            }
        }
    }
    let Some(first) = sources.first() else {
        return Err(Passed::Other);
    };
    let stem = name.unwrap_or_else(|| {
        Path::new(first)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    });
    let output = output.unwrap_or_else(|| match kind {
        "build-exe" => PathBuf::from(&stem),
        "build-lib" => format!("lib{stem}.so").into(),
        _ => format!("{stem}.o").into(),
    });
    let bitcode = scratch.join("zig.bc");
    front.extend(["--name".to_owned(), stem]);
    front.extend(
        [
            "-fllvm",
            "-lc",
            "-fPIC",
            "-fno-stack-check",
            "-fno-emit-bin",
        ]
        .map(str::to_owned),
    );
    front.push(format!("--verbose-llvm-bc={}", bitcode.display()));
    // Without it the compiler makes no IR at all.
    front.push(format!(
        "-femit-llvm-bc={}",
        scratch.join("optimised").display()
    ));
    codegen.splice(
        0..0,
        [level, "-fPIC", "-ffunction-sections", "-fdata-sections"].map(str::to_owned),
    );
    let words = link;
    let link = (kind != "build-obj").then(|| {
        let mut line = vec![OBJECTS.to_owned()];
        line.extend(words);
        line.extend((kind == "build-lib").then(|| "-shared".to_owned()));
        line.extend([
            "-lc".to_owned(),
            "-lm".to_owned(),
            "-o".to_owned(),
            output.display().to_string(),
        ]);
        line
    });
    let mut changes = vec![
        "Zig is compiled to bitcode by zig, and optimised by LLVM 22's clang; clang links it"
            .to_owned(),
    ];
    if !libc {
        changes.push("Zig's programs are linked to the C library (-lc), without which no library can be loaded into them".to_owned());
    }
    Ok(Call {
        front,
        bitcode: Some(bitcode),
        codegen,
        debug: level == "-O0",
        output,
        each: None,
        link,
        by_cc: true,
        changes,
    })
}

/// Whether the target is this kind of machine, with the library that clang links to.
fn is_here(target: &str) -> bool {
    let rest = target
        .strip_prefix("x86_64-linux")
        .or(target.strip_prefix("native"));
    rest.is_some_and(|rest| !rest.contains("musl"))
}

/// Whether the linker alone reads the file.
fn linked(path: &str) -> bool {
    [".o", ".a", ".so"].iter().any(|end| path.ends_with(end))
}

fn level_of(mode: &str) -> &'static str {
    match mode {
        "fast" | "safe" | "ReleaseFast" | "ReleaseSafe" => "-O3",
        "small" | "ReleaseSmall" => "-Oz",
        _ => "-O0",
    }
}
