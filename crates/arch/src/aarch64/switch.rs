//! Assembly of executables of their own. As macros: what it refers to is the executable's.

/// `cere_switch`, `int (Switch *)`: runs the region on its stack; 0 when it returned, 1 when an exception left it, which
/// `cere_personality` sends to `cere_switch_landing`. It ends at `cere_switch_end`. The stack pointer of the caller stays in X29's
/// frame, that of the region is a multiple of 16.
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
            "stp x29, x30, [sp, #-192]!",
            ".cfi_def_cfa_offset 192",
            ".cfi_offset x29, -192",
            ".cfi_offset x30, -184",
            "mov x29, sp",
            ".cfi_def_cfa x29, 192",
            "stp x19, x20, [sp, #16]",
            "stp x21, x22, [sp, #32]",
            "stp x23, x24, [sp, #48]",
            "stp x25, x26, [sp, #64]",
            "stp x27, x28, [sp, #80]",
            "stp d8, d9, [sp, #96]",
            "stp d10, d11, [sp, #112]",
            "stp d12, d13, [sp, #128]",
            "stp d14, d15, [sp, #144]",
            "mrs x9, fpcr",
            "stp x0, x9, [sp, #160]",
            "ldr x9, [x0, #24]",
            "msr fpcr, x9",
            "mov x19, x0",
            "ldr x9, [x0, #16]",
            "and x9, x9, #-16",
            "mov sp, x9",
            "ldr x20, [x0]",
            "ldr x21, [x0, #8]",
            "str wzr, [x19, #48]",
            $crate::start_asm!(),
            "str x0, [x19, #32]",
            "mov x0, x21",
            "blr x20",
            $crate::stop_asm!(),
            "ldr x1, [x29, #160]",
            "str x0, [x1, #40]",
            "str wzr, [x1, #52]",
            "mov w0, #0",
            "2:",
            "mov sp, x29",
            "ldr x9, [sp, #168]",
            "msr fpcr, x9",
            "ldp d14, d15, [sp, #144]",
            "ldp d12, d13, [sp, #128]",
            "ldp d10, d11, [sp, #112]",
            "ldp d8, d9, [sp, #96]",
            "ldp x27, x28, [sp, #80]",
            "ldp x25, x26, [sp, #64]",
            "ldp x23, x24, [sp, #48]",
            "ldp x21, x22, [sp, #32]",
            "ldp x19, x20, [sp, #16]",
            ".cfi_remember_state",
            "ldp x29, x30, [sp], #192",
            ".cfi_def_cfa sp, 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            "ret",
            ".cfi_restore_state",
            ".globl cere_switch_landing",
            ".hidden cere_switch_landing",
            "cere_switch_landing:",
            $crate::stop_asm!(),
            "ldr x1, [x29, #160]",
            "str x0, [x1, #40]",
            "str wzr, [x1, #52]",
            "mov w0, #1",
            "b 2b",
            ".cfi_endproc",
            ".globl cere_switch_end",
            ".hidden cere_switch_end",
            "cere_switch_end:",
            ".size cere_switch, .-cere_switch",
        );
    };
}

/// `_start`: calls `cere_main`, as the C library's own start files do.
#[macro_export]
macro_rules! entry {
    () => {
        std::arch::global_asm!(
            ".text",
            ".globl _start",
            ".type _start,@function",
            "_start:",
            ".cfi_startproc",
            ".cfi_undefined x30",
            "mov x29, #0",
            "mov x30, #0",
            "mov x5, x0",
            "ldr x1, [sp]",
            "add x2, sp, #8",
            "mov x6, sp",
            "adrp x0, :got:cere_main",
            "ldr x0, [x0, #:got_lo12:cere_main]",
            "mov x3, #0",
            "mov x4, #0",
            "bl __libc_start_main",
            "brk #1",
            ".cfi_endproc",
            ".size _start, .-_start",
        );
    };
}

/// `cere_mpi_answers`: as many stubs as `$stubs`, each [`STUB`](crate::switch::STUB) bytes behind the one before. A stub calls `$answer`, `usize (usize
/// number, usize stack)`, with its number; below `stack` lie eight registers of arguments, the first highest, at it what the
/// caller put on the stack ([`argument`]).
#[macro_export]
macro_rules! stubs {
    ($stubs:expr, $answer:path) => {
        std::arch::global_asm!(
            ".pushsection .text.cere_mpi,\"ax\",@progbits",
            ".balign 16",
            ".globl cere_mpi_answers",
            ".hidden cere_mpi_answers",
            "cere_mpi_answers:",
            ".rept {stubs}",
            ".balign {stub}",
            "adr x16, .",
            "b 77f",
            ".endr",
            ".balign 16",
            "77:",
            "stp x1, x0, [sp, #-16]!",
            "stp x3, x2, [sp, #-16]!",
            "stp x5, x4, [sp, #-16]!",
            "stp x7, x6, [sp, #-16]!",
            "stp x29, x30, [sp, #-16]!",
            "mov x29, sp",
            "adr x17, cere_mpi_answers",
            "sub x16, x16, x17",
            "lsr x0, x16, #4",
            "add x1, sp, #80",
            "bl {answer}",
            "ldp x29, x30, [sp], #80",
            "ret",
            ".popsection",
            stubs = const $stubs,
            stub = const $crate::switch::STUB,
            answer = sym $answer,
        );
    };
}

/// Where argument number `place` of a function with words for arguments is, from the `stack` that a stub gives.
#[must_use]
pub fn argument(stack: usize, place: usize) -> usize {
    match place {
        0..8 => stack - 8 - 8 * place,
        _ => stack + 8 * (place - 8),
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
            "mov sp, x1",
            "2:",
            "cbz x3, 3f",
            "ldr x4, [x2], #8",
            "str x4, [x1], #8",
            "sub x3, x3, #1",
            "b 2b",
            "3:",
            "mov x29, #0",
            "mov x30, #0",
            "mov x0, #0",
            "br x5",
            in("x1") top,
            in("x2") words.as_ptr(),
            in("x3") words.len(),
            in("x5") entry,
            options(noreturn)
        )
    }
}
