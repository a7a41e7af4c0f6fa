//! End-to-end tests: each file in `programs/` is built by `cere instrument`, run, profiled, captured and replayed, as its
//! directives say.
//!
//! | module | what |
//! |---|---|
//! | [`campaign`] | studies of programs made from seeds, as tests or by the thousand |
//! | [`csmith`] | programs that csmith generates, classified outcome by outcome |
//! | [`directives`] | what a program's comments ask for |
//! | [`generated`] | programs made from a seed |
//! | [`hybrid`] | the program with flags of its own for each region |
//! | [`inject`] | whether the comparison finds flipped bits |
//! | [`outcome`] | outcomes of programs and codelets |
//! | [`prepare`] | what tests begin with, and the end that wrong input has |
//! | [`subject`] | a program whose builds are compared, and whose regions are captured and replayed |
//! | [`tools`] | the built command, and running things |
//! | [`sources`] | sources that several tests build |
//! | [`step`] | instructions, counted by stepping |
//! | [`study`] | build, run, profile, capture, replay, check |

pub mod campaign;
pub mod csmith;
pub mod directives;
pub mod generated;
pub mod hybrid;
pub mod inject;
pub mod outcome;
pub mod prepare;
pub mod sources;
pub mod step;
pub mod study;
pub mod subject;
pub mod tools;

/// The command line of a test whose trials wait half of their time: twice as many run at a time as there are processors.
pub fn arguments() -> libtest_mimic::Arguments {
    let mut arguments = libtest_mimic::Arguments::from_args();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(2 * processors);
    arguments
}
