//! Statistics, and nothing else: no file is opened here.

mod select;
mod spread;

pub use select::{Candidate, Rejection, Rule, select};
pub use spread::{EmptySample, Spread};
