//! Programs made from a seed.
//!
//! | module | what |
//! |---|---|
//! | [`exceptions`] | C++ that throws and catches |
//! | [`prelude`] | what such programs begin with: classes, what throws, a digest of what happened |
//! | [`feature`] | unusual things that programs use: files of `tests/odd/` |
//! | [`odd`] | programs made of features |
//! | [`verdicts`] | what their runs and replays have to be |
//! | [`random`] | numbers from a seed |
//! | [`compare`] | plain, instrumented and armed builds of programs, held against each other |

pub mod compare;
pub mod exceptions;
pub mod feature;
pub mod odd;
pub mod prelude;
pub mod random;
pub mod verdicts;
