//! Processor time of the process that is profiled: of all threads, of each, of those of the OpenMP runtime; and where a thread was
//! not on a processor.

use super::tables::{Own, Tables};
use crate::os::{process, sys, thread};
use cere_format::abi::KIND_PARALLEL;
use cere_format::profile_raw::{RAW_THREADS, RawThread, THREAD_RUNS};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Cycles between two readings of a thread's processor time: at least 0.1 ms, and so many times what a reading costs.
static SPACING: AtomicU64 = AtomicU64::new(u64::MAX >> 1);
const SELDOM: u64 = 1000;
/// The clock advances by leaps: what a single invocation waits is not known.
static LEAPS: AtomicBool = AtomicBool::new(false);
/// Cycles that a reading takes at most on the processor; a wait takes longer.
const SHORT: u64 = 20_000;

/// Processor time of the process and its first thread when the profile began.
static BEGAN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Ids of the threads of the OpenMP runtime; 0: free.
static TEAM: [AtomicI32; 4096] = [const { AtomicI32::new(0) }; 4096];
/// Processor time of those that have ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of a clock; 0 if there is none.
fn read_clock(clock: i32) -> u64 {
    let mut now = [0u64; 2];
    let arguments = [clock as usize, &raw mut now as usize, 0, 0, 0, 0];
    // SAFETY: writes a `timespec`, two words.
    match unsafe { sys::call(libc::SYS_clock_gettime, arguments) } {
        0 => now[0] * 1_000_000_000 + now[1],
        _ => 0,
    }
}

/// The kernel's clock of a thread's processor time.
fn thread_clock(id: i32) -> i32 {
    const PER_THREAD: i32 = 4;
    const SCHEDULED: i32 = 2;
    !id << 3 | PER_THREAD | SCHEDULED
}

/// Of the process, and of its first thread.
fn read_both() -> [u64; 2] {
    let first = thread_clock(process::id());
    [libc::CLOCK_PROCESS_CPUTIME_ID, first].map(read_clock)
}

/// The profile begins, in its first thread.
///
/// # Safety
/// The tables are there, and no other thread uses them.
pub unsafe fn begin(tables: &Tables) {
    for (began, now) in BEGAN.iter().zip(read_both()) {
        began.store(now, SeqCst);
    }
    let first = read_clock(libc::CLOCK_THREAD_CPUTIME_ID);
    let readings = [(); 5].map(|()| {
        let from = cere_timing::clock::start();
        let now = read_clock(libc::CLOCK_THREAD_CPUTIME_ID);
        (cere_timing::clock::stop().saturating_sub(from), now)
    });
    LEAPS.store(readings.iter().any(|(_, now)| *now == first), SeqCst);
    let cost = readings.iter().map(|(cycles, _)| *cycles);
    // SAFETY: by the contract.
    let hz = unsafe { (*tables.header()).tsc_hz };
    let spacing = (cost.min().unwrap_or(0) * SELDOM).max((hz / 1e4) as u64);
    SPACING.store(spacing, SeqCst);
    // SAFETY: by the contract.
    unsafe { begin_thread(&tables.first()) };
}

/// The waiting of the calling thread is known from now on.
///
/// # Safety
/// The tables are the calling thread's.
pub unsafe fn begin_thread<const FIRST: bool>(own: &Own<FIRST>) {
    let now = cere_timing::clock::start();
    // SAFETY: by the contract.
    unsafe {
        let state = own.state();
        (*state).began_cycles = now;
        (*state).began_processor = read_clock(libc::CLOCK_THREAD_CPUTIME_ID);
        (*state).waited = 0;
        (*state).next_reading = now + SPACING.load(Relaxed);
    }
}

/// Books the cycles that the calling thread was not on a processor, up to now, to the innermost of the first `ran` active regions.
/// They may be earlier ones by [`SPACING`] at most. A clock that advances by leaps is ahead or behind by one of them, once and
/// for all. The kernel likes to give the processor away at a system call: what passes meanwhile is no
/// region's time, nor the run's, if that `goes_on`.
///
/// # Safety
/// The tables are the calling thread's; so many regions are active.
#[cold]
pub unsafe fn read<const FIRST: bool>(own: &Own<FIRST>, now: u64, ran: usize, goes_on: bool) {
    // SAFETY: by the contract.
    unsafe {
        let state = own.state();
        let on = read_clock(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub((*state).began_processor);
        let on = (on as f64 * ((*own.tables.header()).tsc_hz / 1e9)) as u64;
        let off = now.saturating_sub((*state).began_cycles).saturating_sub(on);
        let more = off.saturating_sub((*state).waited);
        let after = cere_timing::clock::start();
        let lost = match after.saturating_sub(now) {
            lost if lost > SHORT => lost,
            _ => 0,
        };
        (*state).waited += more + lost;
        (*state).next_reading = after + SPACING.load(Relaxed);
        if let Some(top) = ran.checked_sub(1) {
            let (entry, tables) = (own.active(top), &own.tables);
            (*own.times((*entry).region as usize)).waited += more;
            let kind = (*tables.region((*entry).region as usize)).kind;
            // Less is none: the clocks differ by as much.
            let waits = more > SHORT && !LEAPS.load(Relaxed);
            if waits && kind != KIND_PARALLEL {
                (*entry).waited += more.min(now.saturating_sub((*state).last_cycles));
            }
        }
        if goes_on {
            (*state).lost += lost;
        }
    }
}

/// The calling thread ends: its time belongs to the block, whose next user it is not.
///
/// # Safety
/// As [`begin_thread`].
pub unsafe fn end_thread<const FIRST: bool>(own: &Own<FIRST>) {
    // SAFETY: by the contract.
    unsafe {
        let state = own.state();
        (*state).processor += read_clock(libc::CLOCK_THREAD_CPUTIME_ID);
        (*state).processor_user = 0;
    }
}

/// The calling thread of the OpenMP runtime begins.
pub fn team_thread_begins() {
    let id = thread::id();
    let claimed = |place: &&AtomicI32| place.compare_exchange(0, id, SeqCst, SeqCst).is_ok();
    let _ = TEAM.iter().find(claimed);
}

/// The calling thread of the OpenMP runtime ends.
pub fn team_thread_ends() {
    let id = thread::id();
    ENDED.fetch_add(read_clock(thread_clock(id)), SeqCst);
    for place in &TEAM {
        let _ = place.compare_exchange(id, 0, SeqCst, SeqCst);
    }
}

/// The profile ends.
///
/// # Safety
/// The tables are there, and no other thread writes these words.
pub unsafe fn finish(tables: &Tables) {
    let [all, first] = read_both();
    let ids = TEAM.iter().map(|place| place.load(SeqCst));
    let team: u64 = ids
        .filter(|id| *id != 0)
        .map(|id| read_clock(thread_clock(id)))
        .sum();
    // SAFETY: by the contract.
    unsafe {
        let header = tables.header();
        (*header).processor = all.saturating_sub(BEGAN[0].load(SeqCst)).max(1);
        (*header).processor_first = first.saturating_sub(BEGAN[1].load(SeqCst));
        (*header).processor_team = team + ENDED.load(SeqCst);
        for place in 0..((*header).threads as usize).min(RAW_THREADS) {
            let state: *mut RawThread = tables.block(place).cast();
            if (*state).state == THREAD_RUNS {
                (*state).processor_user = read_clock(thread_clock((*state).id as i32));
            }
        }
    }
}
