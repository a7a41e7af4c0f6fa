//! The gate before closed memory. While memory is closed, a thread of the program that touches it waits in the handler until it
//! is open again. So does a thread that makes a system call: to the kernel, closed memory does not exist.
//!
//! Pages that a captured invocation has opened are open to all threads. So threads outside teams stand still in a handler
//! meanwhile ([`stand`]): what it reads is then a function of its memory.
//!
//! A thread that blocks SIGSEGV is killed by a fault. libc blocks it where threads start and end and where processes fork.
//! Threads pass a gate there, which is barred while memory is closed.

use super::{lead, status, wakes};
use crate::os::inside::Call;
use crate::os::signals::NUDGE;
use crate::os::{futex, local, process, section, sys, thread};
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicUsize, Ordering, Ordering::SeqCst,
};

/// Seconds that another thread waits before the capture is given up.
const PATIENCE: i64 = 10;

static CLOSED: AtomicBool = AtomicBool::new(false);
/// Counts how often memory was opened: threads wait for it to change.
static OPENED: AtomicU32 = AtomicU32::new(0);
/// Thread pointer and id of the thread in which the last capture began.
static CAPTURED: (AtomicUsize, AtomicI32) = (AtomicUsize::new(0), AtomicI32::new(0));
/// Whether the gate is barred.
static BARRED: AtomicBool = AtomicBool::new(false);
/// 1 if system calls of other threads are held, 0 if they are let through.
static HELD: AtomicU8 = AtomicU8::new(0);
/// `si_code` of a SIGSEGV that asks a thread to stand still.
pub const STAND: i32 = -78;
/// Whether threads are asked to stand still.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Maximum number of threads that stand still.
const MOST: usize = 1024;
/// The threads that stand still: id, stack pointer, and the value of [`OPENED`] that they wait to change.
static STANDING: [(AtomicI32, AtomicUsize, AtomicU32); MOST] =
    [const { (AtomicI32::new(0), AtomicUsize::new(0), AtomicU32::new(0)) }; MOST];
/// How many of [`STANDING`] are in use.
static STOOD: AtomicUsize = AtomicUsize::new(0);
/// Number of threads in the gate, or between their creation and their entry in the list.
static PASSING: AtomicUsize = AtomicUsize::new(0);

/// Enters the gate; waits while it is barred. False if the calling thread does not need to enter: it is the captured one or of
/// its team, or nothing is ever closed.
pub fn pass() -> bool {
    if !waits() {
        return false;
    }
    loop {
        PASSING.fetch_add(1, SeqCst);
        let count = OPENED.load(SeqCst);
        if !BARRED.load(SeqCst) {
            return true;
        }
        PASSING.fetch_sub(1, SeqCst);
        if !await_opening(count) && BARRED.load(SeqCst) {
            nudge_captured();
        }
    }
}

/// Whether the calling thread has to wait for open memory: it neither leads nor is of a team.
fn waits() -> bool {
    status::prepared() && !lead::is_here() && !local::is_of_team()
}

/// Leaves the gate, if `passing`: if [`pass`] has entered it.
pub fn passed(passing: bool) {
    if passing {
        PASSING.fetch_sub(1, SeqCst);
    }
}

/// Counts a thread that the calling one is about to start as in the gate.
pub fn pass_another() {
    PASSING.fetch_add(1, SeqCst);
}

/// Whether a thread is in the gate.
pub fn is_occupied() -> bool {
    PASSING.load(SeqCst) != 0
}

/// Bars the gate until [`memory_opened`].
pub fn bar_gate() {
    BARRED.store(true, SeqCst);
}

/// Holds the system calls that other threads begin from now on, until [`memory_opened`].
pub fn hold_calls() {
    HELD.store(1, SeqCst);
}

/// What a thread is asked with: the kernel's record of the signal.
#[repr(C)]
struct Request {
    signal: i32,
    error: i32,
    code: i32,
    /// Whether the thread rests in a call.
    rests: i32,
    /// Number of that call, the stack pointer there, and where the program goes on.
    call: [usize; 3],
    rest: [usize; 11],
}

/// Asks a thread to stand still until [`memory_opened`]. It does so at its next instruction outside of sections, if at all:
/// [`stands`] tells. If it rests in a `call`, that is interrupted, and made again afterwards.
pub fn ask_to_stand(id: i32, call: Option<Call>) {
    if !ASKED.swap(true, SeqCst) {
        STOOD.store(0, SeqCst);
    }
    let mut request = Request {
        signal: libc::SIGSEGV,
        error: 0,
        code: STAND,
        rests: call.is_some().into(),
        call: call.map_or([0; 3], |call| [call.number, call.stack, call.next]),
        rest: [0; 11],
    };
    const { assert!(size_of::<Request>() == size_of::<libc::siginfo_t>()) };
    let info = (&raw mut request).cast();
    // SAFETY: as large as the record; the handler of this signal knows its code.
    unsafe { thread::send(id as usize, libc::SIGSEGV, info) };
}

/// The stack pointer of a thread that stands still.
pub fn stands(id: i32) -> Option<usize> {
    let noted = &STANDING[..STOOD.load(SeqCst).min(MOST)];
    let here = |one: &&(AtomicI32, AtomicUsize, AtomicU32)| {
        one.0.load(SeqCst) == id && one.2.load(SeqCst) == OPENED.load(SeqCst)
    };
    Some(noted.iter().find(here)?.1.load(SeqCst))
}

/// In the handler of a thread that was asked to stand still: waits until memory is open.
///
/// # Safety
/// `info` is the handler's record of that.
pub unsafe fn stand(info: *const libc::siginfo_t, context: &mut libc::ucontext_t) {
    // SAFETY: what `ask_to_stand` sent.
    make_again(unsafe { &*info.cast::<Request>() }, context);
    let count = OPENED.load(SeqCst);
    // It may hold a lock of the library, and is asked again.
    if !ASKED.load(SeqCst) || section::is_interrupted() {
        return;
    }
    if let Some(place) = STANDING.get(STOOD.fetch_add(1, SeqCst)) {
        place.0.store(0, SeqCst);
        place.1.store((&raw const count) as usize, SeqCst);
        place.2.store(count, SeqCst);
        place.0.store(thread::id(), SeqCst);
    }
    interrupting(context, || {
        while ASKED.load(SeqCst) && OPENED.load(SeqCst) == count {
            if !await_opening(count) {
                nudge_captured();
            }
        }
    });
}

/// Waits in a handler: the frames of that lie below the stack pointer of what it interrupts.
pub fn interrupting(context: &libc::ucontext_t, wait: impl FnOnce()) {
    let interrupted = &local::local().interrupted;
    let stack = context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize;
    let before = interrupted.swap(stack, Ordering::Relaxed);
    wait();
    interrupted.store(before, Ordering::Relaxed);
}

/// If the signal has interrupted the call in which the thread rested, the thread makes that again when the handler returns. No
/// call that says "interrupted" has done anything.
fn make_again(request: &Request, context: &mut libc::ucontext_t) {
    /// Bytes of the instruction `syscall`.
    const SIZE: i64 = 2;
    let [number, stack, next] = request.call.map(|word| word as i64);
    let registers = &mut context.uc_mcontext.gregs;
    let at = |place: i32| place as usize;
    if request.rests != 0
        && registers[at(libc::REG_RIP)] == next
        && registers[at(libc::REG_RSP)] == stack
        && registers[at(libc::REG_RAX)] == -i64::from(libc::EINTR)
    {
        registers[at(libc::REG_RIP)] -= SIZE;
        registers[at(libc::REG_RAX)] = number;
    }
}

/// Whether a thread that rests in this call waits here until memory is open.
pub fn is_wait(call: &Call) -> bool {
    call.number as i64 == libc::SYS_futex && call.arguments[0] == OPENED.as_ptr() as usize
}

/// Makes the calling thread's system calls holdable. False if the kernel refuses.
pub fn report_calls() -> bool {
    let held = sys::dispatch_calls(Some(HELD.as_ptr())) == 0;
    if held {
        local::local()
            .held
            .store(HELD.as_ptr() as usize, Ordering::Relaxed);
    }
    held
}

/// A capture begins in the calling thread.
pub fn set_captured() {
    CAPTURED.0.store(thread::pointer(), Ordering::Relaxed);
    CAPTURED.1.store(thread::id(), Ordering::Relaxed);
}

/// Runs `work` in the gate: memory is not closed meanwhile.
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

/// Whether the calling thread is the one that the last capture began in.
pub fn is_captured() -> bool {
    thread::pointer() == CAPTURED.0.load(Ordering::Relaxed)
}

/// Id of that thread.
pub fn captured_id() -> usize {
    CAPTURED.1.load(Ordering::Relaxed) as usize
}

/// In a handler of another thread that is about to make a system call: waits until memory is open.
pub fn await_calls() {
    loop {
        let count = OPENED.load(SeqCst);
        if HELD.load(SeqCst) == 0 {
            return;
        }
        if !await_opening(count) {
            nudge_captured();
        }
    }
}

/// Memory is about to be closed.
pub fn memory_closes() {
    CLOSED.store(true, Ordering::Release);
}

/// In a forked child, which has one thread: opens the gate.
pub fn reset_in_child() {
    HELD.store(0, SeqCst);
    ASKED.store(false, SeqCst);
    wakes::reset_in_child();
    lead::reset_in_child();
    CLOSED.store(false, Ordering::Release);
    BARRED.store(false, SeqCst);
    PASSING.store(0, SeqCst);
}

/// Memory is open: waiting threads continue.
pub fn memory_opened() {
    HELD.store(0, SeqCst);
    ASKED.store(false, SeqCst);
    CLOSED.store(false, Ordering::Release);
    BARRED.store(false, SeqCst);
    OPENED.fetch_add(1, Ordering::Release);
    futex::wake(&OPENED, i32::MAX);
    wakes::wake_now();
}

/// In a handler of another thread: waits until memory is open.
pub fn await_memory() {
    let count = OPENED.load(Ordering::Acquire);
    if !CLOSED.load(Ordering::Acquire) {
        return;
    }
    if !await_opening(count) {
        nudge_captured();
    }
}

/// In a handler of another thread that got a signal of the program while the library's handlers are installed: waits until that may
/// have changed. Those that are installed before memory is closed, and removed after it is open.
pub fn await_handlers() {
    const SOON: [i64; 2] = [0, 100_000];
    let count = OPENED.load(SeqCst);
    if !CLOSED.load(SeqCst) && !BARRED.load(SeqCst) {
        let arguments = [SOON.as_ptr() as usize, 0, 0, 0, 0, 0];
        // SAFETY: a time.
        unsafe { sys::call(libc::SYS_nanosleep, arguments) };
    } else if !await_opening(count) {
        nudge_captured();
    }
}

/// Waits until [`OPENED`] is no longer `count`; false if that takes longer than [`PATIENCE`].
fn await_opening(count: u32) -> bool {
    futex::wait(&OPENED, count, [PATIENCE, 0]) || OPENED.load(Ordering::Acquire) != count
}

/// Asks the captured thread to give up.
pub fn nudge_captured() {
    // SAFETY: a signal that the captured thread's handler takes, or nobody.
    unsafe {
        let process = process::id() as usize;
        let arguments = [process, captured_id(), NUDGE as usize, 0, 0, 0];
        sys::call(libc::SYS_tgkill, arguments);
    }
}
