//! System calls of the region whose answers were captured: Syscall User Dispatch catches and answers them. All others are made
//! unchanged.

use crate::guard;
use libc::ucontext_t;
use std::arch::global_asm;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

global_asm!(
    ".pushsection .text.cere_pass,\"ax\",@progbits",
    ".balign 16",
    ".globl cere_pass_start",
    ".hidden cere_pass_start",
    "cere_pass_start:",
    ".globl cere_pass_call",
    ".hidden cere_pass_call",
    ".type cere_pass_call,@function",
    "cere_pass_call:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "ret",
    ".globl cere_pass_plain",
    ".hidden cere_pass_plain",
    ".type cere_pass_plain,@function",
    "cere_pass_plain:",
    "syscall",
    "ret",
    // A handler returns here; and, with the stack pointer that it had then, one whose return was caught.
    ".globl cere_pass_return",
    ".hidden cere_pass_return",
    ".type cere_pass_return,@function",
    "cere_pass_return:",
    "mov rsp, rdi",
    ".globl cere_pass_restorer",
    ".hidden cere_pass_restorer",
    ".type cere_pass_restorer,@function",
    "cere_pass_restorer:",
    "mov eax, 15",
    "syscall",
    "ud2",
    ".globl cere_pass_end",
    ".hidden cere_pass_end",
    "cere_pass_end:",
    ".popsection",
);

unsafe extern "C" {
    static cere_pass_start: u8;
    static cere_pass_end: u8;
    fn cere_pass_call(
        number: usize,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
    ) -> isize;
    fn cere_pass_plain();
    fn cere_pass_return(stack: usize) -> !;
    fn cere_pass_restorer();
}

/// Whether system calls are caught (1).
static SELECTOR: AtomicU8 = AtomicU8::new(0);
/// Whether they can be, in the thread that enters the region.
static CATCHES: AtomicBool = AtomicBool::new(false);

/// Makes a system call of the region, or answers it from the capture; as [`call`].
pub type Answer = unsafe fn(number: usize, arguments: [usize; 6]) -> isize;

/// What answers a call that was caught.
static ANSWER: OnceLock<Answer> = OnceLock::new();

/// A system call; negative results are negated errors.
///
/// # Safety
/// As the call itself.
pub unsafe fn call(number: usize, a: [usize; 6]) -> isize {
    // SAFETY: six registers go to the kernel; the caller answers for what the call reaches.
    unsafe { cere_pass_call(number, a[0], a[1], a[2], a[3], a[4], a[5]) }
}

/// The address of `syscall; ret`, which nothing catches.
pub fn plain() -> usize {
    cere_pass_plain as *const () as usize
}

/// Has the calling thread's system calls caught while [`catch`] says so, and made or answered by `answer`. False if the kernel
/// cannot. The signal is the one that
/// [`guard`] takes, which was installed before.
pub fn prepare(answer: Answer) -> bool {
    const PR_SET_SYSCALL_USER_DISPATCH: usize = 59;
    const SA_RESTORER: usize = 0x0400_0000;
    let (start, end) = (
        &raw const cere_pass_start as usize,
        &raw const cere_pass_end as usize,
    );
    let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER) as usize | SA_RESTORER;
    let action = [
        on_call as *const () as usize,
        flags,
        cere_pass_restorer as *const () as usize,
        0,
    ];
    let signal = libc::SIGSYS as usize;
    let _ = ANSWER.set(answer);
    let selector = SELECTOR.as_ptr() as usize;
    // SAFETY: the kernel's record of a handler; the selector is a static.
    let done = unsafe {
        call(
            libc::SYS_rt_sigaction as usize,
            [signal, action.as_ptr() as usize, 0, 8, 0, 0],
        ) == 0
            && call(
                libc::SYS_prctl as usize,
                [
                    PR_SET_SYSCALL_USER_DISPATCH,
                    1,
                    start,
                    end - start,
                    selector,
                    0,
                ],
            ) == 0
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
        libc::SYS_rt_sigreturn => unsafe { cere_pass_return(at(libc::REG_RSP)) },
        // What they start goes on where the call returns: the program makes them itself.
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork => {
            SELECTOR.store(0, Relaxed);
            registers[libc::REG_RIP as usize] -= 2;
            return;
        }
        // The region knows its process by the number that it had.
        libc::SYS_kill | libc::SYS_tgkill => {
            // SAFETY: no arguments.
            arguments[0] = unsafe { call(libc::SYS_getpid as usize, [0; 6]) } as usize;
        }
        _ => {}
    }
    let answer = ANSWER.get().copied().unwrap_or(call);
    // SAFETY: the region's own call.
    registers[libc::REG_RAX as usize] = unsafe { answer(number, arguments) } as i64;
}
