//! Why a hybrid binary could not be made.

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
