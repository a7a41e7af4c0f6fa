//! A program's file: where it is, whether it was instrumented, and by which build.

use crate::build::plain::{self, Plain};
use crate::build::{units, virtual_machine};
use crate::state;
use anyhow::{Context, Result};
use cere_catalogue::{anyhow, bail};
use cere_format::build::{LinkCommand, Unit};
use cere_format::hexadecimal;
use cere_format::profile::Profile;
use cere_format::rank;
use cere_format::store::Store;
use cere_format::system::taken_fresh;
use object::read::elf::{Dyn, ElfFile64};
use object::{Object, ObjectSymbol};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Finds the file that a shell would run for `program`.
pub fn locate(program: &str) -> Result<PathBuf> {
    if program.contains('/') {
        let path = std::path::absolute(program)?;
        if path.is_file() {
            return Ok(path);
        }
        bail!(
            E2001,
            "there is no program {program}: build it, or correct the path"
        );
    }
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            anyhow!(
                E2001,
                "there is no program {program} in PATH (./{program} for one in this directory)"
            )
        })
}

/// Ids of the units in the image `bytes`; empty if it was not instrumented.
pub fn units_of(bytes: &[u8]) -> Result<Vec<String>> {
    Ok(units::of(bytes)?)
}

/// What a command starts, and the instrumented program that it runs.
#[derive(Debug, Clone)]
pub struct Program {
    /// The file that the command names, absolute: the program, or a launcher or a script that starts it.
    pub start: PathBuf,
    /// The program; none where a launcher does not show it before it has run.
    pub image: Option<Image>,
    /// The variable that tells its processes from one another, if the user names one.
    pub process_key: Option<String>,
}

/// A program that can be run under the preload library.
#[derive(Debug, Clone)]
pub struct Image {
    /// Its file, absolute.
    pub path: PathBuf,
    /// SHA-256 of the file in hexadecimal.
    pub hash: String,
    /// Ids of its units and of those of every shared library of the build, which it may load.
    pub units: HashSet<String>,
}

impl Program {
    /// Finds what `command` starts, and the program in it, and checks that a run can be profiled with what `store` knows. The program
    /// is the command's file, or an instrumented file that an argument names, or what the same command ran when it was profiled.
    pub fn open(command: &[String], store: &Store) -> Result<Self> {
        if let Some((processes, rank)) = rank::among_several() {
            bail!(
                E2036,
                "this is rank {rank} of {processes} that a launcher started, and each would run the program by itself: \
                 put the launcher behind CERE, as in `cere profile -- mpirun -n {processes} {}`",
                command[0]
            );
        }
        let start = locate(&command[0])?;
        let launches = launches(&start, store)?;
        let image = if launches {
            match named(&command[1..]) {
                Some(path) => Some(Image::open(&path, store)?),
                None => of_profile(command, store)
                    .and_then(|profile| Image::open(&profile.process.program, store).ok()),
            }
        } else {
            Some(Image::open(&start, store)?)
        };
        let process_key = of_profile(command, store).and_then(|profile| profile.process_key);
        Ok(Self {
            start,
            image,
            process_key,
        })
    }

    /// Whether the command's file is the program.
    pub fn is_direct(&self) -> bool {
        self.image.as_ref().is_some_and(|i| i.path == self.start)
    }

    /// Whether the command's file is linked statically, so that no library enters it.
    pub fn is_static(&self) -> bool {
        let bytes = std::fs::read(&self.start).unwrap_or_default();
        let file = ElfFile64::<object::Endianness>::parse(&*bytes);
        file.is_ok_and(|file| file.section_by_name(".interp").is_none())
    }

    /// The program, or what to do where it is not known.
    pub fn image(&self) -> Result<&Image> {
        self.image.as_ref().with_context(|| {
            format!(
                "{} is a launcher, and no run has shown yet which program it starts: profile it first",
                self.start.display()
            )
        })
    }

    /// The code without units of the program and of the shared libraries of the build.
    pub fn plain(&self, store: &Store) -> Vec<Plain> {
        plain_in(self.image.as_ref().map(|image| image.path.clone()), store)
    }
}

/// The code without units of the file `program` and of the shared libraries of the build.
pub fn plain_in(program: Option<PathBuf>, store: &Store) -> Vec<Plain> {
    let plain = program
        .into_iter()
        .chain(libraries(store))
        .filter_map(|path| {
            let bytes = std::fs::read(&path).ok()?;
            // A script has no code.
            plain::of(&path, &bytes, store).ok().flatten()
        });
    plain.collect()
}

impl Image {
    /// Opens the program at `path` and checks that `store` knows its build.
    pub fn open(path: &Path, store: &Store) -> Result<Self> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        check(path, &bytes, store)?;
        let libraries = libraries(store).filter_map(|path| std::fs::read(path).ok());
        let ids = libraries.filter_map(|library| units_of(&library).ok());
        let units = ids.chain([units_of(&bytes)?]).flatten().collect();
        has_regions(path, &units, store)?;
        Ok(Self {
            path: path.to_owned(),
            hash: hexadecimal(&Sha256::digest(&bytes)),
            units,
        })
    }
}

/// Whether the file at `path` holds none of the build's code, but may start a program that does.
fn launches(path: &Path, store: &Store) -> Result<bool> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.starts_with(b"#!") {
        return Ok(true);
    }
    let Ok(file) = ElfFile64::<object::Endianness>::parse(&*bytes) else {
        return Ok(false);
    };
    if !units_of(&bytes)?.is_empty() {
        return Ok(false);
    }
    let needed = needed(&file);
    let built = |name: &String| libraries(store).any(|library| library.ends_with(name));
    Ok(!needed.iter().any(built) && may_start_others(&file, &needed))
}

/// Whether an image can start another program: by itself, or by a library that is not the C library's or a compiler's.
fn may_start_others(file: &ElfFile64, needed: &[String]) -> bool {
    let starts = |name: &[u8]| {
        let prefixes: [&[u8]; 2] = [b"exec", b"posix_spawn"];
        let names: [&[u8]; 4] = [b"fexecve", b"system", b"popen", b"wordexp"];
        prefixes.iter().any(|p| name.starts_with(p)) || names.contains(&name)
    };
    let mut wanted = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined());
    file.section_by_name(".interp").is_none()
        || wanted.any(|symbol| symbol.name_bytes().is_ok_and(starts))
        || needed.iter().any(|name| !taken_fresh(Path::new(name)))
}

/// The libraries that an image names.
fn needed(file: &ElfFile64) -> Vec<String> {
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let Ok(Some((entries, link))) = sections.dynamic(endian, file.data()) else {
        return Vec::new();
    };
    let strings = sections
        .strings(endian, file.data(), link)
        .unwrap_or_default();
    let needed = entries
        .iter()
        .filter(|e| e.d_tag(endian) == object::elf::DT_NEEDED);
    let names = needed.filter_map(|e| strings.get(e.d_val(endian) as u32).ok());
    names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// The instrumented program that an argument of a launcher names.
fn named(arguments: &[String]) -> Option<PathBuf> {
    let files = arguments.iter().filter_map(|word| locate(word).ok());
    let mut held = files.filter(|path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        let file = object::File::parse(&*bytes).ok();
        // Neither an object nor a library of the build, which an argument may name too.
        let runs =
            file.is_some_and(|f| f.kind() != object::ObjectKind::Relocatable && f.entry() != 0);
        runs && units_of(&bytes).is_ok_and(|units| !units.is_empty())
    });
    held.next()
}

/// The store's profile if it is of `command` in this directory.
fn of_profile(command: &[String], store: &Store) -> Option<Profile> {
    let profile = state::profile(store).ok()?;
    let here = std::env::current_dir().ok()?;
    (profile.command == command && profile.directory == here).then_some(profile)
}

/// Fails if no unit of a program has a region.
fn has_regions(path: &Path, ids: &HashSet<String>, store: &Store) -> Result<()> {
    let mut refused = 0;
    for id in ids.iter().filter(|id| store.unit_record(id).is_file()) {
        let unit: Unit = state::read_json(&store.unit_record(id))?;
        if unit.regions.iter().any(|region| region.outlined) {
            return Ok(());
        }
        refused += unit.regions.len();
    }
    bail!(
        E1007,
        "{} has no regions: {}",
        path.display(),
        no_regions(refused)
    )
}

/// Why units have no regions, of whose loops `refused` stay in place.
pub fn no_regions(refused: usize) -> String {
    match refused {
        0 => "its units have no loops and no parallel regions".to_owned(),
        1 => "its only loop stays in place (`cere regions` says why)".to_owned(),
        _ => format!("all of its {refused} loops stay in place (`cere regions` says why)"),
    }
}

fn check(path: &Path, bytes: &[u8], store: &Store) -> Result<()> {
    let shown = path.display();
    let foreign = || {
        anyhow!(
            E2002,
            "{shown} is not a program of this machine: build it here with `cere instrument -- <build command>`"
        )
    };
    let file = object::File::parse(bytes).map_err(|_| foreign())?;
    if file.format() != object::BinaryFormat::Elf
        || file.architecture() != object::Architecture::X86_64
    {
        return Err(foreign());
    }
    if file.kind() == object::ObjectKind::Relocatable {
        bail!(
            E2037,
            "{shown} is an object file: name the program that it is linked into"
        );
    }
    if file.section_by_name(".interp").is_none() {
        bail!(
            E2004,
            "{shown} is linked statically, so the preload library cannot enter it: link it without -static"
        );
    }
    let ids = units_of(bytes)?;
    let advice = virtual_machine::advice(&path.to_string_lossy());
    if let Some(advice) = advice.filter(|_| ids.is_empty() && libraries(store).next().is_none()) {
        bail!(E2003, "{shown} is not instrumented: {advice}");
    }
    if ids.is_empty() && libraries(store).next().is_none() {
        bail!(
            E2003,
            "{shown} is not instrumented: build it again with `cere instrument -- <build command>`"
        );
    }
    if let Some(id) = ids.iter().find(|id| !store.unit_record(id).is_file()) {
        bail!(
            E2005,
            "{shown} holds the unit {id}, which {} does not know: it is of another build; build it again with `cere instrument`, or name its store with --store",
            store.root().display()
        );
    }
    Ok(())
}

/// The shared libraries that the build linked.
fn libraries(store: &Store) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(store.links());
    entries.into_iter().flatten().flatten().filter_map(|entry| {
        let link: LinkCommand = state::read_json(&entry.path()).ok()?;
        let shared = link.arguments.iter().any(|a| a == "-shared");
        shared.then_some(link.output)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_not_instrumented() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(units_of(&bytes).unwrap().is_empty());
        assert!(units_of(b"no image").is_err());
    }

    #[test]
    fn programs_are_found_as_a_shell_does() {
        assert_eq!(
            locate("sh").unwrap().file_name().unwrap().to_str(),
            Some("sh")
        );
        assert!(locate("/no/such").is_err());
        assert!(locate("no-such-program").is_err());
    }
}
