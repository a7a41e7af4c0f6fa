//! Work of the hook with the program's memory open. It is opened before, and closed afterwards for a capture or a page trace.

use super::capture::{finish_capture, refuse_missed};
use super::cause::take_ending;
use super::mark::note_level;
use super::state::State;
use super::surroundings::lay_out;
use super::{team, threads, windows};
use crate::engine::state::Engine;
use crate::engine::tracer::Cut;
use crate::engine::{dispatch, gate, heap, malloc};
use crate::os::errno::keep_errno;
use crate::os::report::complain;
use crate::os::section::in_library;
use crate::os::{images, signals, stacks, sys};
use cere_format::capture::RegionEnd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// Attempts to close memory while other threads change what is mapped.
const ATTEMPTS: u32 = 10;
const CLOSED_IN_VAIN: &str = "memory cannot be closed";
const NO_ROOM: &str = "it writes more memory than the machine has free";

/// Why the hook opens memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A region that is wanted is entered: all thread-local blocks are allocated first, if no capture is in progress.
    Enters,
    /// The captured invocation ends: what it has written is kept before other threads continue.
    Leaves,
    /// Anything else.
    Else,
}

/// Work of the hook, on its stack, with everything open and all signals blocked, in a section, the threads of teams kept out.
/// `stack` is the program's stack pointer. `work` gets the program's signal mask.
pub fn with_all_open(
    state: &mut State,
    stack: usize,
    why: Why,
    work: impl FnOnce(&mut State, u64) -> Result<(), String>,
) {
    let mask = sys::HOOK_MASK.load(Ordering::Relaxed);
    dispatch::catch_calls(false);
    heap::set_inside(false);
    let was_inside = state.engine.level.is_some();
    let strangers = state.engine.level.as_ref().is_some_and(|l| l.strangers);
    let mut spoilt = None;
    // Before anything else: libc's data may be closed.
    if state.engine.at_work() {
        if why == Why::Leaves && !state.engine.stacks.is_empty() {
            state.engine.uncover();
            spoilt = keep_errno(|| in_library(|| keep_all(&mut state.engine)));
        }
        match strangers && why != Why::Leaves {
            // They stand still until the captured invocation ends.
            true => state.engine.uncover(),
            false => state.engine.open(),
        }
    }
    // A thread of the team failed on the way here.
    let failed = team::take_failure();
    if why == Why::Enters && !was_inside {
        keep_errno(images::allocate_tls);
    }
    keep_errno(|| {
        in_library(|| {
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
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                refuse_missed(state)?;
                work(state, mask)
            }));
            let failed = match outcome {
                Ok(Ok(())) => None,
                Ok(Err(message)) => Some(message),
                Err(_) => Some("the capture failed inside".into()),
            };
            if let Some(message) = failed {
                if state.engine.level.is_none() {
                    complain(&message);
                }
                finish_capture(state, RegionEnd::Never, Some(message));
            }
        });
    });
    let captures = state.engine.level.is_some();
    let mask = match captures {
        true => signals::mask_outside(mask),
        false => signals::release_deferred(mask),
    };
    if !captures {
        state.engine.pages.pool.reset();
        // Before memory is laid out: the program's allocator may unmap something.
        if was_inside && state.engine.tracer.wanted() {
            malloc::free_deferred();
        }
    }
    keep_errno(|| in_library(|| windows::switch_tracer(state, stack, mask)));
    let mut attempts = 0;
    while state.engine.at_work()
        && let Err(message) = close_memory(state)
    {
        state.engine.open();
        // Another thread may have unmapped something in between.
        attempts += 1;
        let goes_on = state.engine.level.as_ref().is_some_and(|l| l.started != 0);
        keep_errno(|| {
            in_library(|| {
                let last = attempts == ATTEMPTS || strangers && goes_on;
                if last || lay_out(state, stack).is_err() {
                    state.engine.tracer.on = false;
                    state.engine.tracer.stop(Cut::Because(CLOSED_IN_VAIN));
                    finish_capture(state, RegionEnd::Never, Some(message));
                }
            })
        });
    }
    note_level(state.engine.level.as_ref());
    if !state.engine.at_work() {
        state.engine.publish();
        signals::remove_handlers(None, threads::others_may_run(&state.engine));
        state.engine.pages.pool.reset();
        gate::memory_opened();
        sys::HOOK_MASK.store(mask, Ordering::Relaxed);
        malloc::free_deferred();
        return;
    }
    if state.engine.level.as_ref().is_some_and(|l| l.started == 0) {
        state.engine.keep_frame();
    }
    if let Some(level) = state.engine.level.as_mut() {
        if level.started == 0 {
            level.started = cere_timing::clock::start();
        }
        heap::set_inside(true);
    }
    dispatch::catch_calls(true);
    sys::HOOK_MASK.store(signals::mask_inside(mask), Ordering::Relaxed);
}

/// Keeps what the captured invocation wrote before other threads continue. Returns why it cannot be captured, if so.
fn keep_all(engine: &mut Engine) -> Option<String> {
    if !engine.keep_exit() {
        return Some(NO_ROOM.into());
    }
    stacks::find_disturbance(&engine.level.as_ref()?.still)
}

/// Closes everything, except for the stacks of the threads that run now.
pub fn close_memory(state: &mut State) -> Result<(), String> {
    state.engine.publish();
    let level = state.engine.level.as_ref();
    // Other threads still stand.
    if level.is_none_or(|level| level.started == 0 || !level.strangers) {
        keep_errno(|| in_library(|| hold_others(state)))?;
    }
    state.engine.close()
}

/// Lets no other thread run on that memory is closed to, nor change what an invocation reads.
fn hold_others(state: &mut State) -> Result<(), String> {
    let stacks = threads::find_other_stacks()?;
    for (start, end) in &stacks {
        if !state.engine.pages.spans.carve(*start, *end) {
            return Err("the program has too many mappings".to_owned());
        }
    }
    state.engine.stacks = stacks;
    let spans = state.engine.pages.spans.all();
    let closed = |at| spans.iter().any(|s| s.start <= at && at < s.end);
    let still = threads::hold_others(state.engine.level.is_some(), &closed)?;
    if let Some(level) = state.engine.level.as_mut().filter(|_| !still.is_empty()) {
        level.strangers = true;
        level.still = still;
        stacks::watch_stacks();
    }
    Ok(())
}
