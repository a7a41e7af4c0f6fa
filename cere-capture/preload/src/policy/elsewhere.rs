//! Regions that threads other than the first enter, outside teams: they are counted, neither timed nor captured. Any number of
//! threads count at a time, in handlers of signals too: without a lock.

use cere_format::abi::RegionDescriptor;
use cere_format::profile_raw::{RAW_ELSEWHERE, RawElsewhere};
use std::cell::UnsafeCell;
use std::ptr::addr_of_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The table of a capture run.
struct Table(UnsafeCell<[RawElsewhere; RAW_ELSEWHERE]>);

// SAFETY: words that several threads use are accessed as atomics.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new(
    [RawElsewhere {
        descriptor: 0,
        entries: 0,
        unit: [0; 32],
        index: 0,
        reserved: [0; 3],
    }; RAW_ELSEWHERE],
));

/// Counts an entry of a region in a capture run.
///
/// # Safety
/// `region` is the descriptor of an armed region.
pub unsafe fn count_in_capture(region: *mut RegionDescriptor) {
    // SAFETY: the table is there, and the descriptor is an armed region's.
    unsafe { count_entry(TABLE.0.get().cast(), region) };
}

/// Entries counted so far in a capture run of the regions of `descriptors`.
pub fn counted_in_capture(descriptors: &[*mut RegionDescriptor]) -> u64 {
    let table = TABLE.0.get().cast::<RawElsewhere>();
    let of = |i: usize| {
        // SAFETY: a place of the table; its words are atomics.
        unsafe {
            let place = table.add(i);
            let owner = AtomicU64::from_ptr(addr_of_mut!((*place).descriptor)).load(Relaxed);
            let entries = AtomicU64::from_ptr(addr_of_mut!((*place).entries)).load(Relaxed);
            (owner, entries)
        }
    };
    let counted = (0..RAW_ELSEWHERE).map(of);
    let wanted = |owner: u64| descriptors.iter().any(|d| *d as u64 == owner);
    counted.filter(|c| wanted(c.0)).map(|c| c.1).sum()
}

/// Counts an entry of a region in a table of [`RAW_ELSEWHERE`] places. If that is full it is lost.
///
/// # Safety
/// `region` is the descriptor of an armed region, and the table is there.
pub unsafe fn count_entry(table: *mut RawElsewhere, region: *mut RegionDescriptor) {
    let this = region as u64;
    let first = (this / align_of::<RegionDescriptor>() as u64) as usize;
    for step in 0..RAW_ELSEWHERE {
        // SAFETY: places stay within the table; words that other threads change are accessed as atomics.
        unsafe {
            let place = table.add((first + step) % RAW_ELSEWHERE);
            let owner = AtomicU64::from_ptr(addr_of_mut!((*place).descriptor));
            let known = owner.load(Relaxed);
            let known = match known {
                0 => match owner.compare_exchange(0, this, Relaxed, Relaxed) {
                    Ok(_) => {
                        describe(place, region);
                        this
                    }
                    Err(other) => other,
                },
                known => known,
            };
            if known == this {
                AtomicU64::from_ptr(addr_of_mut!((*place).entries)).fetch_add(1, Relaxed);
                return;
            }
        }
    }
}

/// # Safety
/// As [`count_entry`]; the calling thread has claimed the place.
unsafe fn describe(place: *mut RawElsewhere, region: *mut RegionDescriptor) {
    // SAFETY: this thread has claimed the place; the descriptor is an armed region's.
    unsafe {
        (*place).index = (*region).index;
        (*place).unit = (*(*region).unit).id;
    }
}
