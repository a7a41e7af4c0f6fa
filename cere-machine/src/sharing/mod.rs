//! What cores share: caches, bandwidth of memory, ways to each other.

pub mod group;
pub mod system;
pub mod tree;

use crate::place;

/// The processors that threads can be put on; empty where the process may not choose.
#[must_use]
pub fn usable() -> Vec<u32> {
    let mut cores = place::allowed();
    cores.retain(|core| place::on(*core, || ()).is_ok());
    cores
}
