//! System calls without libc: no errno, no thread-local storage, no function that the program may have replaced.

use crate::numbers;
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

/// Calls that start a process or a thread.
pub const STARTS: [i64; 2] = [libc::SYS_clone, libc::SYS_clone3];

/// The number of a call that not every architecture has: this one has none of them.
#[must_use]
pub fn own(_name: &str) -> Option<i64> {
    None
}

/// Numbers in packages and on this machine.
const NUMBERS: [(i64, i64); 22] = [
    (numbers::WRITE, libc::SYS_write),
    (numbers::WRITEV, libc::SYS_writev),
    (numbers::SCHED_YIELD, libc::SYS_sched_yield),
    (numbers::MADVISE, libc::SYS_madvise),
    (numbers::RT_SIGPROCMASK, libc::SYS_rt_sigprocmask),
    (numbers::GETPID, libc::SYS_getpid),
    (numbers::UNAME, libc::SYS_uname),
    (numbers::GETTIMEOFDAY, libc::SYS_gettimeofday),
    (numbers::GETRUSAGE, libc::SYS_getrusage),
    (numbers::SYSINFO, libc::SYS_sysinfo),
    (numbers::TIMES, libc::SYS_times),
    (numbers::GETUID, libc::SYS_getuid),
    (numbers::GETGID, libc::SYS_getgid),
    (numbers::GETEUID, libc::SYS_geteuid),
    (numbers::GETEGID, libc::SYS_getegid),
    (numbers::GETPPID, libc::SYS_getppid),
    (numbers::GETTID, libc::SYS_gettid),
    (numbers::FUTEX, libc::SYS_futex),
    (numbers::CLOCK_GETTIME, libc::SYS_clock_gettime),
    (numbers::CLOCK_GETRES, libc::SYS_clock_getres),
    (numbers::GETCPU, libc::SYS_getcpu),
    (numbers::GETRANDOM, libc::SYS_getrandom),
];

/// The number on this machine of the call that packages have under `number`; none if it is not one of [`numbers`], or not here.
#[must_use]
pub fn native(number: i64) -> Option<i64> {
    NUMBERS.iter().find(|n| n.0 == number).map(|n| n.1)
}

/// The number in packages of a call of this machine; none if it is not one of [`numbers`].
#[must_use]
pub fn packaged(number: i64) -> Option<i64> {
    NUMBERS.iter().find(|n| n.1 == number).map(|n| n.0)
}

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

/// A system call; negative results are negated errors.
///
/// # Safety
/// As the call itself.
#[inline]
pub unsafe fn call(number: i64, a: [usize; 6]) -> isize {
    // SAFETY: six registers go to the kernel; the caller answers for what the call reaches.
    unsafe { cere_call(number as usize, a[0], a[1], a[2], a[3], a[4], a[5]) }
}

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

/// The section with the calls, the only code that Syscall User Dispatch lets through to the kernel: its start and its length.
#[must_use]
pub fn section() -> (usize, usize) {
    let start = &raw const __start_cere_calls as usize;
    (start, &raw const __stop_cere_calls as usize - start)
}

/// The address of an instruction that makes a call, and returns, which nothing catches.
#[must_use]
pub fn plain() -> usize {
    cere_call_plain as *const () as usize
}

/// Where a handler returns to, which gives the stack pointer back to the kernel as it got it.
#[must_use]
pub fn restorer() -> usize {
    cere_call_restorer as *const () as usize
}

/// Returns from a handler whose frame lies at `stack`.
///
/// # Safety
/// It does, and this function's caller is left for good.
pub unsafe fn leave_handler(stack: usize) -> ! {
    // SAFETY: by the contract; the restorer needs no register but the stack pointer.
    unsafe {
        asm!("mv sp, {}", "jr {}", in(reg) stack, in(reg) restorer(), options(noreturn));
    }
}
