//! The user's own build, instrumented, and what it recorded.
//!
//! | module | what |
//! |---|---|
//! | [`wrapper`] | the compilers' wrappers: instrumented compiles, recorded links |
//! | [`image`] | what a program's file tells: where it is, by which build |
//! | [`units`] | the units that a file holds |

pub mod image;
pub mod units;
pub mod wrapper;
