//! What is known of each language: one file each, and a line in [`Language`] and in [`ALL`].
//!
//! A driver whose arguments are GCC's, and rustc, load the pass themselves. Of any other front end the language's file says how it
//! writes bitcode that is not optimised yet ([`Call`]); clang makes the code of that.

mod c;
mod cxx;
mod d;
mod fortran;
pub mod rust;
mod zig;

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The language of a unit's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cxx,
    /// Fortran, any form.
    Fortran,
    /// Rust.
    Rust,
    /// Zig.
    Zig,
    /// D.
    D,
}

/// All languages.
const ALL: [(Language, &Facts); 6] = [
    (Language::C, &c::FACTS),
    (Language::Cxx, &cxx::FACTS),
    (Language::Fortran, &fortran::FACTS),
    (Language::Rust, &rust::FACTS),
    (Language::Zig, &zig::FACTS),
    (Language::D, &d::FACTS),
];

/// What a language needs.
pub struct Facts {
    /// Its name.
    pub name: &'static str,
    /// Extensions of its sources.
    pub extensions: &'static [&'static str],
    /// Names that its compilers go by in a build, each with the program that runs in its place.
    pub drivers: &'static [(&'static str, &'static str)],
    /// Variables by which a build names a compiler, with one of the names.
    pub variables: &'static [(&'static str, &'static str)],
    /// How its compilers are called.
    pub front: Front,
    /// What `-x` calls it, for drivers whose arguments are GCC's.
    pub form: &'static str,
    /// What makes machine code of its IR.
    pub back_end: BackEnd,
    /// Whether exceptions or panics may pass through its functions.
    pub unwinds: bool,
    /// Whether code of a library that a source includes or instantiates goes by the place that asks for it: where this says so, a
    /// path is the library's.
    pub is_library: fn(&str) -> bool,
}

/// How a language's compilers are called.
#[derive(Clone, Copy)]
pub enum Front {
    /// As GCC is.
    Driver,
    /// As rustc is.
    Rustc,
    /// In a way of its own.
    Own(fn(&[String], &Path) -> Result<Call, Passed>),
}

/// What makes machine code of IR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackEnd {
    /// clang.
    Clang,
    /// flang.
    Flang,
}

/// A call of a front end that is no driver like GCC's, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Arguments that have the front end write bitcode that is not optimised.
    pub front: Vec<String>,
    /// The files that it writes then; none: all `.bc` files of the directory that was given.
    pub bitcode: Option<PathBuf>,
    /// clang's arguments that decide code generation.
    pub codegen: Vec<String>,
    /// Whether debug information is wanted.
    pub debug: bool,
    /// The object or image that the user wants.
    pub output: PathBuf,
    /// The directory that gets an object for each source, under its name; none: `output` is all.
    pub each: Option<PathBuf>,
    /// The program and its arguments that link the objects, which stand in place of [`OBJECTS`]; none: `output` is an object.
    pub link: Option<Vec<String>>,
    /// What is other than the user asked for, a sentence each.
    pub changes: Vec<String>,
}

/// Stands for the objects in [`Call::link`].
pub const OBJECTS: &str = "{objects}";

/// Why a call is none that makes code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passed {
    /// It compiles nothing, such as one that prints a version.
    Other,
    /// It makes code that cannot be instrumented.
    Cannot(String),
}

impl Language {
    /// What it needs.
    pub fn facts(self) -> &'static Facts {
        let found = ALL.iter().find(|(language, _)| *language == self);
        found.map_or(&c::FACTS, |(_, facts)| facts)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().map(|(language, _)| *language)
    }

    /// The language of a source by its name.
    pub fn of_source(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        Self::all().find(|language| language.facts().extensions.contains(&extension))
    }

    /// The language of a source, by its name and, where that says nothing, by the compiler.
    pub fn of(source: &Path, compiler: &str) -> Self {
        let of = |language: &Self| {
            let mut drivers = language.facts().drivers.iter();
            drivers.any(|(_, run)| *run == compiler)
        };
        match Self::of_source(source) {
            // `clang++ a.c` compiles C++.
            Some(Self::C) | None => Self::all().find(of).unwrap_or(Self::C),
            Some(known) => known,
        }
    }
}

/// Words with a value each, as `name=value`, `name value` or, after a short name, joined.
fn value<'a>(argument: &'a str, name: &str) -> Option<&'a str> {
    let rest = argument.strip_prefix(name)?;
    Some(rest.strip_prefix('=').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_sources_and_compilers() {
        for (source, compiler, language) in [
            ("a.c", "clang-22", Language::C),
            ("a.c", "clang++-22", Language::Cxx),
            ("a.cpp", "clang-22", Language::Cxx),
            ("a.C", "clang-22", Language::Cxx),
            ("a.F90", "flang-22", Language::Fortran),
            ("-", "flang-22", Language::Fortran),
            ("src/main.rs", "rustc", Language::Rust),
            ("a.zig", "zig", Language::Zig),
            ("a.d", "ldc2", Language::D),
            ("a.ll", "clang-22", Language::C),
        ] {
            assert_eq!(
                Language::of(Path::new(source), compiler),
                language,
                "{source} {compiler}"
            );
        }
    }
}
