//! Modules of Fortran that gfortran compiled, which flang cannot read: those of MPI are made again from the library's `mpif.h`, others
//! from sources that the user names.

use super::said;
use crate::state;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes};
use cere_format::build::Language;
use cere_format::store::Store;
use cere_system::console::note;
use cere_toolchain::arguments::{Item, Parsed};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names a file's header of MPI for Fortran.
const HEADER: &str = "mpif.h";
/// The part of Open MPI's that asks for kinds of numbers that the library was built without.
const SIZES: &str = "mpif-sizeof.h";

/// Where modules lie that were made from sources of the user's.
fn own(store: &Store) -> PathBuf {
    store.modules().join("own")
}

/// Lets a compile find modules that flang has made before those of gfortran.
pub fn prefer(store: &Store, flang: &Path, parsed: &mut Parsed) {
    let mut first = Vec::new();
    if own(store).is_dir() {
        first.push(own(store));
    }
    let directories = directories(parsed);
    let with_header = directories.iter().find(|d| d.join(HEADER).is_file());
    let gnu = directories.iter().any(|d| is_gnu(&d.join("mpi.mod")));
    if let Some(directory) = with_header {
        let sizes = directory.join(SIZES).is_file();
        // A source that does not use it compiles all the same.
        match (gnu || sizes).then(|| of_mpi(store, flang, directory)) {
            Some(Ok(made)) => first.push(made),
            Some(Err(error)) => said::once(store, &format!("{error:#}")),
            None => {}
        }
    }
    let option = |directory: PathBuf| Item::Option(vec![format!("-I{}", directory.display())]);
    parsed.items.splice(0..0, first.into_iter().map(option));
}

/// The directories that are searched for headers and modules.
fn directories(parsed: &Parsed) -> Vec<PathBuf> {
    let named = parsed.items.iter().filter_map(|item| match item {
        Item::Option(words) => match &words[..] {
            [option, value] if option == "-I" => Some(value.as_str()),
            [joined] => joined.strip_prefix("-I"),
            _ => None,
        },
        _ => None,
    });
    named.map(PathBuf::from).collect()
}

/// Whether the file is a module of gfortran's: those are compressed.
fn is_gnu(module: &Path) -> bool {
    let mut magic = [0; 2];
    let read = std::fs::File::open(module).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == [0x1f, 0x8b]
}

/// A directory with the headers of `directory` as flang reads them, and the module `mpi` of them.
fn of_mpi(store: &Store, flang: &Path, directory: &Path) -> Result<PathBuf> {
    let real = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    let to = store
        .modules()
        .join(state::hash(&real.display().to_string()));
    if to.is_dir() {
        return Ok(to);
    }
    let made = state::scratch(store).join(format!("mpi.{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&made);
    state::make_directory(&made)?;
    let unread = || format!("cannot read {}", real.display());
    let (mut declared, mut of_c) = (String::new(), String::new());
    for entry in std::fs::read_dir(&real).with_context(unread)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("mpi") && !name.starts_with("mpif") && name.ends_with(".h") {
            of_c.push_str(&String::from_utf8_lossy(
                &std::fs::read(entry.path()).unwrap_or_default(),
            ));
        }
        if !(name.starts_with("mpif") && name.ends_with(".h")) {
            continue;
        }
        let text = match name == SIZES {
            true => String::new(),
            false => String::from_utf8_lossy(&std::fs::read(entry.path()).with_context(unread)?)
                .into_owned(),
        };
        write(&made.join(&name), &text)?;
        declared.push_str(&text.to_ascii_uppercase());
    }
    let mut module = format!("module mpi\n      include '{HEADER}'\n");
    for name in routines(&of_c) {
        let known = name.to_ascii_uppercase();
        let mut words = declared.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        if !words.any(|word| word == known) {
            module.push_str(&format!("      external :: {name}\n"));
        }
    }
    module.push_str("end module mpi\n");
    let source = made.join("mpi.f90");
    write(&source, &module)?;
    if let Err(said) = compile(flang, &source, &made) {
        bail!(
            E1028,
            "the module mpi cannot be made from {}: {said}",
            real.join(HEADER).display()
        );
    }
    // Another compile of the build may have been first.
    state::make_directory(&store.modules())?;
    if std::fs::rename(&made, &to).is_err() {
        let _ = std::fs::remove_dir_all(&made);
    } else {
        note!(
            "the module mpi is made from {} for flang, which cannot read gfortran's: its routines are called without a check of their arguments, and there is no MPI_Sizeof",
            real.join(HEADER).display()
        );
    }
    Ok(to)
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Names of routines in the header for C that Fortran has as well.
fn routines(header: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for (at, _) in header.match_indices("MPI_") {
        if header[..at].ends_with(is_name) {
            continue;
        }
        let name: String = header[at..].chars().take_while(|c| is_name(*c)).collect();
        let called = header[at + name.len()..].trim_start().starts_with('(');
        let second = name["MPI_".len()..].chars().nth(1);
        // Constants and macros are in capitals; some are of C alone.
        let routine = called && second.is_some_and(|c| c.is_ascii_lowercase());
        let of_c = name.contains("_c2f")
            || name.contains("_f2c")
            || name.contains("_f082c")
            || name.contains("_c2f08")
            || name.ends_with("_function");
        if routine && !of_c && name.len() <= 63 {
            names.insert(name);
        }
    }
    names
}

/// Makes the modules of a source in `directory`; the error is what the compiler says.
fn compile(flang: &Path, source: &Path, directory: &Path) -> std::result::Result<(), String> {
    let output = Command::new(flang)
        .arg("-fsyntax-only")
        .arg("-w")
        .arg("-module-dir")
        .arg(directory)
        .arg(format!("-I{}", directory.display()))
        .arg(source)
        .output()
        .map_err(|e| format!("cannot run {}: {e}", flang.display()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Makes the modules of all sources of Fortran in `sources`, for all compiles of the store.
pub fn make(store: &Store, flang: &Path, sources: &[PathBuf]) -> Result<()> {
    if sources.is_empty() {
        return Ok(());
    }
    let mut waiting = Vec::new();
    for directory in sources {
        let entries = std::fs::read_dir(directory).or_coded(codes::E1029, || {
            format!("--module-source: cannot read {}", directory.display())
        })?;
        let files = entries.flatten().map(|entry| entry.path());
        waiting.extend(files.filter(|path| Language::of_source(path) == Some(Language::Fortran)));
    }
    if waiting.is_empty() {
        bail!(
            E1029,
            "--module-source: there is no source of Fortran in the directory: name the one with the module's .f90 files"
        );
    }
    waiting.sort();
    let to = own(store);
    let _ = std::fs::remove_dir_all(&to);
    state::make_directory(&to)?;
    // A module may use others, in any order of files.
    loop {
        let before = waiting.len();
        let mut said = String::new();
        waiting.retain(|source| match compile(flang, source, &to) {
            Ok(()) => false,
            Err(text) => {
                said = format!("{}: {text}", source.display());
                true
            }
        });
        if waiting.is_empty() {
            return Ok(());
        }
        if waiting.len() == before {
            bail!(
                E1029,
                "--module-source: flang cannot compile {before} of the sources, the last of them {said}"
            );
        }
    }
}

/// What to do where a compile failed on a module of gfortran's; none if it failed otherwise.
pub fn advice(said: &str, parsed: &Parsed) -> Option<String> {
    let (_, rest) = said.split_once("Cannot parse module file for module '")?;
    let (name, _) = rest.split_once('\'')?;
    let file = directories(parsed)
        .into_iter()
        .map(|directory| directory.join(format!("{name}.mod")))
        .find(|file| is_gnu(file))?;
    Some(format!(
        "the module {name} ({}) was compiled by gfortran, whose modules flang cannot read. Give the directory with its source: \
         `cere instrument --module-source DIR -- ...`; or compile the library by flang; or use its header, such as `include 'mpif.h'`, in place of the module",
        file.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::routines;

    #[test]
    fn routines_of_a_header() {
        let header = "int MPI_Send(const void *buf, int count);\n#define MPI_COMM_WORLD (x)\nint PMPI_Send(void);\nMPI_Fint MPI_Comm_c2f(MPI_Comm c);\n\
            typedef int (MPI_Copy_function)(int);\nint MPI_Comm_rank (int);\n";
        let names: Vec<String> = routines(header).into_iter().collect();
        assert_eq!(names, ["MPI_Comm_rank", "MPI_Send"]);
    }
}
