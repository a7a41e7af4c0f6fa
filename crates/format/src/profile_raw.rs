//! The shared file mapping that the preload library keeps a profile in, and its reader.
//!
//! One file `profile.<pid>.<number>` a process in the run's directory: a [`RawHeader`], then the tables of
//! regions, nodes and active entries, then one [`RawTrace`] a region, then [`RawElsewhere`]. The file is sparse. Nothing in it needs
//! closing, so a crash or `_exit` loses at most the regions that were active. Disk space is reserved before it is written:
//! on a full disk times are dropped and counted.

mod reader;

pub use reader::{raw_files, read_raw};

use std::mem::size_of;

/// First eight bytes of the mapping.
pub const RAW_MAGIC: u64 = u64::from_le_bytes(*b"CEREPRF1");
/// Version of the layout.
pub const RAW_VERSION: u32 = 5;
/// Prefix of the file's name.
pub const RAW_PREFIX: &str = "profile.";
/// Regions that fit; more are counted in [`RawHeader::regions_lost`].
pub const RAW_REGIONS: usize = 16384;
/// Nodes that fit; a region entered from a further chain counts for its caller's node.
pub const RAW_NODES: usize = 1 << 18;
/// Depth of active regions that fits; invocations beyond it are counted in [`RawHeader::depth_lost`].
pub const RAW_DEPTH: usize = 1 << 20;
/// The first invocations, all of which are kept.
pub const TRACE_FIRST: usize = 4096;
/// File in the run's directory, if the command left one: a JSON array of rising invocation numbers to be kept of
/// every region, whatever the stride.
pub const TRACE_WANTED: &str = "invocations.json";
/// Kept later invocations; when full the stride doubles and those go that [`is_sampled`](crate::profile::is_sampled) no
/// longer chooses, but for those that [`TRACE_WANTED`] names; what does not fit then is not kept.
pub const TRACE_SAMPLED: usize = 4096;
/// Passages that fit; when full the spacing doubles until those at least that far apart are at most half as many.
pub const RAW_PASSAGES: usize = 1 << 16;
/// Regions that fit which threads other than the first entered; more are not listed.
pub const RAW_ELSEWHERE: usize = 1024;
/// Initial minimum nanoseconds between two passages.
pub const PASSAGE_NANOSECONDS: u64 = 200_000;

/// Start of the mapping.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawHeader {
    /// [`RAW_MAGIC`].
    pub magic: u64,
    /// [`RAW_VERSION`].
    pub version: u32,
    /// Process id.
    pub pid: u32,
    /// Both clocks at the start.
    pub start_cycles: u64,
    /// See `start_cycles`.
    pub start_nanoseconds: u64,
    /// Both clocks at the end; zero if the program did not end in an orderly way.
    pub end_cycles: u64,
    /// See `end_cycles`.
    pub end_nanoseconds: u64,
    /// Counter at the last probe.
    pub last_cycles: u64,
    /// Frequency measured at the start, in Hz.
    pub tsc_hz: f64,
    /// Probe pair's cost inside a region, cycles.
    pub probe_inside: f64,
    /// Probe pair's cost on the caller, cycles.
    pub probe_outside: f64,
    /// Regions in use.
    pub regions: u64,
    /// Nodes in use; node 0 is the root.
    pub nodes: u64,
    /// Active entries.
    pub depth: u64,
    /// Probe pairs taken in the main thread.
    pub pairs: u64,
    /// Probe events in other threads, which are not timed.
    pub other_threads: u64,
    /// Invocations of regions that did not fit the table, or the disk.
    pub regions_lost: u64,
    /// Regions left without a leave event (longjmp).
    pub abandoned: u64,
    /// Invocations that were not recorded because more regions were active than the table, or the disk, has room for.
    pub depth_lost: u64,
    /// Invocations in signal handlers that were not recorded because the signal interrupted a probe.
    pub interrupted: u64,
    /// Passages in use.
    pub passages: u64,
    /// Minimum cycles between two passages.
    pub spacing: u64,
    /// Counter from which on the next entry is a passage.
    pub next_passage: u64,
    /// Regions that the disk has room for so far.
    pub regions_room: u64,
    /// Nodes that the disk has room for so far.
    pub nodes_room: u64,
    /// Active entries that the disk has room for so far.
    pub active_room: u64,
    /// Passages that the disk has room for so far.
    pub passages_room: u64,
    /// 1 since the disk had no room for more: tables and traces keep the size that they had then.
    pub full: u64,
    /// Times of invocations that were not kept because the disk was full.
    pub times_lost: u64,
    /// Nanoseconds that the process was on processors; zero if the program did not end in an orderly way.
    pub processor: u64,
    /// The same for its first thread.
    pub processor_first: u64,
    /// The same for threads of the OpenMP runtime.
    pub processor_team: u64,
}

/// A region that ran.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawRegion {
    /// Its unit's id in ASCII.
    pub unit: [u8; 32],
    /// Its index in the unit.
    pub index: u32,
    /// Depth at which it is active now.
    pub active: u32,
    /// Times it was entered.
    pub invocations: u64,
    /// Times it was left with its time known.
    pub finished: u64,
    /// Inclusive cycles, recursion counted once.
    pub inclusive: u64,
    /// Self cycles.
    pub own: u64,
    /// Shortest finished invocation.
    pub min: u64,
    /// Longest finished invocation.
    pub max: u64,
    /// Sum over finished invocations, recursion counted every time.
    pub sum: u64,
    /// Invocations of [`RawTrace::first`] that the disk has room for so far; of none, nobody touches the trace.
    pub first_room: u32,
    /// Entries of [`RawTrace::later`] that the disk has room for so far.
    pub later_room: u32,
}

/// A region under a chain of callers.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawNode {
    /// Region's index; `u32::MAX` for the root.
    pub region: u32,
    /// Calling node.
    pub parent: u32,
    /// First called node, 0 for none.
    pub child: u32,
    /// Next node of the same caller, 0 for none.
    pub sibling: u32,
    /// Depth at which it is active now.
    pub active: u32,
    /// Zero.
    pub reserved: u32,
    /// Times entered.
    pub invocations: u64,
    /// Inclusive cycles, recursion counted once.
    pub inclusive: u64,
    /// Self cycles.
    pub own: u64,
}

/// A region that is running.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawActive {
    /// Region's index.
    pub region: u32,
    /// Its node.
    pub node: u32,
    /// Stack pointer at its probe.
    pub stack: u64,
    /// Counter at entry.
    pub start: u64,
    /// Cycles of regions called so far.
    pub called: u64,
    /// Probe pairs inside so far.
    pub pairs: u64,
    /// Number of this invocation.
    pub invocation: u64,
}

/// A region was entered.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawPassage {
    /// Region's index.
    pub region: u32,
    /// Zero.
    pub reserved: u32,
    /// Number of the invocation.
    pub invocation: u64,
    /// Counter at entry.
    pub start: u64,
}

/// Trace of one region.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawTrace {
    /// One in so many later invocations is kept, a power of two; 0 stands for 1.
    pub stride: u64,
    /// Kept later invocations.
    pub sampled: u64,
    /// Cycles of invocation i + 1; 0: unknown.
    pub first: [u64; TRACE_FIRST],
    /// Counter at entry of invocation i + 1; 0: unknown.
    pub first_starts: [u64; TRACE_FIRST],
    /// Kept later invocations, in the order in which they ended.
    pub later: [RawLater; TRACE_SAMPLED],
}

/// A region that threads other than the first entered, outside teams.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawElsewhere {
    /// Address of its descriptor; zero if the place is free.
    pub descriptor: u64,
    /// Times it was entered there.
    pub entries: u64,
    /// Its unit's id in ASCII; zeros while it is not known.
    pub unit: [u8; 32],
    /// Its index in the unit.
    pub index: u32,
    /// Zero.
    pub reserved: [u32; 3],
}

/// A kept later invocation.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawLater {
    /// Its number.
    pub invocation: u64,
    /// Its cycles.
    pub cycles: u64,
    /// Counter at entry.
    pub start: u64,
}

/// Offset of the regions.
pub const REGIONS_OFFSET: usize = 4096;
/// Offset of the nodes.
pub const NODES_OFFSET: usize = REGIONS_OFFSET + RAW_REGIONS * size_of::<RawRegion>();
/// Offset of the active entries.
pub const ACTIVE_OFFSET: usize = NODES_OFFSET + RAW_NODES * size_of::<RawNode>();
/// Offset of the passages.
pub const PASSAGES_OFFSET: usize = ACTIVE_OFFSET + RAW_DEPTH * size_of::<RawActive>();
/// Offset of the regions that other threads entered.
pub const ELSEWHERE_OFFSET: usize =
    (PASSAGES_OFFSET + RAW_PASSAGES * size_of::<RawPassage>()).next_multiple_of(4096);
/// Offset of the traces.
pub const TRACES_OFFSET: usize =
    (ELSEWHERE_OFFSET + RAW_ELSEWHERE * size_of::<RawElsewhere>()).next_multiple_of(4096);
/// Size of the file.
pub const RAW_SIZE: usize = TRACES_OFFSET + RAW_REGIONS * size_of::<RawTrace>();
