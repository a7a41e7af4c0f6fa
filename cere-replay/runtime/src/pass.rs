//! System calls of the region whose answers were captured: Syscall User Dispatch catches and answers them. All others are made
//! unchanged.

use crate::guard;
use cere_arch::call::{STARTS, leave_handler, packaged};
use cere_arch::register::Registers;
use cere_inside::call::{call, dispatch, restorer};
use libc::ucontext_t;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// Whether system calls are caught (1).
static SELECTOR: AtomicU8 = AtomicU8::new(0);
/// Whether they can be, in the thread that enters the region.
static CATCHES: AtomicBool = AtomicBool::new(false);

/// Whether they could be when the region first ran.
static SEES: AtomicBool = AtomicBool::new(false);

/// Makes a system call of the region, by its number in packages, or answers it from the capture; negative results are negated errors.
pub type Answer = unsafe fn(number: usize, arguments: [usize; 6]) -> isize;

/// What answers a call that was caught.
static ANSWER: OnceLock<Answer> = OnceLock::new();

/// Has the calling thread's system calls caught while [`catch`] says so, and made or answered by `answer`. False if the kernel
/// cannot. The signal is the one that [`guard`] takes, which was installed before.
pub fn prepare(answer: Answer) -> bool {
    const SA_RESTORER: usize = 0x0400_0000;
    let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER) as usize | SA_RESTORER;
    let action = [on_call as *const () as usize, flags, restorer(), 0];
    let _ = ANSWER.set(answer);
    let arguments = [libc::SIGSYS as usize, action.as_ptr() as usize, 0, 8, 0, 0];
    // SAFETY: the kernel's record of a handler; the selector is a static.
    let done = unsafe {
        call(libc::SYS_rt_sigaction, arguments) == 0 && dispatch(Some(SELECTOR.as_ptr())) == 0
    };
    CATCHES.store(done, Relaxed);
    SEES.store(done, Relaxed);
    done
}

/// Catches system calls from now on, or lets them through.
pub fn catch(yes: bool) {
    if CATCHES.load(Relaxed) {
        SELECTOR.store(yes.into(), Relaxed);
    }
}

/// Whether system calls of the first run were caught: what streams wrote out is known then.
pub fn sees() -> bool {
    SEES.load(Relaxed)
}

/// Catches none from now on.
pub fn release() {
    CATCHES.store(false, Relaxed);
    SELECTOR.store(0, Relaxed);
}

extern "C" fn on_call(signal: i32, info: *mut libc::siginfo_t, context: *mut ucontext_t) {
    const SYS_USER_DISPATCH: i32 = 2;
    // SAFETY: the kernel's record.
    if unsafe { (*info).si_code } != SYS_USER_DISPATCH {
        return guard::trapped(signal, info, context.cast());
    }
    // SAFETY: the kernel's record.
    let mut registers = Registers::of(unsafe { &mut *context });
    let (number, mut arguments) = registers.call();
    match number {
        // Of another handler, whose frame lies there; this one's is left.
        // SAFETY: the stack pointer with which the call was made.
        libc::SYS_rt_sigreturn => unsafe { leave_handler(registers.stack() as usize) },
        starts if STARTS.contains(&starts) && guard::SEALED.load(Relaxed) => {
            guard::not_captured(number, arguments)
        }
        // What they start goes on where the call returns: the program makes them itself.
        starts if STARTS.contains(&starts) => {
            SELECTOR.store(0, Relaxed);
            registers.call_again();
            return;
        }
        // The region knows its process by the number that it had.
        libc::SYS_kill | libc::SYS_tgkill => {
            // SAFETY: getpid takes nothing and changes nothing.
            arguments[0] = unsafe { call(libc::SYS_getpid, [0; 6]) } as usize;
        }
        _ => {}
    }
    // SAFETY: the region's own call.
    let result = unsafe {
        match ANSWER.get() {
            Some(answer) if let Some(packaged) = packaged(number) => {
                answer(packaged as usize, arguments)
            }
            _ if guard::SEALED.load(Relaxed) => guard::not_captured(number, arguments),
            _ => call(number, arguments),
        }
    };
    registers.set_result(result);
}
