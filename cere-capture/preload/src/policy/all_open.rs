//! Work of the hook with the program's memory open. It is opened before, and closed afterwards for a capture or a page trace.

use super::capture::{finish_capture, refuse_missed};
use super::cause::take_ending;
use super::mark::note_level;
use super::refusal::Refusal;
use super::state::State;
use super::surroundings::lay_out;
use super::team::{self, Failure};
use super::{patience, threads, windows};
use crate::engine::state::{Engine, Obstacle};
use crate::engine::tracer::Cut;
use crate::engine::{dispatch, gate, heap, malloc, status};
use crate::os::errno::keep_errno;
use crate::os::report::complain;
use crate::os::section::unnoticed;
use crate::os::{images, signals, stacks, sys, thread};
use cere_format::abi::{HOOK_OFFSET, RegionDescriptor};
use cere_format::capture::RegionEnd;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// Attempts to close memory while other threads change what is mapped.
const ATTEMPTS: u32 = 10;
const CLOSED_IN_VAIN: &str = "memory cannot be closed";
const NO_ROOM: &str = "it writes more memory than the disk of the store has free: a capture copies each page that the region writes";

/// Why the hook opens memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A region that is wanted is entered: all thread-local blocks are allocated first, if no capture is in progress.
    Enters,
    /// The captured invocation ends: what it has written is kept before other threads continue.
    Leaves,
    /// The captured invocation pauses for a call: memory stays open, and other threads continue.
    Pauses,
    /// That call has returned.
    Resumes,
    /// Anything else.
    Else,
}

/// Work of the hook, on its stack, with everything open and all signals blocked, in a section, the threads of teams kept out.
/// `stack` is the program's stack pointer. `work` gets the program's signal mask.
pub fn with_all_open(
    state: &mut State,
    stack: usize,
    why: Why,
    work: impl FnOnce(&mut State, u64) -> Result<(), Refusal>,
) {
    let mask = sys::HOOK_MASK.load(Ordering::Relaxed);
    dispatch::catch_calls(false);
    heap::set_inside(false);
    let was_inside = state.engine.level.is_some();
    let strangers = state.engine.level.as_ref().is_some_and(|l| l.strangers);
    let spoilt = open_memory(state, why);
    // A thread of the team failed on the way here.
    let failed = team::take_failure();
    if why == Why::Enters && !was_inside {
        keep_errno(images::allocate_tls);
    }
    unnoticed(|| {
        end_failed(state, failed, spoilt);
        if why != Why::Resumes {
            end_paused(state, stack);
        }
        do_work(state, |state| work(state, mask));
    });
    if why == Why::Pauses && status::paused() {
        return;
    }
    let captures = state.engine.level.is_some();
    let mask = match captures {
        true => signals::mask_outside(mask),
        false => signals::release_deferred(mask),
    };
    if !captures {
        // Before memory is laid out: the program's allocator may unmap something.
        if was_inside && state.engine.tracer.wanted() {
            malloc::free_deferred();
        }
    }
    unnoticed(|| windows::switch_tracer(state, stack, mask));
    close_or_give_up(state, stack, strangers);
    note_level(state.engine.level.as_ref());
    match state.engine.at_work() {
        true => resume(state, mask),
        false => remain_open(state, mask),
    }
}

/// Opens memory, before anything else: libc's data may be closed. Returns why the invocation that ends cannot be captured, if so.
fn open_memory(state: &mut State, why: Why) -> Option<String> {
    let engine = &mut state.engine;
    if !engine.at_work() {
        return None;
    }
    let mut spoilt = None;
    if why == Why::Leaves {
        engine.uncover();
        let regions = &state.all;
        spoilt = unnoticed(|| keep_all(engine, regions));
    }
    if let Some(level) = engine.level.as_ref().filter(|_| why == Why::Pauses) {
        // While they stand still, and before they are watched anew.
        let still = level.still.clone();
        engine.uncover();
        spoilt = unnoticed(|| stacks::find_disturbance(&still));
    }
    let strangers = engine.level.as_ref().is_some_and(|l| l.strangers);
    match strangers && !matches!(why, Why::Leaves | Why::Pauses) {
        // They stand still until the captured invocation ends.
        true => engine.uncover(),
        false => engine.open(),
    }
    if let Some(level) = engine.level.as_mut().filter(|_| why == Why::Pauses) {
        // They stop again afterwards.
        level.strangers = false;
        level.still.clear();
    }
    spoilt
}

/// Ends the capture if its invocation has paused for a call that has not returned: code with this stack pointer is called by it, or
/// runs in its place; 0: the program ends.
fn end_paused(state: &mut State, stack: usize) {
    let level = state.engine.level.as_ref();
    let Some(call) = level.and_then(|level| level.answered.underway.as_ref()) else {
        return;
    };
    let why = match stack {
        0 => "the program ends in it",
        _ if stack < call.stack => "it runs regions of the program, or loads code",
        _ => "an exception or longjmp leaves it",
    };
    let reason = Refusal::Calls(call.name, why.into()).to_string();
    finish_capture(state, RegionEnd::Never, Some(reason));
}

/// Ends the capture if it cannot go on.
fn end_failed(state: &mut State, failed: Option<Failure>, spoilt: Option<String>) {
    if let Some(cause) = take_ending() {
        finish_capture(state, RegionEnd::Never, cause.reason());
    }
    if let Some(failure) = failed {
        state.engine.tracer.halt(failure.cut());
        finish_capture(state, RegionEnd::Never, failure.reason());
    }
    if let Some(reason) = spoilt {
        finish_capture(state, RegionEnd::Never, Some(reason));
    }
}

/// Does the hook's work. If that fails the capture ends.
fn do_work(state: &mut State, work: impl FnOnce(&mut State) -> Result<(), Refusal>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        refuse_missed(state);
        work(state)
    }));
    let failed = outcome.unwrap_or(Err(Refusal::Because("the capture failed inside")));
    if let Err(refusal) = failed {
        let message = refusal.to_string();
        if state.engine.level.is_none() {
            complain(&message);
        }
        finish_capture(state, RegionEnd::Never, Some(message));
    }
}

/// Closes memory again if it is to be. If that fails for good, captures and page traces end.
fn close_or_give_up(state: &mut State, stack: usize, strangers: bool) {
    let mut attempts = 0;
    while state.engine.at_work()
        && let Err(refusal) = close_memory(state)
    {
        state.engine.open();
        // Another thread may have unmapped something in between.
        attempts += 1;
        let goes_on = state.engine.level.as_ref().is_some_and(|l| l.started != 0);
        unnoticed(|| {
            let last = attempts == ATTEMPTS || strangers && goes_on;
            if last || lay_out(state, stack).is_err() {
                state.engine.tracer.on = false;
                state.engine.tracer.stop(Cut::Because(CLOSED_IN_VAIN));
                finish_capture(state, RegionEnd::Never, Some(refusal.to_string()));
            }
        });
    }
}

/// The program goes on with everything open.
fn remain_open(state: &mut State, mask: u64) {
    state.engine.publish();
    signals::remove_handlers(None, threads::others_may_run(&state.engine));
    gate::memory_opened();
    sys::HOOK_MASK.store(mask, Ordering::Relaxed);
    malloc::free_deferred();
}

/// The program goes on with memory closed.
fn resume(state: &mut State, mask: u64) {
    if state.engine.level.as_ref().is_some_and(|l| l.started == 0) {
        state.engine.keep_frame();
    }
    if let Some(level) = state.engine.level.as_mut() {
        if level.started == 0 {
            if level.strangers {
                patience::begin(state.wanted[level.wanted].seconds);
            }
            level.started = cere_timing::clock::start();
        }
        heap::set_inside(true);
    }
    dispatch::catch_calls(true);
    sys::HOOK_MASK.store(signals::mask_inside(mask), Ordering::Relaxed);
}

/// Keeps what the captured invocation wrote before other threads continue. Returns why it cannot be captured, if so.
fn keep_all(engine: &mut Engine, regions: &[*mut RegionDescriptor]) -> Option<String> {
    if engine.others && !engine.keep_exit() {
        return Some(NO_ROOM.into());
    }
    // The library's own words in the program's memory.
    let own = |at: usize| {
        let of = |region: &*mut RegionDescriptor| {
            let offset = at.wrapping_sub(*region as usize);
            offset == HOOK_OFFSET || offset == offset_of!(RegionDescriptor, scratch)
        };
        regions.iter().any(of)
    };
    if let Some(at) = engine.find_changed(own) {
        return Some(format!(
            "it reads memory that something else changes meanwhile, at {at:#x}"
        ));
    }
    stacks::find_disturbance(&engine.level.as_ref()?.still)
}

/// Closes everything, except for the stacks of the threads that run now.
pub fn close_memory(state: &mut State) -> Result<(), Refusal> {
    state.engine.publish();
    let level = state.engine.level.as_ref();
    // Other threads still stand.
    if level.is_none_or(|level| level.started == 0 || !level.strangers) {
        unnoticed(|| hold_others(state))?;
    }
    state.engine.close().map_err(Refusal::Memory)
}

/// Lets no other thread run on that memory is closed to, nor change what an invocation reads.
fn hold_others(state: &mut State) -> Result<(), Refusal> {
    let stacks = threads::find_other_stacks().map_err(Refusal::Threads)?;
    let engine = &mut state.engine;
    let captured = engine.level.is_some();
    let size = match &engine.level {
        Some(level) => thread::pointer() - level.control.0,
        None => 0,
    };
    engine.others = stacks.all().next().is_some();
    // The stacks of threads that stand still are closed later: of those that rest in calls, not at all.
    engine.stacks = match captured {
        true => stacks.open.clone(),
        false => stacks.all().collect(),
    };
    carve(engine, &engine.stacks.clone())?;
    let spans = engine.pages.spans.all();
    let on_stack = |at| stacks.still.iter().any(|s| s.0 <= at && at < s.1);
    let closed = |at| {
        let place = spans.partition_point(|s| s.end <= at);
        spans.get(place).is_some_and(|s| s.start <= at) && !on_stack(at)
    };
    let (still, computed) =
        threads::hold_others(captured, &closed, size).map_err(Refusal::Threads)?;
    if still.is_empty() {
        return Ok(());
    }
    let at_rest = still.iter().filter(|s| s.call.is_some());
    let at_rest: Vec<_> = at_rest.map(|s| s.stack).collect();
    let below: Vec<_> = still.iter().map(|s| s.below).collect();
    carve(engine, &at_rest)?;
    carve(engine, &below)?;
    engine.stacks.extend(at_rest);
    if let Some(level) = engine.level.as_mut() {
        level.strangers = true;
        level.still = still;
        level.beside = computed;
        engine.take_reached().map_err(Refusal::Memory)?;
        stacks::watch_stacks();
    }
    Ok(())
}

/// Takes these out of what is closed.
fn carve(engine: &mut Engine, ranges: &[(usize, usize)]) -> Result<(), Refusal> {
    for (start, end) in ranges {
        if start < end && !engine.pages.spans.carve(*start, *end) {
            return Err(Refusal::Memory(Obstacle::TooMany));
        }
    }
    Ok(())
}
