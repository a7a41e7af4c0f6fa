//! Levels of caches and TLBs: built in, of this machine, from a file; and what is refused.

mod check;
mod error;
mod here;
mod levels;
mod named;

pub use cere_format::PAGE;
pub use error::GeometryError;
pub use levels::{Geometry, Inclusion, Level, MAX_LEVELS, MAX_LINES, Replacement, Tlb};

use std::path::Path;

/// Bytes of a huge page.
pub const HUGE_PAGE: u64 = 2 << 20;

impl Geometry {
    /// A built-in geometry: see [`Geometry::names`].
    ///
    /// # Errors
    /// [`GeometryError::Unknown`].
    pub fn named(name: &str) -> Result<Self, GeometryError> {
        named::of(name).ok_or_else(|| GeometryError::Unknown {
            name: name.to_owned(),
        })
    }

    /// The names of the built-in geometries. They are the same on every machine, so their counts compare.
    pub fn names() -> Vec<&'static str> {
        named::NAMES.to_vec()
    }

    /// This machine's: caches as sysfs describes them, TLBs as CPUID does. Where CPUID says nothing of TLBs (under a
    /// hypervisor, for example), a TLB of 64 entries and 4 ways and one of 1536 entries and 12 ways are taken.
    ///
    /// # Errors
    /// [`GeometryError::Here`] if the machine does not describe its caches; what [`check`](Self::check) refuses.
    pub fn here() -> Result<Self, GeometryError> {
        here::geometry()
    }

    /// From a JSON file: see `docs/formats.md`.
    ///
    /// # Errors
    /// [`GeometryError::File`], [`GeometryError::Json`], and what [`check`](Self::check) refuses.
    pub fn read(path: &Path) -> Result<Self, GeometryError> {
        let at = || path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| GeometryError::File { path: at(), error })?;
        let read: Self = serde_json::from_str(&text)
            .map_err(|error| GeometryError::Json { path: at(), error })?;
        read.check()?;
        Ok(read)
    }

    /// What [`read`](Self::read) reads.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and numbers")
    }
}
