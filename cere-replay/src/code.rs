//! Whether the region's machine code is the one that ran in vivo.

use crate::SameCode;
use crate::compile::prefix;
use cere_format::abi::OUTLINED_SYMBOL_PREFIX;
use cere_format::package::{MEMBER_CODE, Manifest};
use object::{Object, ObjectSection, ObjectSymbol};
use std::path::Path;

/// Compares the outlined function in `object` with the package's copy, relocated fields left out.
pub fn same(package: &Path, manifest: &Manifest, object: Option<&Path>) -> SameCode {
    let compare = || -> Option<bool> {
        let original = std::fs::read(package.join(MEMBER_CODE)).ok()?;
        if original.is_empty() {
            return None;
        }
        let data = std::fs::read(object?).ok()?;
        let file = object::File::parse(&*data).ok()?;
        let name = format!(
            "{}{OUTLINED_SYMBOL_PREFIX}{}",
            prefix(0),
            manifest.region.index
        );
        let symbol = file.symbols().find(|s| s.name() == Ok(name.as_str()))?;
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let start = symbol.address() as usize;
        let size = symbol.size() as usize;
        let code = section.data().ok()?.get(start..start + size)?;
        if size != original.len() {
            return Some(false);
        }
        let mut mask = vec![false; size];
        for (offset, relocation) in section.relocations() {
            let object::RelocationFlags::Elf { r_type } = relocation.flags() else {
                continue;
            };
            // The linker may rewrite opcode and operand before these.
            let (before, width) = match r_type {
                object::elf::R_X86_64_64 => (0usize, 8usize),
                object::elf::R_X86_64_GOTPCRELX => (2, 4),
                object::elf::R_X86_64_REX_GOTPCRELX
                | object::elf::R_X86_64_GOTPCREL
                | object::elf::R_X86_64_GOTTPOFF => (3, 4),
                object::elf::R_X86_64_TLSGD | object::elf::R_X86_64_TLSLD => (4, 12),
                _ => (0, 4),
            };
            let at = (offset as usize).saturating_sub(before);
            for position in at..offset as usize + width {
                if let Some(m) = position.checked_sub(start).and_then(|p| mask.get_mut(p)) {
                    *m = true;
                }
            }
        }
        Some((0..size).all(|i| mask[i] || code[i] == original[i]))
    };
    match compare() {
        Some(true) => SameCode::Yes,
        Some(false) => SameCode::No,
        None => SameCode::Unknown,
    }
}
