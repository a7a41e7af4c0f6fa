//! Knowledge about clang and flang: their arguments, those of gcc that they lack, and how kept IR and flags become an object.
//! Every stage that compiles IR again uses it: replays and the hybrid binary.
//!
//! | module | what |
//! |---|---|
//! | [`arguments`] | the arguments of a driver: what it is to do, with what |
//! | [`codegen`] | which arguments decide the code that is generated |
//! | [`gcc`] | arguments of gcc that clang lacks |
//! | [`flags`] | what other flags change in kept IR |
//! | [`mod@unit`] | the commands that compile a unit |
//! | [`command`] | running tools |
//! | [`stay`] | tools that fork for each run instead of starting |
//! | [`cached`] | files by content, whole or not at all |
//! | [`mod@several`] | several compiles at a time |

pub mod arguments;
pub mod cached;
pub mod codegen;
pub mod command;
mod error;
pub mod flags;
pub mod gcc;
pub mod several;
pub mod stay;
mod tools;
pub mod unit;
mod variant;

pub use error::{CompileError, io, stamp};
pub use variant::Variant;
