//! What the record of a unit takes from its object: symbols that code generation and inline assembly refer to.

use super::job::Job;
use crate::build::units;
use crate::state;
use anyhow::{Context, Result};
use cere_format::build::Unit;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Section whose flags say whether an object asks for a stack that holds code.
const STACK_NOTE: &str = ".note.GNU-stack";

impl Job {
    /// Adds to the unit's record what its `output` needs of other objects. Output that is no object (`-S`) is assembled for it;
    /// of what lies in no file, the record has what the IR shows.
    pub fn note_object(&self, output: &Path, scratch: &Path) -> Result<()> {
        if !output.symlink_metadata().is_ok_and(|m| m.is_file()) {
            return Ok(());
        }
        let object = match self.parsed.assembly {
            true => scratch.join("assembled.o"),
            false => output.to_owned(),
        };
        if self.parsed.assembly {
            let mut assembler = Command::new(&self.compiler);
            assembler.args(["-c", "-x", "assembler"]).arg(output);
            let status = assembler.arg("-o").arg(&object).status();
            if !status.is_ok_and(|s| s.success()) {
                return Ok(());
            }
        }
        let bytes =
            std::fs::read(&object).with_context(|| format!("cannot read {}", object.display()))?;
        self.note_bytes(&bytes, &BTreeMap::new())
    }

    /// The same for a crate: for the objects in its archive, or in the copies of a link's inputs. `variables`: what its source asks for.
    pub fn note_crate(&self, output: &Path, variables: &BTreeMap<String, String>) -> Result<()> {
        let image = self.directory.join(output);
        let kept = self
            .store
            .inputs(&state::hash(&image.display().to_string()));
        let entries = std::fs::read_dir(kept).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path()).chain([image]);
        for bytes in files.filter_map(|file| std::fs::read(file).ok()) {
            match ArchiveFile::parse(&*bytes) {
                Ok(archive) => {
                    let members = archive.members().flatten();
                    for object in members.filter_map(|member| member.data(&*bytes).ok()) {
                        self.note_bytes(object, variables)?;
                    }
                }
                Err(_) => self.note_bytes(&bytes, variables)?,
            }
        }
        Ok(())
    }

    fn note_bytes(&self, bytes: &[u8], variables: &BTreeMap<String, String>) -> Result<()> {
        // LLVM's bitcode, say; and an image holds the units of others.
        let Ok(file) = object::File::parse(bytes) else {
            return Ok(());
        };
        if file.kind() != ObjectKind::Relocatable {
            return Ok(());
        }
        for id in units::of(bytes)? {
            let path = self.store.unit_record(&id);
            let mut unit: Unit = state::read_json(&path)?;
            add(&mut unit, &file);
            unit.command.variables.extend(variables.clone());
            state::write_json(&path, &unit)?;
        }
        Ok(())
    }
}

fn add(unit: &mut Unit, file: &object::File) {
    let undefined = file.symbols().filter(|s| s.is_undefined());
    let named = undefined.filter_map(|s| Some((s.name().ok()?.to_owned(), s.is_weak())));
    let needed: BTreeMap<String, bool> = named.filter(|(name, _)| !name.is_empty()).collect();
    unit.optional.retain(|name| !needed.contains_key(name));
    for (name, weak) in needed {
        if weak {
            unit.optional.push(name.clone());
        }
        unit.needs.push(name);
    }
    for names in [&mut unit.needs, &mut unit.optional] {
        names.sort_unstable();
        names.dedup();
    }
    let note = file.section_by_name(STACK_NOTE).map(|s| s.flags());
    unit.executable_stack = matches!(note, Some(SectionFlags::Elf { sh_flags, .. })
        if sh_flags.0 & object::elf::SHF_EXECINSTR.0 != 0);
}
