//! The shared file mapping that the preload library keeps a profile in, and its reader.

mod layout;
mod reader;
mod samples;
mod source;
mod threads;

pub use layout::*;
pub use reader::{raw_files, read_raw};
