//! The shared file mapping that the preload library keeps a profile in.
//!
//! One file `profile.<pid>.<number>` a process in the run's directory: a [`RawHeader`], then the tables of
//! regions, nodes and active entries, then one block a thread, then one [`RawTrace`] a region, then one [`RawSample`] a region. The file is sparse. Nothing in it
//! needs closing, so a crash or `_exit` loses at most the regions that were active. Disk space is reserved before it is written:
//! on a full disk times are dropped and counted.
//!
//! A block holds a [`RawThread`], then a [`RawTimes`] for each place of the table of regions, then active entries. Block 0 is the
//! first thread's, which has nodes, passages, traces and a larger table of active entries beside it.

use std::mem::size_of;

/// First eight bytes of the mapping.
pub const RAW_MAGIC: u64 = u64::from_le_bytes(*b"CEREPRF1");
/// Version of the layout.
pub const RAW_VERSION: u32 = 6;
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
/// Blocks of threads, the first thread's among them. If all others are taken, that of a thread that has ended is used again.
pub const RAW_THREADS: usize = 1024;
/// Depth of active regions that fits in threads other than the first.
pub const THREAD_DEPTH: usize = 4096;
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
    /// Threads that got a block, the first among them; beyond [`RAW_THREADS`] they got one again.
    pub threads: u64,
    /// Invocations in threads for which there was no block.
    pub threads_lost: u64,
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
    /// Its unit's id in ASCII; zeros while it is not known.
    pub unit: [u8; 32],
    /// Its index in the unit.
    pub index: u32,
    /// What it is: `KIND_LOOP`, `KIND_PARALLEL`, `KIND_FUNCTION`.
    pub kind: u32,
}

/// A thread, at the start of its block.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawThread {
    /// [`THREAD_FREE`], [`THREAD_RUNS`] or [`THREAD_ENDED`].
    pub state: u32,
    /// Its id in the kernel.
    pub id: u32,
    /// Its number in the order in which threads were started, those of teams apart; 0 for the first.
    pub number: u64,
    /// Threads that have used the block, one after the other.
    pub users: u64,
    /// Active entries.
    pub depth: u64,
    /// Probe pairs.
    pub pairs: u64,
    /// Counter at the last probe.
    pub last_cycles: u64,
    /// Counter from which on the next entry is looked at: a passage, or a reading of the processor time.
    pub next_look: u64,
    /// Counter from which on the next probe reads the processor time.
    pub next_reading: u64,
    /// Stack pointer at the probe whose event is being booked, or 0.
    pub busy: u64,
    /// Stack pointer at the entry of the outermost parallel region that runs, or 0; of the first thread elsewhere.
    pub parallel: u64,
    /// Regions that the disk has room for so far.
    pub times_room: u64,
    /// Active entries that the disk has room for so far.
    pub active_room: u64,
    /// Counter when its processor time was first read.
    pub began_cycles: u64,
    /// Its processor time then, in nanoseconds.
    pub began_processor: u64,
    /// Cycles that it was not on a processor since, as far as they are booked.
    pub waited: u64,
    /// Cycles that were lost while the processor time was read: they are nobody's, nor the run's.
    pub lost: u64,
    /// Nanoseconds on processors of earlier users of the block.
    pub processor: u64,
    /// Nanoseconds of its user, when that or the program ended; zero if neither is known.
    pub processor_user: u64,
    /// Cycles in calls of MPI.
    pub mpi: u64,
    /// Stack pointer at the outermost call of MPI that is in progress, or 0.
    pub mpi_stack: u64,
    /// Counter when it began.
    pub mpi_start: u64,
    /// [`RawActive::called`] of the active region then.
    pub mpi_called: u64,
}

/// State of a block that nobody uses.
pub const THREAD_FREE: u32 = 0;
/// State of a block whose thread runs.
pub const THREAD_RUNS: u32 = 1;
/// State of a block whose thread has ended.
pub const THREAD_ENDED: u32 = 2;

/// [`RawTimes::caller`]: no region.
pub const CALLER_NONE: u64 = 1;
/// [`RawTimes::caller`]: the region of index 0.
pub const CALLER_FIRST: u64 = 2;
/// [`RawTimes::caller`]: one region at one time, and another or none at another.
pub const CALLER_SEVERAL: u64 = u64::MAX;

/// The times of a region in a thread.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawTimes {
    /// Depth at which it is active now.
    pub active: u32,
    /// Users of the block that have entered it.
    pub users: u32,
    /// Number of the last of these.
    pub user: u64,
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
    /// Self cycles in which the thread was not on a processor.
    pub waited: u64,
    /// Cycles in calls of MPI, which are no self cycles.
    pub mpi: u64,
    /// What calls it in a thread other than the first: [`CALLER_FIRST`] more than the region's index; [`CALLER_NONE`],
    /// [`CALLER_SEVERAL`]. 0: not known.
    pub caller: u64,
    /// Invocations of [`RawTrace::first`] that the disk has room for so far; of none, nobody touches the trace.
    pub first_room: u32,
    /// Entries of [`RawTrace::later`] that the disk has room for so far; in a thread other than the first 1 if it has room for the
    /// [`RawSample`], and 2 if it has none.
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
    /// Counter at entry, less [`RawThread::lost`] then, as all kept moments.
    pub start: u64,
    /// Cycles of regions called so far.
    pub called: u64,
    /// Probe pairs inside so far.
    pub pairs: u64,
    /// Cycles so far in which the thread was not on a processor, those in parallel regions apart: there the team works meanwhile.
    pub waited: u64,
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

/// Invocations of one region in a [`RawSample`].
pub const SAMPLE: usize = 1022;

/// Times of invocations of one region in threads other than the first: a random sample of all.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawSample {
    /// Finished invocations in all these threads.
    pub count: u64,
    /// Cycles of the first, or of some of them, as bits of `f32`; 0: none yet.
    pub cycles: [u32; SAMPLE],
}

/// Offset of the regions.
pub const REGIONS_OFFSET: usize = 4096;
/// Offset of the nodes.
pub const NODES_OFFSET: usize = REGIONS_OFFSET + RAW_REGIONS * size_of::<RawRegion>();
/// Offset of the active entries.
pub const ACTIVE_OFFSET: usize = NODES_OFFSET + RAW_NODES * size_of::<RawNode>();
/// Offset of the passages.
pub const PASSAGES_OFFSET: usize = ACTIVE_OFFSET + RAW_DEPTH * size_of::<RawActive>();
/// Offset of the threads' blocks.
pub const THREADS_OFFSET: usize =
    (PASSAGES_OFFSET + RAW_PASSAGES * size_of::<RawPassage>()).next_multiple_of(4096);
/// Offset of the times in a block.
pub const TIMES_OFFSET: usize = 4096;
/// Offset of the active entries in a block.
pub const THREAD_ACTIVE_OFFSET: usize = TIMES_OFFSET + RAW_REGIONS * size_of::<RawTimes>();
/// Size of a block.
pub const THREAD_SIZE: usize =
    (THREAD_ACTIVE_OFFSET + THREAD_DEPTH * size_of::<RawActive>()).next_multiple_of(4096);
/// Offset of the traces.
pub const TRACES_OFFSET: usize = THREADS_OFFSET + RAW_THREADS * THREAD_SIZE;
/// Offset of the samples.
pub const SAMPLES_OFFSET: usize =
    (TRACES_OFFSET + RAW_REGIONS * size_of::<RawTrace>()).next_multiple_of(4096);
/// Size of the file.
pub const RAW_SIZE: usize = SAMPLES_OFFSET + RAW_REGIONS * size_of::<RawSample>();
