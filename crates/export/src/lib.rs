//! Codelets for people and tools that do not have CERE.
//!
//! | module | what |
//! |---|---|
//! | [`folder`] | a folder that builds and runs a codelet |
//! | [`sources`] | the sources that its debug information names |
//! | [`mod@reduce`] | the least IR that keeps what flags do wrong |
//! | [`probe`] | whether a candidate keeps it |
//! | [`keeps`] | what is to be kept |

pub mod folder;
pub mod keeps;
pub mod probe;
pub mod reduce;
mod sources;
