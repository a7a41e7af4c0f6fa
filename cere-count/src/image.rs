//! The descriptions of counted code in an executable.

use crate::CountError;
use cere_format::count::{Code, SECTION};
use object::{Object, ObjectSection};
use std::path::Path;

/// Reads the executable at `path`, which lies at the addresses that it was linked for, `offset` bytes further up.
///
/// # Errors
/// It is no ELF file, has no counted code, or its descriptions do not parse.
pub fn read(path: &Path, offset: u64) -> Result<Code, CountError> {
    let image = |reason: String| CountError::Image {
        path: path.to_owned(),
        reason,
    };
    let data = std::fs::read(path).map_err(|e| image(e.to_string()))?;
    let file = object::File::parse(&*data).map_err(|e| image(e.to_string()))?;
    let section = file
        .section_by_name(SECTION)
        .ok_or_else(|| image(format!("it has no section {SECTION}")))?;
    let bytes = section.data().map_err(|e| image(e.to_string()))?;
    let start = section.address().wrapping_add(offset);
    Code::parse(bytes, start).map_err(|source| CountError::Code {
        path: path.to_owned(),
        source,
    })
}
