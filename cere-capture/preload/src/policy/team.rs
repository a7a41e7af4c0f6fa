//! The threads of the OpenMP runtime while captures are in progress.
//!
//! Their touches belong to the region, so they do not wait for open memory as other threads do: their faults and system calls
//! are handled like the captured thread's, one thread at a time. The captured thread's handlers take turns with them. Its
//! hook, and what ends captures, keep all of them out: a thread that faults then repeats its instruction until memory is open.
//! If a thread of a team cannot go on, the captured thread gives up.
//!
//! In handlers: raw system calls and atomics only.

use super::halt::Halt;
use super::needs::Needs;
use super::openmp;
use crate::engine::dispatch::catch_calls;
use crate::engine::in_turn::InTurn;
use crate::engine::memory::Access;
use crate::engine::spans::Span;
use crate::engine::touch::Touched;
use crate::engine::tracer::{self, Cut};
use crate::engine::turn::{self, Turn};
use crate::engine::{gate, status};
use crate::os::section::{self, in_library};
use crate::os::sys::{self, PAGE};
use crate::os::{arena, local, signals};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

static mut FAILURE: Option<Failure> = None;

/// Whether the captured thread starts a thread of the runtime inside a captured invocation.
static CREATING: AtomicBool = AtomicBool::new(false);
/// Preferred address of the next stack.
static NEXT_STACK: AtomicUsize = AtomicUsize::new(arena::STACKS);
/// Minimum bytes of a thread's stack.
const LEAST_STACK: usize = 1 << 20;

/// Why a thread of a team cannot go on.
#[derive(Debug, Clone, Copy)]
pub enum Failure {
    /// It lacks this.
    Lack(&'static str),
    /// It may not access this address.
    Crash(usize),
    /// A system call, by number.
    Call(usize, Halt),
    /// A function that needs what no replay has.
    Meets(Needs, &'static str),
    /// What the page trace cannot follow.
    Trace(Cut),
}

/// In a handler that interrupts the calling thread at this stack pointer: whether that is of a team. A thread that was started
/// inside a captured invocation is, from its first instruction, before it has [joined](local::joins_team): the region waits
/// for it.
pub fn runs_in_team(stack: usize) -> bool {
    local::is_of_team() || (arena::STACKS..NEXT_STACK.load(SeqCst)).contains(&stack)
}

/// A thread of a team faults, in its turn. Returns when it may run its instruction again.
pub fn handle_fault(mut engine: InTurn, address: usize, access: Access, ours: bool) {
    if !engine.at_work() {
        return;
    }
    if let Some(level) = engine.level.as_mut() {
        level.faults += 1;
    }
    engine.toucher = local::team_number();
    let touched = match ours {
        true => engine.touch_by_fault(address, access),
        false => Touched::NotOurs,
    };
    engine.toucher = 0;
    match touched {
        Touched::Opened => {}
        Touched::Failed(lack) => give_up(engine.into_turn(), Failure::Lack(lack)),
        Touched::NotOurs => give_up(engine.into_turn(), Failure::Crash(address)),
    }
}

/// Asks the captured thread to give up, and waits until it has.
pub fn give_up(turn: Turn, failure: Failure) {
    // SAFETY: in turn, and read by the captured thread in its own.
    let known = unsafe {
        let first = &raw mut FAILURE;
        (*first).replace((*first).unwrap_or(failure)).is_some()
    };
    drop(turn);
    // A thread that holds a lock of the library does not wait: it tries again until memory is open.
    if section::is_interrupted() && known {
        return;
    }
    gate::nudge_captured();
    if section::is_interrupted() {
        return;
    }
    gate::await_memory();
    // Memory is open before all is written, and what failed may end the process. A hook that starts the team waits for this thread.
    while turn::teams_are_barred() && openmp::mask_of_new().is_none() {
        // SAFETY: no arguments.
        unsafe { sys::call(libc::SYS_sched_yield, [0; 6]) };
    }
}

/// Takes the reason why a thread of a team could not go on. For the captured thread, while teams are kept out.
pub fn take_failure() -> Option<Failure> {
    let failure = &raw mut FAILURE;
    // SAFETY: nobody else has a turn.
    unsafe { (*failure).take() }
}

/// Whether a thread of a team could not go on.
pub fn has_failed() -> bool {
    let failure = &raw const FAILURE;
    // SAFETY: whoever sees it too late sees it the next time.
    unsafe { (*failure).is_some() }
}

impl Failure {
    /// Reason for messages; none if the program ends.
    pub fn reason(&self) -> Option<String> {
        match self {
            Failure::Lack(lack) => Some(format!("it takes {lack}")),
            Failure::Crash(at) => Some(format!(
                "the program crashes inside: a thread of its team may not access {at:#x}"
            )),
            Failure::Call(number, halt) => halt.reason(*number),
            Failure::Meets(needs, function) => Some(needs.reason(function)),
            Failure::Trace(cut) => Some(format!("a thread of its team: {cut}")),
        }
    }

    /// The gap that it makes in the page trace.
    pub fn cut(&self) -> Cut {
        match *self {
            Failure::Lack(lack) => Cut::Because(lack),
            Failure::Crash(at) => Cut::Crash(at),
            Failure::Call(number, _) => Cut::Call(number, "a thread of the team calls it"),
            Failure::Meets(..) => Cut::Because("a thread of the team calls what no replay has"),
            Failure::Trace(cut) => cut,
        }
    }
}

/// Starts a thread, with `real`. If the captured thread starts one of the runtime inside a captured invocation, the memory that
/// the C library uses for that is opened first, and stays open until its calls are made: to the kernel, closed memory does not
/// exist. `span` returns the n-th one under protection.
pub fn create_thread(
    team: bool,
    attributes: *const libc::pthread_attr_t,
    span: impl Fn(usize) -> Option<Span>,
    real: impl FnOnce(*const libc::pthread_attr_t) -> i32,
) -> i32 {
    if !team {
        return real(attributes);
    }
    turn::team_begins();
    let inside = status::captures();
    // In the hook everything is open.
    let hook = turn::teams_are_barred();
    if !inside || hook || !gate::is_captured() {
        return real(attributes);
    }
    let Some(own) = on_our_stack(attributes) else {
        return libc::EAGAIN;
    };
    tracer::pin_pages();
    touch_libraries(span);
    let mask = signals::program_mask();
    CREATING.store(true, SeqCst);
    let result = in_library(|| real(&own));
    CREATING.store(false, SeqCst);
    // The C library has restored the mask by a call that was let through.
    signals::set_mask(mask);
    sys::exchange_mask(signals::mask_inside(mask));
    catch_calls(true);
    tracer::unpin_later();
    result
}

/// Whether the captured thread starts a thread of the runtime: the call that does so is let through.
pub fn is_creating() -> bool {
    CREATING.load(SeqCst)
}

/// The attributes with a stack that no capture closes: otherwise the C library may reuse another thread's.
fn on_our_stack(attributes: *const libc::pthread_attr_t) -> Option<libc::pthread_attr_t> {
    in_library(|| {
        // SAFETY: a copy of the caller's attributes, if there are; what they lead to stays theirs. A fresh mapping.
        unsafe {
            let mut own: libc::pthread_attr_t = std::mem::zeroed();
            match attributes.as_ref() {
                Some(given) => own = *given,
                None => drop(libc::pthread_attr_init(&mut own)),
            }
            let mut size = 0;
            libc::pthread_attr_getstacksize(&own, &mut size);
            let size = size.max(LEAST_STACK).next_multiple_of(PAGE);
            let at = NEXT_STACK.fetch_add(size + PAGE, SeqCst);
            let stack = arena::reserve(at, size)?;
            libc::pthread_attr_setstack(&mut own, stack as *mut c_void, size);
            Some(own)
        }
    })
}

/// Touches the data of the C library and of the loader, as the region would.
fn touch_libraries(span: impl Fn(usize) -> Option<Span>) {
    let ranges = openmp::c_library();
    let mut i = 0;
    while let Some(span) = span(i) {
        i += 1;
        if !ranges.iter().any(|r| r.0 <= span.start && span.start < r.1) {
            continue;
        }
        for at in (span.start..span.end).step_by(PAGE) {
            // SAFETY: changes nothing, not even beside other threads; the handler opens the page.
            unsafe {
                if span.protection & libc::PROT_WRITE as u8 != 0 {
                    core::arch::asm!("lock or byte ptr [{at}], 0", at = in(reg) at, options(nostack));
                } else {
                    (at as *const u8).read_volatile();
                }
            }
        }
    }
}
