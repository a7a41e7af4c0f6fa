//! The simulator.

use crate::{Access, Counters, Geometry, GeometryError, Options};

/// Caches, TLBs and memory of one or several cores.
pub struct Hierarchy {}

impl Hierarchy {
    /// Empty caches. Reserves all memory that the simulation will need.
    ///
    /// # Errors
    /// What [`Geometry::check`] refuses, and options that do not fit the geometry or lie outside their ranges.
    pub fn new(geometry: &Geometry, options: &Options) -> Result<Self, GeometryError> {
        geometry.check()?;
        let _ = options;
        Ok(Self {})
    }

    /// One access by a core. Allocates nothing.
    ///
    /// # Panics
    /// If there is no such core.
    #[inline]
    pub fn access(&mut self, core: usize, access: Access) {
        let _ = (core, access);
    }

    /// Accesses by a core, in order.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn run(&mut self, core: usize, accesses: &[Access]) {
        for &access in accesses {
            self.access(core, access);
        }
    }

    /// Accesses that fill caches and TLBs like [`run`](Self::run), and that no counter and no footprint sees: the
    /// memory that a program touched before the part that is counted. A page of a trace is an access of 4096 bytes.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn warm(&mut self, core: usize, accesses: &[Access]) {
        let _ = (core, accesses);
    }

    /// Writes out the write-combining buffers of a core, as a store fence does.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn fence(&mut self, core: usize) {
        let _ = core;
    }

    /// Sets all counters and the footprint to zero and keeps what caches and TLBs hold. Bytes in write-combining
    /// buffers are written out before.
    pub fn reset_counters(&mut self) {}

    /// Makes room for as many more pages in the footprint: between batches, where allocating is allowed.
    ///
    /// # Errors
    /// [`GeometryError::Footprint`] if that exceeds 2^28 pages.
    pub fn reserve(&mut self, pages: usize) -> Result<(), GeometryError> {
        let _ = pages;
        Ok(())
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        Counters::default()
    }
}
