//! The instructions of system calls, and their numbers.

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

/// Calls that start a process or a thread.
pub const STARTS: [i64; 4] = [
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_fork,
    libc::SYS_vfork,
];

/// Calls that not every architecture has: their numbers and names.
const OWN: [(i64, &str); 20] = [
    (libc::SYS_iopl, "iopl"),
    (libc::SYS_ioperm, "ioperm"),
    (libc::SYS_modify_ldt, "modify_ldt"),
    (libc::SYS_fork, "fork"),
    (libc::SYS_vfork, "vfork"),
    (libc::SYS_chmod, "chmod"),
    (libc::SYS_chown, "chown"),
    (libc::SYS_lchown, "lchown"),
    (libc::SYS_utime, "utime"),
    (libc::SYS_utimes, "utimes"),
    (libc::SYS_futimesat, "futimesat"),
    (libc::SYS_open, "open"),
    (libc::SYS_creat, "creat"),
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_mknod, "mknod"),
    (libc::SYS_rmdir, "rmdir"),
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_rename, "rename"),
    (libc::SYS_link, "link"),
    (libc::SYS_symlink, "symlink"),
];

/// The number of a call that not every architecture has; none if this one has not.
#[must_use]
pub fn own(name: &str) -> Option<i64> {
    OWN.iter().find(|call| call.1 == name).map(|call| call.0)
}

/// The number on this machine of the call that packages have under `number`.
#[must_use]
pub fn native(number: i64) -> Option<i64> {
    Some(number)
}

/// The number in packages of a call of this machine.
#[must_use]
pub fn packaged(number: i64) -> Option<i64> {
    Some(number)
}

/// The functions of the kernel's shared page that take the place of `clock_gettime`, `gettimeofday`, `time`, `clock_getres`, `getcpu`
/// and `getrandom`.
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
    // SAFETY: the kernel changes what the call says, by the contract, and the registers that are named here.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") first, in("rsi") second,
            out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// Goes on at `address` with the stack pointer `stack`.
///
/// # Safety
/// The code there takes it so, and this function's caller is left for good.
pub unsafe fn go_on(stack: usize, address: usize) -> ! {
    // SAFETY: by the contract.
    unsafe { cere_pass_return(stack, address) }
}
