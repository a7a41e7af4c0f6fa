//! Ends captures from handlers: opens memory, writes the capture and restores the program's handlers.

use super::all_open::close_memory;
use super::capture::finish_capture;
use super::cause::{Cause, end_later, take_ending};
use super::mark::note_level;
use super::regions::listen_everywhere;
use super::state::State;
use super::{team, threads};
use crate::engine::tracer::Cut;
use crate::engine::{dispatch, heap};
use crate::os::section::{self, unnoticed};
use crate::os::signals;
use cere_format::capture::RegionEnd;
use libc::ucontext_t;

/// In a handler: ends the capture and restores the program's handlers. In a section only memory is opened; the rest waits for
/// its end.
pub fn end_all(state: &mut State, context: &mut ucontext_t, cause: Cause) {
    if !section::is_interrupted() {
        return end_now(state, context, || cause.reason());
    }
    open_all(state);
    end_later(cause);
    signals::nudge_after(context);
}

/// In a handler: the section has ended that [`end_all`] waited for.
pub fn end_at_last(state: &mut State, context: &mut ucontext_t) {
    if let Some(cause) = take_ending() {
        end_now(state, context, || cause.reason());
    }
}

/// Opens everything, for a handler that ends the capture.
fn open_all(state: &mut State) {
    dispatch::catch_calls(false);
    heap::set_inside(false);
    state.engine.open();
    state.engine.tracer.on = false;
    let cut = Cut::Because("a captured invocation ends early");
    state.engine.tracer.halt(cut);
}

fn end_now(state: &mut State, context: &mut ucontext_t, reason: impl FnOnce() -> Option<String>) {
    open_all(state);
    unnoticed(|| {
        let reason = reason();
        // A failure of another thread no longer matters.
        team::take_failure();
        finish_capture(state, RegionEnd::Never, reason);
    });
    if state.engine.tracer.wanted() {
        listen_everywhere(state, true);
    }
    state.engine.publish();
    note_level(None);
    signals::remove_handlers(Some(context), threads::others_may_run(&state.engine));
}

/// In a handler: ends the capture, which was left by longjmp. True if the page trace ends too.
pub fn end_left_capture(state: &mut State, context: &mut ucontext_t) -> bool {
    if !state.engine.tracer.on {
        end_all(state, context, Cause::Left);
        return true;
    }
    dispatch::catch_calls(false);
    heap::set_inside(false);
    state.engine.open();
    unnoticed(|| finish_capture(state, RegionEnd::Never, None));
    note_level(None);
    let mask = (&raw mut context.uc_sigmask).cast::<u64>();
    // SAFETY: the kernel's record.
    unsafe { *mask = signals::mask_inside(signals::release_deferred(*mask)) };
    if let Err(refusal) = close_memory(state) {
        end_now(state, context, || Some(refusal.to_string()));
        return true;
    }
    dispatch::catch_calls(true);
    false
}
