//! Output of the commands. A closed pipe ends the output, not the command. Control characters are made visible, because names
//! and messages may come from strangers.
//!
//! | module | what |
//! |---|---|
//! | [`mod@csv`] | tables for programs |
//! | [`mod@print`] | messages to stderr; tables, times and JSON to stdout |
//! | [`progress`] | bars and spinners |
//! | [`short`] | long names of regions, cut to fit |

pub use crate::{detail, note, warning};

pub mod csv;
pub mod print;
pub mod progress;
pub mod short;
