//! Predicts the time of a run from its codelets (CERE thesis, 4.4, 5.4.1).

pub mod flags;
pub mod model;
pub mod plot;
pub mod ratios;
pub mod rounds;
pub mod show;
