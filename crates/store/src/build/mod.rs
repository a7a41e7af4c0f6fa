//! The user's build under the compiler wrappers, and its records.
//!
//! | module | what |
//! |---|---|
//! | [`wrapper`] | the compilers' wrappers: instrumented compiles, recorded links |
//! | [`image`] | a program's file: where it is, by which build |
//! | [`units`] | the units in a file |
//! | [`plain`] | the code of an image that no unit stands for |
//! | [`split`] | loops whose inner loops become regions too |
//! | [`functions`] | functions that become regions as a whole |
//! | [`again`] | compiling and linking again what lacks such choices |
//! | [`start`] | starting a program as its command does: by itself, or by a launcher |
//! | [`virtual_machine`] | programs whose code no compiler of a build makes |
//! | [`made`] | what a build left beside its units |

pub mod again;
pub mod functions;
pub mod image;
pub mod made;
pub mod plain;
pub mod split;
pub mod start;
pub mod units;
pub mod virtual_machine;
pub mod wrapper;
