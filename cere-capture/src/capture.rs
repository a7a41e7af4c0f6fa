//! Captures: from the probe to the written result.
//!
//! The hook runs on the program's stack only to count; what it begins or ends runs on a stack of the pool.

use crate::calls::Halt;
use crate::conflict::Captured;
use crate::engine::{CALLS, Level};
use crate::openmp::{self, Entry};
use crate::tracer::Cut;
use crate::wanted::{Region, State, disarm, listen, state, write_counts};
use crate::write::{self, End};
use crate::{
    clock, complain, conflict, heap, images, keep_errno, locks, process, section, signals, stacks,
    sys, team, threads, trace, wanted,
};
use cere_format::abi::{EVENT_ENTER, EVENT_UNWIND, KIND_PARALLEL, RegionDescriptor};
use cere_format::capture::{EntryState, Image, RegionEnd};
use cere_format::system::taken_fresh;
use libc::ucontext_t;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Times that closing memory is tried while other threads change what is mapped.
const ATTEMPTS: u32 = 10;
const CLOSED_IN_VAIN: &str = "memory cannot be closed";
const NO_ROOM: &str = "it writes more memory than the machine has free";
const INTERRUPTS: &str = "a signal handler of the program enters it where that has interrupted the capture library: \
                          choose another invocation";
/// Whether a capture is in progress.
static CAPTURES: AtomicBool = AtomicBool::new(false);
/// What of it the main thread asks without a turn. Main thread only.
static mut MARK: Option<Mark> = None;

/// A capture in progress as the hook knows it.
#[derive(Clone, Copy)]
struct Mark {
    region: *mut RegionDescriptor,
    wanted: usize,
    invocation: u64,
    /// Stack pointer at entry, and the stack.
    pointer: usize,
    stack: (usize, usize),
}

crate::stub::hook!(cere_capture_stub, event);

/// Why captures end early.
#[derive(Debug, Clone, Copy)]
pub enum Cause {
    /// Their regions were left by longjmp.
    Left,
    /// They take what there is not.
    Lack(&'static str),
    /// The program may not access this address.
    Crash(usize),
    /// An instruction of the program has this signal.
    Signal(i32),
    /// A system call, by number.
    Call(usize, Halt),
    /// A thread of a team cannot go on.
    Team,
    /// In words, unless a thread of a team cannot go on.
    Because(&'static str),
}

impl Cause {
    /// For people; none if the regions do not end. In what ends captures, with everything open and threads of teams kept out.
    fn reason(self) -> Option<String> {
        let of_team = || team::failure()?.reason();
        match self {
            Cause::Left => None,
            Cause::Lack(lack) => Some(format!("it takes {lack}")),
            Cause::Crash(at) => Some(format!(
                "the program crashes inside: it may not access {at:#x}"
            )),
            Cause::Signal(signal) => Some(format!("it takes signal {signal}")),
            Cause::Call(number, halt) => halt.reason(number),
            Cause::Team => of_team(),
            Cause::Because(reason) => of_team().or(Some(reason.into())),
        }
    }
}

/// Why the captures end as soon as the captured thread has left the section that it is in. Main thread only.
static mut ENDING: Option<Cause> = None;

/// Whether they do: memory is open.
pub fn ending() -> bool {
    let ending = &raw const ENDING;
    // SAFETY: main thread only.
    unsafe { (*ending).is_some() }
}

fn take_ending() -> Option<Cause> {
    let ending = &raw mut ENDING;
    // SAFETY: main thread only.
    unsafe { (*ending).take() }
}

/// An invocation that is wanted and was entered by a handler of the program that had interrupted the library.
#[derive(Debug, Clone, Copy)]
pub struct Missed {
    region: *mut RegionDescriptor,
    wanted: usize,
    invocation: u64,
}

/// How many of them can be noted.
pub const MISSED: usize = 1024;

unsafe extern "C" fn event(
    region: *mut RegionDescriptor,
    event: u32,
    arguments: *mut u8,
    stack: usize,
) {
    let Some(state) = wanted::pointer() else {
        return;
    };
    if !wanted::is_main() {
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
    let wanted = unsafe { index(region) };
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
        let captured = mark().map(|mark| Captured {
            number,
            wanted: mark.wanted,
            invocation: mark.invocation,
        });
        let due = targets.get_mut(wanted).is_some_and(|target| {
            target.count += 1;
            target.inside = captured.or(target.inside);
            target.count == target.next
        });
        if section::interrupted() {
            if due {
                miss(&mut targets[wanted], missed, region, wanted);
            }
            return;
        } else if due {
            enter
        } else if listens {
            resume
        } else if left(stack + 1) {
            sweep
        } else {
            return;
        }
    } else if mark().is_some_and(|l| l.region == region && l.pointer == stack) {
        leave
    } else {
        return;
    };
    let top = HOOK_STACK.load(Ordering::Relaxed);
    // SAFETY: the stack is used by hooks alone, and they do not nest.
    unsafe { sys::cere_on_stack(slow, top, region, event, arguments, stack) };
}

/// Top of the stack for hooks.
pub static HOOK_STACK: AtomicUsize = AtomicUsize::new(0);

/// The region's place among the wanted ones; beyond them if it is none.
///
/// # Safety
/// It is the descriptor of an armed region.
unsafe fn index(region: *mut RegionDescriptor) -> usize {
    // SAFETY: by the contract.
    (unsafe { (*region).scratch } as usize).wrapping_sub(1)
}

/// A wanted invocation begins where the library is at work: it is noted as refused later. Neither allocates nor locks.
fn miss(
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

/// Runs the hook's work on its stack: it needs nothing of the probe but the stack pointer.
fn on_stack(work: sys::Work, stack: usize) {
    let (top, nothing) = (HOOK_STACK.load(Ordering::Relaxed), std::ptr::null_mut());
    // SAFETY: the stack is used by hooks alone, and none is at work.
    unsafe { sys::cere_on_stack(work, top, nothing, EVENT_ENTER, nothing.cast(), stack) };
}

/// The program starts, or has loaded an image: begins the windows that wait for that.
pub fn begin_windows() {
    let busy = section::interrupted();
    let Some(state) = wanted::pointer().filter(|_| wanted::is_main() && !busy) else {
        return;
    };
    // SAFETY: main thread only, and no hook is at work.
    let awaited = unsafe {
        let state = state.as_ptr();
        trace::awaits_start(&(*state).wanted, &(*state).windows)
    };
    if awaited {
        on_stack(begin, (&raw const busy) as usize);
    }
}

/// Runs `work` on the hook's stack, with everything open. Main thread only.
pub fn with_state(work: impl FnOnce(&mut State)) {
    let mut work = Some(work);
    let here = (&raw const work) as usize;
    on_stack_with(&mut work, here);
}

fn on_stack_with<F: FnOnce(&mut State)>(work: &mut Option<F>, stack: usize) {
    unsafe extern "C" fn run<F: FnOnce(&mut State)>(
        _: *mut RegionDescriptor,
        _: u32,
        work: *mut u8,
        stack: usize,
    ) {
        with_all_open(stack, Why::Else, |state, _| {
            // SAFETY: handed on below, on the program's stack, which is open.
            if let Some(work) = unsafe { (*work.cast::<Option<F>>()).take() } {
                work(state);
            }
            Ok(())
        });
    }
    let (top, nothing) = (HOOK_STACK.load(Ordering::Relaxed), std::ptr::null_mut());
    let work = (&raw mut *work).cast();
    // SAFETY: as above.
    unsafe { sys::cere_on_stack(run::<F>, top, nothing, EVENT_ENTER, work, stack) };
}

/// The main thread enters a parallel region. Has the runtime start its threads now if memory is closed for the page trace,
/// which would be interrupted by that; ends captures that cannot hold a team.
pub fn forks(stack: usize) {
    match captures() {
        _ if section::interrupted() => {}
        true if openmp::obstacle().is_some() => on_stack(give_up, stack),
        false if wanted::at_work() && !openmp::started() => on_stack(start, stack),
        _ => {}
    }
}

unsafe extern "C" fn give_up(_: *mut RegionDescriptor, _: u32, _: *mut u8, stack: usize) {
    with_all_open(stack, Why::Else, |state, _| {
        let reason = openmp::obstacle().map(str::to_owned);
        finish(state, RegionEnd::Never, reason);
        Ok(())
    });
}

unsafe extern "C" fn start(_: *mut RegionDescriptor, _: u32, _: *mut u8, stack: usize) {
    with_all_open(stack, Why::Else, |_, mask| {
        openmp::start_team(mask);
        Ok(())
    });
}

unsafe extern "C" fn begin(_: *mut RegionDescriptor, _: u32, _: *mut u8, stack: usize) {
    with_all_open(stack, Why::Else, |state, _| {
        trace::program_starts(state);
        Ok(())
    });
}

unsafe extern "C" fn resume(_: *mut RegionDescriptor, _: u32, _: *mut u8, stack: usize) {
    with_all_open(stack, Why::Else, |_, _| Ok(()));
}

/// The capture that is in progress from now on.
pub fn note_level(level: Option<&Level>) {
    CAPTURES.store(level.is_some(), Ordering::Relaxed);
    let mark = level.map(|level| Mark {
        region: level.region,
        wanted: level.wanted,
        invocation: level.invocation,
        pointer: level.entry.stack_pointer as usize,
        stack: level.stack,
    });
    // SAFETY: main thread only.
    unsafe { MARK = mark };
}

/// Whether a capture is in progress. Any thread may ask.
pub fn captures() -> bool {
    CAPTURES.load(Ordering::Relaxed)
}

fn mark() -> Option<Mark> {
    // SAFETY: main thread only.
    unsafe { MARK }
}

/// Whether code with this stack pointer has left the captured invocation, by longjmp: it cannot still run.
pub fn left(stack: usize) -> bool {
    mark().is_some_and(|l| l.stack.0 <= stack && stack < l.stack.1 && stack > l.pointer)
}

/// What the hook does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// A wanted invocation begins: every thread-local block is allocated first, if no capture is in progress.
    Enters,
    /// One ends: what it has written is kept before other threads go on.
    Leaves,
    /// Another thing.
    Else,
}

/// Work of the hook, on its stack, with everything open and all signals blocked. `stack` is the program's stack pointer.
/// `work` gets the program's
/// signal mask.
fn with_all_open(stack: usize, why: Why, work: impl FnOnce(&mut State, u64) -> Result<(), String>) {
    // The program's allocator may have regions of its own.
    let _section = section::enter();
    let _barred = team::bar();
    // SAFETY: the hook's stack is the main thread's, those of teams are kept out.
    let Some(state) = (unsafe { state() }) else {
        return;
    };
    let mask = sys::HOOK_MASK.load(Ordering::Relaxed);
    signals::catch_calls(false);
    heap::inside(false);
    let was_inside = state.engine.level.is_some();
    let mut kept = true;
    // First of all: libc's own data are closed.
    if state.engine.at_work() {
        if why == Why::Leaves && !state.engine.stacks.is_empty() {
            state.engine.uncover();
            kept = state.engine.keep_exit();
        }
        state.engine.open();
    }
    // A thread of the team failed on the way here.
    let failed = team::failure();
    if why == Why::Enters && !was_inside {
        keep_errno(images::allocate_tls);
    }
    keep_errno(|| {
        heap::in_library(|| {
            if let Some(cause) = take_ending() {
                finish(state, RegionEnd::Never, cause.reason());
            }
            if let Some(failure) = failed {
                state.engine.tracer.halt(failure.cut());
                finish(state, RegionEnd::Never, failure.reason());
            }
            if !kept {
                finish(state, RegionEnd::Never, Some(NO_ROOM.into()));
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
                finish(state, RegionEnd::Never, Some(message));
            }
        });
    });
    let captures = state.engine.level.is_some();
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
                    finish(state, RegionEnd::Never, Some(message));
                }
            })
        });
    }
    note_level(state.engine.level.as_ref());
    if !state.engine.at_work() {
        state.engine.tell();
        signals::remove(None, threads::beside(&state.engine));
        state.engine.pool.reset();
        threads::opened();
        sys::HOOK_MASK.store(mask, Ordering::Relaxed);
        heap::flush();
        return;
    }
    if state.engine.level.as_ref().is_some_and(|l| l.started == 0) {
        state.engine.keep_frame();
    }
    if let Some(level) = state.engine.level.as_mut() {
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
    let (pointer, images, control) = match state.engine.level.as_ref() {
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
    state.engine.tell();
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

/// Ends the capture, if one is in progress. Everything is open.
fn finish(state: &mut State, end: RegionEnd, refused: Option<String>) {
    let now = cere_clock::stop();
    let Some(level) = state.engine.level.take() else {
        return;
    };
    let key = state.wanted[level.wanted].key.clone();
    let refused = refused.or_else(|| stacks::touched(&level.resting));
    let end = End {
        key: &key,
        end,
        refused,
        now,
    };
    if let Err(message) = write::level(&mut state.engine, &state.directory, &level, end) {
        complain(&message);
    }
    // SAFETY: the capture's entries; no other slice of them is alive.
    for touch in unsafe { state.engine.pool.log(level.touched) } {
        let page = state.engine.pool.page(touch.address);
        // SAFETY: a page of the pool, or null.
        if let Some(page) = unsafe { page.as_mut() } {
            (page.touched, page.written, page.executed) = (false, false, false);
        }
    }
    disarm(&mut state.wanted[level.wanted]);
}

unsafe extern "C" fn sweep(_: *mut RegionDescriptor, _: u32, _: *mut u8, stack: usize) {
    with_all_open(stack, Why::Else, |state, _| {
        if left(stack + 1) {
            finish(state, RegionEnd::Never, None);
        }
        Ok(())
    });
}

unsafe extern "C" fn leave(_: *mut RegionDescriptor, event: u32, _: *mut u8, stack: usize) {
    with_all_open(stack, Why::Leaves, |state, _| {
        let end = match event {
            EVENT_UNWIND => RegionEnd::Unwound,
            _ => RegionEnd::Returned,
        };
        finish(state, end, None);
        Ok(())
    });
}

/// The processor's state. `arguments_size` is told later, for the descriptor may be closed.
fn read_state(arguments: *mut u8, stack: usize) -> EntryState {
    let (mut mxcsr, mut x87_control) = (0u32, 0u16);
    // SAFETY: both instructions store a word each.
    unsafe {
        core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack));
        core::arch::asm!("fnstcw [{}]", in(reg) &raw mut x87_control, options(nostack));
        EntryState {
            stack_pointer: stack as u64,
            arguments: arguments as u64,
            arguments_size: 0,
            mxcsr,
            x87_control,
            frames: None,
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
        let fresh = taken_fresh(&image.path) || openmp::holds(image.range.0);
        list.push(Image {
            program: list.is_empty() || instrumented || !fresh,
            path: image.path,
            bias: image.bias as u64,
            range: (image.range.0 as u64, image.range.1 as u64),
            instrumented,
            tls: image.tls.map(|(at, size)| (at as u64, size as u64)),
        });
    }
    list
}

unsafe extern "C" fn enter(
    region: *mut RegionDescriptor,
    _: u32,
    arguments: *mut u8,
    stack: usize,
) {
    let mut entry = read_state(arguments, stack);
    with_all_open(stack, Why::Enters, |state, mask| {
        if left(stack + 1) {
            finish(state, RegionEnd::Never, None);
        }
        // SAFETY: the descriptor of an armed region.
        let wanted = unsafe {
            entry.arguments_size = (*region).arguments_size;
            index(region)
        };
        trace::entered(state, wanted);
        let target = &mut state.wanted[wanted];
        let invocation = target.count;
        target.look_ahead();
        if !target.invocations.contains(&invocation) {
            disarm(target);
            return Ok(());
        }
        let heap = heap::usage();
        if let Some(conflict) = conflict::of(state, wanted, invocation, &heap) {
            trace::drop_window(state, wanted, invocation);
            disarm(&mut state.wanted[wanted]);
            let noted = conflict::postpone(state, wanted, invocation, conflict);
            noted.unwrap_or_else(|message| complain(&message));
            return Ok(());
        }
        conflict::begins(state, wanted, invocation, &heap);
        let threads = openmp::threads();
        // SAFETY: the descriptor of an armed region.
        let forks = unsafe { (*region).kind } == KIND_PARALLEL;
        // With one thread it starts none, which other regions could have to wait for.
        if forks || threads == Some(1) {
            openmp::start_team(mask);
        }
        clock::begin();
        let missed = Missed {
            region,
            wanted,
            invocation,
        };
        let level = Level {
            heap: heap::usage(),
            threads,
            locks: locks::all(),
            clocks: (Vec::new(), clock::used()),
            ..begun(state, missed, entry)
        };
        let control = level.control;
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
        state.engine.level = Some(Level { blocks, ..level });
        lay_out(state, stack)?;
        let trace = trace::take(state, wanted, invocation);
        if let Some(level) = state.engine.level.as_mut() {
            level.trace = trace;
            level.resting = stacks::watch(threads::strangers());
            level.clocks.0 = clock::clocks();
        }
        state.engine.take_control(control)
    });
}

/// A level that begins.
fn begun(state: &mut State, this: Missed, entry: EntryState) -> Level {
    let images = describe_images(state);
    let control = process::control(state.thread, &images);
    Level {
        region: this.region,
        wanted: this.wanted,
        invocation: this.invocation,
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
        heap: heap::Usage::default(),
        threads: None,
        locks: Vec::new(),
        blocks: Vec::new(),
        resting: Vec::new(),
        clocks: (Vec::new(), 0),
        trace: None,
    }
}

/// Notes what could not be captured, as refused. Everything is open.
fn refuse_missed(state: &mut State) -> Result<(), String> {
    while let Some(missed) = state.missed.pop() {
        let level = begun(state, missed, read_state(std::ptr::null_mut(), 0));
        refuse_one(state, level, INTERRUPTS.into())?;
    }
    Ok(())
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
    let memory = process::available_memory();
    state.engine.pool.allow(memory - memory / 8);
    if let Some(what) = process::reached_by_others() {
        return Some(format!(
            "the program has {what}: its memory is reached from outside while a capture has it closed"
        ));
    }
    if state.engine.tracer.on {
        return None;
    }
    signals::install(state.engine.pool.signal_stack(), mask).err()
}

/// Notes that an invocation cannot be captured.
fn refuse_one(state: &mut State, level: Level, reason: String) -> Result<(), String> {
    let key = state.wanted[level.wanted].key.clone();
    let end = End {
        key: &key,
        end: RegionEnd::Never,
        refused: Some(reason),
        now: 0,
    };
    let written = write::level(&mut state.engine, &state.directory, &level, end);
    disarm(&mut state.wanted[level.wanted]);
    written.or_else(|message| {
        complain(&message);
        Ok(())
    })
}

/// In a handler: ends the capture and hands the process back to the program. Where the library is at work memory is opened,
/// and the rest waits until it is not.
pub fn end_all(context: &mut ucontext_t, cause: Cause) {
    if !section::interrupted() {
        return end(context, || cause.reason());
    }
    let _barred = team::bar();
    // SAFETY: in the captured thread's handler, those of teams are kept out.
    if let Some(state) = unsafe { state() } {
        open_all(state);
    }
    // SAFETY: main thread only.
    unsafe {
        let ending = &raw mut ENDING;
        (*ending).get_or_insert(cause);
    }
    signals::nudge_after(context);
}

/// In a handler: the section is left that [`end_all`] has waited for.
pub fn end_at_last(context: &mut ucontext_t) {
    if let Some(cause) = take_ending() {
        end(context, || cause.reason());
    }
}

/// In a handler that ends the capture.
fn open_all(state: &mut State) {
    signals::catch_calls(false);
    heap::inside(false);
    state.engine.open();
    state.engine.tracer.on = false;
    let cut = Cut::Because("a captured invocation ends early");
    state.engine.tracer.halt(cut);
}

fn end(context: &mut ucontext_t, reason: impl FnOnce() -> Option<String>) {
    let _barred = team::bar();
    // SAFETY: in the captured thread's handler, those of teams are kept out.
    let Some(state) = (unsafe { state() }) else {
        return;
    };
    open_all(state);
    keep_errno(|| {
        heap::in_library(|| {
            let reason = reason();
            // Whatever another thread could not do, it is over.
            team::failure();
            finish(state, RegionEnd::Never, reason);
        })
    });
    if state.engine.tracer.wanted() {
        listen(state, true);
    }
    state.engine.tell();
    note_level(None);
    signals::remove(Some(context), threads::beside(&state.engine));
    state.engine.pool.reset();
}

/// Whether code with this stack pointer has left the captured invocation, and that can end now.
pub fn may_abandon(stack: usize) -> bool {
    left(stack) && !section::interrupted()
}

/// In a handler: ends the capture, which was left by longjmp. True if the page trace does not go on either.
pub fn abandon(context: &mut ucontext_t) -> bool {
    let barred = team::bar();
    // SAFETY: in the captured thread's handler, those of teams are kept out.
    let Some(state) = (unsafe { state() }) else {
        return true;
    };
    if !state.engine.tracer.on {
        drop(barred);
        end_all(context, Cause::Left);
        return true;
    }
    signals::catch_calls(false);
    heap::inside(false);
    state.engine.open();
    keep_errno(|| heap::in_library(|| finish(state, RegionEnd::Never, None)));
    note_level(None);
    state.engine.pool.reset();
    let mask = (&raw mut context.uc_sigmask).cast::<u64>();
    // SAFETY: the kernel's record.
    unsafe { *mask = signals::inside(signals::release(*mask)) };
    if let Err(message) = close(state) {
        drop(barred);
        end(context, || Some(message));
        return true;
    }
    signals::catch_calls(true);
    false
}

unsafe extern "C" fn stop(_: *mut RegionDescriptor, _: u32, _: *mut u8, _: usize) {
    with_all_open(0, Why::Else, |state, _| {
        state.engine.tracer.stop(Cut::Because("the program ends"));
        finish(state, RegionEnd::Never, None);
        write_counts(state)
    });
}

/// The program ends: finishes what is in progress and writes the counts.
pub fn finish_process() {
    if !wanted::prepared() {
        return;
    }
    if wanted::is_main() || wanted::at_work() {
        on_stack(stop, 0);
    } else {
        wanted::alone(|state| {
            if let Err(message) = heap::in_library(|| write_counts(state)) {
                complain(&message);
            }
        });
    }
    wanted::abandon_process();
}
