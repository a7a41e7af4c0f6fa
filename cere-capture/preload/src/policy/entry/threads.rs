//! Interposed functions of libc that start threads, give them an alternate stack, or note what they do at their end.

use super::{active, state_pointer};
use crate::engine::heap::is_inside;
use crate::engine::spans::Span;
use crate::engine::{clock, gate, status, turn};
use crate::os::section::in_library;
use crate::os::symbols::{c_name, next};
use crate::os::sys::Start;
use crate::os::{local, sys};
use crate::policy::needs::{self, Needs};
use crate::policy::profile::{others, processor, tables};
use crate::policy::{openmp, targets, team, threads};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// Threads that the OpenMP runtime has started.
static STARTED: AtomicUsize = AtomicUsize::new(0);

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
    /// Its number among the others, from 1; 0 for those.
    number: usize,
    /// Its signal mask; none if it is its creator's.
    mask: Option<u64>,
}

unsafe extern "C-unwind" fn run(work: *mut c_void) -> *mut c_void {
    // SAFETY: boxed by `pthread_create` below for this thread alone.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    let (start, argument, passing) = (work.start, work.argument, work.passing);
    local::joins_team(work.team);
    local::local().number.store(work.number, Relaxed);
    if let Some(mask) = work.mask {
        sys::exchange_mask(mask);
    }
    drop(work);
    in_library(threads::list_this);
    gate::passed(passing);
    // SAFETY: as the program's.
    unsafe {
        match targets::exist() {
            // A page with the control block is taken for the C library's: what is the program's lies on others.
            true => sys::cere_call_lower(start, argument),
            false => start(argument),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> i32 {
    // SAFETY: libc's function; the box is the new thread's.
    unsafe {
        let real = next!(c"pthread_create", Create);
        if !status::prepared() {
            return match active::is_active() {
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
        if !team {
            needs::refuse_call(Needs::NewThread, "pthread_create");
        }
        let (of_team, number) = match team {
            true => (STARTED.fetch_add(1, SeqCst) + 1, 0),
            false => (0, others::next_number()),
        };
        let work = Box::into_raw(Box::new(Work {
            start,
            argument,
            passing,
            team: of_team,
            number,
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

/// A thread that is timed.
struct Timed {
    start: Start,
    argument: *mut c_void,
    /// Its number; 0 for a thread of the OpenMP runtime, whose processor time alone is noted.
    number: usize,
}

unsafe extern "C-unwind" fn run_timed(work: *mut c_void) -> *mut c_void {
    // SAFETY: boxed by `start_timed` for this thread alone.
    let work = unsafe { Box::from_raw(work.cast::<Timed>()) };
    let Timed {
        start,
        argument,
        number,
    } = *work;
    if number > 0 {
        local::local().number.store(number, Relaxed);
        // SAFETY: as the program's.
        return unsafe { start(argument) };
    }
    local::joins_team(1);
    processor::team_thread_begins();
    // SAFETY: as the runtime's.
    let result = unsafe { start(argument) };
    processor::team_thread_ends();
    result
}

/// Starts a thread of a process that is profiled, or will be once it loads an image with regions: captures number threads from
/// the program's start as well.
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
    let of_team = openmp::is_in_runtime(start as *const () as usize);
    if of_team && tables::current().is_none() {
        // Its processor time up to now is not the profile's.
        // SAFETY: the caller's call.
        return unsafe { real(thread, attributes, start, argument) };
    }
    let work = Box::into_raw(Box::new(Timed {
        start,
        argument,
        number: if of_team { 0 } else { others::next_number() },
    }));
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
            // SAFETY: libc's function, which takes these or the first of them, called as the program calls it.
            let real = unsafe { next!(c_name!($function), Register) };
            // SAFETY: as the program's.
            let register = || unsafe { real(what, on, image) };
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
    type Set = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> i32;
    // SAFETY: libc's function; `new` is readable, for the call has succeeded.
    unsafe {
        let real = next!(c"sigaltstack", Set);
        let passing = !new.is_null() && gate::pass();
        let result = real(new, old);
        if !new.is_null() && result == 0 {
            threads::note_alternate_stack(&*new);
        }
        gate::passed(passing);
        result
    }
}
