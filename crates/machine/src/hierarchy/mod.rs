//! Caches and TLBs.

pub mod caches;
pub mod fit;
pub mod judge;
pub mod levels;
pub mod read;
pub mod target;
pub mod tlb;
