//! Caches and TLBs.

pub mod caches;
pub mod fit;
pub mod levels;
pub mod target;
pub mod tlb;
