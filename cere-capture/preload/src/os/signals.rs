//! What signals do while captures are in progress: the library's handlers, registered at start, stand in the place of the
//! program's, which are kept here.

use super::local::local;
use super::sys::{self, Action, Handler};
use super::{section, thread};
use libc::{siginfo_t, ucontext_t};
use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

const SIGNALS: i32 = 64;
/// Signal that asks the captured thread to give up the captures; ignored by default.
pub const NUDGE: i32 = libc::SIGURG;
/// Seconds that a signal of the program waits until the captures are given up.
const PATIENCE: f64 = 3.0;
/// Signals that captures need.
const NEEDED: u64 =
    sys::signal_bit(libc::SIGSEGV) | sys::signal_bit(libc::SIGSYS) | sys::signal_bit(NUDGE);

/// Those that other threads may still receive after captures have ended.
const LINGERING: [i32; 2] = [libc::SIGSEGV, libc::SIGSYS];

/// `si_code` of a nudge that waited for the end of a section.
pub const LEFT: i32 = -77;
/// `si_code` of a nudge before a captured invocation calls a function that needs what no replay has.
pub const MEETS: i32 = -79;
/// Flags that the library's handlers take over from the program's.
const KEPT: u64 = (libc::SA_RESTART | libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT) as u64;

/// 1 if system calls of the captured thread are caught, 0 if they are let through.
static SELECTOR: AtomicU8 = AtomicU8::new(0);
static mut SAVED: Saved = Saved {
    actions: [Action {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    }; SIGNALS as usize + 1],
    replaced: 0,
    stack: [0; 3],
    mask: 0,
    deferred: 0,
    timers: [None; 2],
    lingers: false,
    installed: false,
    handlers: Handlers {
        fault: ignore,
        call: ignore,
        nudge: ignore,
        other: ignore,
    },
};

/// The program's own state of signals.
struct Saved {
    actions: [Action; SIGNALS as usize + 1],
    replaced: u64,
    stack: [usize; 3],
    mask: u64,
    /// Signals that the library has blocked until the captures end.
    deferred: u64,
    /// Timers that nudge: for a signal that waits, and for threads that stand still ([`watch`]).
    timers: [Option<i32>; 2],
    /// Whether the handlers of [`LINGERING`] are still installed after the captures.
    lingers: bool,
    installed: bool,
    handlers: Handlers,
}

/// The library's handlers.
#[derive(Clone, Copy)]
pub struct Handlers {
    /// Of SIGSEGV.
    pub fault: Handler,
    /// Of SIGSYS: of system calls that are caught.
    pub call: Handler,
    /// Of [`NUDGE`].
    pub nudge: Handler,
    /// Of all others that the program handles.
    pub other: Handler,
}

extern "C" fn ignore(_: i32, _: *mut siginfo_t, _: *mut ucontext_t) {}

/// Registers the handlers that [`install_handlers`] puts in force. Main thread, before the first capture.
pub fn register_handlers(handlers: Handlers) {
    // SAFETY: used by the thread that leads alone.
    unsafe { SAVED.handlers = handlers };
}

/// The program's disposition of `signal`, if the library's has replaced it.
pub fn replaced_action(signal: i32) -> Option<Action> {
    if !(1..=SIGNALS).contains(&signal) {
        return None;
    }
    // SAFETY: only the thread that leads gets here, and nobody holds a reference.
    unsafe {
        (SAVED.replaced & sys::signal_bit(signal) != 0).then(|| SAVED.actions[signal as usize])
    }
}

/// Lets the captured thread's system calls through, or has them caught.
pub fn let_calls(through: bool) {
    SELECTOR.store((!through).into(), Ordering::Relaxed);
}

/// Why the handlers cannot be installed.
#[derive(Debug, Clone, Copy)]
pub enum NoHandlers {
    /// System calls cannot be caught.
    NoDispatch,
    /// The alternate stack is in use.
    OnStack,
}

impl Display for NoHandlers {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            NoHandlers::NoDispatch => {
                "the kernel has no Syscall User Dispatch (Linux 5.11 and later have it)"
            }
            NoHandlers::OnStack => "the region runs in a signal handler on an alternate stack",
        })
    }
}

/// Installs the handlers, on a stack at [start, end); `mask` is the program's signal mask.
pub fn install_handlers(stack: (usize, usize), mask: u64) -> Result<(), NoHandlers> {
    let_calls(true);
    if sys::dispatch_calls(Some(SELECTOR.as_ptr())) < 0 {
        return Err(NoHandlers::NoDispatch);
    }
    let new = [stack.0, 0, stack.1 - stack.0];
    // SAFETY: only the thread that leads gets here; stack_t is three words on x86-64.
    unsafe {
        let (at, old) = (new.as_ptr() as usize, (&raw mut SAVED.stack) as usize);
        if sys::call(libc::SYS_sigaltstack, [at, old, 0, 0, 0, 0]) < 0 {
            sys::dispatch_calls(None);
            return Err(NoHandlers::OnStack);
        }
        SAVED.mask = mask;
        SAVED.replaced = 0;
        SAVED.deferred = 0;
        SAVED.installed = true;
        for signal in 1..=SIGNALS {
            let needed = sys::signal_bit(signal) & NEEDED != 0;
            if signal == libc::SIGKILL || signal == libc::SIGSTOP {
                continue;
            }
            let mut old = sys::exchange_action(signal, None);
            let ours = [SAVED.handlers.fault, SAVED.handlers.call];
            let ours = ours.map(|handler| handler as *const () as usize);
            if SAVED.lingers && LINGERING.contains(&signal) && ours.contains(&old.handler) {
                old = SAVED.actions[signal as usize];
            }
            if needed || old.handler > libc::SIG_IGN {
                replace_action(signal, old);
            }
        }
    }
    Ok(())
}

/// Replaces the program's disposition by the library's handler.
unsafe fn replace_action(signal: i32, old: Action) {
    // SAFETY: used by the thread that leads alone.
    let handlers = unsafe { SAVED.handlers };
    let handler = match signal {
        libc::SIGSEGV => handlers.fault,
        libc::SIGSYS => handlers.call,
        NUDGE => handlers.nudge,
        _ => handlers.other,
    };
    let mut ours = Action::ours(handler);
    // Its effects on interrupted calls and on children stay the program's.
    ours.flags |= match old.handler {
        handler if handler > libc::SIG_IGN => old.flags & KEPT,
        _ => libc::SA_RESTART as u64,
    };
    // SAFETY: used by the thread that leads alone.
    unsafe {
        SAVED.actions[signal as usize] = old;
        SAVED.replaced |= sys::signal_bit(signal);
    }
    sys::exchange_action(signal, Some(&ours));
}

/// The program changes a disposition while handlers are installed. Returns the former one; none if the kernel would refuse.
pub fn change_action(signal: i32, new: Option<Action>) -> Option<Action> {
    if !(1..=SIGNALS).contains(&signal) || signal == libc::SIGKILL || signal == libc::SIGSTOP {
        return None;
    }
    let old = replaced_action(signal).unwrap_or_else(|| sys::exchange_action(signal, None));
    let Some(mut new) = new else { return Some(old) };
    new.mask &= !(sys::signal_bit(libc::SIGKILL) | sys::signal_bit(libc::SIGSTOP));
    // SAFETY: used by the thread that leads alone.
    unsafe {
        if sys::signal_bit(signal) & NEEDED != 0 || new.handler > libc::SIG_IGN {
            replace_action(signal, new);
        } else {
            sys::exchange_action(signal, Some(&new));
            SAVED.replaced &= !sys::signal_bit(signal);
        }
    }
    Some(old)
}

/// The captured thread's signal mask while captures are in progress, computed from the program's.
pub fn mask_inside(mask: u64) -> u64 {
    // SAFETY: a plain word, of the thread that leads.
    mask_in_team(mask) | unsafe { SAVED.deferred }
}

/// The same for a thread of a team.
pub fn mask_in_team(mask: u64) -> u64 {
    mask & !NEEDED
}

/// The program's signal mask, computed from the mask while captures are in progress.
pub fn mask_outside(mask: u64) -> u64 {
    // SAFETY: plain words, of the thread that leads.
    unsafe {
        if SAVED.installed {
            mask & !(SAVED.deferred | NEEDED) | SAVED.mask & NEEDED
        } else {
            mask
        }
    }
}

/// Whether the program has a handler of `signal`. While captures are in progress.
pub fn is_handled(signal: i32) -> bool {
    replaced_action(signal).is_some_and(|action| action.handler > libc::SIG_IGN)
}

/// Whether the program has handlers of signals.
pub fn program_handles() -> bool {
    // The first two real-time signals are libc's.
    (1..32).chain(34..=SIGNALS).any(is_handled)
}

/// In a handler: makes a call that waits, and lets signals end the program meanwhile. None if the program has handlers: a
/// signal would have to interrupt the call.
pub fn wait_with_signals(call: impl FnOnce() -> isize) -> Option<isize> {
    if program_handles() {
        return None;
    }
    // SAFETY: a plain word, of the thread that leads.
    let mask = unsafe { SAVED.mask };
    // SAFETY: a plain word, of the thread that leads.
    let before = sys::exchange_mask(mask | NEEDED | unsafe { SAVED.replaced });
    let result = call();
    sys::exchange_mask(before);
    Some(result)
}

/// The program's signal mask while captures are in progress.
pub fn program_mask() -> u64 {
    // SAFETY: a plain word, of the thread that leads.
    unsafe { SAVED.mask }
}

/// The program sets its signal mask while captures are in progress.
pub fn set_mask(mask: u64) {
    // SAFETY: plain words, of the thread that leads.
    unsafe {
        SAVED.mask = mask;
        SAVED.deferred &= !mask;
    }
}

/// Restores the program's dispositions, if handlers are installed. In a handler, `context` is what it returns to. If other
/// `threads` run, the handlers of [`LINGERING`] stay.
pub fn remove_handlers(context: Option<&mut ucontext_t>, threads: bool) {
    // SAFETY: used by the thread that leads alone.
    unsafe {
        if !SAVED.installed {
            return;
        }
        let held = local().held.load(Ordering::Relaxed) as *const u8;
        sys::dispatch_calls((!held.is_null()).then_some(held));
        SAVED.lingers = threads;
        for signal in 1..=SIGNALS {
            let stays = threads && LINGERING.contains(&signal);
            if SAVED.replaced & sys::signal_bit(signal) != 0 && !stays {
                let old = SAVED.actions[signal as usize];
                sys::exchange_action(signal, Some(&old));
            }
        }
        SAVED.replaced = 0;
        section::forget_signals(sys::signal_bit(NUDGE));
        let stack = (&raw const SAVED.stack) as usize;
        match context {
            None => {
                sys::call(libc::SYS_sigaltstack, [stack, 0, 0, 0, 0, 0]);
            }
            Some(context) => {
                context.uc_stack = *(stack as *const libc::stack_t);
                // Linux 6.12 and later refuse what the context says: the handler returns from the stack that it leaves.
                sys::cere_leave_stack(&raw const context.uc_stack, stack_pointer(context));
                let mask = (&raw mut context.uc_sigmask).cast::<u64>();
                *mask = mask_outside(*mask);
            }
        }
        release_deferred(0);
        SAVED.installed = false;
    }
}

/// Releases the signals that wait for the end of the captures. Returns the program's signal mask, computed from the present
/// `mask`.
pub fn release_deferred(mask: u64) -> u64 {
    let own = mask_outside(mask);
    // SAFETY: plain words, of the thread that leads.
    unsafe {
        let timers = SAVED.timers;
        SAVED.timers = [None; 2];
        for timer in timers.into_iter().flatten() {
            sys::call(libc::SYS_timer_delete, [timer as usize, 0, 0, 0, 0, 0]);
        }
        SAVED.deferred = 0;
    }
    own
}

/// In a handler that interrupts a section: nudges the calling thread when the section ends.
pub fn nudge_after(context: &mut ucontext_t) {
    // SAFETY: a record of our own, and the handler's context.
    unsafe {
        let mut info: siginfo_t = std::mem::zeroed();
        info.si_signo = NUDGE;
        info.si_code = LEFT;
        section::postpone_signal(NUDGE, &mut info, context);
    }
}

/// Stack pointer of the interrupted code.
pub fn stack_pointer(context: &ucontext_t) -> usize {
    context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
}

/// In a lingering handler, with nothing closed: restores the program's disposition of the signal.
pub fn give_back(signal: i32) {
    // SAFETY: the thread that leads alone changes it, and not while nothing is captured.
    let old = unsafe { SAVED.actions[signal as usize] };
    sys::exchange_action(signal, Some(&old));
}

/// In a handler: a fault while nothing is closed. Either it began before memory was opened and does not repeat, or it is the
/// program's own. `opened` counts how often memory was opened: a fault
/// that repeats after another opening is a new one.
///
/// # Safety
/// `info` is the handler's.
pub unsafe fn late_fault(address: usize, opened: usize, signal: i32, info: *mut siginfo_t) {
    static LAST: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
    let before = [&LAST[0], &LAST[1], &LAST[2]].map(|l| l.load(Ordering::Relaxed));
    let this = [thread::pointer(), address, opened];
    // SAFETY: the kernel's record.
    let sent = unsafe { (*info).si_code } <= 0;
    if before == this || sent {
        give_back(libc::SIGSEGV);
    }
    if sent {
        // SAFETY: the kernel's record.
        unsafe { thread::send_again(signal, info) };
    }
    for (last, this) in LAST.iter().zip(this) {
        last.store(this, Ordering::Relaxed);
    }
}

/// In a handler: blocks `signal` until the captures end. They are given up if that takes long.
pub fn defer_signal(signal: i32, context: &mut ucontext_t) {
    // SAFETY: the kernel's record; only the thread that leads gets here.
    unsafe {
        if SAVED.deferred == 0 {
            SAVED.timers[0] = start_timer(0, PATIENCE, false);
        }
        SAVED.deferred |= sys::signal_bit(signal);
        *(&raw mut context.uc_sigmask).cast::<u64>() |= sys::signal_bit(signal);
    }
}

/// Nudges the calling thread, the captured one, each time so many seconds have gone by, until the captures end.
pub fn watch(seconds: f64) {
    // SAFETY: the captured thread only.
    unsafe {
        if SAVED.timers[1].is_none() {
            SAVED.timers[1] = start_timer(1, seconds, true);
        }
    }
}

/// Whether [`watch`] is in force.
pub fn is_watched() -> bool {
    // SAFETY: the captured thread only.
    unsafe { SAVED.timers[1].is_some() }
}

/// Whether a nudge by a timer is that of [`watch`].
///
/// # Safety
/// `info` is the handler's record of it.
pub unsafe fn is_watch(info: *mut siginfo_t) -> bool {
    // SAFETY: the handler's record of the signal.
    unsafe { (*info).si_value().sival_ptr as usize == 1 }
}

/// Nudges the calling thread.
pub fn nudge_self(code: i32) {
    // SAFETY: any bytes are a valid record, and the handler of this signal knows its code.
    unsafe {
        let mut info: siginfo_t = std::mem::zeroed();
        info.si_signo = NUDGE;
        info.si_code = code;
        thread::send_again(NUDGE, &mut info);
    }
}

/// Starts a timer that nudges the calling thread with this value after that many seconds, once or `again` and again.
unsafe fn start_timer(value: usize, seconds: f64, again: bool) -> Option<i32> {
    const SIGEV_THREAD_ID: i32 = 4;
    #[repr(C)]
    struct Event {
        value: usize,
        signal: i32,
        notify: i32,
        thread: i32,
        rest: [i32; 11],
    }
    // SAFETY: the kernel's structures: sigevent, a timer's number, itimerspec.
    unsafe {
        let event = Event {
            value,
            signal: NUDGE,
            notify: SIGEV_THREAD_ID,
            thread: thread::id(),
            rest: [0; 11],
        };
        let (clock, mut timer) = (libc::CLOCK_MONOTONIC as usize, 0i32);
        let (event, id) = (&raw const event as usize, &raw mut timer as usize);
        let arguments = [clock, event, id, 0, 0, 0];
        if sys::call(libc::SYS_timer_create, arguments) != 0 {
            return None;
        }
        let time = [seconds as i64, (seconds.fract() * 1e9) as i64];
        let period = if again { time } else { [0; 2] };
        let patience = [period, time];
        let arguments = [timer as usize, 0, patience.as_ptr() as usize, 0, 0, 0];
        sys::call(libc::SYS_timer_settime, arguments);
        Some(timer)
    }
}
