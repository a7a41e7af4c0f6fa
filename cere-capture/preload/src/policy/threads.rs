//! The threads of the program beside the captured one.
//!
//! Threads outside teams wait for closed memory, and stand still while an invocation is captured ([`crate::engine::gate`]). Their
//! stacks, known since their start, stay open. A region that needs such a thread to continue cannot be captured. Threads of the
//! OpenMP runtime belong to the region and continue ([`super::team`]).

use super::beside::{Beside, Thread};
use super::needs::{self, Needs};
use super::stopping;
use crate::engine::gate;
use crate::engine::layout;
use crate::engine::state::Engine;
use crate::engine::turn;
use crate::os::stacks::Still;
use crate::os::sys::{self, PAGE};
use crate::os::{ends, files, inside, local, mappings, section, thread};
use cere_format::capture::Image;
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};

static LIST: Mutex<Vec<Thread>> = Mutex::new(Vec::new());
/// Its destructor runs at the end of each thread of the list.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Whole pages around a range.
fn whole_pages(start: usize, size: usize) -> (usize, usize) {
    (start & !(PAGE - 1), (start + size).next_multiple_of(PAGE))
}

/// The whole pages within a range: what else lies on the first and the last is not its.
fn pages_within(start: usize, end: usize) -> (usize, usize) {
    let start = start.next_multiple_of(PAGE);
    (start, (end & !(PAGE - 1)).max(start))
}

/// [start, end) of the stack of the calling thread.
fn find_own_stack() -> Option<(usize, usize)> {
    // SAFETY: the attributes are the calling thread's own and destroyed again.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut start, mut size) = (std::ptr::null_mut(), 0);
        let found = libc::pthread_attr_getstack(&attributes, &mut start, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
        (found == 0).then_some((start as usize, start as usize + size))
    }
}

/// The calling thread has started. Ordinary code.
pub fn list_this() {
    let stack = match thread::is_main() {
        true => mappings::stack_range(),
        false => find_own_stack(),
    };
    if let (Some(stack), Ok(mut list)) = (stack, LIST.lock()) {
        list.push(Thread {
            id: thread::id(),
            stack: whole_pages(stack.0, stack.1 - stack.0),
            within: pages_within(stack.0, stack.1),
            alternate: (0, 0),
            ends: false,
            number: local::team_number(),
            pointer: thread::pointer(),
            control: (0, 0),
            held: gate::report_calls(),
        });
    }
    let key = take_key();
    // SAFETY: our own key; any value but null has the destructor run.
    unsafe { libc::pthread_setspecific(key, std::ptr::dangling()) };
}

/// The library's key, whose destructor knows that a thread ends. Taken before any capture: a key that is taken inside would be one
/// that the region took.
pub fn take_key() -> libc::pthread_key_t {
    *KEY.get_or_init(|| ends::take_key(note_end))
}

/// The calling thread has this alternate stack for signals from now on, or none.
pub fn note_alternate_stack(new: &libc::stack_t) {
    let alternate = match new.ss_flags & libc::SS_DISABLE {
        0 => whole_pages(new.ss_sp as usize, new.ss_size),
        _ => (0, 0),
    };
    change_own(|thread| thread.alternate = alternate);
}

/// The calling thread ends.
unsafe extern "C" fn note_end(_: *mut c_void) {
    needs::refuse_call(Needs::End, "pthread_exit");
    let passing = gate::pass();
    let _section = section::enter_section();
    change_own(|thread| thread.ends = true);
    gate::passed(passing);
}

/// Changes what is known of the calling thread.
fn change_own(change: impl Fn(&mut Thread)) {
    let own = thread::id();
    let _section = section::enter_section();
    if let Ok(mut list) = LIST.lock() {
        list.iter_mut().filter(|t| t.id == own).for_each(change);
    }
}

/// Pages of the calling thread's control block and static thread-local storage: at the end of its stack, unless it is the main one.
pub fn find_control(images: &[Image]) -> (usize, usize) {
    let end = this_one().map_or(usize::MAX, |thread| thread.stack.1);
    layout::find_control(thread::pointer(), images, end)
}

/// Whether data of the program lies on the page of the calling thread's control block, behind a stack of the program's own.
pub fn shares_control() -> bool {
    this_one().is_some_and(|thread| thread.within.1 != thread.stack.1)
}

/// [start, end) of the pages that are the calling thread's own stack alone, unless it is the main one.
pub fn own_stack() -> Option<(usize, usize)> {
    this_one().map(|thread| thread.within)
}

/// The calling thread, unless it is the main one.
fn this_one() -> Option<Thread> {
    let own = thread::id();
    let list = LIST.lock().ok()?;
    let found = list.iter().find(|t| t.id == own)?;
    (!thread::is_main()).then_some(*found)
}

/// Numbers of the threads of the process.
fn list_tasks() -> std::io::Result<Vec<i32>> {
    let names = files::list(&files::of_process("task"))?;
    Ok(names
        .iter()
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect())
}

/// Whether all threads but the calling one belong to the OpenMP runtime.
pub fn alone_with_team() -> bool {
    let Ok(tasks) = list_tasks() else {
        return false;
    };
    let Ok(list) = LIST.lock() else { return false };
    let own = thread::id();
    let of_team = |task: &i32| list.iter().any(|t| t.id == *task && t.number != 0);
    tasks.iter().all(|task| *task == own || of_team(task))
}

/// Whether other threads may be in a handler of the library.
pub fn others_may_run(engine: &Engine) -> bool {
    engine.others || turn::team_exists()
}

/// Whether a thread blocks SIGSEGV or SIGSYS: a fault, or a call that is held, would kill it.
fn blocks_faults(id: i32) -> bool {
    let path = files::of_process(&format!("task/{id}/status"));
    let text = files::read_text(path).unwrap_or_default();
    text.lines()
        .find_map(|l| u64::from_str_radix(l.strip_prefix("SigBlk:")?.trim(), 16).ok())
        .is_none_or(|mask| {
            mask & (sys::signal_bit(libc::SIGSEGV) | sys::signal_bit(libc::SIGSYS)) != 0
        })
}

/// The thread-local blocks of the OpenMP runtime's threads that correspond to [start, start + size) of the calling thread, by
/// thread number. Ordinary code; the threads are kept out.
pub fn copy_blocks(start: usize, size: usize) -> Vec<(u32, Vec<u8>)> {
    let Ok(list) = LIST.lock() else {
        return Vec::new();
    };
    let from = thread::pointer().wrapping_sub(start);
    let mut found: Vec<(u32, Vec<u8>)> = Vec::new();
    for thread in list.iter().filter(|t| t.number != 0 && !t.ends) {
        let at = thread.pointer.wrapping_sub(from);
        // The block of an image that was loaded later lies elsewhere.
        if at < thread.stack.0 || thread.stack.1.saturating_sub(size) < at {
            continue;
        }
        // SAFETY: static thread-local storage lies at the same distance from the pointer in every thread, on its stack.
        let block = unsafe { std::slice::from_raw_parts(at as *const u8, size) };
        found.push((thread.number, block.to_vec()));
    }
    found.sort_unstable_by_key(|f| f.0);
    found
}

/// Stacks of other threads.
#[derive(Debug, Default)]
pub struct Stacks {
    /// That stay open while an invocation is captured: those of teams, and alternate ones.
    pub open: Vec<(usize, usize)>,
    /// Those of threads that stand still then.
    pub still: Vec<(usize, usize)>,
}

impl Stacks {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (usize, usize)> {
        self.open.iter().chain(&self.still).copied()
    }
}

/// Stacks of all other threads, or why the calling thread cannot be captured beside them. Bars the gate until
/// [`gate::memory_opened`].
pub fn find_other_stacks() -> Result<Stacks, Beside> {
    let own = thread::id();
    gate::set_captured();
    // Threads that start, or return from a handler, are soon ready.
    let mut tries = 0;
    loop {
        tries += 1;
        gate::bar_gate();
        match check_others(own) {
            Err(_) if tries < 200 => {
                gate::memory_opened();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

/// Pages of the control block of a thread and of its static thread-local storage, of this size.
fn control_of(thread: &Thread, size: usize) -> (usize, usize) {
    let end = match thread.pointer == thread::main_pointer() {
        true => usize::MAX,
        false => thread.stack.1,
    };
    let block = whole_pages(thread.pointer - size, size + layout::CONTROL_BLOCK);
    (block.0, block.1.min(end))
}

/// A thread as it is now: the main thread's stack grows.
fn grown(thread: Thread) -> Thread {
    let main = thread.pointer == thread::main_pointer();
    let stack = main.then(mappings::stack_range).flatten();
    Thread {
        stack: stack.unwrap_or(thread.stack),
        within: stack.unwrap_or(thread.within),
        ..thread
    }
}

/// The threads of the list other than the calling one.
fn others_of(list: &[Thread]) -> Vec<Thread> {
    let own = thread::id();
    let others = list.iter().filter(|t| t.id != own);
    others.copied().map(grown).collect()
}

fn check_others(own: i32) -> Result<Stacks, Beside> {
    // Threads leave the gate quickly.
    for _ in 0..1000 {
        if !gate::is_occupied() {
            break;
        }
        std::thread::yield_now();
    }
    if gate::is_occupied() {
        return Err(Beside::Busy);
    }
    let mut alive = list_tasks().map_err(Beside::Unlisted)?;
    let mut all = LIST.lock().map_err(|_| Beside::Spoilt)?;
    all.retain(|t| alive.contains(&t.id));
    alive.retain(|id| *id != own);
    let list = others_of(&all);
    if list.iter().any(|t| t.ends) {
        return Err(Beside::Ends);
    }
    if list.len() != alive.len() {
        return Err(Beside::Unknown);
    }
    if list.iter().any(|t| !t.held) {
        return Err(Beside::Unheld);
    }
    if list
        .iter()
        .any(|t| blocks_faults(t.id) && !stopping::waits_here(t.id))
    {
        return Err(Beside::BlocksFaults);
    }
    let mut stacks = Stacks::default();
    for thread in &list {
        stacks.open.push(thread.alternate);
        match thread.number {
            0 => stacks.still.push(thread.stack),
            _ => stacks.open.push(thread.stack),
        }
    }
    stacks.open.retain(|s| s.0 < s.1);
    Ok(stacks)
}

/// Holds the system calls that other threads begin from now on, until [`gate::memory_opened`], if memory can be closed during
/// their present ones. `closed` says whether an address would be closed. If an invocation is `captured`, threads outside teams
/// do not run meanwhile: returns them, and how many of them computed. `size` is that of a thread's static thread-local storage.
pub fn hold_others(
    captured: bool,
    closed: &dyn Fn(usize) -> bool,
    size: usize,
) -> Result<(Vec<Still>, u32), Beside> {
    let mut others = others_of(&LIST.lock().map_err(|_| Beside::Spoilt)?);
    for thread in &mut others {
        thread.control = control_of(thread, size);
    }
    gate::hold_calls();
    let stops = |thread: &Thread| captured && thread.number == 0;
    let (strangers, others): (Vec<Thread>, Vec<Thread>) = others.into_iter().partition(stops);
    inside::await_rest(others.iter().map(|t| t.id).collect(), closed).map_err(Beside::Call)?;
    stopping::stop_threads(strangers, closed)
}
