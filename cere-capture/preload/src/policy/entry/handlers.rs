//! Signal handlers while captures are in progress. They pass the engine in a turn to what handles faults and system calls, and
//! the whole state to what ends captures and suspends page traces.

use super::{engine_in_turn, whole_state};
use crate::engine::memory::Access;
use crate::engine::touch::Touched;
use crate::engine::tracer::Cut;
use crate::engine::turn;
use crate::engine::{clock, gate, status};
use crate::os::signals::{self, Handlers};
use crate::os::{local, section, thread};
use crate::policy::calls::{captured, registers, traced};
use crate::policy::cause::{self, After, Cause};
use crate::policy::{ending, mark, needs, patience, team, windows};
use libc::{siginfo_t, ucontext_t};

/// The handlers, to be registered.
pub const HANDLERS: Handlers = Handlers {
    fault: on_fault,
    call: on_call,
    nudge: on_nudge,
    other: on_signal,
};

/// Ends the capture. Out of turn; in the captured thread's handlers.
fn end_all(context: &mut ucontext_t, cause: Cause) {
    // SAFETY: the captured thread's handler, out of turn.
    if let Some(mut all) = unsafe { whole_state() } {
        ending::end_all(&mut all, context, cause);
    }
}

/// Suspends the page trace. Out of turn; in the traced thread's handlers.
fn suspend_trace(context: &mut ucontext_t, cut: Option<Cut>) {
    // SAFETY: the captured thread's handler, out of turn.
    if let Some(mut all) = unsafe { whole_state() } {
        windows::suspend_trace(&mut all, context, cut);
    }
}

/// Ends the capture if its invocation was left by longjmp. True if nothing is closed any more.
fn end_if_left(context: &mut ucontext_t) -> bool {
    if !mark::may_abandon(signals::stack_pointer(context)) {
        return false;
    }
    // SAFETY: the captured thread's handler, out of turn.
    unsafe { whole_state() }.is_none_or(|mut all| ending::end_left_capture(&mut all, context))
}

/// A fault of the program: an access to closed memory, or its own.
struct Fault {
    /// `si_code`.
    code: i32,
    address: usize,
    access: Access,
    /// The stack pointer.
    stack: usize,
}

/// `si_code` of an access that the mapping does not allow.
const SEGV_ACCERR: i32 = 2;

extern "C" fn on_fault(signal: i32, info: *mut siginfo_t, context: *mut ucontext_t) {
    // SAFETY: the kernel's records.
    let (code, address, context) =
        unsafe { ((*info).si_code, (*info).si_addr() as usize, &mut *context) };
    if code == gate::STAND {
        // SAFETY: the kernel's record of what another thread asks with this code.
        return unsafe { gate::stand(info, context) };
    }
    if !status::at_work() || status::paused() {
        // SAFETY: the kernel's record.
        return unsafe { signals::late_fault(address, status::pauses(), signal, info) };
    }
    let fault = Fault {
        code,
        address,
        access: match context.uc_mcontext.gregs[libc::REG_ERR as usize] {
            e if e & 16 != 0 => Access::Execute,
            e if e & 2 != 0 => Access::Write,
            _ => Access::Read,
        },
        stack: signals::stack_pointer(context),
    };
    if asks_kernel(&fault, context) {
        return;
    }
    if team::runs_in_team(fault.stack) {
        let in_turn = turn::take_in_team().and_then(engine_in_turn);
        if let Some(engine) = in_turn {
            team::handle_fault(engine, address, fault.access, code == SEGV_ACCERR);
        }
        return;
    }
    if !gate::is_captured() {
        return gate::interrupting(context, gate::await_memory);
    }
    if !handle_fault(&fault, context) && code <= 0 {
        // SAFETY: the kernel's record.
        unsafe { thread::send_again(signal, info) };
    }
}

/// Whether the fault is a question to the kernel, by its shared page or by the time stamp counter, that is answered otherwise.
fn asks_kernel(fault: &Fault, context: &mut ucontext_t) -> bool {
    const SI_KERNEL: i32 = 0x80;
    if fault.access == Access::Execute
        && (team::runs_in_team(fault.stack) || gate::is_captured())
        && let Some(instead) = clock::find_detour(fault.address)
    {
        context.uc_mcontext.gregs[libc::REG_RIP as usize] = instead as i64;
        return true;
    }
    let program = |at| {
        engine_in_turn(turn::take()).is_some_and(|mut engine| engine.pages.spans.find(at).is_some())
    };
    fault.code == SI_KERNEL && gate::is_captured() && clock::answer_counter(context, program)
}

/// A fault of the captured thread. False if it is the program's own: its handler decides, and a signal that was sent is sent again.
fn handle_fault(fault: &Fault, context: &mut ucontext_t) -> bool {
    if cause::is_ending() {
        // Memory is open: this fault is real.
        signals::remove_handlers(Some(context), false);
        return false;
    }
    if end_if_left(context) {
        return true;
    }
    let Some(mut engine) = engine_in_turn(turn::take()) else {
        return false;
    };
    let touched = match fault.code {
        SEGV_ACCERR => {
            if let Some(level) = engine.level.as_mut() {
                level.faults += 1;
            }
            engine.note_frames(fault.address, fault.stack);
            engine.touch_by_fault(fault.address, fault.access)
        }
        _ => Touched::NotOurs,
    };
    let exhausted = windows::give_up_exhausted(&mut engine);
    let alone = status::traces_alone();
    if exhausted.is_some() && !alone {
        engine.detach();
    }
    drop(engine);
    match touched {
        Touched::Opened if alone && exhausted.is_some() => suspend_trace(context, exhausted),
        Touched::Opened => {}
        Touched::Failed(lack) if alone => suspend_trace(context, Some(Cut::Because(lack))),
        Touched::Failed(lack) => end_all(context, Cause::Lack(lack)),
        Touched::NotOurs if alone => suspend_trace(context, Some(Cut::Crash(fault.address))),
        Touched::NotOurs if signals::is_handled(libc::SIGSEGV) => {
            end_all(context, Cause::Barrier(fault.address));
        }
        Touched::NotOurs => end_all(context, Cause::Crash(fault.address)),
    }
    touched != Touched::NotOurs
}

extern "C" fn on_call(_: i32, info: *mut siginfo_t, context: *mut ucontext_t) {
    const SYS_USER_DISPATCH: i32 = 2;
    // SAFETY: the kernel's records.
    let (code, context) = unsafe { ((*info).si_code, &mut *context) };
    let at_work = status::at_work();
    if code != SYS_USER_DISPATCH && !at_work {
        signals::give_back(libc::SIGSYS);
        // SAFETY: the kernel's record.
        unsafe { thread::send_again(libc::SIGSYS, info) };
    } else if code != SYS_USER_DISPATCH {
        on_signal(libc::SIGSYS, info, context);
    } else if at_work && gate::is_captured() {
        handle_call(context);
    } else if at_work && local::is_of_team() {
        handle_call_of_team(context);
    } else {
        gate::interrupting(context, gate::await_calls);
        registers::repeat_call(context);
    }
}

/// The captured thread makes a system call.
fn handle_call(context: &mut ucontext_t) {
    if end_if_left(context) {
        return registers::repeat_call(context);
    }
    let Some(engine) = engine_in_turn(turn::take()) else {
        return registers::repeat_call(context);
    };
    let after = match engine.level {
        Some(_) => captured::dispatch_call(engine, context),
        None => traced::dispatch_call(engine, context),
    };
    match after {
        After::GoOn => {}
        After::End(cause) => end_all(context, cause),
        After::Suspend(cut) => suspend_trace(context, cut),
    }
}

/// A thread of a team makes a system call.
fn handle_call_of_team(context: &mut ucontext_t) {
    let Some(turn) = turn::take_in_team() else {
        return registers::repeat_call(context);
    };
    let Some(engine) = engine_in_turn(turn).filter(|engine| engine.at_work()) else {
        gate::await_calls();
        return registers::repeat_call(context);
    };
    match engine.level {
        Some(_) => captured::dispatch_of_team(engine, context),
        None => traced::dispatch_of_team(engine, context),
    }
}

const STANDS_STILL: &str = "the program's other threads have to stand still while it runs, and it runs for more than 10 s: it \
                            waits for one of them, or takes long beside them";

/// Another thread, or a signal, has waited for long.
extern "C" fn on_nudge(signal: i32, info: *mut siginfo_t, context: *mut ucontext_t) {
    // SAFETY: the kernel's records.
    let (code, own) = unsafe { ((*info).si_code, signals::replaced_action(signal)) };
    // SAFETY: the kernel's record.
    let context = unsafe { &mut *context };
    let reason = match code {
        signals::MEETS => return meets(context),
        signals::LEFT if gate::is_captured() => {
            // SAFETY: the captured thread's handler.
            if let Some(mut all) = unsafe { whole_state() } {
                ending::end_at_last(&mut all, context);
            }
            return;
        }
        // Threads that wait: the watch knows for how long.
        libc::SI_TKILL if gate::is_captured() && signals::is_watched() && !team::has_failed() => {
            return;
        }
        // What they waited for is there.
        libc::SI_TKILL if status::paused() => return,
        libc::SI_TKILL => STANDS_STILL,
        // SAFETY: the kernel's record.
        libc::SI_TIMER if unsafe { signals::is_watch(info) } => return look(context, signal, info),
        libc::SI_TIMER => {
            "a signal that the program handles arrives inside, and it goes on for long"
        }
        _ if own.is_some_and(|action| action.handler > libc::SIG_IGN) => {
            return on_signal(signal, info, context);
        }
        _ => return,
    };
    if !gate::is_captured() {
        return;
    }
    if section::is_interrupted() {
        // SAFETY: the kernel's records.
        return unsafe { section::postpone_signal(signal, info, context) };
    }
    if status::traces_alone() {
        return suspend_trace(context, Some(Cut::Because(reason)));
    }
    end_all(context, Cause::Because(reason));
}

/// The calling thread is about to call a function that needs what no replay has.
fn meets(context: &mut ucontext_t) {
    let Some((needs, function)) = needs::take_call() else {
        return;
    };
    if gate::is_captured() {
        end_all(context, Cause::Meets(needs, function));
    } else if let Some(turn) = turn::take_in_team() {
        team::give_up(turn, team::Failure::Meets(needs, function));
    }
}

/// Looks whether the captured invocation waits for a thread that stands still. While it has paused for a call none does.
fn look(context: &mut ucontext_t, signal: i32, info: *mut siginfo_t) {
    if !gate::is_captured() || status::paused() {
        return;
    }
    if section::is_interrupted() {
        // SAFETY: the kernel's records.
        return unsafe { section::postpone_signal(signal, info, context) };
    }
    let over =
        engine_in_turn(turn::take()).is_some_and(|mut engine| patience::is_over(&mut engine));
    // SAFETY: the captured thread's handler, out of turn.
    if over && let Some(mut all) = unsafe { whole_state() } {
        let wanted = all.engine.level.as_ref().map(|level| level.wanted);
        let seconds = wanted.and_then(|wanted| all.wanted[wanted].seconds);
        ending::end_all(&mut all, context, Cause::Waits(seconds));
    }
}

/// Any other signal that the program handles. Its handler can run only with everything open: it waits for the end of the region,
/// but not for long.
extern "C" fn on_signal(signal: i32, info: *mut siginfo_t, context: *mut ucontext_t) {
    // SAFETY: the kernel's records.
    let (code, context) = unsafe { ((*info).si_code, &mut *context) };
    let fault = [libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP].contains(&signal);
    let at_work = status::at_work();
    if at_work && team::runs_in_team(signals::stack_pointer(context)) {
        if fault && code > 0 {
            // It repeats, with the program's handler installed.
            if let Some(turn) = turn::take_in_team() {
                team::give_up(turn, team::Failure::Trace(Cut::Signal(signal)));
            }
            return;
        }
        if code != libc::SI_TKILL {
            // Signals to the whole process go to the captured thread, which can handle them; the team continues.
            // SAFETY: the kernel's record.
            return unsafe { thread::send(gate::captured_id(), signal, info) };
        }
    }
    if section::is_interrupted() && !(fault && code > 0) {
        // SAFETY: the kernel's records.
        return unsafe { section::postpone_signal(signal, info, context) };
    }
    if !gate::is_captured() {
        gate::interrupting(context, gate::await_handlers);
        // SAFETY: the kernel's record.
        return unsafe { thread::send_again(signal, info) };
    }
    if status::traces_alone() {
        suspend_trace(context, Some(Cut::Signal(signal)));
        // All but a breakpoint repeat with the instruction.
        if !fault || code <= 0 || signal == libc::SIGTRAP {
            // SAFETY: the kernel's record.
            unsafe { thread::send_again(signal, info) };
        }
        return;
    }
    if fault && code > 0 {
        end_all(context, Cause::Signal(signal));
        // All but a breakpoint repeat with the instruction.
        if signal != libc::SIGTRAP {
            return;
        }
    } else {
        signals::defer_signal(signal, context);
    }
    // SAFETY: the kernel's record.
    unsafe { thread::send_again(signal, info) };
}
