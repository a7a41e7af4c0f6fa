//! The hybrid binary: chosen regions with their own flags, the rest with those of the build (CERE thesis, 3.6).
//!
//! | module | what |
//! |---|---|
//! | [`parts`] | a unit's kept IR to one object, of the rest and of a part for each region with its own flags |
//! | [`link`] | the recorded link command again, with some units' objects replaced |
//! | [`Image`] | a program's image made again from its recorded link and kept units |
//! | [`decide`] | which regions keep their flags |
//! | [`make`] | all of it |

pub mod counted;
pub mod decide;
mod image;
pub mod link;
pub mod make;
pub mod parts;

pub use image::{Image, Recipe, scratch};

use cere_format::build::SplitTeam;
use cere_toolchain::CompileError;
use std::path::PathBuf;

/// Why a hybrid binary could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HybridError {
    /// A file operation, a flag or a tool failed.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A file of the link cannot be read as what it should be.
    #[error("{path} cannot be read: {reason}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An input of the recorded link is gone.
    #[error(
        "{path}, an input of the link of {image}, is not there any more: build it again with `cere instrument`",
        path = path.display(), image = image.display()
    )]
    Gone {
        /// The input.
        path: PathBuf,
        /// What was linked.
        image: PathBuf,
    },
    /// The inputs are not those of the image.
    #[error(
        "the link of {image} would not make it again: {reason}; build it again with `cere instrument`",
        image = image.display()
    )]
    Changed {
        /// What was linked.
        image: PathBuf,
        /// How it differs.
        reason: String,
    },
    /// One object of several units.
    #[error(
        "{path} holds several units, linked into one object (ld -r): those cannot be replaced singly",
        path = path.display()
    )]
    Several {
        /// The object.
        path: PathBuf,
    },
}

/// What a unit or a region is compiled with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Flags after those of the build.
    pub flags: Vec<String>,
    /// An `opt` pipeline instead of the compiler's own.
    pub passes: Option<String>,
    /// The team of a parallel region of OpenMP.
    pub team: Option<SplitTeam>,
}
