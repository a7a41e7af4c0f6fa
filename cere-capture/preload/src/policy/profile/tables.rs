//! The tables of a profile in their file mapping.

use cere_format::profile_raw::*;

/// The tables of a profile.
pub struct Tables {
    /// Start of the mapping.
    pub base: *mut u8,
}

impl Tables {
    /// Its header.
    pub fn header(&self) -> *mut RawHeader {
        self.base.cast()
    }
    /// A region, by its place.
    pub fn region(&self, index: usize) -> *mut RawRegion {
        // SAFETY: all offsets stay within the mapping of RAW_SIZE bytes.
        unsafe { self.base.add(REGIONS_OFFSET).cast::<RawRegion>().add(index) }
    }
    /// A node of the tree, by its place.
    pub fn node(&self, index: usize) -> *mut RawNode {
        // SAFETY: the offset stays within the mapping of RAW_SIZE bytes.
        unsafe { self.base.add(NODES_OFFSET).cast::<RawNode>().add(index) }
    }
    /// An active region, the outermost first.
    pub fn active(&self, index: usize) -> *mut RawActive {
        // SAFETY: the offset stays within the mapping of RAW_SIZE bytes.
        unsafe { self.base.add(ACTIVE_OFFSET).cast::<RawActive>().add(index) }
    }
    /// A passage from region to region.
    pub fn passage(&self, index: usize) -> *mut RawPassage {
        // SAFETY: the offset stays within the mapping of RAW_SIZE bytes.
        unsafe {
            self.base
                .add(PASSAGES_OFFSET)
                .cast::<RawPassage>()
                .add(index)
        }
    }
    /// The places for regions that other threads enter.
    pub fn elsewhere(&self) -> *mut RawElsewhere {
        // SAFETY: the offset stays within the mapping of RAW_SIZE bytes.
        unsafe { self.base.add(ELSEWHERE_OFFSET).cast() }
    }
    /// The trace of a region, by the place of that.
    pub fn trace(&self, index: usize) -> *mut RawTrace {
        // SAFETY: the offset stays within the mapping of RAW_SIZE bytes.
        unsafe { self.base.add(TRACES_OFFSET).cast::<RawTrace>().add(index) }
    }
}
