//! A program's file: where it is, whether it was instrumented, and by which build.

use crate::build::plain::{self, Plain};
use crate::build::units;
use crate::state;
use anyhow::{Context, Result, anyhow, bail};
use cere_format::build::{LinkCommand, Unit};
use cere_format::hexadecimal;
use cere_format::store::Store;
use object::Object;
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
        bail!("there is no program {program}: build it, or correct the path");
    }
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            anyhow!("there is no program {program} in PATH (./{program} for one in this directory)")
        })
}

/// Ids of the units in the image `bytes`; empty if it was not instrumented.
pub fn units_of(bytes: &[u8]) -> Result<Vec<String>> {
    Ok(units::of(bytes)?)
}

/// A program that can be run under the preload library.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its file, absolute.
    pub path: PathBuf,
    /// SHA-256 of the file in hexadecimal.
    pub hash: String,
    /// Ids of its units and of those of every shared library of the build, which it may load; `None` for a script, which may
    /// start anything.
    pub units: Option<HashSet<String>>,
}

impl Program {
    /// Finds `name` and checks that a run of it can be profiled with what `store` knows.
    pub fn open(name: &str, store: &Store) -> Result<Self> {
        let path = locate(name)?;
        let bytes =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        check(&path, &bytes, store)?;
        let hash = hexadecimal(&Sha256::digest(&bytes));
        let units = match bytes.starts_with(b"#!") {
            true => None,
            false => {
                let libraries = libraries(store).filter_map(|path| std::fs::read(path).ok());
                let ids = libraries.filter_map(|library| units_of(&library).ok());
                Some(ids.chain([units_of(&bytes)?]).flatten().collect())
            }
        };
        if let Some(ids) = &units {
            has_regions(&path, ids, store)?;
        }
        Ok(Self { path, hash, units })
    }

    /// The code without units of the program and of the shared libraries of the build.
    pub fn plain(&self, store: &Store) -> Vec<Plain> {
        let images = std::iter::once(self.path.clone()).chain(libraries(store));
        let plain = images.filter_map(|path| {
            let bytes = std::fs::read(&path).ok()?;
            // A script has no code.
            plain::of(&path, &bytes, store).ok().flatten()
        });
        plain.collect()
    }
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
    bail!("{} has no regions: {}", path.display(), no_regions(refused))
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
    if bytes.starts_with(b"#!") {
        return Ok(());
    }
    let shown = path.display();
    let foreign = || {
        anyhow!(
            "{shown} is not a program of this machine: build it here with `cere instrument -- <build command>`"
        )
    };
    let file = object::File::parse(bytes).map_err(|_| foreign())?;
    if file.format() != object::BinaryFormat::Elf
        || file.architecture() != object::Architecture::X86_64
    {
        return Err(foreign());
    }
    if file.section_by_name(".interp").is_none() {
        bail!(
            "{shown} is linked statically, so the preload library cannot enter it: link it without -static"
        );
    }
    let ids = units_of(bytes)?;
    if ids.is_empty() && libraries(store).next().is_none() {
        bail!(
            "{shown} is not instrumented: build it again with `cere instrument -- <build command>`"
        );
    }
    if let Some(id) = ids.iter().find(|id| !store.unit_record(id).is_file()) {
        bail!(
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
