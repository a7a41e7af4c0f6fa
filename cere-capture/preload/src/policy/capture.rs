//! The begin and the end of captures. Ordinary code, with everything open.

use super::mark::has_left;
use super::regions::disarm_if_done;
use super::state::{Missed, State};
use super::surroundings::{describe_images, lay_out};
use super::write::{self, End};
use super::{conflict, locks, openmp, threads, windows};
use crate::engine::level::Level;
use crate::engine::pool::Did;
use crate::engine::{clock, gate, heap, layout, malloc};
use crate::os::report::complain;
use crate::os::{mappings, signals, sys};
use cere_format::abi::{KIND_PARALLEL, RegionDescriptor};
use cere_format::capture::{EntryState, RegionEnd};

const INTERRUPTS: &str = "a signal handler of the program enters it where that has interrupted the capture library: \
                          choose another invocation";
/// Ends the capture, if one is in progress. Everything is open.
pub fn finish_capture(state: &mut State, end: RegionEnd, refused: Option<String>) {
    let now = cere_timing::clock::stop();
    let Some(mut level) = state.engine.level.take() else {
        return;
    };
    // Other threads go on: one may hold what is used here.
    gate::memory_opened();
    let kept = level.growing.is_empty()
        || mappings::read_maps().is_ok_and(|now| state.engine.keep_grown(&mut level, &now));
    let refused =
        refused.or_else(|| (!kept).then(|| "no memory is left for memory that grows down".into()));
    let key = state.wanted[level.wanted].key.clone();
    let end = End {
        key: &key,
        end,
        refused,
        now,
        c_library: state.c_library,
        interposed: &state.interposed,
    };
    if let Err(message) = write::write_capture(&mut state.engine, &state.directory, &level, end) {
        complain(&message);
    }
    // SAFETY: the capture's entries; no other slice of them is alive.
    for touch in unsafe { state.engine.pages.pool.log(level.touched) } {
        let page = state.engine.pages.pool.page(touch.address);
        // SAFETY: a page of the pool, or null.
        if let Some(page) = unsafe { page.as_mut() } {
            (page.touched, page.written, page.executed) = (Did::No, Did::No, false);
        }
    }
    disarm_if_done(&mut state.wanted[level.wanted]);
    conflict::note_blocks(state);
}

/// A region is entered of which invocations are wanted, or begin windows. Captures this invocation if it is wanted. `wanted` is
/// the region's index among the wanted ones, `stack` the program's stack pointer, `mask` its signal mask.
///
/// # Safety
/// `region` is the descriptor of an armed region.
pub unsafe fn begin_capture(
    state: &mut State,
    region: *mut RegionDescriptor,
    wanted: usize,
    mut entry: EntryState,
    stack: usize,
    mask: u64,
) -> Result<(), String> {
    if has_left(stack + 1) {
        finish_capture(state, RegionEnd::Never, None);
    }
    // SAFETY: the descriptor of an armed region, which stays.
    entry.arguments_size = unsafe { (*region).arguments_size };
    windows::begin_windows_at(state, wanted);
    let target = &mut state.wanted[wanted];
    let invocation = target.count;
    target.look_ahead();
    if !target.invocations.contains(&invocation) {
        disarm_if_done(target);
        return Ok(());
    }
    let heap = heap::read_usage();
    if let Some(conflict) = conflict::find_conflict(state, wanted, invocation, &heap) {
        windows::drop_window(state, wanted, invocation);
        disarm_if_done(&mut state.wanted[wanted]);
        let noted = conflict::note_postponed(state, wanted, invocation, conflict);
        noted.unwrap_or_else(|message| complain(&message));
        return Ok(());
    }
    conflict::note_capture(state, wanted, invocation, &heap);
    let threads = openmp::count_threads();
    // SAFETY: the descriptor of an armed region, which stays.
    let forks = unsafe { (*region).kind } == KIND_PARALLEL;
    // A team of one thread starts no threads that other regions would have to wait for.
    if forks || threads == Some(1) {
        openmp::start_team(mask);
    }
    clock::begin_answers();
    let missed = Missed {
        region,
        wanted,
        invocation,
    };
    let level = Level {
        heap: heap::read_usage(),
        program_break: sys::program_break(),
        deferred: malloc::last_deferred(),
        threads,
        locks: locks::list_locks(),
        clocks: (Vec::new(), clock::answers_length()),
        c_library: state.c_library.map(|library| library.ask()),
        ..describe_capture(state, missed, entry)
    };
    let control = level.control;
    let stacks = match threads::find_other_stacks() {
        Ok(stacks) => stacks,
        Err(reason) => return refuse_capture(state, level, reason),
    };
    if let Some(reason) = openmp::reason_against().filter(|_| forks) {
        return refuse_capture(state, level, reason.into());
    }
    if let Some(reason) = install_handlers(state, mask) {
        return refuse_capture(state, level, reason);
    }
    state.engine.stacks = stacks;
    let blocks = copy_thread_blocks(&level);
    state.engine.level = Some(Level { blocks, ..level });
    lay_out(state, stack)?;
    let trace = windows::take_trace(state, wanted, invocation);
    if let Some(level) = state.engine.level.as_mut() {
        level.trace = trace;
        level.clocks.0 = clock::read_clocks();
    }
    state.engine.take_control(control)
}

/// Description of a capture that begins.
fn describe_capture(state: &mut State, this: Missed, entry: EntryState) -> Level {
    let images = describe_images(state);
    let control = layout::find_control(state.thread, &images);
    let this_one = (this.wanted, this.invocation);
    Level::new(this.region, this_one, entry, control, images)
}

/// The processor's state. `arguments_size` is set later: the descriptor may be closed.
pub fn read_state(arguments: *mut u8, stack: usize) -> EntryState {
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

/// Writes the invocations that could not be captured as refused. Everything is open.
pub fn refuse_missed(state: &mut State) -> Result<(), String> {
    while let Some(missed) = state.missed.pop() {
        let level = describe_capture(state, missed, read_state(std::ptr::null_mut(), 0));
        refuse_capture(state, level, INTERRUPTS.into())?;
    }
    Ok(())
}

/// The thread-local blocks of the region's image in the threads of the OpenMP runtime.
fn copy_thread_blocks(level: &Level) -> Vec<(u32, Vec<u8>)> {
    let at = level.region as u64;
    let mut images = level.images.iter();
    let own = images.find(|i| i.range.0 <= at && at < i.range.1);
    let Some((start, size)) = own.and_then(|image| image.tls) else {
        return Vec::new();
    };
    let (start, size) = (start as usize, size as usize);
    // The block of an image that was loaded later lies elsewhere in each thread.
    match level.control.0 <= start && start + size <= level.control.1 {
        true => threads::copy_blocks(start, size),
        false => Vec::new(),
    }
}

/// Installs the handlers, or says why no capture can begin now.
fn install_handlers(state: &mut State, mask: u64) -> Option<String> {
    let memory = mappings::available_memory();
    state.engine.pages.pool.allow(memory - memory / 8);
    match mappings::reached_by_others() {
        Ok(None) => {}
        Ok(Some(what)) => {
            return Some(format!(
                "the program has {what}: its memory is reached from outside while a capture has it closed"
            ));
        }
        Err(message) => return Some(message),
    }
    if state.engine.tracer.on {
        return None;
    }
    signals::install_handlers(state.engine.pages.pool.signal_stack(), mask).err()
}

/// Writes that an invocation cannot be captured.
fn refuse_capture(state: &mut State, level: Level, reason: String) -> Result<(), String> {
    let key = state.wanted[level.wanted].key.clone();
    let end = End {
        key: &key,
        end: RegionEnd::Never,
        refused: Some(reason),
        now: 0,
        c_library: None,
        interposed: &state.interposed,
    };
    let written = write::write_capture(&mut state.engine, &state.directory, &level, end);
    disarm_if_done(&mut state.wanted[level.wanted]);
    written.or_else(|message| {
        complain(&message);
        Ok(())
    })
}
