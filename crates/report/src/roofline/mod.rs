//! Codelets on the roof of a machine (Williams et al.; the measured states and their boxes as in the ETH thesis on
//! roofline plots): work W and traffic Q from counts, time t from replays, ceilings from the measured machine.
//!
//! | module | what |
//! |---|---|
//! | [`state`] | code and data, each cold or warm |
//! | [`measure`] | W, Q and t of a codelet, kept by content |
//! | [`document`] | points, series, and what has no point |
//! | [`plot`] | the picture |
//! | [`kernel`] | kernels of the user's own, over a range of sizes |

pub mod document;
pub mod kernel;
pub mod measure;
pub mod plot;
pub mod state;

pub use cere_machine::roofs::Roof;
pub use document::{Document, Point};
pub use state::State;
