//! Reads and writes codelet packages. The layout is in `docs/formats.md`.
//!
//! A reader trusts nothing: it verifies the checksum of the whole before it decompresses anything, the manifest before any
//! member, and every size against the manifest before it reserves memory.
//!
//! | module | what |
//! |---|---|
//! | [`layout`] | the preamble, and the bounds of what a package holds |
//! | [`table`] | the page table |
//! | [`trace`] | the page trace |
//! | [`check`] | what a manifest must fulfil |
//! | [`write`] | a package from its members, by rename |
//! | [`archive`] | the file as a checked sequence of members |
//! | [`read`] | a package into memory or into a directory |

mod archive;
mod check;
mod layout;
mod read;
mod table;
mod trace;
mod write;

#[cfg(test)]
mod tests;

pub use check::check_manifest;
pub use layout::{
    HEADER_LENGTH, MANIFEST_LIMIT, MANIFEST_RATIO, MANIFEST_SMALL, OLDEST_VERSION, PAGES_LIMIT,
    PREAMBLE_LENGTH, PREAMBLE_MAGIC, RECORD_LENGTH, SKIPPABLE_MAGIC, TLS_LIMIT, UNITS_LIMIT,
    WORDS_LIMIT,
};
pub use read::{
    Package, read_manifest, read_package, read_package_from, unpack_package, unpacked_manifest,
};
pub use table::{decode_table, encode_table};
pub use trace::{TRACE_LENGTH, decode_trace, encode_trace};
pub use write::{MemberData, NewMember, OpenStream, PACKAGE_UNFINISHED, write_package};
