//! Threads of the program beside the captured one.
//!
//! While memory is closed, a thread that touches it waits in the handler until it is open again: its stack, known
//! since its start, stays open. A region that needs such a thread to go on cannot be captured.

use crate::{heap, sys, wanted};
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

/// Seconds that another thread waits before the capture is given up.
const PATIENCE: i64 = 10;
/// Signal that gives up the capture; ignored by default.
pub const NUDGE: i32 = libc::SIGURG;

static CLOSED: AtomicBool = AtomicBool::new(false);
static TURN: AtomicU32 = AtomicU32::new(0);
/// Thread pointer and number of the thread that the last capture began in.
static CAPTURED: (AtomicUsize, AtomicI32) = (AtomicUsize::new(0), AtomicI32::new(0));
static LIST: Mutex<Vec<Thread>> = Mutex::new(Vec::new());

/// A thread and its stack, thread control block included.
#[derive(Debug, Clone, Copy)]
struct Thread {
    id: i32,
    stack: (usize, usize),
}

type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

struct Work {
    start: Start,
    argument: *mut c_void,
}

fn id() -> i32 {
    // SAFETY: no arguments.
    unsafe { sys::call(libc::SYS_gettid, [0; 6]) as i32 }
}

/// Whether the calling thread is the one that the last capture began in.
pub fn is_captured() -> bool {
    crate::thread_pointer() == CAPTURED.0.load(Ordering::Relaxed)
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
        (found == 0).then_some((start as usize, start as usize + size))
    }
}

unsafe extern "C-unwind" fn run(work: *mut c_void) -> *mut c_void {
    // SAFETY: boxed by `pthread_create` below for this thread alone.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    let (start, argument) = (work.start, work.argument);
    drop(work);
    heap::in_library(|| {
        if let (Some(stack), Ok(mut list)) = (stack(), LIST.lock()) {
            list.push(Thread { id: id(), stack });
        }
    });
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
        if wanted::engine().is_none() {
            return real(thread, attributes, start, argument);
        }
        let work = Box::into_raw(Box::new(Work { start, argument }));
        let result = real(thread, attributes, run, work.cast());
        if result != 0 {
            drop(Box::from_raw(work));
        }
        result
    }
}

/// Whether a thread would be killed by a fault, for it blocks the signal.
fn blocks_faults(id: i32) -> bool {
    let text = std::fs::read(format!("/proc/self/task/{id}/status")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines()
        .find_map(|l| u64::from_str_radix(l.strip_prefix("SigBlk:")?.trim(), 16).ok())
        .is_none_or(|mask| mask & sys::bit(libc::SIGSEGV) != 0)
}

/// Stacks of all other threads; or why the calling thread cannot be captured beside them.
pub fn others() -> Result<Vec<(usize, usize)>, String> {
    let own = id();
    CAPTURED.0.store(crate::thread_pointer(), Ordering::Relaxed);
    CAPTURED.1.store(own, Ordering::Relaxed);
    // A thread that starts, or comes out of a handler, is soon as it should be.
    let mut tries = 0;
    loop {
        tries += 1;
        match list(own) {
            Err(_) if tries < 200 => std::thread::sleep(std::time::Duration::from_millis(1)),
            result => return result,
        }
    }
}

fn list(own: i32) -> Result<Vec<(usize, usize)>, String> {
    let tasks = std::fs::read_dir("/proc/self/task")
        .map_err(|e| format!("the program's threads cannot be listed: {e}"))?;
    let alive: Vec<i32> = tasks
        .filter_map(|t| t.ok()?.file_name().to_str()?.parse().ok())
        .filter(|id| *id != own)
        .collect();
    let mut list = LIST.lock().map_err(|e| e.to_string())?;
    list.retain(|t| alive.contains(&t.id));
    if list.len() != alive.len() {
        return Err("threads run that were not started by pthread_create".into());
    }
    if list.iter().any(|t| blocks_faults(t.id)) {
        return Err("another thread blocks all signals, faults included".into());
    }
    Ok(list.iter().map(|t| t.stack).collect())
}

/// Memory is about to be closed.
pub fn closed() {
    CLOSED.store(true, Ordering::Release);
}

/// Memory is open: threads that wait go on.
pub fn opened() {
    CLOSED.store(false, Ordering::Release);
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
    let patience = [PATIENCE, 0i64];
    let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let arguments = [
        TURN.as_ptr() as usize,
        wait,
        turn as usize,
        patience.as_ptr() as usize,
        0,
        0,
    ];
    // SAFETY: waits on the word; then perhaps a signal that the captured thread's handler takes, or nobody.
    unsafe {
        let result = sys::call(libc::SYS_futex, arguments);
        if result == -(libc::ETIMEDOUT as isize) && TURN.load(Ordering::Acquire) == turn {
            let process = sys::call(libc::SYS_getpid, [0; 6]) as usize;
            let captured = CAPTURED.1.load(Ordering::Relaxed) as usize;
            sys::call(
                libc::SYS_tgkill,
                [process, captured, NUDGE as usize, 0, 0, 0],
            );
        }
    }
}
