//! The preamble, and the bounds of what a package holds.

use cere_format::FormatError;
use cere_format::package::PACKAGE_VERSION;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};

/// Magic number of the zstd skippable frame that a package starts with.
pub const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;
/// First bytes of the preamble.
pub const PREAMBLE_MAGIC: [u8; 12] = *b"CERE-CODELET";
/// Bytes of the preamble, the frame's own header left out.
pub const PREAMBLE_LENGTH: u32 = 12 + 4 + 8 + 32;
/// Bytes of the skippable frame: its header and the preamble.
pub const HEADER_LENGTH: u64 = 8 + PREAMBLE_LENGTH as u64;
/// Oldest package version that this build reads.
pub const OLDEST_VERSION: u32 = 3;
/// Maximum bytes of a manifest.
pub const MANIFEST_LIMIT: u64 = 1 << 28;
/// Bytes of a manifest that any package may have.
pub const MANIFEST_SMALL: u64 = 1 << 22;
/// Maximum bytes of a manifest for each byte of its package: real text is not compressed further.
pub const MANIFEST_RATIO: u64 = 256;
/// Maximum pages in a page table or a page trace: 64 GiB of the common size.
pub const PAGES_LIMIT: u64 = 1 << 24;
/// Maximum bytes of a thread-local block, and of all blocks in a member.
pub const TLS_LIMIT: u64 = 1 << 30;
/// Maximum units of a package.
pub const UNITS_LIMIT: usize = 1 << 14;
/// Maximum shared libraries, directories of them, features of a processor and flags of a unit.
pub const WORDS_LIMIT: usize = 1 << 12;
/// Bytes of a page record on disk.
pub const RECORD_LENGTH: u64 = 16;

pub(super) fn invalid(
    what: &str,
    field: &'static str,
    value: impl ToString,
    why: &'static str,
) -> FormatError {
    FormatError::Invalid {
        what: what.into(),
        field,
        value: value.to_string(),
        why,
    }
}

pub(super) fn check_version(what: &'static str, found: u32) -> Result<(), FormatError> {
    if found > PACKAGE_VERSION {
        return Err(FormatError::TooNew {
            what,
            found,
            supported: PACKAGE_VERSION,
        });
    }
    if found < OLDEST_VERSION {
        return Err(FormatError::TooOld {
            what,
            found,
            oldest: OLDEST_VERSION,
        });
    }
    Ok(())
}

/// Reads `reader` to its end, at most `limit` bytes, into `sink`; gives the count and the SHA-256.
pub(super) fn copy_hashed(
    reader: &mut dyn Read,
    sink: &mut dyn Write,
    limit: u64,
) -> io::Result<(u64, [u8; 32])> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut total = 0;
    while total < limit {
        let room = usize::try_from(limit - total)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let count = match reader.read(&mut buffer[..room]) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..count]);
        sink.write_all(&buffer[..count])?;
        total += count as u64;
    }
    Ok((total, hash.finalize().into()))
}

/// Maximum bytes of the manifest in a package of `package` bytes.
pub(super) fn manifest_limit(package: u64) -> u64 {
    let by_size = package.saturating_mul(MANIFEST_RATIO);
    by_size.clamp(MANIFEST_SMALL, MANIFEST_LIMIT)
}

pub(super) fn header(version: u32, length: u64, hash: [u8; 32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LENGTH as usize);
    bytes.extend_from_slice(&SKIPPABLE_MAGIC.to_le_bytes());
    bytes.extend_from_slice(&PREAMBLE_LENGTH.to_le_bytes());
    bytes.extend_from_slice(&PREAMBLE_MAGIC);
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&hash);
    bytes
}
