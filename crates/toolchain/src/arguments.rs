//! Parses a compiler's arguments: inputs, mode, output, code generation. Nothing here runs anything.

use super::codegen;

use anyhow::Result;
use cere_catalogue::{OrCoded, codes};
use cere_format::build::Language;
use cere_format::language::Front;
use std::path::{Path, PathBuf};

/// The mode of a driver call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Preprocess, print a version, check syntax: no code is made.
    PassThrough,
    /// `-c` or `-S`.
    Compile,
    /// Link, after compiling the sources.
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
        /// The `-x` in force, if any.
        explicit: Option<String>,
    },
    /// An assembler file: compiled without the pass.
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
    /// The mode.
    pub mode: Mode,
    /// Whether `-S` was given.
    pub assembly: bool,
    /// Everything in order, without `-o`, `-c`, `-S` and `-x`.
    pub items: Vec<Item>,
    /// `-o`.
    pub output: Option<String>,
    /// Whether debug information is wanted.
    pub debug: bool,
    /// Whether the optimiser needs locations in the source, for profiles, coverage or remarks.
    pub tracks: bool,
    /// Flags that decide code generation.
    pub codegen: Vec<String>,
}

impl Parsed {
    /// A compile to `output` by a call that is none of GCC's.
    pub fn compile(output: &Path, debug: bool, codegen: Vec<String>) -> Self {
        Self {
            mode: Mode::Compile,
            assembly: false,
            items: Vec::new(),
            output: Some(output.display().to_string()),
            debug,
            tracks: false,
            codegen,
        }
    }
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
    "-MJ",
    "-cxx-isystem",
    "-iwithprefixbefore",
    "-iwithsysroot",
    "-serialize-diagnostics",
    "--serialize-diagnostics",
    "-working-directory",
    "-include-pch",
    "-aux-info",
    "-rpath",
    "--sysroot",
    "-G",
    "-A",
];

/// Extensions of C++ modules that are precompiled, and of IR.
const COMPILED: &[&str] = &["pcm", "bc", "ll"];

/// Extensions of headers.
const HEADERS: &[&str] = &["h", "hpp", "hh", "H", "hxx", "h++", "tcc"];

/// Options that make a driver do something other than compiling and linking.
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

/// Whether the argument after `argument` belongs to it.
pub fn takes_value(argument: &str) -> bool {
    matches!(argument, "-o" | "-x") || WITH_VALUE.contains(&argument)
}

/// Replaces `@file` by the arguments in that file, as GCC and clang read it.
pub fn expand(arguments: Vec<String>, depth: u32) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for argument in arguments {
        match argument.strip_prefix('@') {
            Some(file) if Path::new(file).is_file() => {
                cere_catalogue::ensure!(
                    depth < 16,
                    E1018,
                    "response files nest too deep at @{file}"
                );
                let text = std::fs::read_to_string(file).or_coded(codes::E1018, || {
                    format!("cannot read the response file {file}")
                })?;
                all.extend(expand(shell_words::split(&text)?, depth + 1)?);
            }
            _ => all.push(argument),
        }
    }
    Ok(all)
}

/// The kind of an input, from its name or the `-x` in force.
fn input(path: &str, explicit: Option<&str>) -> Item {
    let owned = explicit.map(str::to_owned);
    let source = Item::Source {
        path: path.to_owned(),
        explicit: owned.clone(),
    };
    let assembler = Item::Assembler {
        path: path.to_owned(),
        explicit: owned,
    };
    if let Some(explicit) = explicit {
        let instrumented = ["c", "c++", "c++-module", "f77", "f95"].iter().any(|l| {
            explicit == *l
                || explicit == format!("{l}-cpp-output")
                || explicit == format!("{l}-cpp-input")
        }) || matches!(explicit, "cpp-output" | "ir");
        return if instrumented { source } else { assembler };
    }
    if path == "-" {
        return source;
    }
    let language = Language::of_source(Path::new(path));
    let driven = |language: Language| matches!(language.facts().front, Front::Driver);
    match Path::new(path).extension().and_then(|e| e.to_str()) {
        _ if language.is_some_and(driven) => source,
        Some(extension) if COMPILED.contains(&extension) => source,
        Some("s" | "S" | "sx" | "asm") => assembler,
        Some(extension) if HEADERS.contains(&extension) => assembler,
        _ => Item::Other(path.to_owned()),
    }
}

/// Whether a source is IR.
pub fn is_ir(source: &str, explicit: Option<&str>) -> bool {
    match explicit {
        Some(explicit) => explicit == "ir",
        None => source.ends_with(".bc") || source.ends_with(".ll"),
    }
}

/// Whether the input makes a precompiled header.
fn is_header(path: &str, explicit: Option<&str>) -> bool {
    match explicit {
        Some(explicit) => explicit.ends_with("-header"),
        None => Path::new(path)
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| HEADERS.contains(&e)),
    }
}

/// Long names of options, and short ones for them.
const LONG: [(&str, &str); 5] = [
    ("--output", "-o"),
    ("--language", "-x"),
    ("--compile", "-c"),
    ("--assemble", "-S"),
    ("--preprocess", "-E"),
];

/// The arguments with short names of options for long ones.
fn shortened(arguments: &[String]) -> Vec<String> {
    let mut short = Vec::new();
    for argument in arguments {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), None),
        };
        match LONG.iter().find(|(long, _)| *long == name) {
            Some((_, known)) => {
                short.push((*known).to_owned());
                short.extend(value.map(str::to_owned));
            }
            None => short.push(argument.clone()),
        }
    }
    short
}

/// Parses expanded arguments of a driver whose own language is `driver`.
pub fn parse(arguments: &[String], driver: Language) -> Parsed {
    let mut parser = Parser {
        fortran: driver == Language::Fortran,
        explicit: None,
        pass_through: false,
        parsed: Parsed {
            mode: Mode::Link,
            assembly: false,
            items: Vec::new(),
            output: None,
            debug: false,
            tracks: false,
            codegen: Vec::new(),
        },
    };
    let mut rest = shortened(arguments).into_iter();
    while let Some(argument) = rest.next() {
        match takes_value(&argument) {
            false => parser.take(argument),
            true => match rest.next() {
                Some(value) => parser.take_with_value(argument, value),
                None => parser.pass_through = true,
            },
        }
    }
    parser.finish()
}

struct Parser {
    fortran: bool,
    /// The `-x` in force.
    explicit: Option<String>,
    pass_through: bool,
    parsed: Parsed,
}

impl Parser {
    fn take_with_value(&mut self, argument: String, value: String) {
        match argument.as_str() {
            "-o" => self.parsed.output = Some(value),
            "-x" => self.set_explicit(&value),
            _ => {
                let option = vec![argument, value];
                if codegen::decides_with_value(&option[0], self.fortran) {
                    self.parsed.codegen.extend_from_slice(&option);
                }
                self.parsed.items.push(Item::Option(option));
            }
        }
    }

    fn set_explicit(&mut self, language: &str) {
        self.explicit = (language != "none").then(|| language.to_owned());
    }

    fn take(&mut self, argument: String) {
        let joined = |option| argument.strip_prefix(option).filter(|v| !v.is_empty());
        if argument == "-c" {
            if self.parsed.mode == Mode::Link {
                self.parsed.mode = Mode::Compile
            }
        } else if argument == "-S" {
            self.parsed.mode = Mode::Compile;
            self.parsed.assembly = true;
        } else if let Some(value) = joined("-o").filter(|v| !v.starts_with("bjc")) {
            self.parsed.output = Some(value.to_owned());
        } else if let Some(value) = joined("-x") {
            self.set_explicit(value);
        } else if argument == "-" || !argument.starts_with('-') {
            let input = input(&argument, self.explicit.as_deref());
            self.parsed.items.push(input);
        } else {
            self.take_option(argument);
        }
    }

    fn take_option(&mut self, option: String) {
        const STARTS: [&str; 4] = ["-print-", "--print-", "--help", "-fmodule-header"];
        self.pass_through |= PASS_THROUGH.contains(&option.as_str())
            || STARTS.iter().any(|start| option.starts_with(start));
        self.parsed.tracks |= codegen::tracks_locations(&option);
        if let Some(asks) = codegen::asks_debug(&option) {
            self.parsed.debug = asks;
        }
        if codegen::decides(&option, self.fortran) {
            self.parsed.codegen.push(option.clone());
        }
        self.parsed.items.push(Item::Option(vec![option]));
    }

    fn finish(mut self) -> Parsed {
        let parsed = &mut self.parsed;
        let source = |item: &Item| matches!(item, Item::Source { .. } | Item::Assembler { .. });
        let inputs = match parsed.mode {
            Mode::Compile => parsed.items.iter().any(source),
            _ => parsed.items.iter().any(|i| !matches!(i, Item::Option(_))),
        };
        let header = |item: &Item| matches!(item, Item::Assembler { path, explicit } if is_header(path, explicit.as_deref()));
        // The driver reports this error itself.
        let ambiguous = parsed.mode == Mode::Compile
            && parsed.output.is_some()
            && parsed.items.iter().filter(|i| source(i)).count() > 1;
        if self.pass_through || !inputs || ambiguous || parsed.items.iter().any(header) {
            parsed.mode = Mode::PassThrough;
        }
        self.parsed
    }
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

/// Whether a link option drops local symbols, which later stages need; `Some` holds the rest of the option.
pub fn without_strip(option: &str) -> Option<Option<String>> {
    if option == "-s" {
        return Some(None);
    }
    let rest = option.strip_prefix("-Wl,")?;
    let kept: Vec<&str> = rest
        .split(',')
        .filter(|part| !matches!(*part, "-s" | "--strip-all" | "-x" | "--discard-all"))
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
        parse(&shell_words::split(line).unwrap(), Language::C)
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
            "-c a.o",
            "-x c++-header a.h -o a.gch",
            "-c a.hpp",
            "-c a.c b.c -o c.o",
            "--precompile m.cppm -o m.pcm",
            "-fmodule-header a.hpp -o a.pcm",
            "-fmodule-header=system vector -o v.pcm",
            "-x c++-user-header a.h -o a.pcm",
        ] {
            assert_eq!(of(line).mode, Mode::PassThrough, "{line}");
        }
        assert_eq!(of("-MMD -MP -MF a.d -c a.c").mode, Mode::Compile);
        assert_eq!(of("a.c b.o -lm").mode, Mode::Link);
        assert_eq!(of("-S a.c").mode, Mode::Compile);
        assert!(of("-S a.c").assembly);
        for module in [
            "-c m.cppm",
            "-c m.pcm -o m.o",
            "-fmodule-output -c m.ccm",
            "-x c++-module -c m.cpp",
        ] {
            let parsed = of(module);
            assert_eq!(parsed.mode, Mode::Compile, "{module}");
            let source = |item: &Item| matches!(item, Item::Source { .. });
            assert!(parsed.items.iter().any(source), "{module}");
        }
    }

    #[test]
    fn long_names() {
        let parsed = of("--compile --output=b.o --language c a");
        assert_eq!(parsed.mode, Mode::Compile);
        assert_eq!(parsed.output.as_deref(), Some("b.o"));
        assert!(matches!(&parsed.items[..], [Item::Source { path, .. }] if path == "a"));
    }

    #[test]
    fn inputs_by_name_and_by_x() {
        let parsed = of("-x c++ a.c -x none b.c s.S l.a -xc -");
        let languages: Vec<_> = parsed
            .items
            .iter()
            .map(|item| match item {
                Item::Source { explicit, .. } => explicit.as_deref().unwrap_or("source"),
                Item::Assembler { .. } => "as",
                Item::Other(_) => "other",
                Item::Option(_) => "option",
            })
            .collect();
        assert_eq!(languages, ["c++", "source", "as", "other", "c"]);
        for line in ["-c a.bc", "-c a.ll", "-x ir -c a"] {
            let parsed = of(line);
            let source = |item: &Item| matches!(item, Item::Source { .. });
            assert!(parsed.items.iter().any(source), "{line}");
        }
    }

    #[test]
    fn strip_is_dropped() {
        assert_eq!(without_strip("-s"), Some(None));
        assert_eq!(without_strip("-Wl,-s,-O1"), Some(Some("-Wl,-O1".into())));
        assert_eq!(without_strip("-Wl,-soname,x"), None);
    }
}
