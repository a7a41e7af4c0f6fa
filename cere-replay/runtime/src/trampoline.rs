//! The switch to the captured stack. It is also the outermost frame that an exception leaving the region can
//! reach: its own personality routine claims every exception, so no C++ runtime is needed.

use std::arch::global_asm;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the trampoline sets before the call.
#[repr(C)]
pub struct Switch {
    /// Trampoline of the region, `void (void *arguments)`.
    pub invoke: u64,
    /// Its argument.
    pub arguments: u64,
    /// Stack pointer just before the call.
    pub stack_pointer: u64,
    /// SSE control and status register.
    pub mxcsr: u32,
    /// x87 control word.
    pub x87_control: u32,
    /// Time stamp before the call.
    pub start: u64,
    /// Time stamp after it.
    pub end: u64,
    /// What tells the processor before the call.
    pub processor_before: u32,
    /// And after it.
    pub processor_after: u32,
}

/// The exception that no handler inside the region takes, or 0. It leaves the region by unwinding, or the region
/// returns it to the code around, which was to go on with it.
pub static EXCEPTION: AtomicU64 = AtomicU64::new(0);

global_asm!(
    ".text",
    ".p2align 6",
    ".globl cere_switch",
    ".hidden cere_switch",
    ".type cere_switch,@function",
    "cere_switch:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, cere_personality",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "push rdi",
    "sub rsp, 16",
    "stmxcsr [rsp]",
    "fnstcw [rsp+4]",
    "ldmxcsr [rdi+24]",
    "fldcw [rdi+28]",
    "mov r12, rdi",
    "mov rsp, [rdi+16]",
    "mov rbx, [rdi]",
    "mov rdi, [rdi+8]",
    "rdtscp",
    "mov [r12+48], ecx",
    cere_timing::clock::start_asm!(),
    "mov [r12+32], rax",
    "call rbx",
    cere_timing::clock::stop_asm!(),
    "mov rdi, [rbp-48]",
    "mov [rdi+40], rax",
    "mov [rdi+52], ecx",
    "xor eax, eax",
    "2:",
    "lea rsp, [rbp-64]",
    "ldmxcsr [rsp]",
    "fninit",
    "fldcw [rsp+4]",
    "cld",
    "add rsp, 24",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    ".cfi_remember_state",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_restore_state",
    ".globl cere_switch_landing",
    ".hidden cere_switch_landing",
    "cere_switch_landing:",
    cere_timing::clock::stop_asm!(),
    "mov rdi, [rbp-48]",
    "mov [rdi+40], rax",
    "mov [rdi+52], ecx",
    "mov eax, 1",
    "jmp 2b",
    ".cfi_endproc",
    ".globl cere_switch_end",
    ".hidden cere_switch_end",
    "cere_switch_end:",
    ".size cere_switch, .-cere_switch",
);

unsafe extern "C" {
    /// Runs the region; 0 when it returned, 1 when an exception left it.
    pub fn cere_switch(switch: *mut Switch) -> i32;
    fn cere_switch_landing();
    fn cere_switch_end();
    fn _Unwind_SetIP(context: *mut c_void, address: usize);
}

/// Whether the code at `address` is that of `cere_switch`.
pub fn holds(address: usize) -> bool {
    let (start, end) = (
        cere_switch as *const () as usize,
        cere_switch_end as *const () as usize,
    );
    (start..end).contains(&address)
}

/// Personality routine of `cere_switch`: claims every exception.
#[unsafe(no_mangle)]
extern "C" fn cere_personality(
    _version: i32,
    actions: i32,
    _class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> i32 {
    const SEARCH_PHASE: i32 = 1;
    const HANDLER_FOUND: i32 = 6;
    const INSTALL_CONTEXT: i32 = 7;
    if actions & SEARCH_PHASE != 0 {
        EXCEPTION.store(exception as u64, Relaxed);
        return HANDLER_FOUND;
    }
    // SAFETY: the unwinder hands over its context; the landing is in the same frame.
    unsafe { _Unwind_SetIP(context, cere_switch_landing as *const () as usize) };
    INSTALL_CONTEXT
}

/// Ends the exception that left the region, if one did, as the handler that took it in vivo.
pub fn end_exception() {
    let exception = EXCEPTION.swap(0, Relaxed);
    // SAFETY: null-terminated names.
    let (begin, end) = unsafe {
        (
            libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_begin_catch".as_ptr()),
            libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_end_catch".as_ptr()),
        )
    };
    if exception == 0 || begin.is_null() || end.is_null() {
        return;
    }
    // SAFETY: the functions of the C++ runtime, with their types, and an exception that nobody handled.
    unsafe {
        let begin: extern "C" fn(u64) -> *mut c_void = std::mem::transmute(begin);
        let end: extern "C-unwind" fn() = std::mem::transmute(end);
        begin(exception);
        end();
    }
}
