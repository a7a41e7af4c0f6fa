//! Profiles: a tree of active regions in a shared file mapping.

mod active;
pub mod booking;
mod kept;
pub mod mpi;
pub mod others;
pub mod processor;
mod room;
pub mod start;
pub mod tables;
mod tree;
