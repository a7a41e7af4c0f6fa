//! The messages that a user can act on: one entry a kind, with a code that stays, its cause and what to do.
//!
//! | module | what it does |
//! |---|---|
//! | `stages` | the entries, by stage: the one place to add one |
//! | [`codes`] | a constant for each entry: `E2003` is `CERE-2003` |
//! | [`mod@coded`] | errors with codes: [`bail!`], [`ensure!`], [`anyhow!`], [`Coded`]; [`of`] finds the code of an error |
//! | `said` | finds the entry of a text that another process or language made |
//! | [`page`] | the guide's chapter "Troubleshooting by message" |
//!
//! The first digit of a code is the stage: 1 build, 2 profile, 3 capture, 4 store and packages, 5 replay, 6 what is made of
//! codelets, 7 the system and other machines, 8 the command line, 9 faults of CERE. A code is never given to another message:
//! one that is not needed any more moves to [`RETIRED`].

pub mod coded;
mod entry;
pub mod page;
mod said;
mod stages;

pub use coded::{Coded, OrCoded, caused, coded, of};
pub use entry::{Code, Entry, Section};
pub use said::said;
pub use stages::{codes, entries, entry, sections};

/// Numbers that entries of earlier versions had. They are not given again.
pub const RETIRED: &[u16] = &[7004];
