//! Raw system calls and signal plumbing, usable in signal handlers: no libc, no errno, no thread-local storage.
//!
//! The calls themselves are [`cere_inside::call`]; what needs one in the middle of other code lies in the same section, the only
//! code that Syscall User Dispatch lets through to the kernel.

use cere_format::abi::RegionDescriptor;
pub use cere_inside::call::call;
use cere_inside::call::{dispatch, restorer};
use std::arch::global_asm;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Bytes of a page.
pub const PAGE: usize = cere_format::PAGE as usize;

global_asm!(
    ".pushsection cere_calls,\"ax\",@progbits",
    ".balign 16",
    // cere_on_stack(function, top, region, event, arguments, stack, mask): runs function(region, event, arguments, stack) on
    // another stack, all signals blocked, and returns 1; 0 if another thread uses that stack. They stay blocked until the stack is
    // free again: a handler of the program may enter a region at once. The arguments are kept in registers: a handler that runs
    // before may close the program's stack. `mask` is the thread's own word, which is never closed.
    ".globl cere_on_stack",
    ".hidden cere_on_stack",
    ".type cere_on_stack,@function",
    "cere_on_stack:",
    "mov rax, [rsp + 8]",
    "push rbp",
    "mov rbp, rsp",
    "push r12",
    "push r13",
    "push r14",
    "push rbx",
    "push r15",
    "mov r15, rax",
    "mov r12, rdi",
    "mov r13, rsi",
    "mov r14, rdx",
    "mov ebx, ecx",
    "mov eax, 14",
    "mov edi, 2",
    "lea rsi, [rip + {all}]",
    "mov rdx, r15",
    "mov r10d, 8",
    "syscall",
    "mov eax, 1",
    "xchg [rip + {works}], al",
    "test al, al",
    "jnz 2f",
    "mov rax, [r15]",
    "mov [rip + {mask}], rax",
    "mov rsp, r13",
    "mov rdi, r14",
    "mov esi, ebx",
    "mov rdx, r8",
    "mov rcx, r9",
    "call r12",
    "lea rsp, [rbp - 40]",
    "mov rax, [rip + {mask}]",
    "mov [r15], rax",
    "mov byte ptr [rip + {works}], 0",
    "mov ebx, 1",
    "jmp 3f",
    "2:",
    "xor ebx, ebx",
    "3:",
    "mov eax, 14",
    "mov edi, 2",
    "mov rsi, r15",
    "xor edx, edx",
    "mov r10d, 8",
    "syscall",
    "mov eax, ebx",
    "pop r15",
    "pop rbx",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "ret",
    // cere_leave_stack(new, pointer): sigaltstack(new) as if on the stack at `pointer`. All signals are blocked.
    ".globl cere_leave_stack",
    ".hidden cere_leave_stack",
    ".type cere_leave_stack,@function",
    "cere_leave_stack:",
    "mov r8, rsp",
    "mov rsp, rsi",
    "mov eax, 131",
    "xor esi, esi",
    "syscall",
    "mov rsp, r8",
    "ret",
    // cere_start_aside(function, top, id): clone with shared memory. The child, which no signal reports and whose id lies in `id`
    // as long as it runs, calls function() on the stack that ends at `top`.
    ".globl cere_start_aside",
    ".hidden cere_start_aside",
    ".type cere_start_aside,@function",
    "cere_start_aside:",
    "mov r9, rdi",
    "mov eax, 56",
    "mov edi, {aside}",
    "mov r10, rdx",
    "xor r8d, r8d",
    "syscall",
    "test rax, rax",
    "jz 2f",
    "ret",
    "2:",
    "xor ebp, ebp",
    "call r9",
    "ud2",
    ".popsection",
    ".pushsection .text.cere_call_lower,\"ax\",@progbits",
    // cere_call_lower(function, argument): function(argument), whose frames begin on a page of their own. Exceptions pass.
    ".globl cere_call_lower",
    ".hidden cere_call_lower",
    ".type cere_call_lower,@function",
    "cere_call_lower:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "and rsp, -4096",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".popsection",
    ".pushsection .text.cere_call_from,\"ax\",@progbits",
    // cere_call_from(function, a, b, at): function(a, b), which returns to the return instruction at `at`.
    ".globl cere_call_from",
    ".hidden cere_call_from",
    ".type cere_call_from,@function",
    "cere_call_from:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov esi, edx",
    "lea r11, [rip + 2f]",
    "push r11",
    "push rcx",
    "jmp rax",
    "2:",
    "ret",
    ".popsection",
    all = sym ALL,
    mask = sym HOOK_MASK,
    works = sym HOOK_WORKS,
    aside = const libc::CLONE_VM | libc::CLONE_PARENT_SETTID | libc::CLONE_CHILD_CLEARTID,
);

static ALL: u64 = !0;
/// Whether a thread is at work on the hook's stack.
pub static HOOK_WORKS: AtomicBool = AtomicBool::new(false);
/// The signal mask that `cere_on_stack` saves on entry and restores at the end.
pub static HOOK_MASK: AtomicU64 = AtomicU64::new(0);

/// Work on another stack: gets the probe's region, event and arguments, and the stack pointer at the probe.
pub type Work = unsafe extern "C" fn(*mut RegionDescriptor, u32, *mut u8, usize);

/// What a thread starts with.
pub type Start = unsafe extern "C-unwind" fn(*mut libc::c_void) -> *mut libc::c_void;

unsafe extern "C-unwind" {
    /// Calls `function(argument)`, whose frames begin on a page of their own: on the one above, a thread's control block lies.
    pub fn cere_call_lower(function: Start, argument: *mut libc::c_void) -> *mut libc::c_void;
}

unsafe extern "C" {
    /// Calls `function(a, b)` so that its return address is `at`, where a return instruction is.
    pub fn cere_call_from(
        function: usize,
        a: *const u8,
        b: i32,
        at: usize,
    ) -> *mut std::ffi::c_void;
    /// Sets the alternate stack for signals from a handler that runs on the former one: for the kernel the thread is on the stack
    /// at `pointer`. All signals are blocked.
    pub fn cere_leave_stack(new: *const libc::stack_t, pointer: usize) -> isize;
    /// Starts a process that shares this one's memory; see above.
    pub fn cere_start_aside(function: extern "C" fn() -> !, top: usize, id: *mut i32) -> isize;
    /// Runs `function(region, event, arguments, stack)` on the stack that ends at `top` (a multiple of 16), all signals
    /// blocked; they are as in [`HOOK_MASK`] before and after. False, and nothing is done, if another thread is at work there. `mask`
    /// is a word of the thread's own.
    pub fn cere_on_stack(
        function: Work,
        top: usize,
        region: *mut RegionDescriptor,
        event: u32,
        arguments: *mut u8,
        stack: usize,
        mask: *const AtomicU64,
    ) -> bool;
}

/// mprotect. Zero or a negated error.
///
/// # Safety
/// Nobody relies on the former protection.
pub unsafe fn protect(start: usize, end: usize, protection: u8) -> isize {
    // SAFETY: nobody relies on the former rights.
    unsafe {
        call(
            libc::SYS_mprotect,
            [start, end - start, protection.into(), 0, 0, 0],
        )
    }
}

/// Nanoseconds of the monotonic clock. Its shared page and the time stamp counter may be closed.
pub fn time() -> u64 {
    let mut now = [0u64; 2];
    let clock = libc::CLOCK_MONOTONIC as usize;
    // SAFETY: writes a `timespec`, two words.
    unsafe {
        call(
            libc::SYS_clock_gettime,
            [clock, &raw mut now as usize, 0, 0, 0, 0],
        )
    };
    now[0] * 1_000_000_000 + now[1]
}

/// Whether all of [start, start + length) is mapped; `start` is a page's.
pub fn is_mapped(start: usize, length: usize) -> bool {
    let flags = libc::MS_ASYNC as usize;
    // SAFETY: the call has no other effect.
    unsafe { call(libc::SYS_msync, [start, length, flags, 0, 0, 0]) >= 0 }
}

/// End of the program's data, which `sbrk` moves.
pub fn program_break() -> u64 {
    // SAFETY: asks for no other end.
    unsafe { call(libc::SYS_brk, [0; 6]) as u64 }
}

/// A signal's disposition as the kernel keeps it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Action {
    /// Function, or SIG_DFL (0) or SIG_IGN (1).
    pub handler: usize,
    /// `SA_` flags.
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: usize,
    /// Signals blocked in the handler.
    pub mask: u64,
}

/// A handler with context.
pub type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::ucontext_t);

impl Action {
    /// `handler` on the alternate stack, all signals blocked.
    pub fn ours(handler: Handler) -> Action {
        const SA_RESTORER: u64 = 0x0400_0000;
        Action {
            handler: handler as *const () as usize,
            flags: (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64 | SA_RESTORER,
            restorer: restorer(),
            mask: !0,
        }
    }
}

/// Reads a signal's disposition, and sets it if `new` is given.
pub fn exchange_action(signal: i32, new: Option<&Action>) -> Action {
    let mut old = Action::default();
    let new = new.map_or(0, |a| a as *const Action as usize);
    let at = &raw mut old as usize;
    // SAFETY: both structures are the kernel's.
    unsafe { call(libc::SYS_rt_sigaction, [signal as usize, new, at, 8, 0, 0]) };
    old
}

/// Sets the calling thread's signal mask, returns the former one.
pub fn exchange_mask(new: u64) -> u64 {
    let mut old = 0u64;
    let (new, at) = (&raw const new as usize, &raw mut old as usize);
    let how = libc::SIG_SETMASK as usize;
    // SAFETY: two words of eight bytes.
    unsafe { call(libc::SYS_rt_sigprocmask, [how, new, at, 8, 0, 0]) };
    old
}

/// Bit of a signal in a mask.
pub const fn signal_bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Turns Syscall User Dispatch on for the calling thread with the given selector byte (1 blocks), or off.
/// Zero or a negated error.
pub fn dispatch_calls(selector: Option<*const u8>) -> isize {
    // SAFETY: the selector is a static of this library, whose handler of SIGSYS stays.
    unsafe { dispatch(selector) }
}

/// Copies `size` bytes. Not `copy_nonoverlapping`: libc's memcpy reads libc's data, which may be closed, or would count as
/// touched by the region.
///
/// # Safety
/// Both hold `size` bytes and do not overlap.
pub unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: both hold so many bytes and do not overlap.
    unsafe {
        std::arch::asm!("rep movsb", inout("rcx") size => _, inout("rsi") from => _, inout("rdi") to => _,
            options(nostack, preserves_flags));
    }
}

/// Copies a page.
///
/// # Safety
/// Both are pages that do not overlap, readable and writable.
#[inline(always)]
pub unsafe fn copy_page(from: usize, to: usize) {
    // SAFETY: two pages that do not overlap, one readable, one writable.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") 4096usize => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Whether a page is all zero.
///
/// # Safety
/// `page` is a readable page.
#[inline(always)]
pub unsafe fn zero_page(page: usize) -> bool {
    let found: usize;
    // SAFETY: reads 4096 bytes from `page`.
    unsafe {
        std::arch::asm!(
            "2:",
            "mov {word}, [{at}]",
            "or {word}, [{at} + 8]",
            "or {word}, [{at} + 16]",
            "or {word}, [{at} + 24]",
            "or {word}, [{at} + 32]",
            "or {word}, [{at} + 40]",
            "or {word}, [{at} + 48]",
            "or {word}, [{at} + 56]",
            "jnz 3f",
            "add {at}, 64",
            "cmp {at}, {end}",
            "jne 2b",
            "3:",
            at = inout(reg) page => _,
            end = in(reg) page + 4096,
            word = out(reg) found,
            options(nostack, readonly)
        );
    }
    found == 0
}

/// Makes the kernel give `page` memory of its own without changing it.
///
/// # Safety
/// `page` is writable.
#[inline(always)]
pub unsafe fn populate(page: usize) {
    // SAFETY: the page is writable; or-ing zero changes nothing.
    unsafe { std::arch::asm!("lock or byte ptr [{}], 0", in(reg) page, options(nostack)) };
}
