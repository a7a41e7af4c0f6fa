//! The descriptions of counted code in an executable.

use crate::error::CountError;
use cere_format::count::{Code, SECTION};
use object::{Object, ObjectSection};
use std::path::Path;

/// Adds the descriptions in the executable or library at `path` to `code`; it lies `offset` bytes above the addresses that it
/// was linked for. False if it has none.
///
/// # Errors
/// It is no ELF file, or its descriptions do not parse.
pub fn add(path: &Path, offset: u64, code: &mut Code) -> Result<bool, CountError> {
    let image = |reason: String| CountError::Image {
        path: path.to_owned(),
        reason,
    };
    let data = std::fs::read(path).map_err(|e| image(e.to_string()))?;
    let file = object::File::parse(&*data).map_err(|e| image(e.to_string()))?;
    let Some(section) = file.section_by_name(SECTION) else {
        return Ok(false);
    };
    let bytes = section.data().map_err(|e| image(e.to_string()))?;
    let start = section.address().wrapping_add(offset);
    let added = code.add(bytes, start);
    added.map_err(|source| CountError::Code {
        path: path.to_owned(),
        source,
    })?;
    Ok(true)
}

/// Reads the executable at `path`, which lies at the addresses that it was linked for.
///
/// # Errors
/// It is no ELF file, has no counted code, or its descriptions do not parse.
pub fn read(path: &Path) -> Result<Code, CountError> {
    let mut code = Code::default();
    match add(path, 0, &mut code)? {
        true => Ok(code),
        false => Err(CountError::Image {
            path: path.to_owned(),
            reason: format!("it has no section {SECTION}"),
        }),
    }
}
