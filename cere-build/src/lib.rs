//! The user's build under the compiler wrappers, and its records.
//!
//! | module | what |
//! |---|---|
//! | [`wrapper`] | the compilers' wrappers: instrumented compiles, recorded links |
//! | [`image`] | a program's file: where it is, by which build |
//! | [`units`] | the units in a file |

pub mod image;
pub mod units;
pub mod wrapper;
