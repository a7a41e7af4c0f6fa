//! What the commands print. A reader that went away ends the output, not the command, and what a terminal would obey is
//! made visible, for names and messages may be a stranger's.
//!
//! | module | what |
//! |---|---|
//! | [`mod@print`] | messages to stderr; tables, times and JSON to stdout |
//! | [`progress`] | bars and spinners |
//! | [`short`] | long names of regions, cut to fit |

pub mod print;
pub mod progress;
pub mod short;
