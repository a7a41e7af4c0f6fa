//! The instructions of system calls, and their numbers.

pub use super::generic::{STARTS, native, own, packaged};
use core::arch::{asm, global_asm};
use std::ffi::CStr;

global_asm!(
    ".pushsection cere_calls,\"ax\",@progbits",
    ".hidden __start_cere_calls",
    ".hidden __stop_cere_calls",
    ".balign 16",
    ".globl cere_call",
    ".hidden cere_call",
    ".type cere_call,@function",
    "cere_call:",
    "mov x8, x0",
    "mov x0, x1",
    "mov x1, x2",
    "mov x2, x3",
    "mov x3, x4",
    "mov x4, x5",
    "mov x5, x6",
    ".globl cere_call_plain",
    ".hidden cere_call_plain",
    ".type cere_call_plain,@function",
    "cere_call_plain:",
    "svc #0",
    "ret",
    ".globl cere_call_restorer",
    ".hidden cere_call_restorer",
    ".type cere_call_restorer,@function",
    "cere_call_restorer:",
    "mov x8, #139", // rt_sigreturn
    "svc #0",
    "brk #1",
    ".popsection",
);

/// The functions of the kernel's shared page that take the place of `clock_gettime`, `gettimeofday`, `time`, `clock_getres`, `getcpu`
/// and `getrandom`; where there is none, a name that is nobody's.
pub const SHARED: [&CStr; 6] = [
    c"__kernel_clock_gettime",
    c"__kernel_gettimeofday",
    c"__kernel_time",
    c"__kernel_clock_getres",
    c"__kernel_getcpu",
    c"__kernel_getrandom",
];

/// A system call of two arguments, without a call.
///
/// # Safety
/// As the call itself.
#[inline(always)]
pub unsafe fn inlined(number: i64, first: i64, second: *mut u64) -> i64 {
    let result;
    // SAFETY: the kernel changes what the call says, by the contract, and the register of the result.
    unsafe {
        asm!("svc #0", in("x8") number, inlateout("x0") first => result, in("x1") second, options(nostack));
    }
    result
}

/// Goes on at `address` with the stack pointer `stack`.
///
/// # Safety
/// The code there takes it so, and this function's caller is left for good.
pub unsafe fn go_on(stack: usize, address: usize) -> ! {
    // SAFETY: by the contract.
    unsafe {
        asm!("mov sp, {}", "br {}", in(reg) stack, in(reg) address, options(noreturn));
    }
}
