//! A capture in progress.

use super::calls::Answered;
use super::heap::{self, Usage};
use crate::os::shared::Found;
use crate::os::stacks::Still;
use crate::os::sys::PAGE;
use cere_format::abi::RegionDescriptor;
use cere_format::answers::Clock;
use cere_format::capture::{EntryState, Image, Mapping, OpenMpLock, PageTrace};
use cere_format::clibrary::CLibrary;

/// System calls that are counted, by number.
pub const CALLS: usize = 512;

/// A captured invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured {
    /// Its number among the captures of this process, from 1.
    pub number: u64,
    /// Place of its region among the wanted ones.
    pub wanted: usize,
    /// Which invocation, from 1.
    pub invocation: u64,
}

/// A capture in progress.
pub struct Level {
    /// The region.
    pub region: *mut RegionDescriptor,
    /// Its place among the wanted ones.
    pub wanted: usize,
    /// Invocation, from 1.
    pub invocation: u64,
    /// The processor's state at entry.
    pub entry: EntryState,
    /// [start, end) of the thread's own stack, if the region was entered on it: below the pointer nothing is in use. Empty if
    /// the region was entered on another stack, which may lie between data.
    pub stack: (usize, usize),
    /// Thread control block and static thread-local storage at entry, whole pages.
    pub control: (usize, usize),
    /// Entries in the pool's log.
    pub touched: usize,
    /// Time stamp at entry.
    pub started: u64,
    /// Faults taken.
    pub faults: u64,
    /// How many when it was last looked at whether it waits.
    pub looked_at: Option<u64>,
    /// System calls made, by number.
    pub calls: [u32; CALLS],
    /// Ranges mapped since entry. Capacity is reserved at entry and never exceeded.
    pub fresh: Vec<(u64, u64)>,
    /// Mappings that the kernel lets grow down, but for the stack: [start, end) at first. Capacity as of `fresh`.
    pub growing: Vec<(u64, u64)>,
    /// Images at entry.
    pub images: Vec<Image>,
    /// Mappings at entry.
    pub mappings: Vec<Mapping>,
    /// Their pages that were not in memory at entry: [start, end), rising.
    pub absent: Vec<(u64, u64)>,
    /// Guard pages at entry, as [start, end); none if the kernel does not report them: pages are tried before they are read.
    pub guards: Option<Vec<(usize, usize)>>,
    /// Allocators at entry.
    pub heap: Usage,
    /// End of the program's data at entry.
    pub program_break: u64,
    /// The newest block at entry whose `free` waits for the end of a captured invocation.
    pub deferred: usize,
    /// Threads of the next team; none without an OpenMP runtime.
    pub threads: Option<u32>,
    /// Locks of the OpenMP runtime.
    pub locks: Vec<OpenMpLock>,
    /// Thread-local blocks of the region's image in the runtime's threads at entry, by their numbers.
    pub blocks: Vec<(u32, Vec<u8>)>,
    /// Whether there are threads that are not the OpenMP runtime's.
    pub strangers: bool,
    /// Those threads, which do not run meanwhile.
    pub still: Vec<Still>,
    /// How many of them computed at entry.
    pub beside: u32,
    /// The clocks at entry, and the offset of the kernel's answers to the region.
    pub clocks: (Vec<Clock>, usize),
    /// What the C library kept at entry.
    pub c_library: Option<CLibrary>,
    /// The page trace before entry.
    pub trace: Option<(PageTrace, Vec<u64>)>,
    /// Calls of MPI.
    pub answered: Answered,
    /// Which mappings were shared at entry.
    pub shared: Found,
}

impl Level {
    /// A capture that begins: of the `invocation`-th of the region at place `wanted`.
    pub fn new(
        region: *mut RegionDescriptor,
        (wanted, invocation): (usize, u64),
        entry: EntryState,
        control: (usize, usize),
        images: Vec<Image>,
    ) -> Level {
        Level {
            region,
            wanted,
            invocation,
            entry,
            stack: (0, 0),
            control,
            touched: 0,
            started: 0,
            faults: 0,
            looked_at: None,
            calls: [0; CALLS],
            fresh: Vec::with_capacity(4096),
            growing: Vec::with_capacity(64),
            images,
            mappings: Vec::new(),
            absent: Vec::new(),
            guards: Some(Vec::new()),
            heap: Usage::default(),
            program_break: 0,
            deferred: 0,
            threads: None,
            locks: Vec::new(),
            blocks: Vec::new(),
            strangers: false,
            still: Vec::new(),
            beside: 0,
            clocks: (Vec::new(), 0),
            c_library: None,
            trace: None,
            answered: Answered::default(),
            shared: Found::default(),
        }
    }

    /// Whether the page at `address` stays open for a call in which another thread rests.
    pub fn is_reached(&self, address: usize) -> bool {
        let mut ranges = self.still.iter().flat_map(|other| &other.reached);
        ranges.any(|range| range.0 < address + PAGE && address < range.1)
    }

    /// Address from which pages of the region heap count as new memory: without the capture the program's allocator would
    /// have asked the kernel for it, as the invocation allocated and kept more than that had free. None if it did not.
    pub fn new_heap(&self) -> Option<usize> {
        let grown = heap::live_bytes().saturating_sub(self.heap.live);
        (grown > self.heap.memory?.spare).then_some(self.heap.used)
    }
}
