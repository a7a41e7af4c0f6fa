//! Captures: from the probe to the finished level.
//!
//! The hook runs on the program's stack only to count; what it begins or ends runs on a stack of the pool.

use crate::engine::{CALLS, Engine, Level};
use crate::openmp::{self, Entry};
use crate::pool::LEVELS;
use crate::tracer::Cut;
use crate::wanted::{State, disarm, listen, state, write_counts};
use crate::write::{self, End};
use crate::{
    complain, heap, images, keep_errno, locks, process, signals, sys, team, thread_pointer,
    threads, trace, wanted,
};
use cere_format::abi::{EVENT_ENTER, EVENT_UNWIND, KIND_PARALLEL, RegionDescriptor};
use cere_format::capture::{EntryState, Image, RegionEnd};
use libc::ucontext_t;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Times that closing memory is tried while other threads change what is mapped.
const ATTEMPTS: u32 = 10;
const CLOSED_IN_VAIN: &str = "memory cannot be closed";
/// Captures in progress.
static DEPTH: AtomicUsize = AtomicUsize::new(0);

crate::stub::hook!(cere_capture_stub, event);

/// What the probe told, for the work on the other stack: where it runs the program's memory may be closed.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    region: *mut RegionDescriptor,
    event: u32,
    arguments: usize,
    arguments_size: u32,
    stack: usize,
    wanted: usize,
}

impl Default for Event {
    fn default() -> Event {
        Event {
            region: std::ptr::null_mut(),
            event: EVENT_ENTER,
            arguments: 0,
            arguments_size: 0,
            stack: 0,
            wanted: usize::MAX,
        }
    }
}

unsafe extern "C" fn event(
    region: *mut RegionDescriptor,
    event: u32,
    arguments: *mut u8,
    stack: usize,
) {
    let Some(state) = state() else { return };
    if thread_pointer() != state.thread {
        return;
    }
    let place = match event {
        // SAFETY: the descriptor of an armed region.
        EVENT_ENTER => openmp::enters(unsafe { (*region).kind } == KIND_PARALLEL, stack),
        _ => openmp::leaves(stack),
    };
    if place == Entry::Within {
        return;
    }
    // SAFETY: the descriptor of an armed region.
    if event == EVENT_ENTER && unsafe { (*region).kind } == KIND_PARALLEL {
        forks(stack);
    }
    // SAFETY: the descriptor of an armed region.
    let wanted = (unsafe { (*region).scratch } as usize).wrapping_sub(1);
    let slow: unsafe extern "C" fn(*mut u8) = if event == EVENT_ENTER {
        let due = state.wanted.get_mut(wanted).is_some_and(|target| {
            target.count += 1;
            target.count == target.next
        });
        if due {
            enter
        } else if state.listens {
            resume
        } else if DEPTH.load(Ordering::Relaxed) > 0 && left(stack + 1) > 0 {
            sweep
        } else {
            return;
        }
    } else if state
        .engine
        .levels
        .iter()
        .any(|l| l.region == region && l.entry.stack_pointer as usize == stack)
    {
        leave
    } else {
        return;
    };
    let top = state.engine.pool.hook_stack();
    state.event = Event {
        region,
        event,
        arguments: arguments as usize,
        // SAFETY: the descriptor of an armed region.
        arguments_size: unsafe { (*region).arguments_size },
        stack,
        wanted,
    };
    // SAFETY: the stack is used by hooks alone, and they do not nest; the event stands in memory of our own.
    unsafe { sys::cere_on_stack(slow, (&raw mut state.event).cast(), top) };
}

/// The program starts, or has loaded an image: begins the windows that wait for that.
pub fn begin_windows() {
    let Some(state) = state() else { return };
    if thread_pointer() != state.thread || !trace::awaits_start(state) {
        return;
    }
    let top = state.engine.pool.hook_stack();
    state.event = Event {
        stack: (&raw const top) as usize,
        ..Event::default()
    };
    // SAFETY: as above; no hook is at work.
    unsafe { sys::cere_on_stack(begin, (&raw mut state.event).cast(), top) };
}

/// The main thread enters a parallel region. Has the runtime start its threads now if memory is closed for the page trace,
/// which would be interrupted by that; ends captures that cannot hold a team.
pub fn forks(stack: usize) {
    let Some(state) = state() else { return };
    let captures = !state.engine.levels.is_empty();
    let slow: unsafe extern "C" fn(*mut u8) = match captures {
        true if openmp::obstacle().is_some() => give_up,
        false if state.engine.tracer.on && !openmp::started() => start,
        _ => return,
    };
    let top = state.engine.pool.hook_stack();
    state.event = Event {
        stack,
        ..Event::default()
    };
    // SAFETY: as above; no hook is at work.
    unsafe { sys::cere_on_stack(slow, (&raw mut state.event).cast(), top) };
}

unsafe extern "C" fn give_up(event: *mut u8) {
    // SAFETY: handed on by `forks`.
    let stack = unsafe { told(event) }.stack;
    with_all_open(stack, false, |state, _| {
        let reason = openmp::obstacle().map(str::to_owned);
        refuse(state, RegionEnd::Never, reason);
        Ok(())
    });
}

unsafe extern "C" fn start(event: *mut u8) {
    // SAFETY: handed on by `forks`.
    let stack = unsafe { told(event) }.stack;
    with_all_open(stack, false, |_, mask| {
        openmp::start_team(mask);
        Ok(())
    });
}

unsafe extern "C" fn begin(event: *mut u8) {
    // SAFETY: handed on by `begin_windows`.
    let stack = unsafe { told(event) }.stack;
    with_all_open(stack, false, |state, _| {
        trace::program_starts(state);
        Ok(())
    });
}

unsafe extern "C" fn resume(event: *mut u8) {
    // SAFETY: handed on by `event`.
    let stack = unsafe { told(event) }.stack;
    with_all_open(stack, false, |_, _| Ok(()));
}

/// Captures in progress from now on.
pub fn note_depth(depth: usize) {
    DEPTH.store(depth, Ordering::Relaxed);
}

/// Number of levels that code with this stack pointer has left, by longjmp: none of them can still run.
pub fn left(stack: usize) -> usize {
    let Some(engine) = wanted::engine() else {
        return 0;
    };
    let gone = |l: &Level| {
        l.stack.0 <= stack && stack < l.stack.1 && stack > l.entry.stack_pointer as usize
    };
    match engine.levels.iter().position(gone) {
        Some(first) => engine.levels.len() - first,
        None => 0,
    }
}

/// Work of the hook, on its stack, with everything open and all signals blocked. `stack` is the program's stack pointer.
/// With `blocks`, every thread-local block is allocated first, if no capture is in progress. `work` gets the program's
/// signal mask.
fn with_all_open(
    stack: usize,
    blocks: bool,
    work: impl FnOnce(&mut State, u64) -> Result<(), String>,
) {
    let Some(state) = state() else { return };
    let _barred = team::bar();
    let mask = sys::HOOK_MASK.load(Ordering::Relaxed);
    signals::catch_calls(false);
    heap::inside(false);
    let was_inside = !state.engine.levels.is_empty();
    // First of all: libc's own data are closed.
    if state.engine.at_work() {
        state.engine.open();
    }
    // A thread of the team failed on the way here.
    let failed = team::failure();
    if blocks && !was_inside {
        keep_errno(images::allocate_tls);
    }
    keep_errno(|| {
        heap::in_library(|| {
            if let Some(failure) = failed {
                state.engine.tracer.halt(failure.cut());
                refuse(state, RegionEnd::Never, failure.reason());
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| work(state, mask)));
            let failed = match outcome {
                Ok(Ok(())) => None,
                Ok(Err(message)) => Some(message),
                Err(_) => Some("the capture failed inside".into()),
            };
            if let Some(message) = failed {
                if state.engine.levels.is_empty() {
                    complain(&message);
                }
                refuse(state, RegionEnd::Never, Some(message));
            }
        });
    });
    let captures = !state.engine.levels.is_empty();
    let mask = match captures {
        true => signals::outside(mask),
        false => signals::release(mask),
    };
    if !captures {
        state.engine.pool.reset();
        // Here, for the program's allocator may unmap something.
        if was_inside && state.engine.tracer.wanted() {
            heap::flush();
        }
    }
    keep_errno(|| heap::in_library(|| trace::settle(state, stack, mask)));
    let mut attempts = 0;
    while state.engine.at_work()
        && let Err(message) = close(state)
    {
        state.engine.open();
        // Another thread may have unmapped something in between.
        attempts += 1;
        keep_errno(|| {
            heap::in_library(|| {
                if attempts == ATTEMPTS || lay_out(state, stack).is_err() {
                    state.engine.tracer.on = false;
                    state.engine.tracer.stop(Cut::Because(CLOSED_IN_VAIN));
                    refuse(state, RegionEnd::Never, Some(message));
                }
            })
        });
    }
    note_depth(state.engine.levels.len());
    if !state.engine.at_work() {
        signals::remove(None, threads::beside(&state.engine));
        state.engine.pool.reset();
        threads::opened();
        sys::HOOK_MASK.store(mask, Ordering::Relaxed);
        heap::flush();
        return;
    }
    if let Some(level) = state.engine.levels.last_mut() {
        if level.started == 0 {
            level.started = cere_clock::start();
        }
        heap::inside(true);
    }
    signals::catch_calls(true);
    sys::HOOK_MASK.store(signals::inside(mask), Ordering::Relaxed);
}

/// Finds out anew what is mapped.
fn lay_out(state: &mut State, stack: usize) -> Result<(), String> {
    let limit = state.mapping_limit;
    let (pointer, images, control) = match state.engine.levels.last() {
        Some(level) => (
            level.entry.stack_pointer,
            level.images.clone(),
            level.control,
        ),
        None => {
            let images = describe_images(state);
            let control = process::control(state.thread, &images);
            (stack as u64, images, control)
        }
    };
    process::lay_out(&mut state.engine, limit, pointer, &images, control)
}

/// Closes everything, beside the threads that there are by now.
fn close(state: &mut State) -> Result<(), String> {
    keep_errno(|| {
        heap::in_library(|| {
            let stacks = threads::others()?;
            for (start, end) in &stacks {
                if !state.engine.spans.carve(*start, *end) {
                    return Err("the program has too many mappings".to_owned());
                }
            }
            state.engine.stacks = stacks;
            let spans = state.engine.spans.all();
            threads::hold_calls(&|at| spans.iter().any(|s| s.start <= at && at < s.end))
        })
    })?;
    state.engine.close()
}

/// Ends all levels, innermost first. Everything is open.
fn refuse(state: &mut State, end: RegionEnd, reason: Option<String>) {
    while !state.engine.levels.is_empty() {
        finish(state, end, reason.clone());
    }
}

/// Ends the innermost level. Everything is open.
fn finish(state: &mut State, end: RegionEnd, refused: Option<String>) {
    let now = cere_clock::stop();
    let Some(level) = state.engine.levels.pop() else {
        return;
    };
    let index = state.engine.levels.len();
    let key = state.wanted[level.wanted].key.clone();
    let end = End {
        key: &key,
        end,
        refused,
        now,
    };
    if let Err(message) = write::level(&mut state.engine, &state.directory, &level, index, end) {
        complain(&message);
    }
    // SAFETY: the level's entries; no other slice of them is alive.
    for touch in unsafe { state.engine.pool.log(index, level.touched) } {
        let page = state.engine.pool.page(touch.address);
        // SAFETY: a page of the pool, or null.
        if let Some(page) = unsafe { page.as_mut() } {
            page.touched &= !(1 << index);
            page.written &= !(1 << index);
            page.executed &= !(1 << index);
        }
    }
    disarm(&mut state.wanted[level.wanted]);
}

/// The argument of the hook's work.
unsafe fn told(event: *mut u8) -> Event {
    // SAFETY: `event` stands in the state.
    unsafe { *event.cast::<Event>() }
}

unsafe extern "C" fn sweep(event: *mut u8) {
    // SAFETY: handed on by `event`.
    let stack = unsafe { told(event) }.stack;
    with_all_open(stack, false, |state, _| {
        for _ in 0..left(stack + 1) {
            finish(state, RegionEnd::Never, None);
        }
        Ok(())
    });
}

unsafe extern "C" fn leave(event: *mut u8) {
    // SAFETY: handed on by `event`.
    let told = unsafe { told(event) };
    with_all_open(told.stack, false, |state, _| {
        while let Some(level) = state.engine.levels.last() {
            if level.region == told.region && level.entry.stack_pointer as usize == told.stack {
                let unwound = told.event == EVENT_UNWIND;
                let end = if unwound {
                    RegionEnd::Unwound
                } else {
                    RegionEnd::Returned
                };
                finish(state, end, None);
                break;
            }
            finish(state, RegionEnd::Never, None);
        }
        Ok(())
    });
}

fn read_state(told: &Event) -> EntryState {
    let (mut mxcsr, mut x87_control) = (0u32, 0u16);
    // SAFETY: both instructions store a word each.
    unsafe {
        core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack));
        core::arch::asm!("fnstcw [{}]", in(reg) &raw mut x87_control, options(nostack));
        EntryState {
            stack_pointer: told.stack as u64,
            arguments: told.arguments as u64,
            arguments_size: told.arguments_size,
            mxcsr,
            x87_control,
        }
    }
}

/// The loaded images but ours, the program first.
pub fn describe_images(state: &mut State) -> Vec<Image> {
    let own = state.engine.own.clone();
    let mut list = Vec::new();
    for image in images::loaded() {
        let ours = own
            .iter()
            .any(|o| o.0 <= image.range.0 && image.range.0 < o.1);
        if ours || !image.path.is_absolute() || image.range.0 >= image.range.1 {
            continue;
        }
        let known = state
            .known
            .iter()
            .find(|k| k.0 == image.range.0)
            .map(|k| k.1);
        let instrumented = known.unwrap_or_else(|| {
            let found = images::sections(&image).instrumented;
            state.known.push((image.range.0, found));
            found
        });
        list.push(Image {
            path: image.path,
            bias: image.bias as u64,
            range: (image.range.0 as u64, image.range.1 as u64),
            instrumented,
            tls: image.tls.map(|(at, size)| (at as u64, size as u64)),
        });
    }
    list
}

unsafe extern "C" fn enter(event: *mut u8) {
    // SAFETY: handed on by `event`.
    let told = unsafe { told(event) };
    let entry = read_state(&told);
    with_all_open(told.stack, true, |state, mask| {
        for _ in 0..left(told.stack + 1) {
            finish(state, RegionEnd::Never, None);
        }
        trace::entered(state, told.wanted);
        let region = &mut state.wanted[told.wanted];
        let invocation = region.count;
        region.look_ahead();
        if !region.invocations.contains(&invocation) {
            disarm(region);
            return Ok(());
        }
        let threads = openmp::threads();
        // SAFETY: the descriptor of an armed region.
        let forks = unsafe { (*told.region).kind } == KIND_PARALLEL;
        // With one thread it starts none, which other regions could have to wait for.
        if forks || threads == Some(1) {
            openmp::start_team(mask);
        }
        let images = describe_images(state);
        let control = process::control(state.thread, &images);
        let level = Level {
            region: told.region,
            wanted: told.wanted,
            invocation,
            entry,
            stack: (0, 0),
            control,
            touched: 0,
            started: 0,
            faults: 0,
            calls: [0; CALLS],
            fresh: Vec::with_capacity(4096),
            images,
            mappings: Vec::new(),
            absent: Vec::new(),
            heap: heap::usage(),
            threads,
            locks: locks::all(),
            blocks: Vec::new(),
            trace: None,
        };
        let stacks = match threads::others() {
            Ok(stacks) => stacks,
            Err(reason) => return refuse_one(state, level, reason),
        };
        if let Some(reason) = openmp::obstacle().filter(|_| forks) {
            return refuse_one(state, level, reason.into());
        }
        if let Some(reason) = obstacle(state, mask) {
            return refuse_one(state, level, reason);
        }
        state.engine.stacks = stacks;
        let blocks = blocks(&level);
        state.engine.levels.push(Level { blocks, ..level });
        lay_out(state, told.stack)?;
        let trace = trace::take(state, told.wanted, invocation);
        if let Some(level) = state.engine.levels.last_mut() {
            level.trace = trace;
        }
        state.engine.take_control(control)
    });
}

/// The thread-local blocks of the region's image in the threads of the OpenMP runtime.
fn blocks(level: &Level) -> Vec<(u32, Vec<u8>)> {
    let at = level.region as u64;
    let mut images = level.images.iter();
    let own = images.find(|i| i.range.0 <= at && at < i.range.1);
    let Some((start, size)) = own.and_then(|image| image.tls) else {
        return Vec::new();
    };
    let (start, size) = (start as usize, size as usize);
    // That of an image loaded later lies elsewhere in each thread.
    match level.control.0 <= start && start + size <= level.control.1 {
        true => threads::blocks(start, size),
        false => Vec::new(),
    }
}

/// Why no capture can begin now; else the handlers are installed.
fn obstacle(state: &mut State, mask: u64) -> Option<String> {
    if state.engine.levels.len() == LEVELS {
        return Some(format!("more than {LEVELS} captures within one another"));
    }
    if state.engine.levels.is_empty() {
        let memory = process::available_memory();
        state.engine.pool.allow(memory - memory / 8);
        if state.engine.tracer.on {
            return None;
        }
        return signals::install(state.engine.pool.signal_stack(), mask).err();
    }
    None
}

/// Notes that an invocation cannot be captured, beside what is in progress.
fn refuse_one(state: &mut State, level: Level, reason: String) -> Result<(), String> {
    let key = state.wanted[level.wanted].key.clone();
    let end = End {
        key: &key,
        end: RegionEnd::Never,
        refused: Some(reason),
        now: 0,
    };
    let written = write::level(&mut state.engine, &state.directory, &level, 0, end);
    disarm(&mut state.wanted[level.wanted]);
    if let Err(message) = written {
        complain(&message);
    }
    Ok(())
}

/// In a handler: ends all levels and hands the process back to the program.
pub fn end_all(
    context: &mut ucontext_t,
    end: RegionEnd,
    reason: impl FnOnce(&Engine) -> Option<String>,
) {
    let Some(state) = state() else { return };
    let _barred = team::bar();
    signals::catch_calls(false);
    heap::inside(false);
    state.engine.open();
    state.engine.tracer.on = false;
    state
        .engine
        .tracer
        .halt(Cut::Because("a captured invocation ends early"));
    keep_errno(|| {
        heap::in_library(|| {
            let reason = reason(&state.engine);
            // Whatever another thread could not do, it is over.
            team::failure();
            refuse(state, end, reason);
        })
    });
    if state.engine.tracer.wanted() {
        listen(state, true);
    }
    note_depth(0);
    signals::remove(Some(context), threads::beside(&state.engine));
    state.engine.pool.reset();
}

/// Why a thread of a team cannot go on, if so. In what ends captures, with everything open and those threads kept out.
pub fn of_team() -> Option<String> {
    team::failure()?.reason()
}

/// In a handler: ends the levels that were left by longjmp. True if none remains.
pub fn abandon(stack: usize, context: &mut ucontext_t) -> bool {
    let gone = left(stack);
    let Some(state) = state() else { return true };
    if gone >= state.engine.levels.len() && !state.engine.tracer.on {
        end_all(context, RegionEnd::Never, |_| None);
        return true;
    }
    let _barred = team::bar();
    signals::catch_calls(false);
    heap::inside(false);
    state.engine.open();
    keep_errno(|| {
        heap::in_library(|| {
            for _ in 0..gone {
                finish(state, RegionEnd::Never, None);
            }
        })
    });
    note_depth(state.engine.levels.len());
    if state.engine.levels.is_empty() {
        state.engine.pool.reset();
        let mask = (&raw mut context.uc_sigmask).cast::<u64>();
        // SAFETY: the kernel's record.
        unsafe { *mask = signals::inside(signals::release(*mask)) };
    }
    if let Err(message) = close(state) {
        drop(_barred);
        end_all(context, RegionEnd::Never, |_| Some(message));
        return true;
    }
    heap::inside(!state.engine.levels.is_empty());
    signals::catch_calls(true);
    false
}

unsafe extern "C" fn stop(_: *mut u8) {
    with_all_open(0, false, |state, _| {
        state.engine.tracer.stop(Cut::Because("the program ends"));
        refuse(state, RegionEnd::Never, None);
        Ok(())
    });
}

/// The program ends: finishes what is in progress and writes the counts.
pub fn finish_process() {
    let Some(current) = state() else { return };
    if current.engine.at_work() {
        let top = current.engine.pool.hook_stack();
        // SAFETY: the stack is used by hooks alone, and none is at work.
        unsafe { sys::cere_on_stack(stop, std::ptr::null_mut(), top) };
    }
    heap::in_library(|| {
        if let Some(state) = state()
            && let Err(message) = write_counts(state)
        {
            complain(&message);
        }
    });
    wanted::abandon_process();
}
