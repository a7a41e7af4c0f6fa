//! What a compiler's arguments mean: inputs, mode, output, code generation. Nothing here runs anything.

use anyhow::{Context, Result};
use cere_format::build::Language;
use std::path::{Path, PathBuf};

/// What the driver was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Preprocess, print a version, check syntax: nothing that makes code.
    PassThrough,
    /// `-c` or `-S`.
    Compile,
    /// Link, after compiling what is source.
    Link,
}

/// One argument with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An option with its separate value, if it has one.
    Option(Vec<String>),
    /// An input that the pass can instrument.
    Source {
        /// As given.
        path: String,
        /// The language in force.
        language: Language,
        /// The `-x` in force, if any.
        explicit: Option<String>,
    },
    /// An assembler file, or IR: compiled without the pass.
    Assembler {
        /// As given.
        path: String,
        /// The `-x` in force, if any.
        explicit: Option<String>,
    },
    /// An object, archive or library file.
    Other(String),
}

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// What is asked.
    pub mode: Mode,
    /// Whether `-S` was given.
    pub assembly: bool,
    /// Everything in order, without `-o`, `-c`, `-S` and `-x`.
    pub items: Vec<Item>,
    /// `-o`.
    pub output: Option<String>,
    /// Whether debug information is wanted.
    pub debug: bool,
    /// Flags that decide code generation.
    pub codegen: Vec<String>,
    /// What was dropped, for a warning.
    pub dropped: Vec<String>,
    /// The arguments without those that the compiler rejects; for passing through.
    pub cleaned: Vec<String>,
}

/// Options whose value is the next argument.
const WITH_VALUE: &[&str] = &[
    "-I",
    "-L",
    "-l",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-isysroot",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-Xclang",
    "-Xflang",
    "-Xassembler",
    "-Xpreprocessor",
    "-T",
    "-u",
    "-z",
    "-arch",
    "-target",
    "--param",
    "-mllvm",
    "-mmlir",
    "-e",
    "-h",
    "-B",
    "-J",
    "-module-dir",
    "-framework",
    "-F",
    "-include-pch",
    "-aux-info",
    "-rpath",
    "--sysroot",
    "-G",
    "-A",
];

/// Flags of GCC that clang rejects; a `*` at the end stands for any ending.
const NOT_CLANG: &[&str] = &[
    "-fno-var-tracking*",
    "-fvar-tracking*",
    "-fno-canonical-system-headers",
    "-fno-ipa-*",
    "-fipa-*",
    "-fno-allow-store-data-races",
    "-fconserve-stack",
    "-fno-reorder-*",
    "-fgraphite*",
    "-floop-*",
    "-fno-tree-*",
    "-fcallgraph-info*",
    "-fdump-*",
    "-fno-code-hoisting",
    "-fno-toplevel-reorder",
    "-fplugin-arg-*",
    "-mpreferred-stack-boundary=*",
    "-mindirect-branch*",
    "-mfunction-return=*",
    "-mno-fp-ret-in-387",
    "-static-libgfortran",
    "-fanalyzer",
    "-fuse-linker-plugin",
    "-ffat-lto-objects",
    "-fprofile-partial-training",
    "-fno-aggressive-loop-optimizations",
    "-fcx-fortran-rules",
    "-fno-printf-return-value",
    "-fopt-info*",
];

/// Flags of gfortran that flang rejects.
const NOT_FLANG: &[&str] = &[
    "-fallow-argument-mismatch",
    "-fallow-invalid-boz",
    "-fno-range-check",
    "-frange-check",
    "-frecord-marker=*",
    "-fbounds-check",
    "-fcheck=*",
    "-fno-check*",
    "-fbacktrace",
    "-fno-backtrace",
    "-ffpe-trap=*",
    "-ffpe-summary=*",
    "-fmax-errors=*",
    "-finit-*",
    "-fdec*",
    "-fcray-pointer",
    "-fno-second-underscore",
    "-fsecond-underscore",
    "-fwhole-file",
    "-ff2c",
    "-fno-f2c",
    "-ffree-line-length-*",
    "-std=legacy",
    "-std=gnu",
    "-std=f95",
    "-std=f2003",
    "-std=f2008",
    "-std=f2008ts",
    "-fexternal-blas",
    "-fmax-stack-var-size=*",
    "-fno-align-commons",
    "-falign-commons",
    "-fimplicit-none-ext",
    "-frepack-arrays",
    "-fno-protect-parens",
    "-fprotect-parens",
    "-faggressive-function-elimination",
    "-fno-frontend-optimize",
    "-ffrontend-optimize",
    "-finline-*",
    "-fno-inline*",
    "-fcoarray=*",
    "-fno-whole-file",
    "-fmodule-private",
    "-ftree-*",
    "-fno-strict-aliasing",
    "-fstrict-aliasing",
    "-fno-common",
    "-fstack-protector*",
    "-fno-stack-protector",
    "-fno-math-errno",
    "-fmath-errno",
];

/// Flags whose name begins with one of these say nothing about the machine code.
const NOT_CODEGEN: &[&str] = &[
    "-fpass-plugin",
    "-fplugin",
    "-fdiagnostics",
    "-fno-diagnostics",
    "-fcolor",
    "-fno-color",
    "-fsyntax-only",
    "-fdebug",
    "-fno-debug",
    "-ffile-prefix-map",
    "-fmacro-prefix-map",
    "-fmodule",
    "-fno-module",
    "-fuse-ld",
    "-flto",
    "-fno-lto",
    "-fvisibility",
    "-fmessage-length",
    "-ferror-limit",
    "-fpermissive",
    "-fshow",
    "-fno-show",
    "-fcaret",
    "-ftemplate",
    "-fconstexpr",
    "-finput-charset",
    "-fexec-charset",
    "-fextended",
    "-fworking-directory",
    "-fpch",
    "-fsigned-char",
    "-funsigned-char",
    "-fno-builtin",
    "-fno-rtti",
    "-frtti",
    "-fpreprocessed",
    "-fdirectives-only",
    "-fms-",
    "-fgnu",
    "-fno-gnu",
    "-fsave-optimization",
    "-fsanitize-ignorelist",
];

/// What of a Fortran compile's `-f` flags clang understands for IR.
const FORTRAN_CODEGEN: &[&str] = &[
    "-fPIC",
    "-fpic",
    "-fPIE",
    "-fpie",
    "-fno-PIC",
    "-fno-pic",
    "-fno-PIE",
    "-fno-pie",
    "-ffast-math",
    "-fno-fast-math",
    "-ffp-contract",
    "-funroll-loops",
    "-fno-unroll-loops",
    "-fvectorize",
    "-fno-vectorize",
    "-fslp-vectorize",
    "-fno-slp-vectorize",
    "-fomit-frame-pointer",
    "-fno-omit-frame-pointer",
    "-fno-signed-zeros",
    "-fno-trapping-math",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffunction-sections",
    "-fdata-sections",
    "-funsafe-math-optimizations",
    "-ffinite-math-only",
    "-fveclib",
];

const PASS_THROUGH: &[&str] = &[
    "-E",
    "-M",
    "-MM",
    "-fsyntax-only",
    "--version",
    "-###",
    "-dumpversion",
    "-dumpmachine",
    "-dumpfullversion",
    "-dumpspecs",
    "--help",
    "-cc1",
    "-fc1",
    "-cc1as",
    "--analyze",
    "-emit-ast",
    "--precompile",
];

/// Replaces `@file` by the arguments in that file, as GCC and clang read it.
pub fn expand(arguments: Vec<String>, depth: u32) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for argument in arguments {
        match argument.strip_prefix('@') {
            Some(file) if Path::new(file).is_file() => {
                anyhow::ensure!(depth < 16, "response files nest too deep at @{file}");
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read the response file {file}"))?;
                all.extend(expand(split(&text), depth + 1)?);
            }
            _ => all.push(argument),
        }
    }
    Ok(all)
}

/// Splits the text of a response file: blanks separate, quotes and backslashes keep.
pub fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn matches(patterns: &[&str], argument: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => argument.starts_with(start),
            None => *pattern == argument,
        })
}

/// What an input is by its name or the `-x` in force.
fn input(path: &str, explicit: Option<&str>, fallback: Language) -> Item {
    let owned = path.to_owned();
    let source = |language| Item::Source {
        path: path.to_owned(),
        language,
        explicit: explicit.map(str::to_owned),
    };
    let assembler = || Item::Assembler {
        path: path.to_owned(),
        explicit: explicit.map(str::to_owned),
    };
    match explicit {
        Some("c" | "cpp-output") => return source(Language::C),
        Some("c++" | "c++-cpp-output") => return source(Language::Cxx),
        Some("f77" | "f95" | "f77-cpp-input" | "f95-cpp-input") => {
            return source(Language::Fortran);
        }
        Some(_) => return assembler(),
        None => {}
    }
    if path == "-" {
        return source(fallback);
    }
    match Path::new(path).extension().and_then(|e| e.to_str()) {
        Some("c" | "i") => source(if fallback == Language::Cxx {
            Language::Cxx
        } else {
            Language::C
        }),
        Some("cc" | "cpp" | "cxx" | "C" | "c++" | "CPP" | "cp" | "ii") => source(Language::Cxx),
        Some(
            "f" | "for" | "ftn" | "f77" | "F" | "FOR" | "FTN" | "F77" | "f90" | "f95" | "f03"
            | "f08" | "f18" | "F90" | "F95" | "F03" | "F08" | "F18" | "fpp" | "FPP",
        ) => source(Language::Fortran),
        Some("s" | "S" | "sx" | "asm" | "ll" | "bc" | "h" | "hpp" | "hh" | "H") => assembler(),
        _ => Item::Other(owned),
    }
}

/// Parses expanded arguments of a driver whose own language is `driver`.
pub fn parse(arguments: &[String], driver: Language) -> Parsed {
    let fortran = driver == Language::Fortran;
    let mut parsed = Parsed {
        mode: Mode::Link,
        assembly: false,
        items: Vec::new(),
        output: None,
        debug: false,
        codegen: Vec::new(),
        dropped: Vec::new(),
        cleaned: Vec::new(),
    };
    let mut explicit: Option<String> = None;
    let mut pass_through = false;
    let mut index = 0;
    while index < arguments.len() {
        let argument = arguments[index].as_str();
        let next = arguments.get(index + 1).cloned();
        index += 1;
        let rejected = matches(NOT_CLANG, argument)
            && !(fortran && argument == "-static-libgfortran")
            || fortran && matches(NOT_FLANG, argument)
            || argument == "-flto"
            || argument.starts_with("-flto=");
        if rejected {
            parsed.dropped.push(argument.to_owned());
            continue;
        }
        if argument == "-o" || argument == "-x" || WITH_VALUE.contains(&argument) {
            parsed.cleaned.push(argument.to_owned());
            let Some(value) = next else {
                pass_through = true;
                continue;
            };
            index += 1;
            parsed.cleaned.push(value.clone());
            match argument {
                "-o" => parsed.output = Some(value),
                "-x" => explicit = (value != "none").then_some(value),
                _ => {
                    if matches!(argument, "-mllvm" | "-target") || argument == "-Xclang" && !fortran
                    {
                        parsed.codegen.extend([argument.to_owned(), value.clone()]);
                    }
                    parsed
                        .items
                        .push(Item::Option(vec![argument.to_owned(), value]));
                }
            }
            continue;
        }
        parsed.cleaned.push(argument.to_owned());
        if argument == "-c" {
            if parsed.mode == Mode::Link {
                parsed.mode = Mode::Compile
            }
        } else if argument == "-S" {
            parsed.mode = Mode::Compile;
            parsed.assembly = true;
        } else if let Some(value) = argument
            .strip_prefix("-o")
            .filter(|v| !v.is_empty() && !v.starts_with("bjc"))
        {
            parsed.output = Some(value.to_owned());
        } else if let Some(value) = argument.strip_prefix("-x").filter(|v| !v.is_empty()) {
            explicit = (value != "none").then(|| value.to_owned());
        } else if argument == "-" || !argument.starts_with('-') {
            parsed
                .items
                .push(input(argument, explicit.as_deref(), driver));
        } else {
            if PASS_THROUGH.contains(&argument)
                || argument.starts_with("-print-")
                || argument.starts_with("--print-")
                || argument.starts_with("--help")
            {
                pass_through = true;
            }
            if argument.starts_with("-g")
                && argument != "-gno-column-info"
                && !argument.starts_with("-gcc")
                && argument != "-gen"
            {
                parsed.debug = argument != "-g0";
            }
            if decides_code(argument, fortran) {
                parsed.codegen.push(argument.to_owned());
            }
            parsed.items.push(Item::Option(vec![argument.to_owned()]));
        }
    }
    let inputs = parsed
        .items
        .iter()
        .any(|item| !matches!(item, Item::Option(_)));
    if pass_through || !inputs {
        parsed.mode = Mode::PassThrough;
    }
    parsed
}

fn decides_code(argument: &str, fortran: bool) -> bool {
    if argument.starts_with("-O") || argument.starts_with("--target=") || argument == "-pg" {
        return true;
    }
    if argument.starts_with("-m") {
        return argument != "-module-dir";
    }
    if !argument.starts_with("-f") {
        return false;
    }
    if fortran {
        return FORTRAN_CODEGEN
            .iter()
            .any(|flag| argument == *flag || argument.starts_with(&format!("{flag}=")));
    }
    !NOT_CODEGEN.iter().any(|start| argument.starts_with(start))
}

/// The file that a compile of `source` makes when no `-o` says otherwise.
pub fn default_output(source: &str, assembly: bool) -> PathBuf {
    let stem = Path::new(source).file_stem().unwrap_or_default();
    let mut name = if source == "-" {
        "-".into()
    } else {
        stem.to_owned()
    };
    name.push(if assembly { ".s" } else { ".o" });
    name.into()
}

/// Whether a link option asks to drop the symbol table; `Some` holds what remains of it.
pub fn without_strip(option: &str) -> Option<Option<String>> {
    if option == "-s" {
        return Some(None);
    }
    let rest = option.strip_prefix("-Wl,")?;
    let kept: Vec<&str> = rest
        .split(',')
        .filter(|part| !matches!(*part, "-s" | "--strip-all"))
        .collect();
    if kept.len() == rest.split(',').count() {
        return None;
    }
    Some((!kept.is_empty()).then(|| format!("-Wl,{}", kept.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Parsed {
        parse(&split(line), Language::C)
    }

    #[test]
    fn compile_with_output() {
        let parsed = of("-O2 -Iinc -I inc2 -DA=1 -march=native -fno-rtti -fPIC -c a.c -o a.o");
        assert_eq!(parsed.mode, Mode::Compile);
        assert_eq!(parsed.output.as_deref(), Some("a.o"));
        assert_eq!(parsed.codegen, ["-O2", "-march=native", "-fPIC"]);
        assert!(!parsed.debug);
    }

    #[test]
    fn modes() {
        for line in [
            "-E a.c",
            "--version",
            "-print-prog-name=ld",
            "-M a.c",
            "-MM a.c",
            "-v",
            "-dumpmachine",
            "",
        ] {
            assert_eq!(of(line).mode, Mode::PassThrough, "{line}");
        }
        assert_eq!(of("-MMD -MP -MF a.d -c a.c").mode, Mode::Compile);
        assert_eq!(of("a.c b.o -lm").mode, Mode::Link);
        assert_eq!(of("-S a.c").mode, Mode::Compile);
        assert!(of("-S a.c").assembly);
    }

    #[test]
    fn inputs_by_name_and_by_x() {
        let parsed = of("-x c++ a.c -x none b.c s.S l.a -xc -");
        let languages: Vec<_> = parsed
            .items
            .iter()
            .map(|item| match item {
                Item::Source { language, .. } => format!("{language:?}"),
                Item::Assembler { .. } => "as".into(),
                Item::Other(_) => "other".into(),
                Item::Option(_) => "option".into(),
            })
            .collect();
        assert_eq!(languages, ["Cxx", "C", "as", "other", "C"]);
    }

    #[test]
    fn gcc_flags_are_dropped() {
        assert_eq!(
            of("-flto=auto -fno-var-tracking-assignments -c a.c")
                .dropped
                .len(),
            2
        );
        let parsed = parse(&split("-fcheck=all -std=legacy -c a.f"), Language::Fortran);
        assert_eq!(parsed.dropped, ["-fcheck=all", "-std=legacy"]);
    }

    #[test]
    fn response_files() {
        assert_eq!(
            split(r#"a "b c" d\ e 'f"g'  ''"#),
            ["a", "b c", "d e", "f\"g", ""]
        );
    }

    #[test]
    fn strip_is_dropped() {
        assert_eq!(without_strip("-s"), Some(None));
        assert_eq!(without_strip("-Wl,-s,-O1"), Some(Some("-Wl,-O1".into())));
        assert_eq!(without_strip("-Wl,-soname,x"), None);
    }
}
