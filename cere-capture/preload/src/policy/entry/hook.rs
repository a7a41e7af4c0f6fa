//! The hooks of a capture run. They run on the program's stack only to count; what they begin or end runs on a stack of the
//! pool.

use super::{abandon_state, state_pointer, whole_state};
use crate::engine::level::Captured;
use crate::engine::parallel::{self, Entry};
use crate::engine::tracer::Cut;
use crate::engine::turn;
use crate::engine::{gate, lead, status};
use crate::os::report::complain;
use crate::os::section::{self, in_library};
use crate::os::{local, sys, thread};
use crate::policy::all_open::{Why, with_all_open};
use crate::policy::hooks::Hooks;
use crate::policy::mark::{capture_in_progress, has_left};
use crate::policy::refusal::Refusal;
use crate::policy::regions::write_counts;
use crate::policy::state::{MISSED, Missed, Region, State};
use crate::policy::{capture, elsewhere, mpi, openmp, stub, targets, windows};
use cere_format::abi::{
    EVENT_ENTER, EVENT_UNWIND, Hook, KIND_FUNCTION, KIND_PARALLEL, RegionDescriptor,
};
use cere_format::capture::RegionEnd;
use std::sync::atomic::{AtomicUsize, Ordering};

stub::hook!(cere_capture_stub, on_event);
stub::hook!(cere_parallel_stub, event_of_parallel);

/// The hooks, to be registered.
pub fn make_hooks() -> Hooks {
    let hook = |stub: *const ()| {
        // SAFETY: a stub, which has the hook's interface.
        unsafe { std::mem::transmute::<*const (), Hook>(stub) }
    };
    Hooks {
        capture: hook(cere_capture_stub as *const ()),
        parallel: hook(cere_parallel_stub as *const ()),
    }
}

const FORKS: &str =
    "it enters a parallel region of OpenMP in a thread that is not the program's first one";

/// Top of the stack for hooks.
static STACK: AtomicUsize = AtomicUsize::new(0);

/// Hooks work on the stack that ends at `top`.
pub fn use_stack(top: usize) {
    STACK.store(top, Ordering::Relaxed);
}

/// The main thread enters or leaves a parallel region of which nothing is wanted.
unsafe extern "C" fn event_of_parallel(
    _: *mut RegionDescriptor,
    event: u32,
    _: *mut u8,
    stack: usize,
) {
    if !thread::is_main() {
        if event == EVENT_ENTER && capture_in_progress().is_some() {
            on_stack(stack, |state, _| {
                capture::finish_capture(state, RegionEnd::Never, Some(FORKS.into()));
                Ok(())
            });
        }
        return;
    }
    match event {
        EVENT_ENTER if parallel::enters(true, stack) == Entry::Outside => prepare_parallel(stack),
        EVENT_ENTER => {}
        _ => {
            parallel::leaves(stack);
        }
    }
}

unsafe extern "C" fn on_event(
    region: *mut RegionDescriptor,
    event: u32,
    arguments: *mut u8,
    stack: usize,
) {
    let Some(state) = state_pointer() else {
        return;
    };
    if !thread::is_main() {
        return event_of_other(region, event, arguments, stack);
    }
    let place = match event {
        // SAFETY: the descriptor of an armed region.
        EVENT_ENTER => parallel::enters(unsafe { (*region).kind } == KIND_PARALLEL, stack),
        _ => parallel::leaves(stack),
    };
    if place == Entry::Within {
        return;
    }
    // SAFETY: the descriptor of an armed region.
    if event == EVENT_ENTER && unsafe { (*region).kind } == KIND_PARALLEL {
        prepare_parallel(stack);
    }
    // SAFETY: the descriptor of an armed region.
    let (wanted, function) = unsafe { (wanted_place(region), (*region).kind == KIND_FUNCTION) };
    let slow: sys::Work = if event == EVENT_ENTER {
        // SAFETY: main thread only, and no hook is at work that would use them, but where a section is interrupted: that
        // ends nowhere near the counts.
        let (targets, listens, missed, number) = unsafe {
            let state = state.as_ptr();
            (
                &mut (*state).wanted,
                (*state).listens,
                &mut (*state).missed,
                (*state).past.number,
            )
        };
        let captured = capture_in_progress().map(|mark| Captured {
            number,
            wanted: mark.wanted,
            invocation: mark.invocation,
        });
        let due = targets.get_mut(wanted).is_some_and(|target| {
            if function && !target.outermost.enters(stack) {
                return false;
            }
            target.count += 1;
            target.inside = captured.or(target.inside);
            target.count == target.next
        });
        if section::is_interrupted() {
            if due {
                note_missed(&mut targets[wanted], missed, region, wanted);
            }
            return;
        } else if due {
            enter_region
        } else if listens {
            resume_trace
        } else if has_left(stack + 1) {
            end_left_capture
        } else {
            return;
        }
    } else {
        if function {
            // SAFETY: as at an entry; the entry itself changes in hooks of this thread alone.
            let targets = unsafe { &(*state.as_ptr()).wanted };
            targets.get(wanted).inspect(|t| t.outermost.leaves(stack));
        }
        if !capture_in_progress().is_some_and(|l| l.region == region && l.pointer == stack) {
            return;
        }
        leave_region
    };
    run_slowly(slow, region, event, arguments, stack);
}

/// Work on the hook's stack of the calling thread, which leads then: waits while another one works there, or has memory closed.
/// Outside of sections, so that it can stand still meanwhile.
fn run_slowly(
    slow: sys::Work,
    region: *mut RegionDescriptor,
    event: u32,
    arguments: *mut u8,
    stack: usize,
) {
    let top = STACK.load(Ordering::Relaxed);
    let local = local::local();
    loop {
        // SAFETY: the stack is used by one thread at a time, whose work there does not nest; the word is the thread's own.
        let done =
            unsafe { sys::cere_on_stack(slow, top, region, event, arguments, stack, &local.mask) };
        match (done, local.put_off.swap(0, Ordering::Relaxed)) {
            (true, 0) => return,
            (true, _) => gate::await_memory(),
            // SAFETY: no arguments.
            (false, _) => unsafe {
                sys::call(libc::SYS_sched_yield, [0; 6]);
            },
        }
    }
}

/// A thread other than the first enters or leaves a region.
fn event_of_other(region: *mut RegionDescriptor, event: u32, arguments: *mut u8, stack: usize) {
    // A team's threads are part of the region that forked it.
    if local::is_of_team() {
        return;
    }
    let mark = capture_in_progress();
    let slow: sys::Work = if event == EVENT_ENTER {
        elsewhere::count_in_capture(region);
        // SAFETY: the descriptor of an armed region.
        let (wanted, kind) = unsafe { (wanted_place(region), (*region).kind) };
        if kind == KIND_PARALLEL {
            // SAFETY: as the hook's.
            return unsafe { event_of_parallel(region, event, arguments, stack) };
        }
        let due = targets::of_this_thread(wanted).is_some_and(|target| {
            (kind != KIND_FUNCTION || target.outermost.enters(stack)) && target.enter()
        });
        if due && !section::is_interrupted() {
            enter_region
        } else if has_left(stack + 1) && !section::is_interrupted() {
            end_left_capture
        } else {
            return;
        }
    } else {
        // SAFETY: the descriptor of an armed region.
        let wanted = unsafe { wanted_place(region) };
        targets::of_this_thread(wanted).inspect(|target| target.outermost.leaves(stack));
        if !mark.is_some_and(|l| l.region == region && l.pointer == stack) {
            return;
        }
        leave_region
    };
    run_slowly(slow, region, event, arguments, stack);
}

/// The region's index among the wanted ones; beyond them if it is not wanted.
///
/// # Safety
/// It is the descriptor of an armed region.
unsafe fn wanted_place(region: *mut RegionDescriptor) -> usize {
    // SAFETY: the descriptor of an armed region.
    (unsafe { (*region).scratch } as usize).wrapping_sub(1)
}

/// A wanted invocation begins in a section of the library. Notes it, to be written as refused later. Neither allocates nor locks.
fn note_missed(
    target: &mut Region,
    missed: &mut Vec<Missed>,
    region: *mut RegionDescriptor,
    wanted: usize,
) {
    let invocation = target.count;
    target.look_ahead();
    if target.invocations.contains(&invocation) && missed.len() < MISSED {
        missed.push(Missed {
            region,
            wanted,
            invocation,
        });
    }
}

/// Runs `work` on the hook's stack, with everything open. `stack` is the program's stack pointer. Outside of the hook's work.
fn on_stack<F: FnOnce(&mut State, u64) -> Result<(), Refusal>>(stack: usize, work: F) {
    unsafe extern "C" fn run<F: FnOnce(&mut State, u64) -> Result<(), Refusal>>(
        _: *mut RegionDescriptor,
        _: u32,
        work: *mut u8,
        stack: usize,
    ) {
        all_open(stack, Why::Else, |state, mask| {
            // SAFETY: handed on below, on the program's stack, which is open.
            let work = unsafe { (*work.cast::<Option<F>>()).take() };
            work.map_or(Ok(()), |work| work(state, mask))
        });
    }
    let mut work = Some(work);
    let work = (&raw mut work).cast();
    // `work` lives until the call returns.
    run_slowly(run::<F>, std::ptr::null_mut(), EVENT_ENTER, work, stack);
}

/// The program has started or loaded an image: begins the windows that wait for that.
pub fn begin_windows() {
    let busy = section::is_interrupted();
    let Some(state) = state_pointer().filter(|_| thread::is_main() && !busy) else {
        return;
    };
    // SAFETY: main thread only, and no hook is at work.
    let awaited = unsafe {
        let state = state.as_ptr();
        windows::awaits_start(&(*state).wanted, &(*state).windows)
    };
    if awaited {
        on_stack((&raw const busy) as usize, |state, _| {
            windows::begin_windows_at_start(state);
            Ok(())
        });
    }
}

/// The main thread enters a parallel region. Ends a capture that cannot include a team. If memory is closed for the page trace,
/// makes the runtime start its threads now: that would interrupt the trace later.
fn prepare_parallel(stack: usize) {
    match (status::captures(), openmp::reason_against()) {
        _ if section::is_interrupted() => {}
        (true, Some(reason)) => on_stack(stack, |state, _| {
            capture::finish_capture(state, RegionEnd::Never, Some(reason.into()));
            Ok(())
        }),
        (false, _) if status::at_work() && !openmp::has_started_team() => {
            on_stack(stack, |_, mask| {
                openmp::start_team(mask);
                Ok(())
            });
        }
        _ => {}
    }
}

/// Work of the hook, with everything open, if captures are prepared.
fn all_open(stack: usize, why: Why, work: impl FnOnce(&mut State, u64) -> Result<(), Refusal>) {
    if !lead::take() {
        return local::local().put_off.store(1, Ordering::Relaxed);
    }
    // The program's allocator may have regions of its own.
    let _section = section::enter_section();
    // SAFETY: the hook's stack is the lead's, and `on_event` uses no reference any more.
    if let Some(mut all) = unsafe { whole_state() } {
        with_all_open(&mut all, stack, why, work);
    }
    lead::give_back();
}

unsafe extern "C" fn enter_region(
    region: *mut RegionDescriptor,
    _: u32,
    arguments: *mut u8,
    stack: usize,
) {
    let entry = capture::read_state(arguments, stack);
    all_open(stack, Why::Enters, |state, mask| {
        // SAFETY: the descriptor of an armed region.
        unsafe {
            let group = wanted_place(region);
            let target = (!thread::is_main()).then(|| targets::of_this_thread(group));
            let wanted = match target.flatten() {
                None => group,
                Some(target) => {
                    state.wanted[target.wanted].count = target.count();
                    target.wanted
                }
            };
            let result = capture::begin_capture(state, region, wanted, entry, stack, mask);
            targets::set_next(wanted, state.wanted[wanted].next);
            result
        }
    });
}

unsafe extern "C" fn leave_region(_: *mut RegionDescriptor, event: u32, _: *mut u8, stack: usize) {
    all_open(stack, Why::Leaves, |state, _| {
        let end = match event {
            EVENT_UNWIND => RegionEnd::Unwound,
            _ => RegionEnd::Returned,
        };
        capture::finish_capture(state, end, None);
        Ok(())
    });
}

/// The captured invocation of the calling thread is about to make a call that a replay answers: it pauses for it, or the capture ends.
pub fn pause(call: &mpi::Call) {
    let at = (&raw const *call).cast_mut().cast();
    run_slowly(
        pause_for_call,
        std::ptr::null_mut(),
        EVENT_ENTER,
        at,
        call.stack,
    );
}

unsafe extern "C" fn pause_for_call(_: *mut RegionDescriptor, _: u32, call: *mut u8, stack: usize) {
    all_open(stack, Why::Pauses, |state, _| {
        // SAFETY: the caller's, on the program's stack, which is open.
        mpi::begin_call(state, unsafe { &*call.cast::<mpi::Call>() })
    });
}

/// The call that the captured invocation of the calling thread has paused for was left, by an exception or longjmp: the capture ends.
pub fn end_paused(stack: usize) {
    on_stack(stack, |_, _| Ok(()));
}

/// The call that the captured invocation of the calling thread has paused for has returned this, on this stack.
pub fn resume(stack: usize, result: u64) {
    let at = std::ptr::without_provenance_mut(result as usize);
    run_slowly(
        resume_after_call,
        std::ptr::null_mut(),
        EVENT_ENTER,
        at,
        stack,
    );
}

unsafe extern "C" fn resume_after_call(
    _: *mut RegionDescriptor,
    _: u32,
    result: *mut u8,
    stack: usize,
) {
    all_open(stack, Why::Resumes, |state, _| {
        mpi::end_call(state, result as u64, stack)
    });
}

/// A region is entered: ends the capture if that was left by longjmp.
unsafe extern "C" fn end_left_capture(_: *mut RegionDescriptor, _: u32, _: *mut u8, stack: usize) {
    all_open(stack, Why::Else, |state, _| {
        if has_left(stack + 1) {
            capture::finish_capture(state, RegionEnd::Never, None);
        }
        Ok(())
    });
}

/// A region is entered: the page trace goes on.
unsafe extern "C" fn resume_trace(_: *mut RegionDescriptor, _: u32, _: *mut u8, stack: usize) {
    all_open(stack, Why::Else, |_, _| Ok(()));
}

/// Runs `work` with everything open, while nobody else uses the state, from any thread. Ordinary code. Does nothing if no captures
/// are prepared.
pub fn with_state_alone(work: impl FnOnce(&mut State)) {
    if !status::prepared() {
        return;
    }
    if lead::is_here() {
        let here = (&raw const work) as usize;
        return on_stack(here, |state, _| {
            work(state);
            Ok(())
        });
    }
    let mut work = Some(work);
    while work.is_some() && status::prepared() {
        // Never waits in the gate: the lead in its turn waits for the gate to be empty.
        gate::in_gate(|| {
            let turn = turn::try_take();
            if turn.is_some()
                && let Some(state) = state_pointer()
                && let Some(work) = work.take()
            {
                // SAFETY: the lead works on the state in its turn only, but for counts that `work` leaves alone.
                work(unsafe { &mut *state.as_ptr() });
            }
        });
        std::thread::yield_now();
    }
}

/// The program ends: finishes what is in progress and writes the counts.
pub fn finish_process() {
    if !status::prepared() {
        return;
    }
    if lead::is_here() || status::at_work() {
        lead::seize();
        on_stack(0, |state, _| {
            let tracer = &mut state.engine.tracer;
            tracer.stop(Cut::Because("the program ends"));
            capture::finish_capture(state, RegionEnd::Never, None);
            write_counts(state).map_err(Refusal::File)
        });
    } else {
        with_state_alone(|state| {
            if let Err(e) = in_library(|| write_counts(state)) {
                complain(&e.to_string());
            }
        });
    }
    abandon_state();
}
