//! Makes a codelet of a raw capture, the images on disk and the store's units.
//!
//! | module | what |
//! |---|---|
//! | [`mod@pack`] | the steps from a raw capture to a codelet |
//! | [`raw`] | the raw capture on disk |
//! | [`elf`] | what is needed of an image's file |
//! | [`program`] | the loaded images; the one that holds the region |
//! | [`symbols`] | variables and functions by unit |
//! | [`library`] | what captured words mean in libraries |
//! | [`streams`] | the C library's streams, and what waits in them |
//! | [`reach`] | which units a replay compiles, what runs as captured |
//! | [`settle`] | what its link needs beside that |
//! | [`elsewhere`] | what a replay cannot do of the program's other images |
//! | [`masks`] | captured words that are not compared |
//! | [`pages`] | which pages are kept |
//! | [`thread`] | the captured thread: its control block and thread-local variables |
//! | [`io`] | packages as files |
//! | [`mod@machine`] | this machine, and whether it can run a codelet |

mod elf;
mod elsewhere;
mod error;
pub mod io;
mod library;
mod machine;
mod masks;
mod pack;
mod pages;
mod program;
pub mod raw;
mod reach;
mod settle;
mod streams;
mod symbols;
mod thread;

pub use error::PackError;
pub use machine::{Misfit, can_cross, fits, lacks, machine};
pub use pack::{PackInput, pack};
