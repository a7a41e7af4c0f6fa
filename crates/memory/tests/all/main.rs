//! The simulator against slower ones.

mod cachegrind;
mod closed_forms;
mod geometry;
mod random;
mod reference;
