//! The OpenMP runtime of the program: a library whose memory and threads belong to no region.
//!
//! Its state (teams, barriers, tasks, tables of locks) belongs to the running threads, and a replay has its own runtime. So its
//! data stay open during captures, its heap is in the arena, and nothing of it is captured.

use crate::engine::malloc::{runtime_calloc, runtime_malloc, runtime_realloc};
use crate::os::section::in_library;
use crate::os::symbols::find_default;
use crate::os::{images, limits};
use cere_format::abi::{FORK_SYMBOL, Fork, Ident};
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

static RANGE: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));
static C_LIBRARY: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// `omp_get_max_threads`; 0 without a runtime.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Whether the runtime is part of an image of the program.
static BUILT_IN: AtomicBool = AtomicBool::new(false);
/// Whether [`start_team`] was called.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Whether [`start_team`] is at work, and the program's signal mask then.
static STARTING: (AtomicBool, AtomicU64) = (AtomicBool::new(false), AtomicU64::new(0));
/// [start, end) of the runtime's image; empty if there is none.
pub fn runtime_range() -> (usize, usize) {
    let (start, end) = &RANGE;
    (start.load(Ordering::Relaxed), end.load(Ordering::Relaxed))
}

/// Whether `address` lies in the runtime's image.
pub fn is_in_runtime(address: usize) -> bool {
    let (start, end) = runtime_range();
    (start..end).contains(&address)
}

/// Why parallel regions of this process cannot be captured, if so.
pub fn reason_against() -> Option<&'static str> {
    let built_in = BUILT_IN.load(Ordering::Relaxed);
    built_in.then_some(
        "the OpenMP runtime is linked into the program, whose memory a replay restores: link with the shared one \
         (without -static-openmp)",
    )
}

/// Threads of the calling thread's next team, unless the region says otherwise; none without a runtime. May initialise the
/// runtime: ordinary code, with everything open.
pub fn count_threads() -> Option<u32> {
    type Ask = unsafe extern "C" fn() -> u32;
    match THREADS.load(Ordering::Relaxed) {
        0 => None,
        // SAFETY: the runtime's function of this name.
        at => Some(unsafe { std::mem::transmute::<usize, Ask>(at)() }),
    }
}

/// Makes the runtime start the threads of the calling thread's next team, if it has not. In vivo they exist in all invocations
/// but the first, and in a replay before the clock runs. `mask` is the program's signal mask. Ordinary code, with everything
/// open.
pub fn start_team(mask: u64) {
    unsafe extern "C" fn nothing(_: *const i32, _: *const i32, _: *const c_void) {}
    STARTED.store(true, Ordering::Relaxed);
    let fork = find_default(FORK_SYMBOL);
    if fork == 0 {
        return;
    }
    STARTING.1.store(mask, Ordering::Relaxed);
    STARTING.0.store(true, Ordering::Release);
    // SAFETY: the runtime's function of this name, called as compiled code calls it.
    unsafe {
        let fork = std::mem::transmute::<usize, Fork>(fork);
        fork(&Ident::unknown(), 0, nothing);
    }
    STARTING.0.store(false, Ordering::Release);
}

/// Whether [`start_team`] was called.
pub fn has_started_team() -> bool {
    STARTED.load(Ordering::Relaxed)
}

/// Signal mask of new threads; none if it is the calling thread's.
pub fn mask_of_new() -> Option<u64> {
    let (starting, mask) = &STARTING;
    let starting = starting.load(Ordering::Acquire);
    starting.then(|| mask.load(Ordering::Relaxed))
}

/// [start, end) of the images of the C library and the loader.
pub fn c_library() -> [(usize, usize); 2] {
    [0, 2].map(|i| {
        let at = |i: usize| C_LIBRARY[i].load(Ordering::Relaxed);
        (at(i), at(i + 1))
    })
}

/// Looks for the runtime among the loaded images. If it is to be `captured`, its memory is set apart. Ordinary code.
pub fn find_runtime(captured: bool) {
    let fork = find_default(FORK_SYMBOL);
    let loaded = images::list_loaded();
    let holding = |at: usize| {
        let mut all = loaded.iter();
        all.position(|i| i.range.0 <= at && at < i.range.1)
    };
    let Some(place) = holding(fork).filter(|_| fork != 0) else {
        return;
    };
    let (start, end) = loaded[place].range;
    if runtime_range().0 == start {
        return;
    }
    let program = place == 0 || images::read_sections(&loaded[place]).instrumented;
    BUILT_IN.store(program, Ordering::Relaxed);
    if program {
        return;
    }
    if !captured {
        RANGE.1.store(end, Ordering::Relaxed);
        RANGE.0.store(start, Ordering::Relaxed);
        return;
    }
    THREADS.store(find_default(c"omp_get_max_threads"), Ordering::Relaxed);
    let functions = [libc::getpid as *const (), images::tls_function()];
    for (i, function) in functions.into_iter().enumerate() {
        if let Some(place) = holding(function as usize) {
            let (start, end) = loaded[place].range;
            C_LIBRARY[2 * i].store(start, Ordering::Relaxed);
            C_LIBRARY[2 * i + 1].store(end, Ordering::Relaxed);
        }
    }
    RANGE.1.store(end, Ordering::Relaxed);
    RANGE.0.store(start, Ordering::Relaxed);
    let functions = [
        (c"malloc", runtime_malloc as *const () as usize),
        (c"calloc", runtime_calloc as *const () as usize),
        (c"realloc", runtime_realloc as *const () as usize),
        (c"strdup", duplicate_string as *const () as usize),
        (c"pthread_getattr_np", read_attributes as *const () as usize),
    ];
    // SAFETY: functions of this library with the types of libc's, which call those.
    unsafe { cere_inside::rebind::replace(fork, &functions) };
}

/// `strdup` of the runtime: allocates in the arena.
unsafe extern "C" fn duplicate_string(text: *const c_char) -> *mut c_char {
    // SAFETY: the OpenMP runtime passes a string that ends in zero, as `strdup` demands.
    in_library(|| unsafe { libc::strdup(text) })
}

/// `pthread_getattr_np` of the runtime: allocates in the arena.
unsafe extern "C" fn read_attributes(
    thread: libc::pthread_t,
    found: *mut libc::pthread_attr_t,
) -> libc::c_int {
    // SAFETY: a living thread, and attributes that are valid for writes, as `pthread_getattr_np` demands of the OpenMP runtime.
    in_library(|| unsafe { limits::stack_attributes(thread, found) })
}
