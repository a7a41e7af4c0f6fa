//! Performance tests of regions in a repository, and comparisons of two builds, on captured codelets.
//!
//! | module | what |
//! |---|---|
//! | [`relocate`] | records whose paths hold in any checkout |
//! | [`fixture`] | the folder of the tests |
//! | [`units`] | sources as they are, compiled and bridged |
//! | [`counts`] | counts of a side, and which of them grew |
//! | [`rule`] | when a region is slower |
//! | [`mod@check`] | one test |
//! | [`keep`] | tests are added, and today's code becomes the baseline |
//! | [`output`] | results for CI: JUnit, Markdown, annotations |
//! | [`party`] | what is compared |
//! | [`compare`] | two of them, by region |
//! | [`records`] | records of replays, of any machine |

pub mod check;
pub mod compare;
pub mod counts;
pub mod fixture;
pub mod keep;
pub mod output;
pub mod party;
pub mod records;
pub mod relocate;
pub mod rule;
pub mod units;

pub use check::{Checked, State, Work};
pub use fixture::{Fixture, Guarded};
