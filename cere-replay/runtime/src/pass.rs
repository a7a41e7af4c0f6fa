//! System calls of the region whose answers were captured: Syscall User Dispatch catches and answers them. All others are made
//! unchanged.

use crate::guard;
use cere_inside::call::{call, dispatch, restorer};
use libc::ucontext_t;
use std::arch::global_asm;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

// A handler whose return was caught returns with the stack pointer that it had then.
global_asm!(
    ".pushsection .text.cere_pass,\"ax\",@progbits",
    ".globl cere_pass_return",
    ".hidden cere_pass_return",
    ".type cere_pass_return,@function",
    "cere_pass_return:",
    "mov rsp, rdi",
    "jmp rsi",
    ".popsection",
);

unsafe extern "C" {
    fn cere_pass_return(stack: usize, restorer: usize) -> !;
}

/// Whether system calls are caught (1).
static SELECTOR: AtomicU8 = AtomicU8::new(0);
/// Whether they can be, in the thread that enters the region.
static CATCHES: AtomicBool = AtomicBool::new(false);

/// Makes a system call of the region, or answers it from the capture; negative results are negated errors.
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
    done
}

/// Catches system calls from now on, or lets them through.
pub fn catch(yes: bool) {
    if CATCHES.load(Relaxed) {
        SELECTOR.store(yes.into(), Relaxed);
    }
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
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    let at = |r: i32| registers[r as usize] as usize;
    let number = at(libc::REG_RAX);
    let mut arguments = [
        at(libc::REG_RDI),
        at(libc::REG_RSI),
        at(libc::REG_RDX),
        at(libc::REG_R10),
        at(libc::REG_R8),
        at(libc::REG_R9),
    ];
    match number as i64 {
        // Of another handler, whose frame lies there; this one's is left.
        // SAFETY: the stack pointer with which the call was made.
        libc::SYS_rt_sigreturn => unsafe { cere_pass_return(at(libc::REG_RSP), restorer()) },
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork
            if guard::SEALED.load(Relaxed) =>
        {
            guard::not_captured(number as i64, arguments)
        }
        // What they start goes on where the call returns: the program makes them itself.
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork => {
            SELECTOR.store(0, Relaxed);
            registers[libc::REG_RIP as usize] -= 2;
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
            Some(answer) => answer(number, arguments),
            None => call(number as i64, arguments),
        }
    };
    registers[libc::REG_RAX as usize] = result as i64;
}
