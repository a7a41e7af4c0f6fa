//! Profiles: a tree of active regions in a shared file mapping.

pub mod booking;
mod kept;
pub mod processor;
mod room;
pub mod start;
mod tables;
