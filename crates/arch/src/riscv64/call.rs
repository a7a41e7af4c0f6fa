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
    "mv a7, a0",
    "mv a0, a1",
    "mv a1, a2",
    "mv a2, a3",
    "mv a3, a4",
    "mv a4, a5",
    "mv a5, a6",
    ".globl cere_call_plain",
    ".hidden cere_call_plain",
    ".type cere_call_plain,@function",
    "cere_call_plain:",
    "ecall",
    "ret",
    ".globl cere_call_restorer",
    ".hidden cere_call_restorer",
    ".type cere_call_restorer,@function",
    "cere_call_restorer:",
    "li a7, 139", // rt_sigreturn
    "ecall",
    "ebreak",
    ".popsection",
);

/// The functions of the kernel's shared page that take the place of `clock_gettime`, `gettimeofday`, `time`, `clock_getres`, `getcpu`
/// and `getrandom`; where there is none, a name that is nobody's.
pub const SHARED: [&CStr; 6] = [
    c"__vdso_clock_gettime",
    c"__vdso_gettimeofday",
    c"__vdso_time",
    c"__vdso_clock_getres",
    c"__vdso_getcpu",
    c"__vdso_getrandom",
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
        asm!("ecall", in("a7") number, inlateout("a0") first => result, in("a1") second, options(nostack));
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
        asm!("mv sp, {}", "jr {}", in(reg) stack, in(reg) address, options(noreturn));
    }
}
