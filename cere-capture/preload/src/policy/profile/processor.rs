//! Processor time of the process that is profiled: of all threads, of the first one, of those of the OpenMP runtime.

use crate::os::{process, sys, thread};
use cere_format::profile_raw::RawHeader;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

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

/// The profile begins.
pub fn begin() {
    for (began, now) in BEGAN.iter().zip(read_both()) {
        began.store(now, SeqCst);
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
/// The header is there, and no other thread writes these words.
pub unsafe fn finish(header: *mut RawHeader) {
    let [all, first] = read_both();
    let ids = TEAM.iter().map(|place| place.load(SeqCst));
    let team: u64 = ids
        .filter(|id| *id != 0)
        .map(|id| read_clock(thread_clock(id)))
        .sum();
    // SAFETY: the header is there, and no other thread writes these words.
    unsafe {
        (*header).processor = all.saturating_sub(BEGAN[0].load(SeqCst)).max(1);
        (*header).processor_first = first.saturating_sub(BEGAN[1].load(SeqCst));
        (*header).processor_team = team + ENDED.load(SeqCst);
    }
}
