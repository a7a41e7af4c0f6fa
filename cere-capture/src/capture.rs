//! Captures: from the probe to the finished level.
//!
//! The hook runs on the program's stack only to count; what it begins or ends runs on a stack of the pool.

use crate::engine::{CALLS, Engine, Level};
use crate::pool::LEVELS;
use crate::wanted::{State, disarm, state, write_counts};
use crate::write::{self, End};
use crate::{
    complain, heap, images, keep_errno, process, signals, sys, thread_pointer, threads, wanted,
};
use cere_format::abi::{EVENT_ENTER, EVENT_UNWIND, RegionDescriptor};
use cere_format::capture::{EntryState, Image, RegionEnd};
use libc::ucontext_t;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Times that closing memory is tried while other threads change what is mapped.
const ATTEMPTS: u32 = 10;
/// Captures in progress.
static DEPTH: AtomicUsize = AtomicUsize::new(0);

core::arch::global_asm!(
    ".globl cere_capture_stub",
    ".hidden cere_capture_stub",
    ".type cere_capture_stub,@function",
    "cere_capture_stub:",
    "lea rcx, [rsp + 8]",
    "jmp {event}",
    ".size cere_capture_stub, .-cere_capture_stub",
    event = sym event,
);

unsafe extern "C" {
    /// The hook: adds the stack pointer before the call as fourth argument.
    pub fn cere_capture_stub(region: *mut RegionDescriptor, event: u32, arguments: *mut u8);
}

/// What the probe told, for the work on the other stack.
struct Event {
    region: *mut RegionDescriptor,
    event: u32,
    arguments: usize,
    stack: usize,
    wanted: usize,
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
    // SAFETY: the descriptor of an armed region.
    let wanted = (unsafe { (*region).scratch } as usize).wrapping_sub(1);
    let Some(target) = state.wanted.get_mut(wanted) else {
        return;
    };
    let slow: unsafe extern "C" fn(*mut u8) = if event == EVENT_ENTER {
        target.count += 1;
        if target.count == target.next {
            enter
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
    let mut event = Event {
        region,
        event,
        arguments: arguments as usize,
        stack,
        wanted,
    };
    // SAFETY: the stack is used by hooks alone, and they do not nest; the event outlives the call.
    unsafe { sys::cere_on_stack(slow, (&raw mut event).cast(), top) };
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

/// Work of the hook, on its stack, with everything open and all signals blocked. `work` gets the program's signal mask.
fn with_all_open(work: impl FnOnce(&mut State, u64) -> Result<(), String>) {
    let Some(state) = state() else { return };
    let mask = sys::HOOK_MASK.load(Ordering::Relaxed);
    signals::catch_calls(false);
    heap::inside(false);
    let was_inside = !state.engine.levels.is_empty();
    // First of all: libc's own data are closed.
    if was_inside {
        state.engine.open();
    }
    keep_errno(|| {
        heap::in_library(|| {
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
    let mut attempts = 0;
    while !state.engine.levels.is_empty()
        && let Err(message) = close(state)
    {
        state.engine.open();
        // Another thread may have unmapped something in between.
        attempts += 1;
        keep_errno(|| {
            heap::in_library(|| {
                if attempts == ATTEMPTS
                    || process::lay_out(&mut state.engine, state.mapping_limit).is_err()
                {
                    refuse(state, RegionEnd::Never, Some(message));
                }
            })
        });
    }
    DEPTH.store(state.engine.levels.len(), Ordering::Relaxed);
    let Some(level) = state.engine.levels.last_mut() else {
        let mask = signals::outside(mask);
        signals::remove(None, !state.engine.stacks.is_empty());
        state.engine.pool.reset();
        threads::opened();
        sys::HOOK_MASK.store(mask, Ordering::Relaxed);
        heap::flush();
        return;
    };
    if level.started == 0 {
        level.started = cere_clock::start();
    }
    heap::inside(true);
    signals::catch_calls(true);
    sys::HOOK_MASK.store(signals::inside(mask), Ordering::Relaxed);
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
            Ok(())
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
unsafe fn told<'a>(event: *mut u8) -> &'a Event {
    // SAFETY: `event` is on the program's stack and outlives the work.
    unsafe { &*event.cast::<Event>() }
}

unsafe extern "C" fn sweep(event: *mut u8) {
    // SAFETY: handed on by `event`.
    let stack = unsafe { told(event) }.stack;
    with_all_open(|state, _| {
        for _ in 0..left(stack + 1) {
            finish(state, RegionEnd::Never, None);
        }
        Ok(())
    });
}

unsafe extern "C" fn leave(event: *mut u8) {
    // SAFETY: handed on by `event`.
    let told = unsafe { told(event) };
    with_all_open(|state, _| {
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
    // SAFETY: both instructions store a word each; the descriptor is readable.
    unsafe {
        core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack));
        core::arch::asm!("fnstcw [{}]", in(reg) &raw mut x87_control, options(nostack));
        EntryState {
            stack_pointer: told.stack as u64,
            arguments: told.arguments as u64,
            arguments_size: (*told.region).arguments_size,
            mxcsr,
            x87_control,
        }
    }
}

fn describe_images(state: &mut State) -> Vec<Image> {
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
    let entry = read_state(told);
    if DEPTH.load(Ordering::Relaxed) == 0 {
        keep_errno(images::allocate_tls);
    }
    with_all_open(|state, mask| {
        for _ in 0..left(told.stack + 1) {
            finish(state, RegionEnd::Never, None);
        }
        let region = &mut state.wanted[told.wanted];
        let invocation = region.count;
        region.look_ahead();
        let images = describe_images(state);
        let control = process::control(state.thread, &images);
        let level = Level {
            region: told.region,
            wanted: told.wanted,
            invocation,
            entry,
            stack: (0, 0),
            grows: false,
            control,
            touched: 0,
            started: 0,
            faults: 0,
            calls: [0; CALLS],
            fresh: Vec::with_capacity(4096),
            images,
            mappings: Vec::new(),
        };
        let stacks = match threads::others() {
            Ok(stacks) => stacks,
            Err(reason) => return refuse_one(state, level, reason),
        };
        if let Some(reason) = obstacle(state, mask) {
            return refuse_one(state, level, reason);
        }
        state.engine.stacks = stacks;
        state.engine.levels.push(level);
        process::lay_out(&mut state.engine, state.mapping_limit)?;
        state.engine.take_control(control)
    });
}

/// Why no capture can begin now; else the handlers are installed.
fn obstacle(state: &mut State, mask: u64) -> Option<String> {
    if state.engine.levels.len() == LEVELS {
        return Some(format!("more than {LEVELS} captures within one another"));
    }
    if state.engine.levels.is_empty() {
        let memory = process::available_memory();
        state.engine.pool.allow(memory - memory / 8);
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
    signals::catch_calls(false);
    heap::inside(false);
    state.engine.open();
    keep_errno(|| {
        heap::in_library(|| {
            let reason = reason(&state.engine);
            refuse(state, end, reason);
        })
    });
    DEPTH.store(0, Ordering::Relaxed);
    signals::remove(Some(context), !state.engine.stacks.is_empty());
    state.engine.pool.reset();
}

/// In a handler: ends the levels that were left by longjmp. True if none remains.
pub fn abandon(stack: usize, context: &mut ucontext_t) -> bool {
    let gone = left(stack);
    let Some(state) = state() else { return true };
    if gone >= state.engine.levels.len() {
        end_all(context, RegionEnd::Never, |_| None);
        return true;
    }
    signals::catch_calls(false);
    state.engine.open();
    keep_errno(|| {
        heap::in_library(|| {
            for _ in 0..gone {
                finish(state, RegionEnd::Never, None);
            }
        })
    });
    DEPTH.store(state.engine.levels.len(), Ordering::Relaxed);
    if let Err(message) = close(state) {
        end_all(context, RegionEnd::Never, |_| Some(message));
        return true;
    }
    signals::catch_calls(true);
    false
}

unsafe extern "C" fn stop(_: *mut u8) {
    with_all_open(|state, _| {
        refuse(state, RegionEnd::Never, None);
        Ok(())
    });
}

/// The program ends: finishes what is in progress and writes the counts.
pub fn finish_process() {
    let Some(current) = state() else { return };
    if DEPTH.load(Ordering::Relaxed) > 0 {
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
