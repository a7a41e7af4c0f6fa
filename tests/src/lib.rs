//! End-to-end tests: each file in `programs/` is built by `cere instrument`, run, profiled, captured and replayed, as its
//! directives say.
//!
//! | module | what |
//! |---|---|
//! | [`directives`] | what a program's comments ask for |
//! | [`tools`] | the built command, and running things |
//! | [`study`] | build, run, profile, capture, replay, check |

pub mod directives;
pub mod study;
pub mod tools;
