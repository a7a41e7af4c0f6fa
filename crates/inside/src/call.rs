//! System calls without libc: no errno, no thread-local storage, no function that the program may have replaced, so that
//! handlers can make them.
//!
//! All of it lies in one section, the only code that Syscall User Dispatch lets through to the kernel ([`dispatch`]). Code of
//! others that has to make calls of its own in there puts itself into the section `cere_calls`.
//!
//! `cere_timing::clock` has stubs of its own: it lies below this crate, and its calls are inlined between two readings of the
//! counter.

use std::arch::{asm, global_asm};

global_asm!(
    ".pushsection cere_calls,\"ax\",@progbits",
    ".hidden __start_cere_calls",
    ".hidden __stop_cere_calls",
    ".balign 16",
    ".globl cere_call",
    ".hidden cere_call",
    ".type cere_call,@function",
    "cere_call:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    ".globl cere_call_plain",
    ".hidden cere_call_plain",
    ".type cere_call_plain,@function",
    "cere_call_plain:",
    "syscall",
    "ret",
    ".globl cere_call_restorer",
    ".hidden cere_call_restorer",
    ".type cere_call_restorer,@function",
    "cere_call_restorer:",
    "mov eax, 15", // rt_sigreturn
    "syscall",
    "ud2",
    ".popsection",
);

unsafe extern "C" {
    static __start_cere_calls: u8;
    static __stop_cere_calls: u8;
    fn cere_call(
        number: usize,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
    ) -> isize;
    fn cere_call_plain();
    fn cere_call_restorer();
}

/// A system call; negative results are negated errors.
///
/// # Safety
/// As the call itself.
#[inline]
pub unsafe fn call(number: i64, a: [usize; 6]) -> isize {
    // SAFETY: six registers go to the kernel; the caller answers for what the call reaches.
    unsafe { cere_call(number as usize, a[0], a[1], a[2], a[3], a[4], a[5]) }
}

/// The address of `syscall; ret`, which nothing catches.
#[must_use]
pub fn plain() -> usize {
    cere_call_plain as *const () as usize
}

/// Where a handler returns to, which gives the stack pointer back to the kernel as it got it.
#[must_use]
pub fn restorer() -> usize {
    cere_call_restorer as *const () as usize
}

/// Has the calling thread's system calls from outside the section caught while `selector` is 1; or no more. Zero or a negated
/// error.
///
/// # Safety
/// The selector stays while the thread lives, and SIGSYS has a handler.
pub unsafe fn dispatch(selector: Option<*const u8>) -> isize {
    const PR_SET_SYSCALL_USER_DISPATCH: usize = 59;
    let start = &raw const __start_cere_calls as usize;
    let length = &raw const __stop_cere_calls as usize - start;
    let arguments = match selector {
        Some(at) => [
            PR_SET_SYSCALL_USER_DISPATCH,
            1,
            start,
            length,
            at as usize,
            0,
        ],
        None => [PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0, 0],
    };
    // SAFETY: the kernel reads the selector, which stays by the contract.
    unsafe { call(libc::SYS_prctl, arguments) }
}

/// The calling thread's control block.
#[inline(always)]
#[must_use]
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first word of the control block is its own address on x86-64.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// Has the calling thread's readings of the time stamp counter fault, or not.
///
/// # Safety
/// SIGSEGV has a handler that answers readings.
pub unsafe fn trap_counter(yes: bool) {
    let how = if yes {
        libc::PR_TSC_SIGSEGV
    } else {
        libc::PR_TSC_ENABLE
    };
    // SAFETY: the handler answers readings, by the contract; where the kernel refuses, they are as ever.
    unsafe {
        call(
            libc::SYS_prctl,
            [libc::PR_SET_TSC as usize, how as usize, 0, 0, 0, 0],
        )
    };
}
