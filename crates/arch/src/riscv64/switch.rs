//! Assembly of executables of their own. As macros: what it refers to is the executable's.

/// `cere_switch`, `int (Switch *)`: runs the region on its stack; 0 when it returned, 1 when an exception left it, which
/// `cere_personality` sends to `cere_switch_landing`. It ends at `cere_switch_end`. The stack pointer of the caller stays in S0's
/// frame, that of the region is a multiple of 16.
#[macro_export]
macro_rules! switch {
    () => {
        std::arch::global_asm!(
            ".text",
            ".p2align 6",
            ".option push",
            ".option arch, +f, +d",
            ".globl cere_switch",
            ".hidden cere_switch",
            ".type cere_switch,@function",
            "cere_switch:",
            ".cfi_startproc",
            ".cfi_personality 0x1b, cere_personality",
            "addi sp, sp, -240",
            ".cfi_def_cfa_offset 240",
            "sd ra, 232(sp)",
            "sd s0, 224(sp)",
            ".cfi_offset ra, -8",
            ".cfi_offset s0, -16",
            "addi s0, sp, 240",
            ".cfi_def_cfa s0, 0",
            "sd s1, -24(s0)",
            "sd s2, -32(s0)",
            "sd s3, -40(s0)",
            "sd s4, -48(s0)",
            "sd s5, -56(s0)",
            "sd s6, -64(s0)",
            "sd s7, -72(s0)",
            "sd s8, -80(s0)",
            "sd s9, -88(s0)",
            "sd s10, -96(s0)",
            "sd s11, -104(s0)",
            "fsd fs0, -112(s0)",
            "fsd fs1, -120(s0)",
            "fsd fs2, -128(s0)",
            "fsd fs3, -136(s0)",
            "fsd fs4, -144(s0)",
            "fsd fs5, -152(s0)",
            "fsd fs6, -160(s0)",
            "fsd fs7, -168(s0)",
            "fsd fs8, -176(s0)",
            "fsd fs9, -184(s0)",
            "fsd fs10, -192(s0)",
            "fsd fs11, -200(s0)",
            "frrm t0",
            "sd a0, -208(s0)",
            "sd t0, -216(s0)",
            "ld t0, 24(a0)",
            "fsrm t0",
            "mv s1, a0",
            "ld t0, 16(a0)",
            "andi t0, t0, -16",
            "mv sp, t0",
            "ld s2, 0(a0)",
            "ld s3, 8(a0)",
            "sw zero, 48(s1)",
            $crate::start_asm!(),
            "sd a0, 32(s1)",
            "mv a0, s3",
            "jalr s2",
            $crate::stop_asm!(),
            "ld a1, -208(s0)",
            "sd a0, 40(a1)",
            "sw zero, 52(a1)",
            "li a0, 0",
            "2:",
            "addi sp, s0, -240",
            "ld t0, -216(s0)",
            "fsrm t0",
            "ld s1, -24(s0)",
            "ld s2, -32(s0)",
            "ld s3, -40(s0)",
            "ld s4, -48(s0)",
            "ld s5, -56(s0)",
            "ld s6, -64(s0)",
            "ld s7, -72(s0)",
            "ld s8, -80(s0)",
            "ld s9, -88(s0)",
            "ld s10, -96(s0)",
            "ld s11, -104(s0)",
            "fld fs0, -112(s0)",
            "fld fs1, -120(s0)",
            "fld fs2, -128(s0)",
            "fld fs3, -136(s0)",
            "fld fs4, -144(s0)",
            "fld fs5, -152(s0)",
            "fld fs6, -160(s0)",
            "fld fs7, -168(s0)",
            "fld fs8, -176(s0)",
            "fld fs9, -184(s0)",
            "fld fs10, -192(s0)",
            "fld fs11, -200(s0)",
            ".cfi_remember_state",
            "ld ra, 232(sp)",
            "ld s0, 224(sp)",
            ".cfi_def_cfa sp, 240",
            "addi sp, sp, 240",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore ra",
            ".cfi_restore s0",
            "ret",
            ".cfi_restore_state",
            ".globl cere_switch_landing",
            ".hidden cere_switch_landing",
            "cere_switch_landing:",
            $crate::stop_asm!(),
            "ld a1, -208(s0)",
            "sd a0, 40(a1)",
            "sw zero, 52(a1)",
            "li a0, 1",
            "j 2b",
            ".cfi_endproc",
            ".globl cere_switch_end",
            ".hidden cere_switch_end",
            "cere_switch_end:",
            ".size cere_switch, .-cere_switch",
            ".option pop",
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
            ".cfi_undefined ra",
            "mv a5, a0",
            "lla a0, cere_main",
            "ld a1, 0(sp)",
            "addi a2, sp, 8",
            "andi sp, sp, -16",
            "li a3, 0",
            "li a4, 0",
            "mv a6, sp",
            "call __libc_start_main@plt",
            "ebreak",
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
            "auipc t1, 0",
            "j 77f",
            ".endr",
            ".balign 16",
            "77:",
            "addi sp, sp, -80",
            "sd a0, 72(sp)",
            "sd a1, 64(sp)",
            "sd a2, 56(sp)",
            "sd a3, 48(sp)",
            "sd a4, 40(sp)",
            "sd a5, 32(sp)",
            "sd a6, 24(sp)",
            "sd a7, 16(sp)",
            "sd ra, 8(sp)",
            "lla t2, cere_mpi_answers",
            "sub t1, t1, t2",
            "srli a0, t1, 4",
            "addi a1, sp, 80",
            "call {answer}",
            "ld ra, 8(sp)",
            "addi sp, sp, 80",
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
            "mv sp, a1",
            "2:",
            "beqz a3, 3f",
            "ld a4, 0(a2)",
            "sd a4, 0(a1)",
            "addi a2, a2, 8",
            "addi a1, a1, 8",
            "addi a3, a3, -1",
            "j 2b",
            "3:",
            "li ra, 0",
            "li s0, 0",
            "li a0, 0",
            "jr a5",
            in("a1") top,
            in("a2") words.as_ptr(),
            in("a3") words.len(),
            in("a5") entry,
            options(noreturn)
        )
    }
}
