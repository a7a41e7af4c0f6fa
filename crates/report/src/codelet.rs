//! A codelet of the report.

use cere_format::package::Manifest;

/// A codelet of the current build.
pub struct Codelet {
    /// Its manifest.
    pub manifest: Manifest,
    /// Size of its file.
    pub bytes: u64,
    /// The file's SHA-256.
    pub sha256: String,
}
