//! System calls of a region under capture: done with the bookkeeping they need, or refused.
//!
//! Runs in the SIGSYS handler; the program's memory is closed until a call is refused.

use crate::capture::{self, Cause};
use crate::clock;
use crate::engine::{Access, CALLS, Engine};
use crate::names;
use crate::pool::PAGE;
use crate::process;
use crate::spans::KIND_FILE;
use crate::team::Turn;
use crate::{local, openmp, passing, signals, sys, team, threads, trace, tracer, wanted};
use cere_format::answers::question;
use libc::ucontext_t;

/// Operations of futex that wait, with a timeout as fourth argument.
const WAITS: [i32; 5] = [
    libc::FUTEX_WAIT,
    libc::FUTEX_WAIT_BITSET,
    libc::FUTEX_WAIT_REQUEUE_PI,
    libc::FUTEX_LOCK_PI,
    FUTEX_LOCK_PI2,
];
const FUTEX_LOCK_PI2: i32 = 13;
const DONTNEED_LOCKED: usize = 24;

/// Nanoseconds after which a thread that waits for others of its team looks whether it may go on waiting.
const SLICE: [i64; 2] = [0, 10_000_000];

/// Why a call is not simply done.
#[derive(Debug, Clone, Copy)]
pub enum Halt {
    /// It ends the program.
    Exit,
    /// What it does is not part of the region's memory.
    Outside,
    /// The same, of a descriptor.
    Descriptor(usize),
    /// It waits for another thread.
    Waits,
    /// It sleeps while there are signals to handle.
    Sleeps,
    /// It starts a thread or process.
    Starts,
    /// It changes what signals do.
    Signals,
    /// It drops memory that a file, or who shares it, fills again.
    Drops,
    /// It fails when it has changed a part of what it is to change.
    HalfWay,
    /// The capture lacks something.
    Lack(&'static str),
    /// The same, and the call is made, with this result.
    Made(isize, &'static str),
}

impl From<&'static str> for Halt {
    fn from(lack: &'static str) -> Halt {
        Halt::Lack(lack)
    }
}

impl Halt {
    /// For people; none if the program ends.
    pub fn reason(&self, number: usize) -> Option<String> {
        let name = names::name(number);
        Some(match self {
            Halt::Exit => return None,
            Halt::Outside => format!("calls {name}: it depends on outside state"),
            Halt::Descriptor(d) => {
                format!("calls {name} on descriptor {d}: it depends on outside state")
            }
            Halt::Waits => format!("calls {name}: it waits for another thread"),
            Halt::Sleeps => {
                format!("calls {name}: it sleeps, and the program handles signals")
            }
            Halt::Starts => format!("calls {name}: it starts a thread or a process"),
            Halt::Signals => format!("calls {name}: it changes what signals do"),
            Halt::HalfWay => format!("calls {name}, which fails half way"),
            Halt::Drops => format!(
                "calls {name} to drop memory of a file or shared memory, whose content comes back"
            ),
            Halt::Lack(lack) | Halt::Made(_, lack) => format!("it takes {lack}"),
        })
    }
}

/// What becomes of a call.
enum Act {
    /// It is done, with this result.
    Done(isize),
    /// It can be made: what it reaches is open.
    Make,
    /// The program is to make it: it is let through now.
    Again,
}

/// Number and arguments of the call that was caught.
fn asked(context: &ucontext_t) -> (usize, [usize; 6]) {
    let registers = &context.uc_mcontext.gregs;
    let at = |r: i32| registers[r as usize] as usize;
    let arguments = [
        at(libc::REG_RDI),
        at(libc::REG_RSI),
        at(libc::REG_RDX),
        at(libc::REG_R10),
        at(libc::REG_R8),
        at(libc::REG_R9),
    ];
    (at(libc::REG_RAX), arguments)
}

/// What the call returns to the program.
pub fn answer(context: &mut ucontext_t, result: isize) {
    context.uc_mcontext.gregs[libc::REG_RAX as usize] = result as i64;
}

/// Whether a call waits for another thread on a word of memory.
pub fn waits(number: usize, a: [usize; 6]) -> bool {
    number as i64 == libc::SYS_futex && WAITS.contains(&(a[1] as i32 & 127))
}

/// Makes a call whose memory is open, when others may have their turn. What it reaches stays open meanwhile. A thread of a team
/// may rest in it until long after the captures: it does so with the signal mask that the handler returns to.
pub fn out_of_turn(
    engine: &mut Engine,
    turn: Turn,
    number: usize,
    a: [usize; 6],
    context: &ucontext_t,
) -> isize {
    // What the runtime waits on is never closed: its threads may rest there for long.
    let mut closed = |at| engine.spans.find(at).is_some();
    let pin = number as i64 != libc::SYS_futex || closed(a[0]) || closed(a[3]);
    if pin {
        tracer::pin();
    }
    drop(turn);
    let result = if local::of_team() {
        // SAFETY: the kernel's record.
        let mask = unsafe { *(&raw const context.uc_sigmask).cast::<u64>() };
        let inside = sys::mask(mask);
        let result = make(number, a);
        sys::mask(inside);
        result
    } else {
        make(number, a)
    };
    if pin {
        tracer::unpin_later();
    }
    result
}

/// Makes a call whose memory is open, out of turn. One that waits for other threads of the team looks up now and then:
/// they may have failed.
fn make(number: usize, a: [usize; 6]) -> isize {
    let active = openmp::in_parallel() || team::exists() && threads::is_captured();
    let waits = number as i64 == libc::SYS_futex
        && [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET].contains(&(a[1] as i32 & 127))
        && active;
    if !waits || a[3] != 0 {
        // SAFETY: the program's own call; the memory that it reaches is open.
        return unsafe { sys::call(number as i64, a) };
    }
    // Without a timeout both are the same, but for whom a wake-up meets; to wake up for nothing is allowed.
    let private = a[1] & libc::FUTEX_PRIVATE_FLAG as usize;
    let wait = libc::FUTEX_WAIT as usize | private;
    // SAFETY: as above; a wait on the program's word.
    let result = unsafe {
        sys::call(
            number as i64,
            [a[0], wait, a[2], SLICE.as_ptr() as usize, 0, 0],
        )
    };
    match result {
        result if result == -(libc::ETIMEDOUT as isize) => -(libc::EAGAIN as isize),
        result => result,
    }
}

/// A thread of a team made a system call while captures are in progress.
pub fn dispatch_of_team(context: &mut ucontext_t) {
    let (number, arguments) = asked(context);
    let Some(turn) = team::enter() else {
        return again(context);
    };
    // SAFETY: in turn.
    let Some(engine) = unsafe { wanted::engine() }.filter(|e| e.at_work()) else {
        drop(turn);
        threads::hold();
        return again(context);
    };
    if engine.level.is_none() {
        return passing::dispatch_of_team(engine, turn, number, arguments, context);
    }
    count(engine, number, context);
    engine.toucher = local::number();
    tracer::pin();
    let outcome = perform(engine, number, arguments, context);
    engine.toucher = 0;
    match outcome {
        Ok(act) => {
            tracer::unpin_later();
            match act {
                Act::Done(result) => answer(context, result),
                Act::Make => {
                    let result = out_of_turn(engine, turn, number, arguments, context);
                    answer(context, result);
                }
                Act::Again => again(context),
            }
        }
        Err(halt) => {
            tracer::unpin_later();
            team::fail(turn, team::Failure::Call(number, halt));
            go_on(context, halt);
        }
    }
}

/// The captures have ended for this: the program makes the call itself, if it is not made.
fn go_on(context: &mut ucontext_t, halt: Halt) {
    match halt {
        Halt::Made(result, _) => answer(context, result),
        _ => again(context),
    }
}

/// Where the call was made.
fn place(context: &ucontext_t) -> usize {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize
}

fn count(engine: &mut Engine, number: usize, context: &ucontext_t) {
    let kept = number < CALLS && !clock::asks(place(context));
    if let Some(level) = engine.level.as_mut().filter(|_| kept) {
        level.calls[number] = level.calls[number].saturating_add(1);
    }
}

/// A system call of the program was caught.
pub fn dispatch(context: &mut ucontext_t) {
    let (number, arguments) = asked(context);
    let stack = signals::stack_pointer(context);
    if capture::may_abandon(stack) && capture::abandon(context) {
        return again(context);
    }
    let turn = team::turn();
    // SAFETY: in turn.
    let Some(engine) = (unsafe { wanted::engine() }) else {
        return again(context);
    };
    if engine.level.is_none() {
        return passing::dispatch(engine, turn, number, arguments, context);
    }
    let at = place(context);
    count(engine, number, context);
    tracer::pin();
    let outcome = perform(engine, number, arguments, context);
    let outcome = match outcome {
        Ok(Act::Done(result)) => Ok(result),
        // Beside other threads of the team the call is made out of turn.
        Ok(Act::Make) if engine.shared() => {
            tracer::unpin_later();
            let result = out_of_turn(engine, turn, number, arguments, context);
            clock::note(number, arguments, result, at);
            if team::failed() {
                capture::end_all(context, Cause::Team);
            }
            return answer(context, result);
        }
        Ok(Act::Make) => {
            let result = make(number, arguments);
            clock::note(number, arguments, result, at);
            Ok(result)
        }
        Ok(Act::Again) => {
            engine.unpin();
            return again(context);
        }
        Err(halt) => Err(halt),
    };
    engine.unpin();
    if trace::exhausted(engine).is_some() {
        engine.detach();
    }
    drop(turn);
    match outcome {
        Ok(result) => answer(context, result),
        Err(halt) => {
            capture::end_all(context, Cause::Call(number, halt));
            go_on(context, halt);
        }
    }
}

/// Lets the program make the call itself: two bytes back stands its `syscall` instruction.
pub fn again(context: &mut ucontext_t) {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] -= 2;
}

/// Memory that a call's arguments reach: start, length, what the kernel does there.
pub type Reach = [(usize, usize, Access); 3];

/// What the arguments reach of calls that only ask, and may be made anywhere. None: it is none of those.
pub fn harmless(number: usize, a: [usize; 6]) -> Option<Reach> {
    use Access::Write;
    let written = |(start, length)| (start, length, Write);
    const NONE: (usize, usize, Access) = (0, 0, Access::Read);
    if let Some(asked) = question(number, a) {
        let [first, second] = asked.writes.map(written);
        return Some([first, second, NONE]);
    }
    match number as i64 {
        libc::SYS_sched_getaffinity => Some([written((a[2], a[1])), NONE, NONE]),
        libc::SYS_sched_yield => Some([NONE; 3]),
        _ => None,
    }
}

fn perform(
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
        | libc::SYS_madvise => return memory(engine, number as i64, a).map(Act::Done),
        libc::SYS_exit_group | libc::SYS_exit => return Err(Halt::Exit),
        libc::SYS_rt_sigprocmask => return signal_mask(engine, a, context).map(Act::Done),
        // The C library's own signals, which it sets up as the first thread starts.
        libc::SYS_rt_sigaction if team::creating() && (32..34).contains(&a[0]) => {
            engine.reach(a[1], size_of::<sys::Action>(), Read)?;
            reach[0] = (a[2], size_of::<sys::Action>(), Write);
        }
        libc::SYS_rt_sigaction => {
            let replaced = signals::replaced(a[0] as i32);
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
            // Threads of the team rest between parallel regions.
            let rests = engine.shared() || local::of_team();
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
            // They would sleep as well, where they touch what is closed.
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
            return signals::wait_with(sleep).map(Act::Done).ok_or(Halt::Sleeps);
        }
        // The runtime places the threads of the team; a replay's does so anew.
        libc::SYS_sched_setaffinity if openmp::in_parallel() => reach[0] = (a[2], a[1], Read),
        libc::SYS_prlimit64 if a[2] == 0 => reach[0] = (a[3], 16, Write),
        libc::SYS_clone | libc::SYS_clone3 if team::creating() && threads::is_captured() => {
            // Not from the handler: the new thread goes on where the call returns.
            signals::catch_calls(false);
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
        _ => match harmless(number, a) {
            Some(known) => reach = known,
            None => return Err(Halt::Outside),
        },
    }
    for (start, length, access) in reach {
        engine.reach(start, length, access)?;
    }
    Ok(Act::Make)
}

/// The mask lies in the context that the handler returns to.
pub fn signal_mask(
    engine: &mut Engine,
    a: [usize; 6],
    context: &mut ucontext_t,
) -> Result<isize, Halt> {
    engine.reach(a[1], 8, Access::Read)?;
    engine.reach(a[2], 8, Access::Write)?;
    // SAFETY: the kernel's record, and the program's words, open now.
    unsafe {
        let mask = (&raw mut context.uc_sigmask).cast::<u64>();
        let team = local::of_team();
        let before = if team { *mask } else { signals::outside(*mask) };
        if a[1] != 0 {
            let set = *(a[1] as *const u64);
            let wanted = match a[0] as i32 {
                libc::SIG_BLOCK => before | set,
                libc::SIG_UNBLOCK => before & !set,
                libc::SIG_SETMASK => set,
                _ => return Ok(-(libc::EINVAL as isize)),
            };
            if team {
                *mask = signals::takes_part(wanted);
            } else {
                signals::set_mask(wanted);
                *mask = signals::inside(wanted);
            }
        }
        if a[2] != 0 {
            *(a[2] as *mut u64) = before;
        }
    }
    Ok(0)
}

/// The next multiple of the page size.
pub fn up(address: usize) -> usize {
    address.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// mprotect. One that fails half way has changed what comes before.
fn change_rights(engine: &mut Engine, a: [usize; 6]) -> Result<isize, Halt> {
    const HALF_WAY: &str = "a call of mprotect that fails half way";
    let length = up(a[1]);
    if a[0].is_multiple_of(PAGE) && length > 0 && !sys::is_mapped(a[0], length) {
        return Err(Halt::HalfWay);
    }
    // SAFETY: the program's own call; the bookkeeping follows at once.
    let result = unsafe { sys::call(libc::SYS_mprotect, a) };
    let end = a[0].saturating_add(length);
    let alone = engine.spans.find(a[0]).is_some_and(|s| end <= s.end);
    match result {
        result if result == -(libc::ENOMEM as isize) => Err(Halt::Made(result, HALF_WAY)),
        result if result == -(libc::EACCES as isize) && !alone => Err(Halt::Made(result, HALF_WAY)),
        result => Ok(result),
    }
}

/// Calls that change what is mapped.
pub fn memory(engine: &mut Engine, number: i64, a: [usize; 6]) -> Result<isize, Halt> {
    let failed = |result: isize| (-4095..0).contains(&result);
    // SAFETY: the program's own calls; the bookkeeping follows at once.
    unsafe {
        match number {
            libc::SYS_mmap => {
                if a[3] & libc::MAP_ANONYMOUS as usize == 0 {
                    return Err(Halt::Outside);
                }
                let result = sys::call(number, a);
                if !failed(result) {
                    let start = result as usize;
                    engine
                        .remap(start, start + up(a[1]), Some((a[2] as u8 & 7, 0)), true)
                        .map_err(|lack| Halt::Made(result, lack))?;
                }
                Ok(result)
            }
            libc::SYS_munmap => {
                let result = sys::call(number, a);
                if result == 0 {
                    engine
                        .remap(a[0], a[0] + up(a[1]), None, false)
                        .map_err(|lack| Halt::Made(result, lack))?;
                }
                Ok(result)
            }
            libc::SYS_brk => {
                let before = sys::call(number, [0; 6]) as usize;
                let result = sys::call(number, a);
                let after = result as usize;
                if after > before {
                    let both = (libc::PROT_READ | libc::PROT_WRITE) as u8;
                    engine
                        .remap(up(before), up(after), Some((both, 0)), true)
                        .map_err(|lack| Halt::Made(result, lack))?;
                } else {
                    engine
                        .remap(up(after), up(before), None, false)
                        .map_err(|lack| Halt::Made(result, lack))?;
                }
                Ok(result)
            }
            libc::SYS_madvise => {
                let drops = [libc::MADV_DONTNEED, libc::MADV_FREE, libc::MADV_REMOVE];
                if drops.contains(&(a[2] as i32)) || a[2] == DONTNEED_LOCKED {
                    // A replay has private memory without a file there.
                    let end = a[0].saturating_add(a[1]);
                    if engine.level.is_some() && engine.spans.any(a[0], end, KIND_FILE) {
                        return Err(Halt::Drops);
                    }
                    engine.reach(a[0], a[1], Access::Write)?;
                } else if a[2] == libc::MADV_POPULATE_WRITE as usize {
                    engine.reach(a[0], a[1], Access::Write)?;
                } else if a[2] == libc::MADV_POPULATE_READ as usize {
                    engine.reach(a[0], a[1], Access::Read)?;
                }
                Ok(sys::call(number, a))
            }
            libc::SYS_mprotect => {
                let result = change_rights(engine, a)?;
                if result == 0 && a[1] > 0 {
                    let kind = match (engine.spans.find(a[0]), engine.level.as_ref()) {
                        (Some(span), _) => span.kind,
                        (None, Some(level)) => process::kind(&level.images, a[0] as u64),
                        (None, None) => 0,
                    };
                    let known = engine.spans.find(a[0]).is_some();
                    engine
                        .remap(a[0], a[0] + up(a[1]), Some((a[2] as u8 & 7, kind)), !known)
                        .map_err(|lack| Halt::Made(result, lack))?;
                }
                Ok(result)
            }
            _ => {
                // mremap wants one mapping: what protection split has to be whole again.
                let (old, length, new) = (a[0], up(a[1]), up(a[2]));
                let Some(span) = engine.spans.find(old) else {
                    return Err(Halt::Outside);
                };
                let access = match span.protection & libc::PROT_WRITE as u8 {
                    0 => Access::Read,
                    _ => Access::Write,
                };
                engine.reach(old, length, access)?;
                sys::protect(old, old + length, span.protection);
                let result = sys::call(number, a);
                if !failed(result) {
                    let start = result as usize;
                    let rights = Some((span.protection, span.kind));
                    if start != old || new < length {
                        engine
                            .remap(old, old + length, None, false)
                            .map_err(|lack| Halt::Made(result, lack))?;
                    }
                    if start != old {
                        engine
                            .remap(start, start + new, rights, true)
                            .map_err(|lack| Halt::Made(result, lack))?;
                    } else if new < length {
                        engine
                            .remap(old, old + new, rights, false)
                            .map_err(|lack| Halt::Made(result, lack))?;
                    } else {
                        engine
                            .remap(old + length, old + new, rights, true)
                            .map_err(|lack| Halt::Made(result, lack))?;
                    }
                }
                Ok(result)
            }
        }
    }
}
