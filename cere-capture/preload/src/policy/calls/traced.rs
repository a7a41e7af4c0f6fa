//! System calls of the program while memory is closed for the page trace alone. None is refused. Either the memory that its
//! arguments reach is opened, or everything is, or the trace is interrupted and the program makes the call itself.
//!
//! Runs in the SIGSYS handler.

use super::leave::Leave;
use super::making::{make_in_turn, make_with_all_open};
use super::mapping::{change_mappings, page_up};
use super::reach::{Wait, count_written, find_reach};
use super::registers::{change_signal_mask, read_call, repeat_call, set_result};
use super::waiting::{is_wait, make_out_of_turn};
use crate::engine::in_turn::InTurn;
use crate::engine::memory::Access;
use crate::engine::state::Engine;
use crate::engine::tracer::{self, Cut};
use crate::engine::turn::{self, Turn};
use crate::os::sys::{self, PAGE};
use crate::os::{limits, local, signals};
use crate::policy::cause::After;
use crate::policy::team::{self, Failure};
use crate::policy::windows;
use libc::ucontext_t;

/// Maximum bytes that one argument may reach; beyond that everything is opened.
const MOST: usize = 1024 * PAGE;
/// A system call of the traced thread was caught.
pub fn dispatch_call(mut engine: InTurn, context: &mut ucontext_t) -> After {
    let (number, arguments) = read_call(context);
    if number as i64 == libc::SYS_sched_yield {
        give_way(engine.into_turn(), context);
        return After::GoOn;
    }
    // A team may run without a region: in a library that is not instrumented.
    if turn::team_exists() && is_wait(number, arguments) {
        return match await_others(engine, number, arguments, context) {
            Ok(result) => {
                set_result(context, result);
                match team::has_failed() {
                    true => After::Suspend(None),
                    false => After::GoOn,
                }
            }
            Err((_, lack)) => {
                repeat_call(context);
                After::Suspend(Some(Cut::Because(lack)))
            }
        };
    }
    tracer::pin_pages();
    let outcome = pass_call(&mut engine, number, arguments, context);
    engine.unpin();
    engine.tracer.charge(u64::from(outcome.is_ok()));
    let exhausted = windows::give_up_exhausted(&mut engine);
    let (result, cut) = match outcome {
        Ok(result) if exhausted.is_none() => {
            set_result(context, result);
            return After::GoOn;
        }
        Ok(result) => (Some(result), exhausted),
        Err(leave) => {
            if let Leave::Stop(why) = leave {
                engine.tracer.stop(Cut::Call(number, why));
            }
            (leave.result(), leave.cut(number))
        }
    };
    match result {
        Some(result) => set_result(context, result),
        None => repeat_call(context),
    }
    After::Suspend(cut)
}

/// A system call of a thread of the runtime was caught, in its turn. If the trace cannot follow it, the traced thread
/// interrupts the trace.
pub fn dispatch_of_team(mut engine: InTurn, context: &mut ucontext_t) {
    let (number, arguments) = read_call(context);
    if number as i64 == libc::SYS_sched_yield {
        return give_way(engine.into_turn(), context);
    }
    engine.toucher = local::team_number();
    if is_wait(number, arguments) {
        return match await_others(engine, number, arguments, context) {
            Ok(result) => set_result(context, result),
            Err((turn, lack)) => {
                team::give_up(turn, Failure::Trace(Cut::Because(lack)));
                repeat_call(context);
            }
        };
    }
    tracer::pin_pages();
    let outcome = pass_call(&mut engine, number, arguments, context);
    engine.toucher = 0;
    engine.unpin();
    let leave = match outcome {
        Ok(result) => return set_result(context, result),
        Err(leave) => leave,
    };
    let cut = match leave {
        Leave::Stop(why) => {
            let cut = Cut::Call(number, why);
            engine.tracer.stop(cut);
            cut
        }
        _ => {
            let end = Cut::Call(number, "a thread of the team ends");
            leave.cut(number).unwrap_or(end)
        }
    };
    team::give_up(engine.into_turn(), Failure::Trace(cut));
    match leave.result() {
        Some(result) => set_result(context, result),
        None => repeat_call(context),
    }
}

/// `sched_yield`, out of turn: other threads may wait for it.
fn give_way(turn: Turn, context: &mut ucontext_t) {
    drop(turn);
    // SAFETY: no arguments.
    let result = unsafe { sys::call(libc::SYS_sched_yield, [0; 6]) };
    set_result(context, result);
}

/// A wait on a word of memory, out of turn; gives the turn back where memory cannot be opened.
fn await_others(
    mut engine: InTurn,
    number: usize,
    a: [usize; 6],
    context: &ucontext_t,
) -> Result<isize, (Turn, &'static str)> {
    tracer::pin_pages();
    let reached = engine.reach(a[0], 4, Access::Write);
    let reached = reached.and_then(|()| engine.reach(a[3], 16, Access::Read));
    engine.toucher = 0;
    tracer::unpin_later();
    if let Err(lack) = reached {
        return Err((engine.into_turn(), lack));
    }
    Ok(make_out_of_turn(engine, number, a, context))
}

fn pass_call(
    engine: &mut Engine,
    number: usize,
    a: [usize; 6],
    context: &mut ucontext_t,
) -> Result<isize, Leave> {
    match number as i64 {
        libc::SYS_mmap if a[3] & libc::MAP_ANONYMOUS as usize == 0 => map_file(engine, a),
        libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_mremap
        | libc::SYS_brk
        | libc::SYS_madvise => Ok(change_mappings(engine, number as i64, a)?),
        libc::SYS_shmat
        | libc::SYS_shmdt
        | libc::SYS_remap_file_pages
        | libc::SYS_pkey_mprotect => Err(Leave::Cut("it changes what is mapped")),
        libc::SYS_exit_group | libc::SYS_exit => Err(Leave::End),
        libc::SYS_rt_sigprocmask => Ok(change_signal_mask(engine, a, context)?),
        libc::SYS_rt_sigaction => change_disposition(engine, a),
        libc::SYS_sigaltstack => Err(Leave::Cut("it changes the stack of signal handlers")),
        libc::SYS_rt_sigreturn => Err(Leave::Cut("a handler of signals ends")),
        libc::SYS_clone
        | libc::SYS_clone3
        | libc::SYS_fork
        | libc::SYS_vfork
        | libc::SYS_execve
        | libc::SYS_execveat => Err(Leave::Cut("it starts a thread or a process")),
        libc::SYS_set_tid_address
        | libc::SYS_set_robust_list
        | libc::SYS_rseq
        | libc::SYS_arch_prctl => Err(Leave::Cut("it changes the thread")),
        libc::SYS_prctl if ![libc::PR_SET_NAME, libc::PR_GET_NAME].contains(&(a[0] as i32)) => {
            Err(Leave::Cut("it changes the process"))
        }
        libc::SYS_io_setup
        | libc::SYS_io_submit
        | libc::SYS_io_uring_setup
        | libc::SYS_io_uring_enter
        | libc::SYS_userfaultfd => Err(Leave::Stop(
            "the kernel reaches memory by itself from then on",
        )),
        libc::SYS_open if tells_mappings(engine, a[0])? => Err(refuse_to_show()),
        libc::SYS_openat | libc::SYS_openat2 if tells_mappings(engine, a[1])? => {
            Err(refuse_to_show())
        }
        libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => {
            pass_buffers(engine, number, a, Access::Write, Wait::Until(libc::POLLIN))
        }
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            pass_buffers(engine, number, a, Access::Read, Wait::Until(libc::POLLOUT))
        }
        _ => match find_reach(number, a) {
            Some((reach, wait)) if reach.iter().all(|r| r.1 <= MOST) => {
                for (start, length, access) in reach {
                    engine.reach(start, length, access)?;
                }
                make_in_turn(number, a, wait, count_written(number, a))
            }
            Some((reach, wait)) => {
                let result = make_with_all_open(engine, number, a, wait, count_written(number, a))?;
                for (start, length, access) in reach {
                    let (written, toucher) = (access == Access::Write, engine.toucher);
                    let range = (start, length);
                    engine
                        .tracer
                        .log_range(&mut engine.pages, range, written, toucher);
                }
                Ok(result)
            }
            None => make_with_all_open(engine, number, a, Wait::Perhaps, 0),
        },
    }
}

/// Why a file that shows mappings cannot be opened: it would show closed memory. libc finishes reading it before a region is
/// entered; the program may read on.
fn refuse_to_show() -> Leave {
    match limits::asks_for_stack() {
        true => Leave::Cut("it asks for the stack of the main thread"),
        false => Leave::Stop("the file would show that memory is closed"),
    }
}

/// Whether the path at `at` is that of a file that shows how memory is mapped.
fn tells_mappings(engine: &mut Engine, at: usize) -> Result<bool, Leave> {
    const NAMES: [&[u8]; 5] = [b"maps", b"smaps", b"smaps_rollup", b"numa_maps", b"pagemap"];
    /// Such a path is hardly longer, not even a thread's.
    const LONG: usize = 128;
    let mut path = [0u8; LONG];
    for (i, byte) in path.iter_mut().enumerate() {
        let from = at.wrapping_add(i);
        if i == 0 || from.is_multiple_of(PAGE) {
            engine.reach(from, 1, Access::Read)?;
            if !is_accessible(engine, from, 1, Access::Read) {
                return Ok(false);
            }
        }
        // SAFETY: a byte of the program that is open.
        *byte = unsafe { (from as *const u8).read_volatile() };
        if *byte == 0 {
            let path = path.get(..i).unwrap_or_default();
            let place = path.starts_with(b"/proc/") || !path.starts_with(b"/");
            let name = path.rsplit(|byte| *byte == b'/').next();
            return Ok(place && name.is_some_and(|name| NAMES.contains(&name)));
        }
    }
    Ok(false)
}

/// Whether the handler itself may access [start, start + length).
fn is_accessible(engine: &mut Engine, start: usize, length: usize, access: Access) -> bool {
    let end = start.saturating_add(length);
    let mut pages = (start & !(PAGE - 1)..end).step_by(PAGE);
    start != 0
        && pages.all(|at| match engine.pages.spans.find(at) {
            Some(_) => engine.pages.is_open(at, access),
            // Stacks of other threads are never closed.
            None => sys::is_mapped(at, PAGE),
        })
}

/// `rt_sigaction`: the program reads or changes a disposition.
fn change_disposition(engine: &mut Engine, a: [usize; 6]) -> Result<isize, Leave> {
    const SIZE: usize = size_of::<sys::Action>();
    if local::is_of_team() {
        return Err(Leave::Cut("a thread of the team calls it"));
    }
    engine.reach(a[1], SIZE, Access::Read)?;
    engine.reach(a[2], SIZE, Access::Write)?;
    let mut fits = |at, access| at == 0 || is_accessible(engine, at, SIZE, access);
    if a[3] == 8 && fits(a[1], Access::Read) && fits(a[2], Access::Write) {
        // SAFETY: the program's structures, open now.
        let new = (a[1] != 0).then(|| unsafe { *(a[1] as *const sys::Action) });
        if let Some(old) = signals::change_action(a[0] as i32, new) {
            if a[2] != 0 {
                // SAFETY: the program's structure, whose page is open.
                unsafe { *(a[2] as *mut sys::Action) = old };
            }
            return Ok(0);
        }
    }
    Err(Leave::Cut("it changes what signals do"))
}

/// Calls with an array of buffers.
fn pass_buffers(
    engine: &mut Engine,
    number: usize,
    a: [usize; 6],
    access: Access,
    wait: Wait,
) -> Result<isize, Leave> {
    const SOME: usize = 64;
    if a[2] > SOME {
        return make_with_all_open(engine, number, a, wait, usize::MAX);
    }
    engine.reach(a[1], a[2] * 16, Access::Read)?;
    if !is_accessible(engine, a[1], a[2] * 16, Access::Read) {
        return make_with_all_open(engine, number, a, wait, usize::MAX);
    }
    // SAFETY: the program's array, open now, and nobody else has a turn.
    let part = |i: usize| unsafe { *(a[1] as *const [usize; 2]).add(i) };
    let total = (0..a[2]).fold(0usize, |sum, i| sum.saturating_add(part(i)[1]));
    if total > MOST {
        return make_with_all_open(engine, number, a, wait, total);
    }
    for i in 0..a[2] {
        let [start, length] = part(i);
        engine.reach(start, length, access)?;
    }
    make_in_turn(number, a, wait, total)
}

/// `mmap` of a file. Code of libraries stays open.
fn map_file(engine: &mut Engine, a: [usize; 6]) -> Result<isize, Leave> {
    // SAFETY: the program's own call; the bookkeeping follows at once.
    let result = unsafe { sys::call(libc::SYS_mmap, a) };
    if !(-4095..0).contains(&result) {
        let (start, rights) = (result as usize, a[2] as u8 & 7);
        let code = rights & libc::PROT_EXEC as u8 != 0;
        let rights = (!code).then_some((rights, 0));
        engine
            .remap(start, start + page_up(a[1]), rights, false)
            .map_err(|lack| Leave::Made(result, lack))?;
    }
    Ok(result)
}
