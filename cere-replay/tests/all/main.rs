//! Replays of packages made by hand.

#[path = "../common/mod.rs"]
mod common;
mod counters;
mod handmade;
mod hostile;
mod state;
