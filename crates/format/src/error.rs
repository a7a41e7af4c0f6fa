//! The errors of reading a format: each carries the place and the value that was wrong.

use std::path::{Path, PathBuf};

/// Why a file in one of CERE's formats could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The operating system refused a file operation.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was attempted, as a verb phrase: "read", "write", "rename".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The data ends before the structure that starts at `offset` does.
    #[error("{what} is cut short: {needed} bytes needed at offset {offset}, {available} there")]
    TooShort {
        /// The structure that was being read.
        what: &'static str,
        /// Byte offset in the file or member.
        offset: u64,
        /// Bytes needed from there.
        needed: u64,
        /// Bytes available from there.
        available: u64,
    },
    /// The data does not start with the magic number of the format.
    #[error("not {what}: it starts with {found:02x?} instead of {expected:02x?}")]
    WrongMagic {
        /// The format that was expected.
        what: &'static str,
        /// First bytes found.
        found: Vec<u8>,
        /// First bytes expected.
        expected: Vec<u8>,
    },
    /// The data was written by a later version of CERE.
    #[error(
        "{what} has format version {found}, this cere reads up to {supported}: install a newer cere"
    )]
    TooNew {
        /// The format.
        what: &'static str,
        /// The version found.
        found: u32,
        /// The newest version this build reads.
        supported: u32,
    },
    /// The data was written by a version of CERE that this one no longer reads.
    #[error("{what} has format version {found}, this cere reads from {oldest} on: make it again")]
    TooOld {
        /// The format.
        what: &'static str,
        /// The version found.
        found: u32,
        /// The oldest version this build reads.
        oldest: u32,
    },
    /// A checksum does not match: the data was damaged after it was written.
    #[error("{what} is damaged: its checksum is {found}, {expected} was recorded")]
    Checksum {
        /// The structure or member.
        what: String,
        /// The checksum of what is there, in hexadecimal.
        found: String,
        /// The checksum that was recorded, in hexadecimal.
        expected: String,
    },
    /// A value is outside what the format allows.
    #[error("{what}: {field} is {value}, which cannot be: {why}")]
    Invalid {
        /// The structure or file.
        what: String,
        /// The field.
        field: &'static str,
        /// The value found.
        value: String,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// A JSON file or member does not parse.
    #[error("{what} is not valid: {source}")]
    Json {
        /// The file or member.
        what: String,
        /// The parser's reason, with line and column.
        source: serde_json::Error,
    },
}

impl FormatError {
    /// Makes an error of a file operation: `action`, a verb phrase, was attempted on `path`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Checks the version of `what`, of which this build reads one only.
pub fn check_version(what: &'static str, found: u32, read: u32) -> Result<(), FormatError> {
    match found.cmp(&read) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(FormatError::TooNew {
            what,
            found,
            supported: read,
        }),
        std::cmp::Ordering::Less => Err(FormatError::TooOld {
            what,
            found,
            oldest: read,
        }),
    }
}
