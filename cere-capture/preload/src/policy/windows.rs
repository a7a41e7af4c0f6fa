//! The windows of the page trace: when they begin, are suspended and end. Ordinary code, but for [`suspend_trace`] and
//! [`give_up_exhausted`].

use super::mark::note_level;
use super::regions::listen_everywhere;
use super::state::{Planned, Region, State};
use super::{surroundings, team, threads};
use crate::engine::state::Engine;
use crate::engine::tracer::Cut;
use crate::engine::{dispatch, heap};
use crate::os::{mappings, signals};
use cere_format::capture::PageTrace;
use libc::ucontext_t;

fn begin_window(state: &mut State, window: usize, name: String) {
    let planned = &mut state.windows[window];
    if !planned.past {
        planned.past = true;
        let (captures, inside) = (state.past.number, state.captured());
        let tracer = &mut state.engine.tracer;
        tracer.begin(window, name, captures, inside);
    }
}

/// Gives up the window of a wanted invocation.
pub fn drop_window(state: &mut State, wanted: usize, invocation: u64) {
    if let Some(plan) = state.window(wanted, invocation) {
        state.windows[plan].past = true;
        state.engine.tracer.windows.retain(|w| w.plan != plan);
    }
}

/// Whether windows wait for the program's start.
pub fn awaits_start(wanted: &[Region], windows: &[Planned]) -> bool {
    let armed = wanted.iter().any(|w| !w.armed.is_empty());
    let open = |w: &Planned| w.at_start.is_some() && !w.past;
    armed && windows.iter().any(open)
}

/// Begins the windows that wait for the program's start.
pub fn begin_windows_at_start(state: &mut State) {
    for window in 0..state.windows.len() {
        if let Some(name) = state.windows[window].at_start.clone() {
            begin_window(state, window, name);
        }
    }
}

/// A region was entered: begins the windows that wait for this invocation.
pub fn begin_windows_at(state: &mut State, region: usize) {
    let count = state.wanted[region].count;
    let starts = &state.wanted[region].starts;
    let these = starts.iter().filter(|s| s.count == count);
    let these: Vec<_> = these.map(|s| (s.window, s.name.clone())).collect();
    for (window, name) in these {
        begin_window(state, window, name);
    }
}

/// Ends the window of a wanted invocation that is about to begin: its page trace. Memory is open and laid out.
pub fn take_trace(
    state: &mut State,
    wanted: usize,
    invocation: u64,
) -> Option<(PageTrace, Vec<u64>)> {
    let plan = state.window(wanted, invocation)?;
    state.windows[plan].past = true;
    let tracer = &mut state.engine.tracer;
    let Some(place) = tracer.windows.iter().position(|w| w.plan == plan) else {
        let never = PageTrace {
            pages: 0,
            touched: 0,
            slots: tracer.slots as u32,
            faults: 0,
            began: String::new(),
            cut: Some("the event that it begins with did not come before".into()),
        };
        return Some((never, Vec::new()));
    };
    let window = tracer.windows.remove(place);
    let (slots, faults) = (tracer.slots as u32, tracer.faults - window.faults);
    let pages = state
        .engine
        .tracer
        .snapshot(&mut state.engine.pages, window.first);
    let trace = PageTrace {
        pages: pages.len() as u64,
        touched: window.touched,
        slots,
        faults,
        began: window.began,
        cut: window.cut.map(|cut| cut.to_string()),
    };
    Some((trace, pages))
}

/// Turns the tracer on if a window is open, and installs the handlers; otherwise turns it off. Everything is open. `stack` is the
/// program's stack pointer, `mask` its signal mask.
pub fn switch_tracer(state: &mut State, stack: usize, mask: u64) {
    let captures = state.engine.level.is_some();
    let was_on = state.engine.tracer.on;
    state.engine.tracer.on = false;
    if !state.engine.tracer.wanted() {
        return listen_everywhere(state, false);
    }
    let outcome = if !threads::alone_with_team() {
        Err("other threads run")
    } else if captures || was_on {
        Ok(())
    } else if !matches!(mappings::reached_by_others(), Ok(None)) {
        // The windows end: otherwise each entry of a region would look for these again.
        let why = "the program has an io_uring, a userfaultfd or a context of io_setup";
        listen_everywhere(state, false);
        return state.engine.tracer.stop(Cut::Because(why));
    } else {
        let stack = state.engine.pages.pool.signal_stack();
        let installed = signals::install_handlers(stack, mask);
        installed.map_err(|_| "the program runs in a signal handler on an alternate stack")
    };
    // To wait for threads to end, each entry of a region would have to look for them. The next event does.
    listen_everywhere(state, false);
    match outcome {
        Err(why) => state.engine.tracer.halt(Cut::Because(why)),
        Ok(()) if captures => state.engine.tracer.on = true,
        Ok(()) => match surroundings::lay_out(state, stack) {
            Ok(()) => state.engine.tracer.on = true,
            Err(_) => {
                let why = "the program has too many mappings";
                state.engine.tracer.stop(Cut::Because(why));
            }
        },
    }
}

/// In a handler, without a capture in progress: opens everything and restores the program's handlers. The trace continues when
/// the next region is entered. Neither allocates nor locks: the program may be anywhere.
pub fn suspend_trace(state: &mut State, context: &mut ucontext_t, cut: Option<Cut>) {
    dispatch::catch_calls(false);
    heap::set_inside(false);
    state.engine.open();
    state.engine.tracer.on = false;
    if let Some(cut) = team::take_failure().map(|f| f.cut()).or(cut) {
        state.engine.tracer.halt(cut);
    }
    if state.engine.tracer.wanted() {
        listen_everywhere(state, true);
    }
    state.engine.publish();
    note_level(None);
    signals::remove_handlers(Some(context), threads::others_may_run(&state.engine));
}

/// Gives up all windows if they cost too much, and says why. In turn.
pub fn give_up_exhausted(engine: &mut Engine) -> Option<Cut> {
    let tracer = &mut engine.tracer;
    let cut = Cut::Because(tracer.exhausted.take()?);
    tracer.stop(cut);
    Some(cut)
}
