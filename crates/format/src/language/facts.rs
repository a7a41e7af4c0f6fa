//! What a language needs, in terms that all share.

use std::path::{Path, PathBuf};

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
    Own(Parse),
}

/// Takes a call apart, whose bitcode is to go to a directory.
pub type Parse = fn(&[String], &Path) -> Result<Call, Passed>;

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
    /// The arguments of the program that links the objects, which stand in place of [`OBJECTS`]; none: `output` is an object.
    pub link: Option<Vec<String>>,
    /// Whether `cc` links, not the compiler itself, which knows its libraries.
    pub by_cc: bool,
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
    /// Its first argument is the name of a driver like GCC's, and the others are that driver's.
    Driver,
    /// It makes code that cannot be instrumented.
    Cannot(String),
}

/// Words with a value each, as `name=value`, `name value` or, after a short name, joined.
pub fn value<'a>(argument: &'a str, name: &str) -> Option<&'a str> {
    let rest = argument.strip_prefix(name)?;
    Some(rest.strip_prefix('=').unwrap_or(rest))
}
