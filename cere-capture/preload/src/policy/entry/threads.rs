//! Interposed functions of libc that start threads, give them an alternate stack, or note what they do at their end.

use super::state_pointer;
use crate::engine::heap::is_inside;
use crate::engine::spans::Span;
use crate::engine::{clock, gate, status, turn};
use crate::os::section::in_library;
use crate::os::symbols::find_next;
use crate::os::thread::is_main;
use crate::os::{local, sys};
use crate::policy::profile::{booking, processor};
use crate::policy::{cause, openmp, team, threads};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Threads that the OpenMP runtime has started.
static STARTED: AtomicUsize = AtomicUsize::new(0);

type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    Start,
    *mut c_void,
) -> i32;

struct Work {
    start: Start,
    argument: *mut c_void,
    /// Whether it counts as passing.
    passing: bool,
    /// Its number among the threads of the OpenMP runtime, from 1; 0 for others.
    team: usize,
    /// Its signal mask; none if it is its creator's.
    mask: Option<u64>,
}

unsafe extern "C-unwind" fn run(work: *mut c_void) -> *mut c_void {
    // SAFETY: boxed by `pthread_create` below for this thread alone.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    let (start, argument, passing) = (work.start, work.argument, work.passing);
    local::joins_team(work.team);
    if let Some(mask) = work.mask {
        sys::exchange_mask(mask);
    }
    drop(work);
    in_library(threads::list_this);
    gate::passed(passing);
    // SAFETY: as the program's.
    unsafe { start(argument) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> i32 {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = find_next(&REAL, c"pthread_create");
    // SAFETY: libc's function; the box is the new thread's.
    unsafe {
        let real = std::mem::transmute::<usize, Create>(real);
        if !status::prepared() {
            let own = is_main() || local::is_of_team();
            let timed =
                own && booking::is_profiled() && openmp::is_in_runtime(start as *const () as usize);
            return match timed {
                true => start_timed(thread, attributes, start, argument, real),
                false => real(thread, attributes, start, argument),
            };
        }
        let passing = gate::pass();
        if passing {
            gate::pass_another();
        }
        // Threads that the runtime starts for another thread's regions belong to that.
        let team = !passing && openmp::is_in_runtime(start as *const () as usize);
        if !team && status::captures() && gate::is_captured() {
            cause::meet_other("pthread_create");
        }
        let number = if team {
            STARTED.fetch_add(1, SeqCst) + 1
        } else {
            0
        };
        let work = Box::into_raw(Box::new(Work {
            start,
            argument,
            passing,
            team: number,
            mask: openmp::mask_of_new(),
        }));
        let result = team::create_thread(team, attributes, span, |attributes| {
            real(thread, attributes, run, work.cast())
        });
        if result != 0 {
            drop(Box::from_raw(work));
            gate::passed(passing);
        }
        gate::passed(passing);
        result
    }
}

unsafe extern "C-unwind" fn run_timed(work: *mut c_void) -> *mut c_void {
    // SAFETY: boxed by `start_timed` for this thread alone.
    let work = unsafe { Box::from_raw(work.cast::<(Start, *mut c_void)>()) };
    let (start, argument) = *work;
    local::joins_team(1);
    processor::team_thread_begins();
    // SAFETY: as the runtime's.
    let result = unsafe { start(argument) };
    processor::team_thread_ends();
    result
}

/// Starts a thread of the OpenMP runtime whose processor time is noted.
///
/// # Safety
/// As `pthread_create`, which is `real`.
unsafe fn start_timed(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
    real: Create,
) -> i32 {
    let work = Box::into_raw(Box::new((start, argument)));
    // SAFETY: `real` is `pthread_create` with the caller's arguments; the box is the new thread's.
    unsafe {
        let result = real(thread, attributes, run_timed, work.cast());
        if result != 0 {
            drop(Box::from_raw(work));
        }
        result
    }
}

/// The `i`-th span, for the captured thread, whose stack may be closed: it must not fault in its turn.
#[inline(never)]
fn span(i: usize) -> Option<Span> {
    turn::without_turns(|| {
        let state = state_pointer()?;
        // SAFETY: nobody has a turn, and nobody gets one.
        let engine = unsafe { &(*state.as_ptr()).engine };
        engine.pages.spans.all().get(i).copied()
    })
}

type Register = unsafe extern "C" fn(*const c_void, *mut c_void, *const c_void) -> i32;

/// libc's lists of what runs when a thread or the process ends belong to these, and a replay has its own: inside a captured
/// invocation as well, their entries are not the program's memory. What is registered is kept, to be compared.
macro_rules! registers {
    ($($function:ident = $key:literal;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $function(
            what: *const c_void,
            on: *mut c_void,
            image: *const c_void,
        ) -> i32 {
            static REAL: AtomicUsize = AtomicUsize::new(0);
            let name = concat!(stringify!($function), "\0").as_bytes();
            let real = find_next(&REAL, CStr::from_bytes_with_nul(name).unwrap_or_default());
            // SAFETY: libc's function, which takes these or the first of them, called as the program calls it.
            let register = || unsafe {
                let real = std::mem::transmute::<usize, Register>(real);
                real(what, on, image)
            };
            if !is_inside() {
                return register();
            }
            in_library(|| {
                clock::note_registration($key, [what as u64, on as u64, image as u64]);
                register()
            })
        })*
    };
}
registers! {
    __cxa_thread_atexit_impl = 0;
    __cxa_atexit = 1;
    __cxa_at_quick_exit = 2;
    on_exit = 3;
}

/// The handlers run on a thread's alternate stack, if it has one: that stays open as well.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> i32 {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    type Set = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> i32;
    let real = find_next(&REAL, c"sigaltstack");
    // SAFETY: libc's function; `new` is readable, for the call has succeeded.
    unsafe {
        let real = std::mem::transmute::<usize, Set>(real);
        let passing = !new.is_null() && gate::pass();
        let result = real(new, old);
        if passing && result == 0 {
            threads::note_alternate_stack(&*new);
        }
        gate::passed(passing);
        result
    }
}
