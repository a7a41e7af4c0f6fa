//! The threads of the program beside the captured one.
//!
//! Threads outside teams wait for closed memory, and stand still while an invocation is captured ([`crate::engine::gate`]). Their
//! stacks, known since their start, stay open. A region that needs such a thread to continue cannot be captured. Threads of the OpenMP runtime belong to the region and
//! continue ([`super::team`]).

use crate::engine::gate;
use crate::engine::state::Engine;
use crate::engine::turn;
use crate::os::inside::Doing;
use crate::os::stacks::Still;
use crate::os::sys::{self, PAGE};
use crate::os::{files, inside, local, section, thread};
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};

static LIST: Mutex<Vec<Thread>> = Mutex::new(Vec::new());
/// Its destructor runs at the end of each thread of the list.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// A thread and its stack, thread control block included.
#[derive(Debug, Clone, Copy)]
struct Thread {
    id: i32,
    stack: (usize, usize),
    /// Its alternate stack for signals, or an empty range.
    alternate: (usize, usize),
    ends: bool,
    /// Its number among the threads of the OpenMP runtime, from 1; 0 for others.
    number: u32,
    /// Its thread pointer.
    pointer: usize,
    /// Whether its system calls can be held.
    held: bool,
}

/// Whole pages around a range.
fn whole_pages(start: usize, size: usize) -> (usize, usize) {
    (start & !(PAGE - 1), (start + size).next_multiple_of(PAGE))
}

/// The stack of the calling thread.
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
        (found == 0).then(|| whole_pages(start as usize, size))
    }
}

/// The calling thread has started. Ordinary code.
pub fn list_this() {
    if let (Some(stack), Ok(mut list)) = (find_own_stack(), LIST.lock()) {
        list.push(Thread {
            id: thread::id(),
            stack,
            alternate: (0, 0),
            ends: false,
            number: local::team_number(),
            pointer: thread::pointer(),
            held: gate::report_calls(),
        });
    }
    let key = take_key();
    // SAFETY: our own key; any value but null has the destructor run.
    unsafe { libc::pthread_setspecific(key, std::ptr::dangling()) };
}

/// The library's key, whose destructor knows that a thread ends. Taken before any capture: a key that is taken inside would be one
/// that the region took. The last one whose data need no memory, so that the program's have the numbers that they have without.
pub fn take_key() -> libc::pthread_key_t {
    const LAST: libc::pthread_key_t = 31;
    *KEY.get_or_init(|| {
        let mut taken = [libc::pthread_key_t::MAX; LAST as usize + 1];
        for key in &mut taken {
            // SAFETY: a key of our own.
            let failed = unsafe { libc::pthread_key_create(key, Some(note_end)) } != 0;
            if failed || *key >= LAST {
                break;
            }
        }
        let made = taken
            .iter()
            .rposition(|key| *key != libc::pthread_key_t::MAX);
        for key in &taken[..made.unwrap_or(0)] {
            // SAFETY: nobody has used it.
            unsafe { libc::pthread_key_delete(*key) };
        }
        // No key has the largest number: to set its value fails.
        made.map_or(libc::pthread_key_t::MAX, |made| taken[made])
    })
}

/// The calling thread has this alternate stack for signals from now on, or none.
pub fn note_alternate_stack(new: &libc::stack_t) {
    let alternate = match new.ss_flags & libc::SS_DISABLE {
        0 => whole_pages(new.ss_sp as usize, new.ss_size),
        _ => (0, 0),
    };
    let own = thread::id();
    let _section = section::enter_section();
    if let Ok(mut list) = LIST.lock() {
        for thread in list.iter_mut().filter(|t| t.id == own) {
            thread.alternate = alternate;
        }
    }
}

/// The calling thread ends.
unsafe extern "C" fn note_end(_: *mut c_void) {
    let passing = gate::pass();
    let _section = section::enter_section();
    if let Ok(mut list) = LIST.lock() {
        let own = thread::id();
        for thread in list.iter_mut().filter(|t| t.id == own) {
            thread.ends = true;
        }
    }
    gate::passed(passing);
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
    !engine.stacks.is_empty() || turn::team_exists()
}

/// Whether a thread blocks SIGSEGV or SIGSYS: a fault, or a call that is held, would kill it.
fn blocks_faults(id: i32) -> bool {
    let text = files::read(files::of_process(&format!("task/{id}/status"))).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
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

/// Stacks of all other threads, or why the calling thread cannot be captured beside them. Bars the gate until
/// [`gate::memory_opened`].
pub fn find_other_stacks() -> Result<Vec<(usize, usize)>, String> {
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

fn check_others(own: i32) -> Result<Vec<(usize, usize)>, String> {
    // Threads leave the gate quickly.
    for _ in 0..1000 {
        if !gate::is_occupied() {
            break;
        }
        std::thread::yield_now();
    }
    if gate::is_occupied() {
        return Err("other threads start threads or processes all the time".into());
    }
    let mut alive =
        list_tasks().map_err(|e| format!("the program's threads cannot be listed: {e}"))?;
    alive.retain(|id| *id != own);
    let mut list = LIST.lock().map_err(|e| e.to_string())?;
    list.retain(|t| alive.contains(&t.id));
    if list.iter().any(|t| t.ends) {
        return Err("another thread ends".into());
    }
    if list.len() != alive.len() {
        return Err("threads run that were not started by pthread_create".into());
    }
    if list.iter().any(|t| !t.held) {
        return Err("the kernel does not hold system calls of other threads".into());
    }
    if list.iter().any(|t| blocks_faults(t.id)) {
        return Err("another thread blocks all signals, faults included".into());
    }
    let stacks = list.iter().flat_map(|t| [t.stack, t.alternate]);
    Ok(stacks.filter(|s| s.0 < s.1).collect())
}

/// Holds the system calls that other threads begin from now on, until [`gate::memory_opened`]. An error says why memory cannot
/// be closed during their present calls. `closed` says whether an address would be closed. If an invocation is `captured`,
/// threads outside teams stand still as well: returns them.
pub fn hold_others(captured: bool, closed: &dyn Fn(usize) -> bool) -> Result<Vec<Still>, String> {
    let others: Vec<Thread> = match LIST.lock() {
        Ok(list) => list.clone(),
        Err(e) => return Err(e.to_string()),
    };
    gate::hold_calls();
    inside::await_rest(others.iter().map(|t| t.id).collect(), closed)?;
    if !captured {
        return Ok(Vec::new());
    }
    let strangers: Vec<&Thread> = others.iter().filter(|t| t.number == 0).collect();
    stop_threads(strangers.iter().map(|t| t.id).collect(), closed)?;
    let mut still = Vec::new();
    for thread in strangers {
        let (call, stack) = match gate::stands(thread.id) {
            Some(stack) => (None, stack),
            None => match inside::find_doing(thread.id, closed)? {
                rests @ Doing::Rests(.., stack) => (Some(rests), stack),
                Doing::Ended => continue,
                Doing::Runs => return Err("another thread runs again".into()),
            },
        };
        if closed(stack) && thread.alternate.0 >= thread.alternate.1 {
            return Err(format!(
                "another thread ({}) has a stack that the program made itself, which a capture closes",
                thread.id
            ));
        }
        still.push(Still {
            id: thread.id,
            stack: thread.stack,
            call,
        });
    }
    Ok(still)
}

/// Makes those of the threads `ids` stand still that do not rest in a call. Their system calls are held.
fn stop_threads(mut ids: Vec<i32>, closed: &dyn Fn(usize) -> bool) -> Result<(), String> {
    /// Milliseconds until it is given up.
    const PATIENCE: u32 = 2000;
    for _ in 0..PATIENCE {
        let mut still = Vec::new();
        for id in ids {
            if gate::stands(id).is_none() && inside::find_doing(id, closed)? == Doing::Runs {
                gate::ask_to_stand(id);
                still.push(id);
            }
        }
        ids = still;
        if ids.is_empty() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Err(format!("another thread ({}) cannot be stopped", ids[0]))
}
