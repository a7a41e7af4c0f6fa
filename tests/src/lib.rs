//! End-to-end tests: each file in `programs/` is built by `cere instrument`, run, profiled, captured and replayed, as its
//! directives say.
//!
//! | module | what |
//! |---|---|
//! | [`csmith`] | programs that csmith generates, classified outcome by outcome |
//! | [`directives`] | what a program's comments ask for |
//! | [`generated`] | programs made from a seed |
//! | [`hybrid`] | the program with flags of its own for each region |
//! | [`inject`] | whether the comparison finds flipped bits |
//! | [`tools`] | the built command, and running things |
//! | [`sources`] | sources that several tests build |
//! | [`step`] | instructions, counted by stepping |
//! | [`study`] | build, run, profile, capture, replay, check |

pub mod csmith;
pub mod directives;
pub mod generated;
pub mod hybrid;
pub mod inject;
pub mod sources;
pub mod step;
pub mod study;
pub mod tools;
