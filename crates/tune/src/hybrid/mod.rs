//! The hybrid binary: chosen regions with their own flags, the rest with those of the build (CERE thesis, 3.6).
//!
//! | module | what |
//! |---|---|
//! | [`parts`] | a unit's kept IR to one object, of the rest and of a part for each region with its own flags |
//! | [`link`] | the recorded link command again, with some units' objects replaced |
//! | [`Image`] | a program's image made again from its recorded link and kept units |
//! | [`decide`] | which regions keep their flags |
//! | [`make`] | all of it |

mod choice;
pub mod counted;
pub mod decide;
mod error;
mod image;
pub mod link;
pub mod make;
pub mod parts;

pub use choice::Choice;
pub use error::HybridError;
pub use image::{Image, Recipe, scratch};
