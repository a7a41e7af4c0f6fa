//! How a folder is built, and how a program was: read from build files, never run.
//!
//! | module | what |
//! |---|---|
//! | [`origin`] | how a program was built: the last recorded build, build files around it, its debug information |
//! | [`next`] | what comes next in a folder |
//! | `makefile`, `cmake`, `cargo`, `meson` | the programs that a build file names |
//! | `text` | words, calls and variables in build files |

mod cargo;
mod cmake;
mod makefile;
mod meson;
pub mod next;
pub mod origin;
mod text;

use cere_format::language::Language;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of a build that CERE proposes, beside the user's own.
pub const OWN_BUILD: &str = "build-cere";

/// A way to build what is in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// What shows it: `Makefile`.
    pub file: PathBuf,
    /// Where the command is run.
    pub directory: PathBuf,
    /// For a shell: compiles everything, also what was compiled before.
    pub command: String,
    /// The programs that it makes, relative to the directory, the likeliest first; empty if the file does not say.
    pub programs: Vec<PathBuf>,
}

impl Way {
    fn new(
        directory: &Path,
        file: &str,
        command: impl Into<String>,
        programs: Vec<PathBuf>,
    ) -> Self {
        Self {
            file: directory.join(file),
            directory: directory.to_owned(),
            command: command.into(),
            programs: likeliest_first(programs),
        }
    }
}

/// Tests and examples come last: they are less likely to be what a user measures.
fn likeliest_first(mut programs: Vec<PathBuf>) -> Vec<PathBuf> {
    let aside = |program: &PathBuf| {
        let name = program.to_string_lossy().to_lowercase();
        ["test", "example", "demo"].iter().any(|w| name.contains(w))
    };
    programs.sort_by_key(aside);
    programs.dedup();
    programs
}

/// The ways to build what is in `directory`, the one to propose first; empty if no build file and no lone source is there.
pub fn ways(directory: &Path) -> Vec<Way> {
    let kinds = [
        cmake_lists,
        meson_build,
        cargo_toml,
        make,
        ninja,
        configure,
        lone_source,
    ];
    let found = kinds.into_iter().filter_map(|kind| kind(directory));
    let mut all: Vec<Way> = found.collect();
    // A source beside a build file belongs to it.
    if all.len() > 1 {
        all.retain(|way| Language::of_source(&way.file).is_none());
    }
    all
}

fn cmake_lists(directory: &Path) -> Option<Way> {
    let programs = cmake::programs(directory, Path::new(OWN_BUILD))?;
    let command = format!(
        "cmake -S . -B {OWN_BUILD} -DCMAKE_BUILD_TYPE=Release && cmake --build {OWN_BUILD} --clean-first --parallel"
    );
    Some(Way::new(directory, "CMakeLists.txt", command, programs))
}

fn meson_build(directory: &Path) -> Option<Way> {
    let programs = meson::programs(directory, Path::new(OWN_BUILD))?;
    let command = format!(
        "meson setup {OWN_BUILD} --buildtype=release && ninja -C {OWN_BUILD} -t clean && ninja -C {OWN_BUILD}"
    );
    Some(Way::new(directory, "meson.build", command, programs))
}

fn cargo_toml(directory: &Path) -> Option<Way> {
    let target = Path::new("target/cere");
    let programs = cargo::programs(directory, &target.join("release"))?;
    let command = "cargo build --release --target-dir target/cere";
    Some(Way::new(directory, "Cargo.toml", command, programs))
}

/// The names that make looks for, in its order.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

fn make(directory: &Path) -> Option<Way> {
    let named = |name: &&&str| directory.join(name).is_file();
    let name = MAKEFILES.iter().find(named)?;
    let text = text::read(&directory.join(name))?;
    if directory.join("CMakeCache.txt").is_file() {
        return None;
    }
    let mut programs = makefile::programs(&text);
    if programs.is_empty() {
        programs.extend(only_program(directory));
    }
    let made = programs.iter().any(|p| directory.join(p).exists()) || has_objects(directory);
    let command = match made {
        true => makefile::from_anew(&text),
        false => "make",
    };
    Some(Way::new(directory, name, command, programs))
}

fn ninja(directory: &Path) -> Option<Way> {
    let text = text::read(&directory.join("build.ninja"))?;
    let programs = meson::linked(&text);
    let command = "ninja -t clean && ninja";
    Some(Way::new(directory, "build.ninja", command, programs))
}

fn configure(directory: &Path) -> Option<Way> {
    let made = MAKEFILES.iter().any(|name| directory.join(name).exists());
    (!made && directory.join("configure").is_file()).then(|| {
        Way::new(
            directory,
            "configure",
            "./configure && make",
            only_program(directory),
        )
    })
}

/// The sources of a program that has no build file: one, or those of one language beside its `main`.
fn lone_source(directory: &Path) -> Option<Way> {
    let known = |path: &PathBuf| {
        let language = Language::of_source(path)?;
        let compiler = match language {
            Language::C => "cc",
            Language::Cxx => "c++",
            Language::Fortran => "gfortran",
            _ => return None,
        };
        Some((path.clone(), compiler))
    };
    let mut sources: Vec<_> = text::files(directory).iter().filter_map(known).collect();
    sources.sort();
    let main = |(path, _): &&(PathBuf, &str)| path.file_stem().is_some_and(|stem| stem == "main");
    let (first, compiler) = match &sources[..] {
        [only] => only.clone(),
        several => several.iter().find(main)?.clone(),
    };
    if sources.iter().any(|(_, other)| *other != compiler) {
        return None;
    }
    let openmp = sources.iter().any(|(path, _)| {
        let text = text::read(path).unwrap_or_default().to_lowercase();
        text.contains("#pragma omp") || text.contains("!$omp")
    });
    let names: Option<Vec<&str>> = sources
        .iter()
        .map(|(path, _)| path.file_name()?.to_str())
        .collect();
    let program = first.file_stem()?.to_str()?;
    let openmp = if openmp { " -fopenmp" } else { "" };
    let command = format!(
        "{compiler} -O2 -g{openmp} {} -o {} -lm",
        shell_words::join(names?),
        shell_words::quote(program)
    );
    let name = first.file_name()?.to_str()?;
    Some(Way::new(directory, name, command, vec![program.into()]))
}

fn has_objects(directory: &Path) -> bool {
    let object = |path: &PathBuf| path.extension().is_some_and(|e| e == "o");
    text::files(directory).iter().any(object)
}

/// The program in a folder, if there is one alone.
fn only_program(directory: &Path) -> Vec<PathBuf> {
    let files = text::files(directory);
    let mut programs = files.iter().filter(|path| is_program(path));
    match (programs.next(), programs.next()) {
        (Some(only), None) => only.file_name().map(PathBuf::from).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether a file is an ELF image that may be run: neither an object nor a shared library by its name.
pub fn is_program(path: &Path) -> bool {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let runs = fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    let mut start = [0; 4];
    runs && !name.contains(".so")
        && fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == *b"\x7fELF"
}

#[cfg(test)]
mod tests;
