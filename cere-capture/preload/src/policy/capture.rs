//! The begin and the end of captures. Ordinary code, with everything open.

use super::mark::has_left;
use super::refusal::Refusal;
use super::regions::disarm_if_done;
use super::state::{Missed, State};
use super::surroundings::{describe_images, lay_out};
use super::write::{self, End};
use super::{conflict, kept, locks, openmp, threads, windows};
use crate::engine::level::Level;
use crate::engine::pool::{Did, STACK, WINDOW};
use crate::engine::state::Obstacle;
use crate::engine::{clock, gate, heap, malloc, status, turn};
use crate::os::report::complain;
use crate::os::{mappings, signals, sys, thread};
use cere_format::abi::{KIND_PARALLEL, RegionDescriptor};
use cere_format::capture::{EntryState, RegionEnd};

const INTERRUPTS: &str = "a signal handler of the program enters it where that has interrupted the capture library: \
                          choose another invocation";

const ON_CONTROL: &str = "frames or data of the program share a page with its thread's control block, which a replay has afresh";
const BESIDE_TEAM: &str = "threads of the OpenMP runtime run beside it, and it runs in another thread than the program's first one";

/// Ends the capture, if one is in progress. Everything is open.
pub fn finish_capture(state: &mut State, end: RegionEnd, refused: Option<String>) {
    let now = cere_timing::clock::stop();
    let Some(mut level) = state.engine.level.take() else {
        return;
    };
    status::set_paused(0);
    // Other threads go on: one may hold what is used here.
    gate::memory_opened();
    let kept = level.growing.is_empty()
        || mappings::read_maps().is_ok_and(|now| state.engine.keep_grown(&mut level, &now));
    let refused =
        refused.or_else(|| (!kept).then(|| "no memory is left for memory that grows down".into()));
    let touched = level.touched;
    let end = End {
        end,
        refused,
        now,
        c_library: state.c_library,
    };
    write_down(state, level, end);
    // SAFETY: the capture's entries; no other slice of them is alive.
    for touch in unsafe { state.engine.pages.pool.log(touched) } {
        if let Some(page) = state.engine.pages.pool.page(touch.address) {
            (page.touched, page.written, page.executed) = (Did::No, Did::No, false);
        }
    }
    state.engine.pages.pool.reset();
    conflict::note_blocks(state);
}

/// Writes a capture. Its region is dormant if nothing more is wanted of it.
fn write_down(state: &mut State, level: Level, end: End) {
    let wanted = level.wanted;
    if let Err(e) = write::write_capture(state, level, end) {
        complain(&e.to_string());
    }
    disarm_if_done(&mut state.wanted, wanted);
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
) -> Result<(), Refusal> {
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
        disarm_if_done(&mut state.wanted, wanted);
        return Ok(());
    }
    let heap = heap::read_usage();
    if let Some(conflict) = conflict::find_conflict(state, wanted, invocation, &heap) {
        windows::drop_window(state, wanted, invocation);
        disarm_if_done(&mut state.wanted, wanted);
        let noted = conflict::note_postponed(state, wanted, invocation, conflict);
        noted.unwrap_or_else(|e| complain(&e.to_string()));
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
    if let Err(refusal) = prepare_to_close(state, forks, mask, stack as u64, control) {
        refuse_capture(state, level, &refusal);
        return Ok(());
    }
    let blocks = copy_thread_blocks(&level);
    state.engine.level = Some(Level { blocks, ..level });
    lay_out(state, stack).map_err(Refusal::Memory)?;
    // Among what is mapped, this file is not the program's.
    kept::begin_copies(state).map_err(Refusal::File)?;
    let trace = windows::take_trace(state, wanted, invocation);
    if let Some(level) = state.engine.level.as_mut() {
        level.trace = trace;
        level.clocks.0 = clock::read_clocks();
    }
    state.engine.take_control(control).map_err(Refusal::Memory)
}

/// Finds the stacks of other threads and installs the handlers, unless no capture can begin now.
fn prepare_to_close(
    state: &mut State,
    forks: bool,
    mask: u64,
    stack: u64,
    control: (usize, usize),
) -> Result<(), Refusal> {
    let stacks = threads::find_other_stacks().map_err(Refusal::Threads)?;
    if let Some(reason) = openmp::reason_against().filter(|_| forks) {
        return Err(Refusal::Because(reason));
    }
    if !thread::is_main() && turn::team_exists() {
        return Err(Refusal::Because(BESIDE_TEAM));
    }
    let on_control = (control.0 as u64..control.1 as u64).contains(&stack);
    if on_control || threads::shares_control() {
        return Err(Refusal::Because(ON_CONTROL));
    }
    if mappings::available_memory() < 2 * WINDOW {
        return Err(Refusal::Memory(Obstacle::NoMemory));
    }
    if let Some(what) = mappings::reached_by_others().map_err(Refusal::File)? {
        return Err(Refusal::Reached(what));
    }
    if !state.engine.tracer.on {
        let stack = signal_stack(state);
        signals::install_handlers(stack, mask).map_err(Refusal::Handlers)?;
    }
    state.engine.others = stacks.all().next().is_some();
    state.engine.stacks = stacks.open;
    Ok(())
}

/// The stack for the signal handlers of the calling thread: one may still run on its own when another thread is captured.
fn signal_stack(state: &mut State) -> (usize, usize) {
    if thread::is_main() {
        return state.engine.pages.pool.signal_stack();
    }
    let own = thread::pointer();
    let known = state.stacks.iter().find(|s| s.0 == own).map(|s| s.1);
    known.unwrap_or_else(|| {
        // In the library's memory, for good: it may be in use when the thread ends.
        let room = vec![0u8; STACK].leak();
        let start = room.as_ptr() as usize;
        state.stacks.push((own, (start, start + STACK)));
        (start, start + STACK)
    })
}

/// Description of a capture that begins.
fn describe_capture(state: &mut State, this: Missed, entry: EntryState) -> Level {
    let images = describe_images(state);
    let control = threads::find_control(&images);
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
pub fn refuse_missed(state: &mut State) {
    while let Some(missed) = state.missed.pop() {
        let level = describe_capture(state, missed, read_state(std::ptr::null_mut(), 0));
        refuse_capture(state, level, &Refusal::Because(INTERRUPTS));
    }
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

/// Writes that an invocation cannot be captured.
fn refuse_capture(state: &mut State, level: Level, refusal: &Refusal) {
    let end = End {
        end: RegionEnd::Never,
        refused: Some(refusal.to_string()),
        now: 0,
        c_library: None,
    };
    write_down(state, level, end);
}
