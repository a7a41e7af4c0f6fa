//! The entries, by stage. A new one goes into the section of its stage, with the next free number.

mod build;
mod capture;
mod profile;
mod replay;
mod results;
mod store;
mod system;
mod usage;

use crate::entry::{Code, Entry, Section};

/// A constant for each code: `E2003` is `CERE-2003`.
pub mod codes {
    pub use crate::stages::build::codes::*;
    pub use crate::stages::capture::codes::*;
    pub use crate::stages::profile::codes::*;
    pub use crate::stages::replay::codes::*;
    pub use crate::stages::results::codes::*;
    pub use crate::stages::store::codes::*;
    pub use crate::stages::system::codes::*;
    pub use crate::stages::usage::codes::*;
}

/// The sections of each stage, in order of the guide's chapter.
const SECTIONS: [&[Section]; 8] = [
    store::SECTIONS,
    build::SECTIONS,
    profile::SECTIONS,
    capture::SECTIONS,
    replay::SECTIONS,
    results::SECTIONS,
    system::SECTIONS,
    usage::SECTIONS,
];

/// The sections of the catalogue, in order of the guide's chapter.
pub fn sections() -> impl Iterator<Item = &'static Section> {
    SECTIONS.iter().copied().flatten()
}

/// All entries, by section.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    sections().flat_map(|section| section.entries)
}

/// The entry of a code as a user types it: `CERE-2003`, `cere-2003`, `E2003`, `2003`. None if there is no such code.
pub fn entry(word: &str) -> Option<&'static Entry> {
    let code = Code::parse(word)?;
    entries().find(|entry| entry.code == code)
}
