//! Threads of the program beside the captured one.
//!
//! While memory is closed, a thread that touches it waits in the handler until it is open again: its stack, known
//! since its start, stays open. So does one that makes a system call: the kernel takes closed memory for none at all.
//! A region that needs such a thread to go on cannot be captured. The threads of the OpenMP runtime are another matter:
//! what they touch is the region's, and they go on ([`crate::team`]).
//!
//! A thread that blocks the signal of faults dies of one. libc blocks it where threads start and end and processes
//! fork: threads pass a gate there, which is barred while memory is closed.

use crate::engine::Engine;
use crate::pool::PAGE;
use crate::{heap, inside, local, locks, openmp, section, sys, team, wanted};
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicUsize, Ordering, Ordering::SeqCst,
};

/// Seconds that another thread waits before the capture is given up.
const PATIENCE: i64 = 10;
/// Signal that gives up the capture; ignored by default.
pub const NUDGE: i32 = libc::SIGURG;

static CLOSED: AtomicBool = AtomicBool::new(false);
static TURN: AtomicU32 = AtomicU32::new(0);
/// Thread pointer and number of the thread that the last capture began in.
static CAPTURED: (AtomicUsize, AtomicI32) = (AtomicUsize::new(0), AtomicI32::new(0));
static LIST: Mutex<Vec<Thread>> = Mutex::new(Vec::new());
/// Whether the gate is barred.
static BARRED: AtomicBool = AtomicBool::new(false);
/// Whether system calls of the other threads are held: 1, or let through: 0.
static HELD: AtomicU8 = AtomicU8::new(0);
/// Threads in the gate, or on their way from their creation to the list.
static PASSING: AtomicUsize = AtomicUsize::new(0);
/// Threads that the OpenMP runtime has started.
static STARTED: AtomicUsize = AtomicUsize::new(0);
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
    /// Its number among those that the OpenMP runtime started, from 1; 0: it did not start it.
    number: u32,
    /// Its thread pointer.
    pointer: usize,
    /// Whether its system calls can be held.
    held: bool,
}

type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

struct Work {
    start: Start,
    argument: *mut c_void,
    /// Whether it counts as passing.
    passing: bool,
    /// Its number among those that the OpenMP runtime starts, from 1; 0: it does not start it.
    team: usize,
    /// Its signal mask, where it is not its creator's.
    mask: Option<u64>,
}

/// Enters the gate, waits before it while it is barred. False if the calling thread has no need to: memory is closed
/// by it alone, or by nobody.
fn pass() -> bool {
    if !waits() {
        return false;
    }
    loop {
        PASSING.fetch_add(1, SeqCst);
        let turn = TURN.load(SeqCst);
        if !BARRED.load(SeqCst) {
            return true;
        }
        PASSING.fetch_sub(1, SeqCst);
        if !await_turn(turn, &[PATIENCE, 0]) && BARRED.load(SeqCst) {
            nudge();
        }
    }
}

/// Whether the calling thread is one that waits until memory is open: neither the captured one nor of its team.
fn waits() -> bool {
    wanted::prepared() && !wanted::is_main() && !local::of_team()
}

fn passed(passing: bool) {
    if passing {
        PASSING.fetch_sub(1, SeqCst);
    }
}

/// Runs `work` where memory is not closed, from a thread that is not the captured one.
pub fn in_gate<T>(work: impl FnOnce() -> T) -> T {
    let passing = pass();
    let result = work();
    passed(passing);
    result
}

/// The calling thread is about to fork.
pub unsafe extern "C" fn before_fork() {
    pass();
}

/// The calling thread has forked.
pub unsafe extern "C" fn after_fork() {
    passed(waits());
}

/// The calling thread ends.
unsafe extern "C" fn ends(_: *mut c_void) {
    let passing = pass();
    let _section = section::enter();
    if let Ok(mut list) = LIST.lock() {
        let own = id();
        for thread in list.iter_mut().filter(|t| t.id == own) {
            thread.ends = true;
        }
    }
    passed(passing);
}

/// Whole pages around a range.
fn pages(start: usize, size: usize) -> (usize, usize) {
    (start & !(PAGE - 1), (start + size).next_multiple_of(PAGE))
}

fn id() -> i32 {
    // SAFETY: no arguments.
    unsafe { sys::call(libc::SYS_gettid, [0; 6]) as i32 }
}

/// Whether the process has no threads but the calling one and those of the OpenMP runtime.
pub fn alone_with_team() -> bool {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return false;
    };
    let tasks: Vec<i32> = tasks
        .filter_map(|t| t.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let Ok(list) = LIST.lock() else { return false };
    let own = id();
    let of_team = |task: &i32| list.iter().any(|t| t.id == *task && t.number != 0);
    tasks.iter().all(|task| *task == own || of_team(task))
}

/// Whether other threads may be on their way in a handler of ours.
pub fn beside(engine: &Engine) -> bool {
    !engine.stacks.is_empty() || team::exists()
}

/// Whether the calling thread is the one that the last capture began in.
pub fn is_captured() -> bool {
    crate::thread_pointer() == CAPTURED.0.load(Ordering::Relaxed)
}

/// Number of that thread.
pub fn captured() -> usize {
    CAPTURED.1.load(Ordering::Relaxed) as usize
}

/// The stack of the calling thread.
fn stack() -> Option<(usize, usize)> {
    // SAFETY: the attributes are the calling thread's own and destroyed again.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut start, mut size) = (std::ptr::null_mut(), 0);
        let found = libc::pthread_attr_getstack(&attributes, &mut start, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
        (found == 0).then(|| pages(start as usize, size))
    }
}

unsafe extern "C-unwind" fn run(work: *mut c_void) -> *mut c_void {
    // SAFETY: boxed by `pthread_create` below for this thread alone.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    let (start, argument, passing) = (work.start, work.argument, work.passing);
    local::joins_team(work.team);
    if let Some(mask) = work.mask {
        sys::mask(mask);
    }
    drop(work);
    heap::in_library(|| {
        if let (Some(stack), Ok(mut list)) = (stack(), LIST.lock()) {
            list.push(Thread {
                id: id(),
                stack,
                alternate: (0, 0),
                ends: false,
                number: local::number(),
                pointer: crate::thread_pointer(),
                held: sys::dispatch(Some(HELD.as_ptr())) == 0,
            });
        }
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: a key of our own.
            let failed = unsafe { libc::pthread_key_create(&mut key, Some(ends)) } != 0;
            // No key has this number: to set its value fails.
            if failed {
                libc::pthread_key_t::MAX
            } else {
                key
            }
        });
        // SAFETY: our own key; any value but null has the destructor run.
        unsafe { libc::pthread_setspecific(*key, std::ptr::dangling()) };
    });
    passed(passing);
    // SAFETY: as the program's.
    unsafe { start(argument) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> i32 {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Start,
        *mut c_void,
    ) -> i32;
    let real = crate::next(&REAL, c"pthread_create");
    // SAFETY: libc's function; the box is the new thread's.
    unsafe {
        let real = std::mem::transmute::<usize, Create>(real);
        if !wanted::prepared() {
            return real(thread, attributes, start, argument);
        }
        let passing = pass();
        if passing {
            PASSING.fetch_add(1, SeqCst);
        }
        let team = openmp::holds(start as *const () as usize);
        let number = if team {
            STARTED.fetch_add(1, SeqCst) + 1
        } else {
            0
        };
        let work = Box::into_raw(Box::new(Work {
            start,
            argument,
            passing,
            team: number,
            mask: openmp::mask_of_new(),
        }));
        let result = team::creates(team, attributes, |attributes| {
            real(thread, attributes, run, work.cast())
        });
        if result != 0 {
            drop(Box::from_raw(work));
            passed(passing);
        }
        passed(passing);
        result
    }
}

/// The handlers run on a thread's alternate stack, if it has one: that stays open as well.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> i32 {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    type Set = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> i32;
    let real = crate::next(&REAL, c"sigaltstack");
    // SAFETY: libc's function; `new` is readable, for the call has succeeded.
    unsafe {
        let real = std::mem::transmute::<usize, Set>(real);
        let passing = !new.is_null() && pass();
        let result = real(new, old);
        if passing && result == 0 {
            let alternate = match (*new).ss_flags & libc::SS_DISABLE {
                0 => pages((*new).ss_sp as usize, (*new).ss_size),
                _ => (0, 0),
            };
            let own = id();
            let _section = section::enter();
            if let Ok(mut list) = LIST.lock() {
                for thread in list.iter_mut().filter(|t| t.id == own) {
                    thread.alternate = alternate;
                }
            }
        }
        passed(passing);
        result
    }
}

/// Whether a thread would be killed by a fault or by a call that is held, for it blocks the signal.
fn blocks_faults(id: i32) -> bool {
    let text = std::fs::read(format!("/proc/self/task/{id}/status")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines()
        .find_map(|l| u64::from_str_radix(l.strip_prefix("SigBlk:")?.trim(), 16).ok())
        .is_none_or(|mask| mask & (sys::bit(libc::SIGSEGV) | sys::bit(libc::SIGSYS)) != 0)
}

/// What the threads of the OpenMP runtime hold where the calling one has [start, start + size) of its static thread-local storage,
/// by their numbers. Ordinary code; they are kept out.
pub fn blocks(start: usize, size: usize) -> Vec<(u32, Vec<u8>)> {
    let Ok(list) = LIST.lock() else {
        return Vec::new();
    };
    let from = crate::thread_pointer().wrapping_sub(start);
    let mut found: Vec<(u32, Vec<u8>)> = Vec::new();
    for thread in list.iter().filter(|t| t.number != 0 && !t.ends) {
        let at = thread.pointer.wrapping_sub(from);
        // That of an image loaded later lies elsewhere.
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

/// Stacks of all other threads; or why the calling thread cannot be captured beside them. Bars the gate until
/// [`opened`].
pub fn others() -> Result<Vec<(usize, usize)>, String> {
    let own = id();
    CAPTURED.0.store(crate::thread_pointer(), Ordering::Relaxed);
    CAPTURED.1.store(own, Ordering::Relaxed);
    // A thread that starts, or comes out of a handler, is soon as it should be.
    let mut tries = 0;
    loop {
        tries += 1;
        BARRED.store(true, SeqCst);
        match list(own) {
            Err(_) if tries < 200 => {
                opened();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

fn list(own: i32) -> Result<Vec<(usize, usize)>, String> {
    // Those in the gate are through in no time.
    for _ in 0..1000 {
        if PASSING.load(SeqCst) == 0 {
            break;
        }
        std::thread::yield_now();
    }
    if PASSING.load(SeqCst) != 0 {
        return Err("other threads start threads or processes all the time".into());
    }
    let tasks = std::fs::read_dir("/proc/self/task")
        .map_err(|e| format!("the program's threads cannot be listed: {e}"))?;
    let alive: Vec<i32> = tasks
        .filter_map(|t| t.ok()?.file_name().to_str()?.parse().ok())
        .filter(|id| *id != own)
        .collect();
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

/// The threads that no region is a team of, and their stacks. Ordinary code.
pub fn strangers() -> Vec<(i32, (usize, usize))> {
    let own = id();
    let Ok(list) = LIST.lock() else {
        return Vec::new();
    };
    let others = list.iter().filter(|t| t.id != own && t.number == 0);
    others.map(|t| (t.id, t.stack)).collect()
}

/// Holds the system calls that other threads begin from now on until [`opened`]. Why memory cannot be closed beside
/// those that they are inside of, if so; `closed` tells of an address whether it would be.
pub fn hold_calls(closed: &dyn Fn(usize) -> bool) -> Result<(), String> {
    let ids = match LIST.lock() {
        Ok(list) => list.iter().map(|t| t.id).collect(),
        Err(e) => return Err(e.to_string()),
    };
    HELD.store(1, SeqCst);
    inside::settle(ids, closed)
}

/// In a handler of another thread, which is about to make a system call: waits until memory is open.
pub fn hold() {
    loop {
        let turn = TURN.load(SeqCst);
        if HELD.load(SeqCst) == 0 {
            return;
        }
        if !await_turn(turn, &[PATIENCE, 0]) {
            nudge();
        }
    }
}

/// Memory is about to be closed.
pub fn closed() {
    CLOSED.store(true, Ordering::Release);
}

/// A forked child has one thread.
pub fn forked() {
    team::forked();
    locks::forked();
    HELD.store(0, SeqCst);
    CLOSED.store(false, Ordering::Release);
    BARRED.store(false, SeqCst);
    PASSING.store(0, SeqCst);
}

/// Memory is open: threads that wait go on.
pub fn opened() {
    HELD.store(0, SeqCst);
    CLOSED.store(false, Ordering::Release);
    BARRED.store(false, SeqCst);
    TURN.fetch_add(1, Ordering::Release);
    let at = TURN.as_ptr() as usize;
    let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: wakes whoever waits on the word.
    unsafe { sys::call(libc::SYS_futex, [at, wake, i32::MAX as usize, 0, 0, 0]) };
}

/// In a handler of another thread: waits until memory is open.
pub fn wait() {
    let turn = TURN.load(Ordering::Acquire);
    if !CLOSED.load(Ordering::Acquire) {
        return;
    }
    if !await_turn(turn, &[PATIENCE, 0]) {
        nudge();
    }
}

/// Waits until [`TURN`] is no longer `turn`; false if that takes longer than `patience`.
fn await_turn(turn: u32, patience: &[i64; 2]) -> bool {
    let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let arguments = [
        TURN.as_ptr() as usize,
        wait,
        turn as usize,
        patience.as_ptr() as usize,
        0,
        0,
    ];
    // SAFETY: waits on the word.
    let result = unsafe { sys::call(libc::SYS_futex, arguments) };
    result != -(libc::ETIMEDOUT as isize) || TURN.load(Ordering::Acquire) != turn
}

/// Has the captured thread give up.
pub fn nudge() {
    // SAFETY: a signal that the captured thread's handler takes, or nobody.
    unsafe {
        let process = sys::call(libc::SYS_getpid, [0; 6]) as usize;
        let captured = CAPTURED.1.load(Ordering::Relaxed) as usize;
        sys::call(
            libc::SYS_tgkill,
            [process, captured, NUDGE as usize, 0, 0, 0],
        );
    }
}
