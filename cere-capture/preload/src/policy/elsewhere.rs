//! Regions that threads other than the first enter in a capture run, outside teams: they are counted, not captured. Any number of
//! threads count at a time, in handlers of signals too: without a lock.

use cere_format::abi::RegionDescriptor;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Regions that fit; more are not counted.
const PLACES: usize = 1024;

/// Address of a region's descriptor, 0 if the place is free, and how often it was entered.
static TABLE: [(AtomicUsize, AtomicU64); PLACES] =
    [const { (AtomicUsize::new(0), AtomicU64::new(0)) }; PLACES];

/// Counts an entry of a region. If the table is full it is lost.
pub fn count_in_capture(region: *mut RegionDescriptor) {
    let this = region as usize;
    let first = this / align_of::<RegionDescriptor>();
    for step in 0..PLACES {
        let (owner, entries) = &TABLE[(first + step) % PLACES];
        let known = match owner.load(Relaxed) {
            0 => match owner.compare_exchange(0, this, Relaxed, Relaxed) {
                Ok(_) => this,
                Err(other) => other,
            },
            known => known,
        };
        if known == this {
            entries.fetch_add(1, Relaxed);
            return;
        }
    }
}

/// Entries counted so far of the regions of `descriptors`.
pub fn counted_in_capture(descriptors: &[*mut RegionDescriptor]) -> u64 {
    let wanted = |owner: usize| descriptors.iter().any(|d| *d as usize == owner);
    let counted = TABLE.iter().filter(|place| wanted(place.0.load(Relaxed)));
    counted.map(|place| place.1.load(Relaxed)).sum()
}
