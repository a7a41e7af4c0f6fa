//! Signal handlers while captures are in progress, and the program's own ones meanwhile.

use crate::capture::{self, Cause};
use crate::engine::{Access, Touched};
use crate::sys::{self, Action};
use crate::tracer::Cut;
use crate::{clock, local, section, team, threads, trace, wanted};
use libc::{siginfo_t, ucontext_t};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

const SIGNALS: i32 = 64;
/// Seconds that a signal of the program waits before the captures are given up.
const PATIENCE: i64 = 3;
/// Signals that captures need.
const NEEDED: u64 = sys::bit(libc::SIGSEGV) | sys::bit(libc::SIGSYS) | sys::bit(threads::NUDGE);

/// Those of them that may be under way to other threads when captures end.
const LINGERING: [i32; 2] = [libc::SIGSEGV, libc::SIGSYS];

/// Code of a nudge for a section that is left.
const LEFT: i32 = -77;

/// Flags of the program's handlers that ours have as well.
const KEPT: u64 = (libc::SA_RESTART | libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT) as u64;

/// Whether system calls of the program are caught: 1, or let through: 0.
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
    timer: None,
    lingers: false,
    installed: false,
};

/// The program's own state of signals.
struct Saved {
    actions: [Action; SIGNALS as usize + 1],
    replaced: u64,
    stack: [usize; 3],
    mask: u64,
    /// Signals that wait, blocked by us, for the end of the captures.
    deferred: u64,
    timer: Option<i32>,
    /// Whether our handlers of [`LINGERING`] are still in force after the captures.
    lingers: bool,
    installed: bool,
}

/// The program's disposition of `signal`, if ours stands in its place.
pub fn replaced(signal: i32) -> Option<Action> {
    if !(1..=SIGNALS).contains(&signal) {
        return None;
    }
    // SAFETY: only the main thread gets here, and nobody holds a reference.
    unsafe { (SAVED.replaced & sys::bit(signal) != 0).then(|| SAVED.actions[signal as usize]) }
}

/// Lets the captured thread's system calls through, or catches them, and with captures its readings of the time stamp counter.
pub fn catch_calls(catch: bool) {
    clock::watch_counter(catch && capture::captures());
    SELECTOR.store(catch.into(), Ordering::Relaxed);
}

/// Installs the handlers, on a stack at [start, end); `mask` is the program's signal mask.
pub fn install(stack: (usize, usize), mask: u64) -> Result<(), String> {
    catch_calls(false);
    if sys::dispatch(Some(SELECTOR.as_ptr())) < 0 {
        return Err(
            "the kernel has no Syscall User Dispatch (Linux 5.11 and later have it)".into(),
        );
    }
    let new = [stack.0, 0, stack.1 - stack.0];
    // SAFETY: only the main thread gets here; stack_t is three words on x86-64.
    unsafe {
        let (at, old) = (new.as_ptr() as usize, (&raw mut SAVED.stack) as usize);
        if sys::call(libc::SYS_sigaltstack, [at, old, 0, 0, 0, 0]) < 0 {
            sys::dispatch(None);
            return Err("the region runs in a signal handler on an alternate stack".into());
        }
        SAVED.mask = mask;
        SAVED.replaced = 0;
        SAVED.deferred = 0;
        SAVED.installed = true;
        for signal in 1..=SIGNALS {
            let needed = sys::bit(signal) & NEEDED != 0;
            if signal == libc::SIGKILL || signal == libc::SIGSTOP {
                continue;
            }
            let mut old = sys::action(signal, None);
            let ours = [
                on_fault as *const () as usize,
                on_call as *const () as usize,
            ];
            if SAVED.lingers && LINGERING.contains(&signal) && ours.contains(&old.handler) {
                old = SAVED.actions[signal as usize];
            }
            if needed || old.handler > libc::SIG_IGN {
                replace(signal, old);
            }
        }
    }
    Ok(())
}

/// Puts our handler in the place of the program's disposition.
unsafe fn replace(signal: i32, old: Action) {
    let handler: sys::Handler = match signal {
        libc::SIGSEGV => on_fault,
        libc::SIGSYS => on_call,
        threads::NUDGE => on_nudge,
        _ => on_signal,
    };
    let mut ours = Action::ours(handler);
    // What it means for calls that it interrupts, and for children, stays as it is.
    ours.flags |= match old.handler {
        handler if handler > libc::SIG_IGN => old.flags & KEPT,
        _ => libc::SA_RESTART as u64,
    };
    // SAFETY: main thread only.
    unsafe {
        SAVED.actions[signal as usize] = old;
        SAVED.replaced |= sys::bit(signal);
    }
    sys::action(signal, Some(&ours));
}

/// The program changes what a signal does, while handlers are installed. What it did before; none if the program may
/// not.
pub fn change(signal: i32, new: Option<Action>) -> Option<Action> {
    if !(1..=SIGNALS).contains(&signal) || signal == libc::SIGKILL || signal == libc::SIGSTOP {
        return None;
    }
    let old = replaced(signal).unwrap_or_else(|| sys::action(signal, None));
    let Some(mut new) = new else { return Some(old) };
    new.mask &= !(sys::bit(libc::SIGKILL) | sys::bit(libc::SIGSTOP));
    // SAFETY: main thread only.
    unsafe {
        if sys::bit(signal) & NEEDED != 0 || new.handler > libc::SIG_IGN {
            replace(signal, new);
        } else {
            sys::action(signal, Some(&new));
            SAVED.replaced &= !sys::bit(signal);
        }
    }
    Some(old)
}

/// The signal mask while captures are in progress, of the program's.
pub fn inside(mask: u64) -> u64 {
    // SAFETY: a plain word, main thread only.
    takes_part(mask) | unsafe { SAVED.deferred }
}

/// The signal mask of a thread of a team while captures are in progress, of the program's.
pub fn takes_part(mask: u64) -> u64 {
    mask & !NEEDED
}

/// The program's signal mask, of the one that was in force while captures were in progress.
pub fn outside(mask: u64) -> u64 {
    // SAFETY: plain words, main thread only.
    unsafe {
        if SAVED.installed {
            mask & !(SAVED.deferred | NEEDED) | SAVED.mask & NEEDED
        } else {
            mask
        }
    }
}

/// Whether the program has handlers of signals.
pub fn handles() -> bool {
    // SAFETY: plain words, main thread only.
    let handled = |s: i32| unsafe {
        SAVED.replaced & sys::bit(s) != 0 && SAVED.actions[s as usize].handler > libc::SIG_IGN
    };
    // The first two real-time signals are libc's.
    (1..32).chain(34..=SIGNALS).any(handled)
}

/// Makes a call that waits, in a handler. A signal that ends the program may do so meanwhile. None if the program has
/// handlers: a signal that arrives would have to interrupt the call.
pub fn wait_with(call: impl FnOnce() -> isize) -> Option<isize> {
    if handles() {
        return None;
    }
    // SAFETY: a plain word, main thread only.
    let mask = unsafe { SAVED.mask };
    // SAFETY: a plain word, main thread only.
    let before = sys::mask(mask | NEEDED | unsafe { SAVED.replaced });
    let result = call();
    sys::mask(before);
    Some(result)
}

/// The program's signal mask while captures are in progress.
pub fn program_mask() -> u64 {
    // SAFETY: a plain word, main thread only.
    unsafe { SAVED.mask }
}

/// The program sets its signal mask while captures are in progress.
pub fn set_mask(mask: u64) {
    // SAFETY: plain words, main thread only.
    unsafe {
        SAVED.mask = mask;
        SAVED.deferred &= !mask;
    }
}

/// Puts everything back, if handlers are installed. In a handler, `context` is what it returns to. With other
/// threads the handlers of [`LINGERING`] stay.
pub fn remove(context: Option<&mut ucontext_t>, threads: bool) {
    // SAFETY: main thread only.
    unsafe {
        if !SAVED.installed {
            return;
        }
        sys::dispatch(None);
        SAVED.lingers = threads;
        for signal in 1..=SIGNALS {
            let stays = threads && LINGERING.contains(&signal);
            if SAVED.replaced & sys::bit(signal) != 0 && !stays {
                let old = SAVED.actions[signal as usize];
                sys::action(signal, Some(&old));
            }
        }
        SAVED.replaced = 0;
        section::forget(sys::bit(threads::NUDGE));
        let stack = (&raw const SAVED.stack) as usize;
        match context {
            None => {
                sys::call(libc::SYS_sigaltstack, [stack, 0, 0, 0, 0, 0]);
            }
            Some(context) => {
                context.uc_stack = *(stack as *const libc::stack_t);
                let mask = (&raw mut context.uc_sigmask).cast::<u64>();
                *mask = outside(*mask);
            }
        }
        release(0);
        SAVED.installed = false;
    }
}

/// The last capture has ended: no signal waits any longer. The program's signal mask, of the one in force.
pub fn release(mask: u64) -> u64 {
    let own = outside(mask);
    // SAFETY: plain words, main thread only.
    unsafe {
        let timer = SAVED.timer;
        SAVED.timer = None;
        if let Some(timer) = timer {
            sys::call(libc::SYS_timer_delete, [timer as usize, 0, 0, 0, 0, 0]);
        }
        SAVED.deferred = 0;
    }
    own
}

/// Gives the signal back to the program, whose disposition is in force again.
///
/// # Safety
/// `info` is the kernel's record of it.
pub unsafe fn send_again(signal: i32, info: *mut siginfo_t) {
    // SAFETY: no arguments; the kernel's record of this very signal.
    unsafe {
        let thread = sys::call(libc::SYS_gettid, [0; 6]) as usize;
        send(thread, signal, info);
    }
}

/// Gives the signal to a thread of this process.
unsafe fn send(thread: usize, signal: i32, info: *mut siginfo_t) {
    // SAFETY: the kernel's record of this very signal.
    unsafe {
        let process = sys::call(libc::SYS_getpid, [0; 6]) as usize;
        let arguments = [process, thread, signal as usize, info as usize, 0, 0];
        sys::call(libc::SYS_rt_tgsigqueueinfo, arguments);
    }
}

/// In a handler that has interrupted a section: nudges the calling thread when that is left.
pub fn nudge_after(context: &mut ucontext_t) {
    // SAFETY: a record of our own, and the handler's context.
    unsafe {
        let mut info: siginfo_t = std::mem::zeroed();
        info.si_signo = threads::NUDGE;
        info.si_code = LEFT;
        section::postpone(threads::NUDGE, &mut info, context);
    }
}

/// The stack pointer of the code that a handler interrupted.
pub fn stack_pointer(context: &ucontext_t) -> usize {
    context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
}

extern "C" fn on_fault(signal: i32, info: *mut siginfo_t, context: *mut ucontext_t) {
    const SEGV_ACCERR: i32 = 2;
    const SI_KERNEL: i32 = 0x80;
    // SAFETY: the kernel's records.
    let (code, address, context) =
        unsafe { ((*info).si_code, (*info).si_addr() as usize, &mut *context) };
    if !wanted::at_work() {
        // SAFETY: the kernel's record.
        return unsafe { late_fault(address, signal, info) };
    }
    let stack = stack_pointer(context);
    let access = match context.uc_mcontext.gregs[libc::REG_ERR as usize] {
        e if e & 16 != 0 => Access::Execute,
        e if e & 2 != 0 => Access::Write,
        _ => Access::Read,
    };
    if access == Access::Execute
        && (team::includes(stack) || threads::is_captured())
        && let Some(instead) = clock::led(address)
    {
        context.uc_mcontext.gregs[libc::REG_RIP as usize] = instead as i64;
        return;
    }
    if code == SI_KERNEL && threads::is_captured() {
        let program = |at| {
            let _turn = team::turn();
            // SAFETY: in turn.
            unsafe { wanted::engine() }.is_some_and(|engine| engine.spans.find(at).is_some())
        };
        if clock::counter(context, program) {
            return;
        }
    }
    if team::includes(stack) {
        return team::fault(address, access, code == SEGV_ACCERR);
    }
    if !threads::is_captured() {
        return threads::wait();
    }
    if capture::ending() {
        // Memory is open: the library crashes for the program, which has to do with it.
        remove(Some(context), false);
        if code <= 0 {
            // SAFETY: the kernel's record.
            unsafe { send_again(signal, info) };
        }
        return;
    }
    if capture::may_abandon(stack) && capture::abandon(context) {
        return;
    }
    let turn = team::turn();
    // SAFETY: in turn.
    let mut engine = unsafe { wanted::engine() };
    let touched = match (code, engine.as_deref_mut()) {
        (SEGV_ACCERR, Some(engine)) => {
            if let Some(level) = engine.level.as_mut() {
                level.faults += 1;
            }
            engine.note_frames(address, stack);
            engine.touch(address, access)
        }
        _ => Touched::NotOurs,
    };
    let exhausted = engine.as_deref_mut().and_then(trace::exhausted);
    if exhausted.is_some()
        && !trace::alone()
        && let Some(engine) = engine
    {
        engine.detach();
    }
    drop(turn);
    if trace::alone() {
        let cut = match touched {
            Touched::Opened => match exhausted {
                None => return,
                cut => cut,
            },
            Touched::Failed(lack) => Some(Cut::Because(lack)),
            Touched::NotOurs => Some(Cut::Crash(address)),
        };
        trace::suspend(context, cut);
        if touched == Touched::NotOurs && code <= 0 {
            // SAFETY: the kernel's record.
            unsafe { send_again(signal, info) };
        }
        return;
    }
    match touched {
        Touched::Opened => {}
        Touched::Failed(lack) => capture::end_all(context, Cause::Lack(lack)),
        Touched::NotOurs => {
            capture::end_all(context, Cause::Crash(address));
            if code <= 0 {
                // SAFETY: the kernel's record.
                unsafe { send_again(signal, info) };
            }
        }
    }
}

/// A fault while nothing is closed: either its signal was under way when memory was opened, and it does not
/// happen again, or it is the program's own.
unsafe fn late_fault(address: usize, signal: i32, info: *mut siginfo_t) {
    static LAST: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let before = [&LAST[0], &LAST[1]].map(|l| l.load(Ordering::Relaxed));
    let this = [crate::thread_pointer(), address];
    // SAFETY: the kernel's record.
    let sent = unsafe { (*info).si_code } <= 0;
    if before == this || sent {
        // SAFETY: main thread only changes it, and not while nothing is captured.
        let old = unsafe { SAVED.actions[libc::SIGSEGV as usize] };
        sys::action(libc::SIGSEGV, Some(&old));
    }
    if sent {
        // SAFETY: the kernel's record.
        unsafe { send_again(signal, info) };
    }
    for (last, this) in LAST.iter().zip(this) {
        last.store(this, Ordering::Relaxed);
    }
}

extern "C" fn on_call(_: i32, info: *mut siginfo_t, context: *mut ucontext_t) {
    const SYS_USER_DISPATCH: i32 = 2;
    // SAFETY: the kernel's records.
    let (code, context) = unsafe { ((*info).si_code, &mut *context) };
    let at_work = wanted::at_work();
    if code != SYS_USER_DISPATCH && !at_work {
        // SAFETY: only the main thread changes it, and not while nothing is captured.
        let old = unsafe { SAVED.actions[libc::SIGSYS as usize] };
        sys::action(libc::SIGSYS, Some(&old));
        // SAFETY: the kernel's record.
        unsafe { send_again(libc::SIGSYS, info) };
    } else if code != SYS_USER_DISPATCH {
        on_signal(libc::SIGSYS, info, context);
    } else if at_work && threads::is_captured() {
        crate::calls::dispatch(context);
    } else if at_work && local::of_team() {
        crate::calls::dispatch_of_team(context);
    } else {
        threads::hold();
        crate::calls::again(context);
    }
}

/// Another thread has waited for long, or a signal has.
extern "C" fn on_nudge(signal: i32, info: *mut siginfo_t, context: *mut ucontext_t) {
    // SAFETY: the kernel's records.
    let (code, own) = unsafe { ((*info).si_code, replaced(signal)) };
    // SAFETY: the kernel's record.
    let context = unsafe { &mut *context };
    let reason = match code {
        LEFT if threads::is_captured() => return capture::end_at_last(context),
        libc::SI_TKILL => "other threads cannot go on while it runs",
        libc::SI_TIMER => {
            "a signal that the program handles arrives inside, and it goes on for long"
        }
        _ if own.is_some_and(|action| action.handler > libc::SIG_IGN) => {
            return on_signal(signal, info, context);
        }
        _ => return,
    };
    if !threads::is_captured() {
        return;
    }
    if section::interrupted() {
        // SAFETY: the kernel's records.
        return unsafe { section::postpone(signal, info, context) };
    }
    if trace::alone() {
        return trace::suspend(context, Some(Cut::Because(reason)));
    }
    capture::end_all(context, Cause::Because(reason));
}

/// Any other signal that the program has a handler for. The handler can run only when everything is open: it
/// waits for the end of the region, and not for long.
extern "C" fn on_signal(signal: i32, info: *mut siginfo_t, context: *mut ucontext_t) {
    // SAFETY: the kernel's records.
    let (code, context) = unsafe { ((*info).si_code, &mut *context) };
    let fault = [libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP].contains(&signal);
    let at_work = wanted::at_work();
    if at_work && team::includes(stack_pointer(context)) {
        if fault && code > 0 {
            // It happens again, with the program's handler in force.
            if let Some(turn) = team::enter() {
                team::fail(turn, team::Failure::Trace(Cut::Signal(signal)));
            }
            return;
        }
        if code != libc::SI_TKILL {
            // The whole process is meant: the thread that can do something about it takes it, the team goes on.
            // SAFETY: the kernel's record.
            return unsafe { send(threads::captured(), signal, info) };
        }
    }
    if section::interrupted() && !(fault && code > 0) {
        // SAFETY: the kernel's records.
        return unsafe { section::postpone(signal, info, context) };
    }
    if !threads::is_captured() {
        threads::wait();
        // SAFETY: the kernel's record.
        return unsafe { send_again(signal, info) };
    }
    if trace::alone() {
        trace::suspend(context, Some(Cut::Signal(signal)));
        // All but a breakpoint happen again, the instruction being the same.
        if !fault || code <= 0 || signal == libc::SIGTRAP {
            // SAFETY: the kernel's record.
            unsafe { send_again(signal, info) };
        }
        return;
    }
    if fault && code > 0 {
        capture::end_all(context, Cause::Signal(signal));
        // All but a breakpoint happen again, the instruction being the same.
        if signal != libc::SIGTRAP {
            return;
        }
    } else {
        // SAFETY: the kernel's record; main thread only.
        unsafe {
            if SAVED.deferred == 0 {
                start_timer();
            }
            SAVED.deferred |= sys::bit(signal);
            *(&raw mut context.uc_sigmask).cast::<u64>() |= sys::bit(signal);
        }
    }
    // SAFETY: the kernel's record.
    unsafe { send_again(signal, info) };
}

/// Has the calling thread nudged in a while.
unsafe fn start_timer() {
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
        let thread = sys::call(libc::SYS_gettid, [0; 6]) as i32;
        let event = Event {
            value: 0,
            signal: threads::NUDGE,
            notify: SIGEV_THREAD_ID,
            thread,
            rest: [0; 11],
        };
        let clock = libc::CLOCK_MONOTONIC as usize;
        let mut timer = 0i32;
        let arguments = [
            clock,
            &raw const event as usize,
            &raw mut timer as usize,
            0,
            0,
            0,
        ];
        if sys::call(libc::SYS_timer_create, arguments) == 0 {
            let patience = [0, 0, PATIENCE, 0];
            let arguments = [timer as usize, 0, patience.as_ptr() as usize, 0, 0, 0];
            sys::call(libc::SYS_timer_settime, arguments);
            SAVED.timer = Some(timer);
        }
    }
}
