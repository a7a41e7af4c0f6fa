//! Whether the region's machine code is the one that ran in vivo.

use crate::compile::prefix;
use crate::{ReplayError, SameCode};
use cere_format::abi::OUTLINED_SYMBOL_PREFIX;
use cere_format::package::{MEMBER_CODE, Manifest};
use cere_toolchain::command::hash;
use cere_toolchain::io;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind};
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

/// A hash over the code of a function in an object that is not linked; none if the object does not define it, or not how long it is.
///
/// # Errors
/// The object cannot be read.
pub fn of_function(object: &Path, symbol: &str) -> Result<Option<String>, ReplayError> {
    let data = std::fs::read(object).map_err(io("read", object))?;
    let bad = |reason: object::Error| ReplayError::Object {
        path: object.to_path_buf(),
        reason: reason.to_string(),
    };
    let file = object::File::parse(&*data).map_err(bad)?;
    let named = |s: &object::Symbol| s.is_definition() && s.name() == Ok(symbol);
    let Some(found) = file.symbols().find(named) else {
        return Ok(None);
    };
    let Some(index) = found.section_index() else {
        return Ok(None);
    };
    let section = file.section_by_index(index).map_err(bad)?;
    let (start, size) = (found.address(), found.size());
    let code = section.data().map_err(bad)?;
    let end = start.saturating_add(size);
    let Some(code) = code
        .get(start as usize..end as usize)
        .filter(|code| !code.is_empty())
    else {
        return Ok(None);
    };
    let mut parts = vec![code.to_vec()];
    for (offset, relocation) in section.relocations() {
        if (start..end).contains(&offset) {
            let text = relocation_text(&file, offset - start, &relocation).map_err(bad)?;
            parts.push(text.into_bytes());
        }
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Ok(Some(hash(&parts)))
}

fn relocation_text(
    file: &object::File,
    offset: u64,
    relocation: &object::Relocation,
) -> Result<String, object::Error> {
    let target = match relocation.target() {
        RelocationTarget::Symbol(index) => {
            let symbol = file.symbol_by_index(index)?;
            format!("{} {}", symbol.name().unwrap_or(""), symbol.address())
        }
        other => format!("{other:?}"),
    };
    Ok(format!(
        "{offset} {:?} {target} {}",
        relocation.flags(),
        relocation.addend()
    ))
}

/// A hash over the code and constants of objects: sections that are loaded, and their relocations.
pub fn fingerprint(objects: &[&Path]) -> Result<String, ReplayError> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for path in objects {
        let data = std::fs::read(path).map_err(io("read", path))?;
        let bad = |reason: object::Error| ReplayError::Object {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        let file = object::File::parse(&*data).map_err(bad)?;
        for section in file.sections() {
            let loaded = matches!(
                section.kind(),
                SectionKind::Text
                    | SectionKind::Data
                    | SectionKind::ReadOnlyData
                    | SectionKind::ReadOnlyDataWithRel
                    | SectionKind::ReadOnlyString
            );
            let name = section.name().map_err(bad)?;
            if !loaded || name.starts_with(".eh_frame") {
                continue;
            }
            parts.push(name.as_bytes().to_vec());
            parts.push(section.data().map_err(bad)?.to_vec());
            for (offset, relocation) in section.relocations() {
                let text = relocation_text(&file, offset, &relocation).map_err(bad)?;
                parts.push(text.into_bytes());
            }
        }
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Ok(hash(&parts))
}
