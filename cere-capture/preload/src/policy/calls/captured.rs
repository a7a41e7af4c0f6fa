//! System calls of a captured invocation: made with the necessary bookkeeping, or refused.
//!
//! Runs in the SIGSYS handler; the program's memory is closed until a call is refused.

use super::mapping::change_mappings;
use super::reach::find_answers_reach;
use super::registers::{call_address, change_signal_mask, read_call, repeat_call, set_result};
use super::waiting::{WAITS, make_call, make_out_of_turn};
use crate::engine::in_turn::InTurn;
use crate::engine::level::CALLS;
use crate::engine::memory::Access::{self, Read, Write};
use crate::engine::state::Engine;
use crate::engine::{clock, dispatch, gate, parallel, tracer, wakes};
use crate::os::{local, signals, sys};
use crate::policy::cause::{After, Cause};
use crate::policy::halt::Halt;
use crate::policy::{team, windows};
use cere_format::answers::question;
use libc::ucontext_t;

/// How a call proceeds.
enum Act {
    /// It is done, with this result.
    Done(isize),
    /// It can be made: what it reaches is open.
    Make,
    /// The program makes it itself: calls are let through now.
    Again,
}

/// A thread of a team made a system call inside a captured invocation.
pub fn dispatch_of_team(mut engine: InTurn, context: &mut ucontext_t) {
    let (number, arguments) = read_call(context);
    count_call(&mut engine, number, context);
    engine.toucher = local::team_number();
    tracer::pin_pages();
    let outcome = perform_call(&mut engine, number, arguments, context);
    engine.toucher = 0;
    tracer::unpin_later();
    match outcome {
        Ok(Act::Done(result)) => set_result(context, result),
        // It does not wait, and its answer is kept in turn.
        Ok(Act::Make) if question(number, arguments).is_some() => {
            let result = make_call(number, arguments);
            let at = call_address(context);
            clock::note_answer_to(local::team_number(), number, arguments, result, at);
            set_result(context, result);
        }
        Ok(Act::Make) => {
            let result = make_out_of_turn(engine, number, arguments, context);
            set_result(context, result);
        }
        Ok(Act::Again) => repeat_call(context),
        Err(halt) => {
            team::give_up(engine.into_turn(), team::Failure::Call(number, halt));
            go_on(context, halt);
        }
    }
}

/// The capture ends for this call: the program makes it itself, unless it was made.
fn go_on(context: &mut ucontext_t, halt: Halt) {
    match halt {
        Halt::Made(result, _) => set_result(context, result),
        _ => repeat_call(context),
    }
}

fn count_call(engine: &mut Engine, number: usize, context: &ucontext_t) {
    let kept = number < CALLS && !clock::is_detour(call_address(context));
    if let Some(level) = engine.level.as_mut().filter(|_| kept) {
        level.calls[number] = level.calls[number].saturating_add(1);
    }
}

/// A system call of a captured invocation was caught.
pub fn dispatch_call(mut engine: InTurn, context: &mut ucontext_t) -> After {
    let (number, arguments) = read_call(context);
    let at = call_address(context);
    count_call(&mut engine, number, context);
    tracer::pin_pages();
    let outcome = match perform_call(&mut engine, number, arguments, context) {
        Ok(Act::Done(result)) => Ok(result),
        // While other threads of the team run, the call is made out of turn.
        Ok(Act::Make) if engine.shared() => {
            tracer::unpin_later();
            let result = make_out_of_turn(engine, number, arguments, context);
            clock::note_answer(number, arguments, result, at);
            set_result(context, result);
            return match team::has_failed() {
                true => After::End(Cause::Team),
                false => After::GoOn,
            };
        }
        Ok(Act::Make) => {
            let result = make_call(number, arguments);
            clock::note_answer(number, arguments, result, at);
            Ok(result)
        }
        Ok(Act::Again) => {
            engine.unpin();
            repeat_call(context);
            return After::GoOn;
        }
        Err(halt) => Err(halt),
    };
    engine.unpin();
    if windows::give_up_exhausted(&mut engine).is_some() {
        engine.detach();
    }
    match outcome {
        Ok(result) => {
            set_result(context, result);
            After::GoOn
        }
        Err(halt) => {
            go_on(context, halt);
            After::End(Cause::Call(number, halt))
        }
    }
}

/// Makes a call, or opens what it needs to be made.
fn perform_call(
    engine: &mut Engine,
    number: usize,
    a: [usize; 6],
    context: &mut ucontext_t,
) -> Result<Act, Halt> {
    match number as i64 {
        libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_mremap
        | libc::SYS_brk
        | libc::SYS_madvise => change_mappings(engine, number as i64, a).map(Act::Done),
        libc::SYS_exit_group | libc::SYS_exit => Err(Halt::Exit),
        libc::SYS_rt_sigprocmask => Ok(Act::Done(change_signal_mask(engine, a, context)?)),
        libc::SYS_rt_sigaction => ask_disposition(engine, a),
        libc::SYS_futex => call_futex(engine, a),
        libc::SYS_nanosleep => sleep(engine, number, a, [a[0], a[1]]),
        libc::SYS_clock_nanosleep => sleep(engine, number, a, [a[2], a[3]]),
        // The runtime pins the threads of its team; the replay's runtime does so itself.
        libc::SYS_sched_setaffinity if parallel::in_parallel() => {
            make(engine, [(a[2], a[1], Read)])
        }
        libc::SYS_prlimit64 if a[2] == 0 => make(engine, [(a[3], 16, Write)]),
        libc::SYS_clone | libc::SYS_clone3 if team::is_creating() && gate::is_captured() => {
            // Not from the handler: the new thread continues where the call returns.
            dispatch::catch_calls(false);
            Ok(Act::Again)
        }
        libc::SYS_clone
        | libc::SYS_clone3
        | libc::SYS_fork
        | libc::SYS_vfork
        | libc::SYS_execve => Err(Halt::Starts),
        libc::SYS_sigaltstack | libc::SYS_rt_sigreturn => Err(Halt::Signals),
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_lseek
        | libc::SYS_close
        | libc::SYS_fstat
        | libc::SYS_newfstatat
        | libc::SYS_ioctl
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_sendto
        | libc::SYS_recvfrom => use_descriptor(engine, number, a),
        _ => match find_answers_reach(number, a) {
            Some(known) => make(engine, known),
            None => Err(Halt::Outside),
        },
    }
}

/// Opens what a call reaches, so that it can be made.
fn make<const N: usize>(
    engine: &mut Engine,
    reach: [(usize, usize, Access); N],
) -> Result<Act, Halt> {
    for (start, length, access) in reach {
        engine.reach(start, length, access)?;
    }
    Ok(Act::Make)
}

/// `rt_sigaction`: the region may ask what signals do, not change it.
fn ask_disposition(engine: &mut Engine, a: [usize; 6]) -> Result<Act, Halt> {
    const SIZE: usize = size_of::<sys::Action>();
    // The C library sets up its own signals when the first thread starts.
    if team::is_creating() && (32..34).contains(&a[0]) {
        return make(engine, [(a[1], SIZE, Read), (a[2], SIZE, Write)]);
    }
    let replaced = signals::replaced_action(a[0] as i32);
    if a[1] != 0 {
        return Err(Halt::Signals);
    }
    engine.reach(a[2], SIZE, Write)?;
    match replaced {
        Some(action) if a[2] != 0 => {
            // SAFETY: the program's buffer, open now.
            unsafe { *(a[2] as *mut sys::Action) = action };
            Ok(Act::Done(0))
        }
        _ => Ok(Act::Make),
    }
}

/// A call on a descriptor: the standard ones may be written, and asked what they are.
fn use_descriptor(engine: &mut Engine, number: usize, a: [usize; 6]) -> Result<Act, Halt> {
    let (standard, writable) = (a[0] <= 2, a[0] == 1 || a[0] == 2);
    match number as i64 {
        libc::SYS_write if writable => make(engine, [(a[1], a[2], Read)]),
        libc::SYS_writev if writable && a[2] <= 1024 => {
            engine.reach(a[1], a[2] * 16, Read)?;
            for i in 0..a[2] {
                // SAFETY: the program's array, open now.
                let part = unsafe { *(a[1] as *const [usize; 2]).add(i) };
                engine.reach(part[0], part[1], Read)?;
            }
            Ok(Act::Make)
        }
        libc::SYS_fstat if standard => make(engine, [(a[1], 144, Write)]),
        libc::SYS_newfstatat if standard && a[3] & libc::AT_EMPTY_PATH as usize != 0 => {
            engine.reach(a[1], 1, Read)?;
            // SAFETY: the program's string, open now.
            if a[1] == 0 || unsafe { *(a[1] as *const u8) } != 0 {
                return Err(Halt::Outside);
            }
            make(engine, [(a[2], 144, Write)])
        }
        libc::SYS_newfstatat => Err(Halt::Outside),
        libc::SYS_ioctl if standard && a[1] == libc::TCGETS as usize => {
            make(engine, [(a[2], 64, Write)])
        }
        libc::SYS_ioctl if standard && a[1] == libc::TIOCGWINSZ as usize => {
            make(engine, [(a[2], 8, Write)])
        }
        _ => Err(Halt::Descriptor(a[0])),
    }
}

/// `futex`: waits of the team, and wake-ups, which threads outside teams get at the end.
fn call_futex(engine: &mut Engine, a: [usize; 6]) -> Result<Act, Halt> {
    let operation = a[1] as i32 & 127;
    let outside = engine.level.as_ref().is_some_and(|level| level.strangers);
    let wakes = [libc::FUTEX_WAKE, libc::FUTEX_WAKE_BITSET].contains(&operation);
    // Words of the OpenMP runtime are never closed.
    if outside && wakes && engine.pages.spans.find(a[0]).is_some() {
        wakes::wake_later(a)?;
        return Ok(Act::Done(0));
    }
    let waits = WAITS.contains(&operation);
    // Threads of the team rest between parallel regions.
    let rests = engine.shared() || local::is_of_team();
    if waits && engine.others && !rests {
        return Err(Halt::Waits);
    }
    let second = match waits {
        true => (a[3], 16, Read),
        false => (a[4], 4, Write),
    };
    make(engine, [(a[0], 4, Write), second])
}

/// Sleeps for the first of two times, and notes in the second what is left.
fn sleep(
    engine: &mut Engine,
    number: usize,
    a: [usize; 6],
    times: [usize; 2],
) -> Result<Act, Halt> {
    // Other threads that touch closed memory would sleep as well.
    if engine.others && !engine.shared() {
        return Err(Halt::Waits);
    }
    let act = make(engine, [(times[0], 16, Read), (times[1], 16, Write)])?;
    if engine.shared() {
        return Ok(act);
    }
    // SAFETY: the program's own call; the memory that it reaches is open.
    let sleep = || unsafe { sys::call(number as i64, a) };
    signals::wait_with_signals(sleep)
        .map(Act::Done)
        .ok_or(Halt::Sleeps)
}
