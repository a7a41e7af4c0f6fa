//! The units in a file.

use cere_format::abi::{UNIT_ID_LENGTH, UNIT_MAGIC, UNIT_SECTION, UnitMarker};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection};

/// Ids of the units in the object, image or archive `bytes`; empty if it was not instrumented.
pub fn of(bytes: &[u8]) -> Result<Vec<String>, object::Error> {
    if bytes.starts_with(b"!<arch>\n") {
        let archive = ArchiveFile::parse(bytes)?;
        let members = archive.members().flatten();
        let objects = members.filter_map(|member| member.data(bytes).ok());
        return Ok(objects
            .filter_map(|object| of(object).ok())
            .flatten()
            .collect());
    }
    let file = object::File::parse(bytes)?;
    let Some(section) = file.section_by_name(UNIT_SECTION) else {
        return Ok(Vec::new());
    };
    let id = 8..8 + UNIT_ID_LENGTH;
    Ok(section
        .data()?
        .chunks_exact(size_of::<UnitMarker>())
        .filter(|chunk| chunk[..8] == UNIT_MAGIC.to_le_bytes())
        .map(|chunk| String::from_utf8_lossy(&chunk[id.clone()]).into_owned())
        .collect())
}
