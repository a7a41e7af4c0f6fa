//! The entries, by stage. A new one goes into the section of its stage, with the next free number.

mod build;
mod capture;
mod profile;
mod replay;
mod results;
mod store;
mod system;
mod usage;

use crate::entry::Section;

/// All codes.
pub mod codes {
    pub use super::build::codes::*;
    pub use super::capture::codes::*;
    pub use super::profile::codes::*;
    pub use super::replay::codes::*;
    pub use super::results::codes::*;
    pub use super::store::codes::*;
    pub use super::system::codes::*;
    pub use super::usage::codes::*;
}

/// The sections of each stage.
pub const SECTIONS: [&[Section]; 8] = [
    store::SECTIONS,
    build::SECTIONS,
    profile::SECTIONS,
    capture::SECTIONS,
    replay::SECTIONS,
    results::SECTIONS,
    system::SECTIONS,
    usage::SECTIONS,
];
