//! What is known of each language: one file each, and its lines in [`Language`].
//!
//! A driver whose arguments are GCC's, and rustc, load the pass themselves. Of any other front end the language's file says how it
//! writes bitcode that is not optimised yet ([`Call`]); clang makes the code of that.

mod c;
mod cxx;
mod d;
mod facts;
mod fortran;
pub mod rust;
mod zig;

use serde::{Deserialize, Serialize};
use std::path::Path;

pub use facts::{BackEnd, Call, Facts, Front, OBJECTS, Parse, Passed};

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

impl Language {
    /// What it needs.
    pub fn facts(self) -> &'static Facts {
        match self {
            Self::C => &c::FACTS,
            Self::Cxx => &cxx::FACTS,
            Self::Fortran => &fortran::FACTS,
            Self::Rust => &rust::FACTS,
            Self::Zig => &zig::FACTS,
            Self::D => &d::FACTS,
        }
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        use Language::*;
        [C, Cxx, Fortran, Rust, Zig, D].into_iter()
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
