//! Campaigns of many runs with limits on memory and time.

use crate::Random;
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Maximum bytes that a run may hold at once, and allocate in all.
pub const HELD: usize = 256 << 20;
/// See above.
pub const TAKEN: usize = 2 << 30;
/// Maximum seconds of processor time of a run: every run that ends at all ends long before.
pub const SECONDS: f64 = 20.0;

/// The counts are of the process: one campaign at a time.
static ALONE: Mutex<()> = Mutex::new(());
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ALL: AtomicUsize = AtomicUsize::new(0);

/// Counts allocations in all threads: the test's `#[global_allocator]`.
pub struct Counting;

fn took(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(now, Relaxed);
    ALL.fetch_add(bytes, Relaxed);
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's obligations are the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's obligations are the system's.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's obligations are the system's.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        took(size);
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's obligations are the system's.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Seconds of processor time of this thread.
fn processor() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a structure on the stack.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn of_environment(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Whether `runs` says that it succeeded, as many times as are asked for.
///
/// # Panics
/// If a run panics or exceeds a limit; the message names its seed.
pub fn campaign(name: &str, runs: u64, mut run: impl FnMut(&mut Random) -> bool) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runs = of_environment("CERE_FUZZ_RUNS", runs);
    let first = of_environment("CERE_FUZZ_SEED", 1);
    let (mut good, mut most, mut longest) = (0, 0, 0.0f64);
    for seed in first..first + runs {
        let (held, taken, began) = (NOW.load(Relaxed), ALL.load(Relaxed), processor());
        PEAK.store(held, Relaxed);
        let mut random = Random::new(seed);
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut random)));
        let again = format!("CERE_FUZZ_SEED={seed} CERE_FUZZ_RUNS=1 repeats it");
        let held = PEAK.load(Relaxed).saturating_sub(held);
        let taken = ALL.load(Relaxed) - taken;
        let seconds = processor() - began;
        assert!(outcome.is_ok(), "{name}, seed {seed} panicked: {again}");
        assert!(
            held <= HELD,
            "{name}, seed {seed} held {held} bytes: {again}"
        );
        assert!(
            taken <= TAKEN,
            "{name}, seed {seed} took {taken} bytes: {again}"
        );
        assert!(
            seconds <= SECONDS,
            "{name}, seed {seed} took {seconds} s: {again}"
        );
        good += u64::from(outcome.unwrap_or(false));
        most = most.max(held);
        longest = longest.max(seconds);
    }
    println!(
        "{name}: {runs} runs, {good} read well, at most {} KiB held and {:.1} ms of processor time",
        most >> 10,
        longest * 1e3
    );
}
