//! Predicts the time of a run from its codelets (CERE thesis, 4.4, 5.4.1, 6.4).
//!
//! | module | what |
//! |---|---|
//! | [`model`], [`rounds`], [`show`] | other numbers of threads |
//! | [`ranks`] | the same where several processes run |
//! | [`flags`], [`ratios`] | other flags for the whole program |
//! | [`energy`] | the energy of the run as built |
//! | [`machines`] | other machines |
//! | [`subset`] | few codelets that stand for many programs |
//! | [`outcome`] | what each of them says of a time |

pub mod energy;
pub mod flags;
pub mod machines;
pub mod model;
pub mod outcome;
pub mod ranks;
pub mod ratios;
pub mod rounds;
pub mod show;
pub mod subset;
