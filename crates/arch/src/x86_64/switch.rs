//! Assembly of executables of their own. As macros: what it refers to is the executable's.

/// `cere_switch`, `int (Switch *)`: runs the region on its stack; 0 when it returned, 1 when an exception left it, which
/// `cere_personality` sends to `cere_switch_landing`. It ends at `cere_switch_end`.
#[macro_export]
macro_rules! switch {
    () => {
        std::arch::global_asm!(
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
            $crate::start_asm!(),
            "mov [r12+32], rax",
            "call rbx",
            $crate::stop_asm!(),
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
            $crate::stop_asm!(),
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
    };
}

/// `_start`: calls `cere_main`, as the C library's own start files do for programs in the low 2 GiB.
#[macro_export]
macro_rules! entry {
    () => {
        std::arch::global_asm!(
            ".text",
            ".globl _start",
            ".type _start,@function",
            "_start:",
            ".cfi_startproc",
            ".cfi_undefined rip",
            "xor ebp, ebp",
            "mov r9, rdx",
            "pop rsi",
            "mov rdx, rsp",
            "and rsp, -16",
            "push rax",
            "push rsp",
            "xor r8d, r8d",
            "xor ecx, ecx",
            "mov rdi, [rip + cere_main@GOTPCREL]",
            "call [rip + __libc_start_main@GOTPCREL]",
            "hlt",
            ".cfi_endproc",
            ".size _start, .-_start",
        );
    };
}

/// `cere_mpi_answers`: as many stubs as `$stubs`, each [`STUB`](crate::switch::STUB) bytes behind the one before. A stub calls `$answer`, `usize (usize
/// number, usize stack)`, with its number; below `stack` lie six registers of arguments, the first highest, above it what the
/// caller put on the stack ([`argument`]). What a function of C leaves alone is left alone: registers of arguments and `rax` are not.
#[macro_export]
macro_rules! stubs {
    ($stubs:expr, $answer:path) => {
        std::arch::global_asm!(
            ".pushsection .text.cere_mpi,\"ax\",@progbits",
            ".balign 16",
            ".globl cere_mpi_answers",
            ".hidden cere_mpi_answers",
            "cere_mpi_answers:",
            ".set cere_mpi_number, 0",
            ".rept {stubs}",
            ".balign {stub}",
            "endbr64",
            "movl $cere_mpi_number, %r11d",
            "jmp 77f",
            ".set cere_mpi_number, cere_mpi_number + 1",
            ".endr",
            ".balign 16",
            "77:",
            "pushq %rbp",
            "movq %rsp, %rbp",
            "subq $48, %rsp",
            "movq %rdi, -8(%rbp)",
            "movq %rsi, -16(%rbp)",
            "movq %rdx, -24(%rbp)",
            "movq %rcx, -32(%rbp)",
            "movq %r8, -40(%rbp)",
            "movq %r9, -48(%rbp)",
            "movl %r11d, %edi",
            "leaq 16(%rbp), %rsi",
            "call {answer}",
            "leave",
            "ret",
            ".popsection",
            stubs = const $stubs,
            stub = const $crate::switch::STUB,
            answer = sym $answer,
            options(att_syntax),
        );
    };
}

/// Where argument number `place` of a function with words for arguments is, from the `stack` that a stub gives.
#[must_use]
pub fn argument(stack: usize, place: usize) -> usize {
    /// Of the frame's pointer and the return address.
    const FRAME: usize = 16;
    match place {
        0..6 => stack - FRAME - 8 - 8 * place,
        _ => stack + 8 * (place - 6),
    }
}

/// Puts `words` on top of the stack `top` and jumps to `entry`.
///
/// # Safety
/// There is room for them, nobody needs what is there, and `entry` takes such a stack.
pub unsafe fn begin(entry: u64, top: usize, words: &[u64]) -> ! {
    // SAFETY: the words go to free stack, by the contract; no function runs until the entry has them.
    unsafe {
        core::arch::asm!(
            "mov rsp, rdi",
            "rep movsb",
            "xor ebp, ebp",
            "xor edx, edx",
            "jmp rax",
            in("rdi") top,
            in("rsi") words.as_ptr(),
            in("rcx") size_of_val(words),
            in("rax") entry,
            options(noreturn)
        )
    }
}
