//! Programs made from a seed.
//!
//! | module | what |
//! |---|---|
//! | [`exceptions`] | C++ that throws and catches |
//! | [`prelude`] | what such programs begin with: classes, what throws, a digest of what happened |
//! | [`random`] | numbers from a seed |
//! | [`compare`] | plain, instrumented and armed builds of programs, held against each other |

pub mod compare;
pub mod exceptions;
pub mod prelude;
pub mod random;
