//! End-to-end tests: each file in `programs/` is built by `cere instrument`, run, profiled, captured and replayed, as its
//! directives say.
//!
//! | module | what |
//! |---|---|
//! | [`directives`] | what a program's comments ask for |
//! | [`hybrid`] | the program with flags of its own for each region |
//! | [`tools`] | the built command, and running things |
//! | [`sources`] | sources that several tests build |
//! | [`study`] | build, run, profile, capture, replay, check |

pub mod directives;
pub mod hybrid;
pub mod sources;
pub mod study;
pub mod tools;
