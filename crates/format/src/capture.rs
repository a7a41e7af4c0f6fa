//! Plans of the command for the preload library, and the raw captures that it writes.

use crate::answers::Answers;
use crate::clibrary::CLibrary;
use crate::mpi::MpiCalls;
use crate::profile::RegionKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Version of the run plan and of raw captures.
pub const CAPTURE_VERSION: u32 = 6;

/// Environment variable that names the [`RunPlan`] file; without it the preload library does nothing.
pub const ENV_RUN: &str = "CERE_RUN";

/// The plan of a run for the preload library.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunPlan {
    /// [`CAPTURE_VERSION`].
    pub version: u32,
    /// Scratch directory of this run, absolute, existing: results go there.
    pub directory: PathBuf,
    /// Stack limit in bytes of the program without CERE (`RLIM_INFINITY` for none); `None` if the limit is unchanged.
    #[serde(default)]
    pub stack_limit: Option<u64>,
    /// Whether a launcher starts the program: then the program sees to its addresses itself.
    #[serde(default)]
    pub launched: bool,
    /// Profile all regions, time or capture some.
    pub mode: RunMode,
}

/// The kind of run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunMode {
    /// Time every region.
    Profile,
    /// Profile these alone; the probes of the others stay dormant.
    Time(Vec<RegionKey>),
    /// Capture these.
    Capture {
        /// Regions and the invocations (from 1) wanted of each, rising.
        wanted: Vec<Wanted>,
        /// How to trace pages before them; `None` for no traces.
        #[serde(default)]
        trace: Option<TracePlan>,
        /// The processes that capture, by rank; in the others all probes stay dormant. None: every process captures.
        #[serde(default)]
        ranks: Option<Vec<String>>,
    },
}

/// How the pages are traced that a program touches before a wanted invocation (CERE thesis, 3.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePlan {
    /// Pages that stay open at first: the length of the FIFO, at least 8.
    pub slots: u32,
    /// Maximum pages stored in a trace: those touched last.
    pub pages: u64,
    /// Faults that a window may take before its FIFO doubles, and between doublings.
    pub faults: u64,
}

/// Invocations of one region that are to be captured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wanted {
    /// Which region.
    pub key: RegionKey,
    /// The thread that enters it, by its number among those that were started, OpenMP's apart; 0: the first one.
    #[serde(default)]
    pub thread: u64,
    /// Invocation numbers, from 1, rising, without repetition.
    pub invocations: Vec<u64>,
    /// Seconds that its longest invocation took, if a profile knows.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Where their page traces begin. Of several for one invocation the first to come counts.
    #[serde(default)]
    pub starts: Vec<TraceStart>,
}

/// Where the page trace of a wanted invocation begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceStart {
    /// The wanted invocation.
    pub invocation: u64,
    /// The event: a region is entered for the n-th time, from 1. None: the program starts.
    pub event: Option<(RegionKey, u64)>,
    /// The event in words, as in [`PageTrace::began`].
    #[serde(default)]
    pub name: String,
}

/// A process of a run that holds regions: `process.<number>.json` in the run's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number in the order in which the run's processes first loaded regions, from 0.
    pub number: u32,
    /// Its id. A process that executes another program is another one with the same id.
    pub id: u32,
    /// The file that it runs.
    pub program: PathBuf,
    /// Its arguments, the program's name first.
    pub arguments: Vec<String>,
    /// What its launcher calls it: see [`crate::rank::own`].
    #[serde(default)]
    pub rank: Option<String>,
    /// How many processes its launcher started together with it: see [`crate::rank::size`].
    #[serde(default)]
    pub launched: Option<u32>,
    /// Whether another one with the same program, arguments and rank was running when it registered: which of them comes first is
    /// chance.
    #[serde(default)]
    pub beside: bool,
    /// Variables of its environment that hold numbers, if it has no rank.
    #[serde(default)]
    pub numbers: BTreeMap<String, u64>,
}

/// A wanted invocation that a run did not capture because another capture of the run disturbed it: a line of
/// `postponed.<number>.json` in the run's directory, of the process of that number. Another run can capture it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Postponed {
    /// Which region.
    pub key: RegionKey,
    /// Which invocation, from 1.
    pub invocation: u64,
    /// The thread that entered it, as [`Wanted::thread`].
    #[serde(default)]
    pub thread: u64,
    /// The process that it ran in: [`Process::number`].
    pub process: u32,
    /// What was captured: region and invocation.
    pub captured: (RegionKey, u64),
    /// How that disturbs it.
    pub conflict: Conflict,
}

/// How a capture disturbs another one of the same run: inside a captured invocation `malloc` is the region heap's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Conflict {
    /// The wanted invocation runs inside the captured one.
    Inside,
    /// Its page trace begins inside the captured one, or holds earlier invocations of its region that ran inside.
    Trace,
    /// The program has asked the kernel for memory since, while memory that the captured one freed lies in the region heap.
    Memory,
    /// Blocks that the captured one allocated are in use. The region heap places them otherwise than the program's allocator.
    Blocks,
}

/// Metadata of one captured invocation: `<n>.json` in the run's directory. Beside it lie `<n>.table`
/// ([`PageRecord`]s, little endian, 16 bytes each, by rising address), `<n>.entry` (the pages as they were at
/// entry, in the order of the table, those with [`PAGE_ENTRY_STORED`] only) and `<n>.exit` (as they were
/// at exit, those with [`PAGE_EXIT_STORED`] only), and, if `trace` is there, `<n>.trace`: the pages touched before entry in the order of
/// their last touch, the latest last, 8 bytes each: an address, with [`TRACE_WRITTEN`] if it was open for writing, the thread
/// at [`TRACE_THREAD_SHIFT`], and its age at [`TRACE_AGE_SHIFT`]. If `openmp` has `blocks`, `<n>.blocks` holds as many thread-local blocks of the region's image at entry.
/// If `answers` tells of any, `<n>.answers` holds them ([`crate::answers::Head`]). If `mpi` is there, `<n>.mpi` holds the calls
/// ([`crate::mpi::Call`]).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RawCapture {
    /// [`CAPTURE_VERSION`].
    pub version: u32,
    /// Which region.
    pub key: RegionKey,
    /// Which invocation, from 1.
    pub invocation: u64,
    /// The thread that entered it, as [`Wanted::thread`].
    #[serde(default)]
    pub thread: u64,
    /// Other threads of the program, OpenMP's apart, that computed when it was entered.
    #[serde(default)]
    pub beside: u32,
    /// The process that it was taken in: [`Process::number`].
    #[serde(default)]
    pub process: u32,
    /// Why the capture is not usable, if it is not: the region depends on outside state, or its capture failed.
    pub refused: Option<String>,
    /// How the region ended.
    pub end: RegionEnd,
    /// Bytes in a page.
    pub page_size: u64,
    /// The processor's state at entry.
    pub entry: EntryState,
    /// Base of the captured thread's control block (x86-64: FS base).
    pub thread_pointer: u64,
    /// Number of the captured thread in the kernel; 0 in captures of older builds.
    #[serde(default)]
    pub thread_number: i32,
    /// End of the program's data at entry (`sbrk(0)`); 0 in captures of older builds.
    #[serde(default)]
    pub program_break: u64,
    /// Blocks that the region freed and that are older than it, [start, end): what they hold at exit is of no use.
    #[serde(default)]
    pub freed: Vec<(u64, u64)>,
    /// Loaded images at entry, the program first.
    pub images: Vec<Image>,
    /// `/proc/self/maps` at entry, the preload library's own mappings left out.
    pub mappings: Vec<Mapping>,
    /// Address ranges that came to be mapped while the region ran, [start, end).
    pub fresh: Vec<(u64, u64)>,
    /// The region heap: see the crate `cere-inside` (`heap`). [start, end) of the reserved range.
    pub heap: (u64, u64),
    /// Names and addresses of the functions that the preload library puts in others' place, `malloc` and family among them.
    /// The program's pointers to these functions hold them.
    #[serde(default)]
    pub interposed: Vec<(String, u64)>,
    /// System calls made inside: number, name and how often.
    pub system_calls: Vec<SystemCall>,
    /// Cycles of the captured invocation, disturbed by the capture itself.
    pub disturbed_cycles: u64,
    /// Number of faults taken.
    pub faults: u64,
    /// The page trace before entry, if one was asked for.
    #[serde(default)]
    pub trace: Option<PageTrace>,
    /// The OpenMP runtime, if the process had one.
    #[serde(default)]
    pub openmp: Option<OpenMp>,
    /// Answers of the kernel to the region.
    #[serde(default)]
    pub answers: Option<Answers>,
    /// Calls of MPI, if it made some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<MpiCalls>,
    /// What the C library kept at entry and at exit.
    #[serde(default)]
    pub c_library: Option<[CLibrary; 2]>,
}

/// Metadata of a page trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageTrace {
    /// Pages stored.
    pub pages: u64,
    /// Different pages touched in the window; those beyond `pages` were touched earlier.
    pub touched: u64,
    /// Length of the FIFO at entry: what was asked for, or more where the window took too many faults.
    pub slots: u32,
    /// Faults taken in the window.
    pub faults: u64,
    /// The event that it began with, in words: `the program's start`, `f@a.c:3, invocation 7`.
    pub began: String,
    /// Why the trace does not reach from there to the entry without a gap, if so.
    pub cut: Option<String>,
}

/// Flag of an entry in a page trace: the page was open for writing when it was last touched.
pub const TRACE_WRITTEN: u64 = 1;
/// Where in an entry of a page trace the number of the thread is that touched the page last, as in [`PageRecord::thread`].
pub const TRACE_THREAD_SHIFT: u32 = 1;
/// The largest such number; threads beyond it have it as well.
pub const TRACE_THREADS: u64 = (1 << 11) - 1;
/// The address in an entry of a page trace.
pub const TRACE_PAGE: u64 = (1 << TRACE_AGE_SHIFT) - (1 << 12);
/// Where in an entry of a page trace its age is: how long before entry the page was touched, in units of [`TRACE_AGE_UNIT`] of
/// the program's own time. 0 also where it was not measured, the largest for all that is older.
pub const TRACE_AGE_SHIFT: u32 = 47;
/// Nanoseconds for which a page of a trace stays open, at least, if there is room: later touches show when it was closed. A page
/// that is no older is *in use*: its age and its place in the trace are those of one touch, and there may be later ones.
pub const TRACE_IN_USE: u64 = 2_000_000;
/// Of a page in use that the region has nothing of, a line in so many is touched between what the region uses and the entry: the
/// touches that brought it into the trace are spread over [`TRACE_IN_USE`], and code that goes across an array touches a line or
/// two of each page. Found by times in vivo (docs/measured.md, "Pages in use").
pub const TRACE_PART: u64 = 8;

/// Where the touched lines of a page of a trace begin, in bytes from its start: those of `lines` bytes, or a part of them.
pub fn traced_lines(page: u64, size: u64, line: u64, in_part: bool) -> impl Iterator<Item = u64> {
    // Others of the next page, so that no set of a cache gets them all.
    let first = (page / size).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let (first, step) = match in_part {
        true => (first % TRACE_PART, TRACE_PART),
        false => (0, 1),
    };
    (first * line..size).step_by((step * line) as usize)
}

/// Nanoseconds.
pub const TRACE_AGE_UNIT: u64 = 1 << 14;

/// How a captured region ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegionEnd {
    /// It returned.
    Returned,
    /// An exception left it.
    Unwound,
    /// It was still running when the program ended, or was left by `longjmp`.
    Never,
}

/// The processor's state when a region is about to be invoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryState {
    /// Stack pointer just before the call of the trampoline; memory below it is dead.
    pub stack_pointer: u64,
    /// Address of the argument block, above the stack pointer.
    pub arguments: u64,
    /// Size of the argument block in bytes.
    pub arguments_size: u32,
    /// SSE control and status register.
    pub mxcsr: u32,
    /// x87 control word.
    pub x87_control: u16,
    /// On a stack of the program's own (a coroutine's, in whatever memory): the lowest page that frames of the region were
    /// seen in. What lies there below the stack pointer may be frames or data. None: the thread's own stack.
    #[serde(default)]
    pub frames: Option<u64>,
}

/// A loaded image (program or shared library).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Image {
    /// Its file, absolute; the vdso and the preload library are left out.
    pub path: PathBuf,
    /// What is added to the addresses in its symbol table.
    pub bias: u64,
    /// Lowest and highest mapped address of its loaded segments, [start, end).
    pub range: (u64, u64),
    /// Whether it holds CERE units.
    pub instrumented: bool,
    /// Whether it belongs to the program: its memory is captured and compared, its code without IR runs as captured. A replay
    /// loads other images fresh: [`crate::system::taken_fresh`].
    pub program: bool,
    /// Its thread-local block in the captured thread: (address, size); none if it has none or it is not allocated.
    pub tls: Option<(u64, u64)>,
    /// Of a library that a replay loads fresh: the functions that it chooses by processor (`ifunc`), as the value of their
    /// symbol and the address that it chose.
    #[serde(default)]
    pub chosen: Vec<(u64, u64)>,
}

/// One line of `/proc/self/maps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Permissions as the kernel prints them, `rw-p`, before the capture protected anything.
    pub permissions: String,
    /// Offset in the file.
    pub offset: u64,
    /// File, `[heap]`, `[stack]`, or empty.
    pub path: String,
    /// Whether the kernel was advised to use huge pages, or did, if known.
    pub huge: bool,
}

/// The OpenMP runtime of a captured process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenMp {
    /// Its file; in a package its soname.
    pub runtime: String,
    /// Threads of the next team at entry (`omp_get_max_threads`).
    pub threads: u32,
    /// Its locks at entry.
    pub locks: Vec<OpenMpLock>,
    /// Addresses of words that held a lock at entry or at exit.
    pub lock_words: Vec<u64>,
    /// Threads of the runtime whose thread-local blocks at entry are kept, by number as in [`PageRecord::thread`], in the order of
    /// the blocks.
    #[serde(default)]
    pub blocks: Vec<u32>,
}

/// A lock of the OpenMP runtime (`omp_lock_t`, `omp_nest_lock_t`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenMpLock {
    /// Its address.
    pub address: u64,
    /// Whether it can be taken several times.
    pub nested: bool,
    /// `omp_sync_hint_t` that it was initialised with, or 0.
    pub hint: u32,
    /// Times that it is held.
    pub held: u32,
}

/// A system call that a region made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemCall {
    /// Number on this architecture.
    pub number: u64,
    /// Name, or `syscall_<number>`.
    pub name: String,
    /// Times made.
    pub count: u64,
}

/// One page of a captured invocation. 16 bytes, little endian on disk.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRecord {
    /// Address, a multiple of the page size.
    pub address: u64,
    /// `PAGE_` flags.
    pub flags: u32,
    /// The thread that touched it first: 0 is the one that entered the region, others count in the order in which the
    /// OpenMP runtime started them.
    pub thread: u32,
}

/// The region read, wrote or executed the page, or the kernel may have on its behalf.
pub const PAGE_TOUCHED: u32 = 1;
/// The region wrote the page.
pub const PAGE_WRITTEN: u32 = 2;
/// The page's content at entry is stored; without this flag it was all zero (or did not exist).
pub const PAGE_ENTRY_STORED: u32 = 4;
/// The page's content at exit is stored; a written page without this flag was all zero at exit.
pub const PAGE_EXIT_STORED: u32 = 8;
/// A page of program code that was executed; its content is the original machine code.
pub const PAGE_CODE: u32 = 16;
/// The page belongs to a library that a replay loads fresh, or to the thread control block or the kernel: it is
/// restored for reads through old pointers, and not compared.
pub const PAGE_FOREIGN: u32 = 32;
/// The page lies in the stack of the captured thread.
pub const PAGE_STACK: u32 = 64;
/// The page was mapped while the region ran.
pub const PAGE_FRESH: u32 = 128;
/// The page was not in memory at entry, though mapped: its first access took a page fault, and found zeros.
pub const PAGE_ABSENT: u32 = 256;

/// All flags that exist in this version.
pub const PAGE_FLAGS: u32 = 511;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_traced_pages() {
        let all: Vec<u64> = traced_lines(0x5000, 4096, 64, false).collect();
        assert_eq!(all, (0..64).map(|line| 64 * line).collect::<Vec<_>>());
        let pages = (0..800).map(|page| page * 4096);
        let mut sets = [0; 64];
        for page in pages {
            let part: Vec<u64> = traced_lines(page, 4096, 64, true).collect();
            assert_eq!(part.len() as u64, 64 / TRACE_PART);
            part.iter().for_each(|at| sets[*at as usize / 64] += 1);
        }
        // About as many in each set.
        assert!(sets.iter().all(|n| (60..140).contains(n)), "{sets:?}");
    }
}
