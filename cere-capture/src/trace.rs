//! The windows of the page trace: where they begin, what stops them, what becomes of them. Ordinary code, but for
//! [`suspend`].

use crate::capture::{self, describe_images};
use crate::engine::Engine;
use crate::tracer::Cut;
use crate::wanted::{self, Region, State, listen, state};
use crate::{heap, process, signals, team, threads};
use cere_format::capture::{PageTrace, Wanted};
use libc::ucontext_t;

/// A window that is to come.
pub struct Planned {
    /// Place of its region among the wanted ones.
    pub wanted: usize,
    /// The wanted invocation, where it ends.
    pub invocation: u64,
    /// The event of the program's start, for people, if it begins with that.
    pub at_start: Option<String>,
    /// It has begun, or its wanted invocation has.
    pub past: bool,
}

/// An invocation that begins a window.
pub struct Start {
    /// Which, from 1.
    pub count: u64,
    /// Which window.
    pub window: usize,
    /// The event for people.
    pub name: String,
}

/// The windows of a plan. Puts their starts into the regions, and adds those that serve as starts only.
pub fn plan(wanted: &[Wanted], regions: &mut Vec<Region>) -> Vec<Planned> {
    let mut windows = Vec::new();
    for (index, target) in wanted.iter().enumerate() {
        for invocation in &target.invocations {
            let window = windows.len();
            let mut starts = target.starts.iter().filter(|s| s.invocation == *invocation);
            if starts.clone().next().is_none() {
                continue;
            }
            let at_start = starts.clone().find(|s| s.event.is_none());
            windows.push(Planned {
                wanted: index,
                invocation: *invocation,
                at_start: at_start.map(|s| s.name.clone()),
                past: false,
            });
            while let Some((name, (key, count))) =
                starts.find_map(|s| Some((&s.name, s.event.as_ref()?)))
            {
                let place = regions.iter().position(|r| r.key == *key);
                let place = place.unwrap_or_else(|| {
                    regions.push(Region::new(key.clone()));
                    regions.len() - 1
                });
                regions[place].starts.push(Start {
                    count: *count,
                    window,
                    name: name.clone(),
                });
            }
        }
    }
    for region in regions {
        region.starts.sort_by_key(|s| s.count);
    }
    windows
}

fn begin(state: &mut State, window: usize, name: String) {
    let planned = &mut state.windows[window];
    if !planned.past {
        planned.past = true;
        let (captures, inside) = (state.past.number, state.captured());
        let tracer = &mut state.engine.tracer;
        tracer.begin(window, name, captures, inside);
    }
}

impl State {
    /// The window of a wanted invocation, by its place in the plan.
    pub fn window(&self, wanted: usize, invocation: u64) -> Option<usize> {
        let is = |w: &Planned| w.wanted == wanted && w.invocation == invocation;
        self.windows.iter().position(is)
    }
}

/// Gives up the window of a wanted invocation.
pub fn drop_window(state: &mut State, wanted: usize, invocation: u64) {
    if let Some(plan) = state.window(wanted, invocation) {
        state.windows[plan].past = true;
        state.engine.tracer.windows.retain(|w| w.plan != plan);
    }
}

/// Whether windows begin with the program's start, and have not.
pub fn awaits_start(wanted: &[Region], windows: &[Planned]) -> bool {
    let armed = wanted.iter().any(|w| !w.armed.is_empty());
    let open = |w: &Planned| w.at_start.is_some() && !w.past;
    armed && windows.iter().any(open)
}

/// The program starts.
pub fn program_starts(state: &mut State) {
    for window in 0..state.windows.len() {
        if let Some(name) = state.windows[window].at_start.clone() {
            begin(state, window, name);
        }
    }
}

/// A region was entered for the `count`-th time: begins windows.
pub fn entered(state: &mut State, region: usize) {
    let count = state.wanted[region].count;
    let starts = &state.wanted[region].starts;
    let these = starts.iter().filter(|s| s.count == count);
    let these: Vec<_> = these.map(|s| (s.window, s.name.clone())).collect();
    for (window, name) in these {
        begin(state, window, name);
    }
}

/// The page trace of a wanted invocation that is about to begin; its window ends. Memory is open and laid out.
pub fn take(state: &mut State, wanted: usize, invocation: u64) -> Option<(PageTrace, Vec<u64>)> {
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
    let pages = state.engine.snapshot(window.first);
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

/// Everything is open, handlers may be in force: turns the tracer on where windows ask for it, with handlers in force,
/// or off. `stack` is the program's stack pointer, `mask` its signal mask.
pub fn settle(state: &mut State, stack: usize, mask: u64) {
    let captures = state.engine.level.is_some();
    let was_on = state.engine.tracer.on;
    state.engine.tracer.on = false;
    if !state.engine.tracer.wanted() {
        return listen(state, false);
    }
    let outcome = if !threads::alone_with_team() {
        Err("other threads run")
    } else if captures || was_on {
        Ok(())
    } else if process::reached_by_others().is_some() {
        // For good: each entry of a region would look for them again.
        let why = "the program has an io_uring, a userfaultfd or a context of io_setup";
        listen(state, false);
        return state.engine.tracer.stop(Cut::Because(why));
    } else {
        let stack = state.engine.pool.signal_stack();
        let installed = signals::install(stack, mask);
        installed.map_err(|_| "the program runs in a signal handler on an alternate stack")
    };
    // Waiting for threads to end would have each entry of a region look for them: the next event does.
    listen(state, false);
    match outcome {
        Err(why) => state.engine.tracer.halt(Cut::Because(why)),
        Ok(()) if captures => state.engine.tracer.on = true,
        Ok(()) => {
            let images = describe_images(state);
            let control = process::control(state.thread, &images);
            let limit = state.mapping_limit;
            let laid = process::lay_out(&mut state.engine, limit, stack as u64, &images, control);
            match laid {
                Ok(()) => state.engine.tracer.on = true,
                Err(_) => {
                    let why = "the program has too many mappings";
                    state.engine.tracer.stop(Cut::Because(why));
                }
            }
        }
    }
}

/// In a handler, no capture in progress: opens everything and hands the process back to the program. The trace goes on
/// where the next region is entered. Neither allocates nor locks: the program may be anywhere. Out of turn.
pub fn suspend(context: &mut ucontext_t, cut: Option<Cut>) {
    let _barred = team::bar();
    // SAFETY: in the captured thread's handler, those of teams are kept out.
    let Some(state) = (unsafe { state() }) else {
        return;
    };
    signals::catch_calls(false);
    heap::inside(false);
    state.engine.open();
    state.engine.tracer.on = false;
    if let Some(cut) = team::failure().map(|f| f.cut()).or(cut) {
        state.engine.tracer.halt(cut);
    }
    if state.engine.tracer.wanted() {
        listen(state, true);
    }
    state.engine.tell();
    capture::note_level(None);
    signals::remove(Some(context), threads::beside(&state.engine));
}

/// Whether memory is closed for the trace alone: no capture is in progress.
pub fn alone() -> bool {
    wanted::prepared() && !capture::captures()
}

/// Why the windows take too much, if they do: they are given up. In turn.
pub fn exhausted(engine: &mut Engine) -> Option<Cut> {
    let tracer = &mut engine.tracer;
    let cut = Cut::Because(tracer.exhausted.take()?);
    tracer.stop(cut);
    Some(cut)
}
