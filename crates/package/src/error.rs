//! Why a package could not be made.

use cere_format::FormatError;
use cere_format::profile::RegionKey;
use std::path::PathBuf;

/// Why a package could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// A raw capture or a unit's record cannot be read, or the package cannot be written.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The capture itself says that it cannot be used.
    #[error("{region} cannot become a codelet: {reason}")]
    Refused {
        /// The region's display name.
        region: String,
        /// Why.
        reason: String,
    },
    /// An image of the captured process cannot be read.
    #[error("the image {path}, which the captured process had loaded, cannot be read: {reason}", path = path.display())]
    Image {
        /// Its file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An image has no symbol table, or not the local symbols of its objects.
    #[error(
        "{path} has lost the symbols of its objects, which are needed to find them: build it again without strip, -s or -Wl,-x",
        path = path.display()
    )]
    Stripped {
        /// Its file.
        path: PathBuf,
    },
    /// The symbol table does not tell the objects' local symbols apart.
    #[error(
        "the symbol table of {path} mixes the static variables of the units {first} and {second}: it or its \
         objects lost their file symbols to `strip -g`; build it again without",
        path = path.display()
    )]
    Merged {
        /// Its file.
        path: PathBuf,
        /// A unit.
        first: String,
        /// Another.
        second: String,
    },
    /// No image holds the region.
    #[error(
        "no image of the captured process holds region {index} of unit {unit}: {images} changed since the run; capture again",
        index = key.index, unit = key.unit
    )]
    NoRegion {
        /// The region.
        key: RegionKey,
        /// The images searched.
        images: String,
    },
    /// The store does not know a unit of the image.
    #[error(
        "{image} holds the unit {unit}, which the store {store} does not know: it is of another build; \
         build it again with `cere instrument`",
        image = image.display(), store = store.display()
    )]
    Stale {
        /// The image.
        image: PathBuf,
        /// The unit's id.
        unit: String,
        /// The store.
        store: PathBuf,
    },
}
