//! Accesses to memory.

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Reads.
    Load,
    /// Writes. A line that is not in a cache is fetched first (write-allocate).
    Store,
    /// Reads, then writes the same bytes: counts as a load and as a store.
    ReadModifyWrite,
    /// A prefetch instruction: fetches like a load, and is counted neither as a hit nor as a miss.
    Prefetch,
    /// A non-temporal store: goes around the caches to memory.
    NonTemporal,
}

/// One access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Virtual address of the first byte.
    pub address: u64,
    /// Bytes; 0 is no access. Large sizes are ranges (a copy, say), walked upwards line by line. Bytes beyond the end
    /// of the address space are left out.
    pub size: u32,
    /// What it does.
    pub kind: Kind,
}

impl Access {
    /// A load.
    pub fn load(address: u64, size: u32) -> Self {
        let kind = Kind::Load;
        Self {
            address,
            size,
            kind,
        }
    }

    /// A store.
    pub fn store(address: u64, size: u32) -> Self {
        let kind = Kind::Store;
        Self {
            address,
            size,
            kind,
        }
    }
}
