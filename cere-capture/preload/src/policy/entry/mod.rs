//! The only way in: the functions that the loader, probes, signals and the program call. The state of captures is a private static
//! here. Other modules get what they need as arguments.
//!
//! A thread gets the engine with its turn ([`engine_in_turn`]), and the thread that leads all of the state while the threads of teams are
//! kept out ([`whole_state`]). Both are guards: the turn is over when they are dropped.

mod active;
mod again;
mod filter;
mod handlers;
mod hook;
mod loading;
mod mpi;
mod others;
mod passed_on;
mod remote;
mod start;
mod threads;

use super::state::State;
use crate::engine::in_turn::InTurn;
use crate::engine::lead;
use crate::engine::status;
use crate::engine::turn::{self, Barred, Turn};
use crate::os::process;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());

/// Captures are prepared from now on.
fn publish_state(state: State) {
    STATE.store(Box::into_raw(Box::new(state)), Ordering::Release);
    status::set_prepared(true);
}

/// Nothing more is captured: of a forked child, or at the end.
fn abandon_state() {
    status::set_prepared(false);
    STATE.store(null_mut(), Ordering::Release);
}

/// The state, once captures are prepared.
#[inline(always)]
fn state_pointer() -> Option<NonNull<State>> {
    NonNull::new(STATE.load(Ordering::Acquire)).filter(|_| !process::is_copy())
}

/// The engine in a turn of the calling thread, once captures are prepared.
#[inline(always)]
fn engine_in_turn(turn: Turn) -> Option<InTurn<'static>> {
    let state = state_pointer()?;
    // SAFETY: leaked at start. One thread has a turn, and uses no other reference to the engine in it: it gets one for the turn
    // alone. `whole_state` has a turn as well.
    let engine = unsafe { &mut (*state.as_ptr()).engine };
    Some(InTurn::new(engine, turn))
}

/// The whole state, while the threads of teams are kept out.
struct All {
    state: &'static mut State,
    _barred: Barred,
}

impl Drop for All {
    fn drop(&mut self) {
        lead::give_back();
    }
}

impl Deref for All {
    type Target = State;

    fn deref(&self) -> &State {
        self.state
    }
}

impl DerefMut for All {
    fn deref_mut(&mut self) -> &mut State {
        self.state
    }
}

/// The whole state, once captures are prepared.
///
/// # Safety
/// The calling thread leads, in a hook or in a handler, and uses no reference to a part of the state until the guard is
/// dropped.
unsafe fn whole_state() -> Option<All> {
    let barred = turn::bar_teams();
    // SAFETY: leaked at start; the guard has a turn for the engine, and the rest is the lead's, which the calling thread is.
    let state = unsafe { state_pointer()?.as_mut() };
    Some(All {
        state,
        _barred: barred,
    })
}
