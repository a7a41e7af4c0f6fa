//! System calls of a captured invocation: made with the necessary bookkeeping, or refused.
//!
//! Runs in the SIGSYS handler; the program's memory is closed until a call is refused.

use super::mapping::change_mappings;
use super::reach::{Reach, find_answers_reach};
use super::registers::{call_address, change_signal_mask, read_call, repeat_call, set_result};
use super::waiting::{WAITS, make_call, make_out_of_turn};
use crate::engine::in_turn::InTurn;
use crate::engine::level::CALLS;
use crate::engine::memory::Access;
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

fn perform_call(
    engine: &mut Engine,
    number: usize,
    a: [usize; 6],
    context: &mut ucontext_t,
) -> Result<Act, Halt> {
    use Access::{Read, Write};
    let mut reach: Reach = [(0, 0, Read); 3];
    match number as i64 {
        libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_mremap
        | libc::SYS_brk
        | libc::SYS_madvise => return change_mappings(engine, number as i64, a).map(Act::Done),
        libc::SYS_exit_group | libc::SYS_exit => return Err(Halt::Exit),
        libc::SYS_rt_sigprocmask => return Ok(Act::Done(change_signal_mask(engine, a, context)?)),
        // The C library sets up its own signals when the first thread starts.
        libc::SYS_rt_sigaction if team::is_creating() && (32..34).contains(&a[0]) => {
            engine.reach(a[1], size_of::<sys::Action>(), Read)?;
            reach[0] = (a[2], size_of::<sys::Action>(), Write);
        }
        libc::SYS_rt_sigaction => {
            let replaced = signals::replaced_action(a[0] as i32);
            if a[1] != 0 {
                return Err(Halt::Signals);
            }
            engine.reach(a[2], size_of::<sys::Action>(), Write)?;
            if let Some(action) = replaced
                && a[2] != 0
            {
                // SAFETY: the program's buffer, open now.
                unsafe { *(a[2] as *mut sys::Action) = action };
                return Ok(Act::Done(0));
            }
        }
        libc::SYS_write if a[0] == 1 || a[0] == 2 => reach[0] = (a[1], a[2], Read),
        libc::SYS_writev if (a[0] == 1 || a[0] == 2) && a[2] <= 1024 => {
            engine.reach(a[1], a[2] * 16, Read)?;
            for i in 0..a[2] {
                // SAFETY: the program's array, open now.
                let part = unsafe { *(a[1] as *const [usize; 2]).add(i) };
                engine.reach(part[0], part[1], Read)?;
            }
        }
        libc::SYS_fstat if a[0] <= 2 => reach[0] = (a[1], 144, Write),
        libc::SYS_newfstatat if a[0] <= 2 && a[3] & libc::AT_EMPTY_PATH as usize != 0 => {
            engine.reach(a[1], 1, Read)?;
            // SAFETY: the program's string, open now.
            if a[1] == 0 || unsafe { *(a[1] as *const u8) } != 0 {
                return Err(Halt::Outside);
            }
            reach[0] = (a[2], 144, Write);
        }
        libc::SYS_ioctl if a[0] <= 2 && a[1] == libc::TCGETS as usize => {
            reach[0] = (a[2], 64, Write)
        }
        libc::SYS_ioctl if a[0] <= 2 && a[1] == libc::TIOCGWINSZ as usize => {
            reach[0] = (a[2], 8, Write)
        }
        libc::SYS_futex => {
            let operation = a[1] as i32 & 127;
            reach[0] = (a[0], 4, Write);
            let outside = engine.level.as_ref().is_some_and(|level| level.strangers);
            let wakes = [libc::FUTEX_WAKE, libc::FUTEX_WAKE_BITSET].contains(&operation);
            // Words of the OpenMP runtime are never closed.
            if outside && wakes && engine.pages.spans.find(a[0]).is_some() {
                wakes::wake_later(a)?;
                if !local::is_of_team() {
                    signals::watch();
                }
                return Ok(Act::Done(0));
            }
            // Threads of the team rest between parallel regions.
            let rests = engine.shared() || local::is_of_team();
            if WAITS.contains(&operation) && !engine.stacks.is_empty() && !rests {
                return Err(Halt::Waits);
            }
            if WAITS.contains(&operation) {
                reach[1] = (a[3], 16, Read);
            } else {
                reach[1] = (a[4], 4, Write);
            }
        }
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => {
            // Other threads that touch closed memory would sleep as well.
            if !engine.stacks.is_empty() && !engine.shared() {
                return Err(Halt::Waits);
            }
            let first = if number as i64 == libc::SYS_nanosleep {
                0
            } else {
                2
            };
            engine.reach(a[first], 16, Read)?;
            engine.reach(a[first + 1], 16, Write)?;
            if engine.shared() {
                return Ok(Act::Make);
            }
            // SAFETY: the program's own call; the memory that it reaches is open.
            let sleep = || unsafe { sys::call(number as i64, a) };
            return signals::wait_with_signals(sleep)
                .map(Act::Done)
                .ok_or(Halt::Sleeps);
        }
        // The runtime pins the threads of its team; the replay's runtime does so itself.
        libc::SYS_sched_setaffinity if parallel::in_parallel() => reach[0] = (a[2], a[1], Read),
        libc::SYS_prlimit64 if a[2] == 0 => reach[0] = (a[3], 16, Write),
        libc::SYS_clone | libc::SYS_clone3 if team::is_creating() && gate::is_captured() => {
            // Not from the handler: the new thread continues where the call returns.
            dispatch::catch_calls(false);
            return Ok(Act::Again);
        }
        libc::SYS_clone
        | libc::SYS_clone3
        | libc::SYS_fork
        | libc::SYS_vfork
        | libc::SYS_execve => return Err(Halt::Starts),
        libc::SYS_sigaltstack | libc::SYS_rt_sigreturn => return Err(Halt::Signals),
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_lseek
        | libc::SYS_close
        | libc::SYS_fstat
        | libc::SYS_ioctl
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_sendto
        | libc::SYS_recvfrom => {
            return Err(Halt::Descriptor(a[0]));
        }
        _ => match find_answers_reach(number, a) {
            Some(known) => reach = known,
            None => return Err(Halt::Outside),
        },
    }
    for (start, length, access) in reach {
        engine.reach(start, length, access)?;
    }
    Ok(Act::Make)
}
