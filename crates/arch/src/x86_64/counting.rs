//! What counted code finds its buffer with, GS, and what runs when the buffer is full: assembly that keeps all registers but RCX, the
//! flags too, and makes one kind of system call. It never allocates, never calls libc and takes no lock but the one that keeps the
//! threads' chunks apart.

use std::arch::global_asm;

/// Whether code can be counted on this architecture.
pub const SUPPORTED: bool = true;

// Offsets are those of `cere_inside::counter::Context`; the first four are known to the pass too (cere-pass/src/count.cpp).
global_asm!(
    ".pushsection .text.cere_counter,\"ax\",@progbits",
    ".balign 16",
    // RCX is the third byte of the cursor: 0 while the chunk has room. Or 2: a team is forked; or -1: it has
    // joined, and the buffers of its threads are to be sent.
    ".globl cere_counter_room",
    ".hidden cere_counter_room",
    ".type cere_counter_room,@function",
    "cere_counter_room:",
    "jrcxz 9f",
    "jmp cere_counter_flush",
    "9: ret",
    ".globl cere_counter_flush",
    ".hidden cere_counter_flush",
    ".type cere_counter_flush,@function",
    "cere_counter_flush:",
    "mov gs:[64], rax",
    "mov gs:[72], rdx",
    "mov gs:[80], rsi",
    "mov gs:[88], rdi",
    "mov gs:[96], r11",
    "mov gs:[104], r8",
    "mov gs:[112], rcx",
    "pushfq",
    "pop qword ptr gs:[120]",
    "mov r8, gs:[128]",
    "cmp rcx, 2",
    "jne 1f",
    "inc qword ptr gs:[152]",
    "1: cmp rcx, -1",
    "jne 1f",
    "mov qword ptr gs:[112], 0",
    // Only when the main thread's outermost team has joined does no other thread of it write.
    "dec qword ptr gs:[152]",
    "jnz 1f",
    "mov rsi, gs:[32]",
    "cmp qword ptr [rsi - 24], 0",
    "jne 1f",
    "mov qword ptr gs:[112], -1",
    // All buffers, the last made first.
    "mov r8, gs:[144]",
    "mov r8, [r8]",
    "1: mov rsi, [r8 + 32]",
    "mov rdx, [r8 + 16]",
    "sub rdx, rsi",
    "jz 8f",
    "mov [rsi - 32], rdx",
    // One chunk at a time.
    "2: mov rdi, gs:[48]",
    "mov eax, 1",
    "xchg [rdi], eax",
    "test eax, eax",
    "jz 3f",
    "mov eax, 24", // sched_yield
    "call qword ptr gs:[56]",
    "jmp 2b",
    "3: sub rsi, 32",
    "add rdx, 32",
    "4: mov rax, gs:[40]",
    "mov edi, [rax]",
    "test edi, edi",
    "js 6f",
    "mov eax, 1", // write
    "call qword ptr gs:[56]",
    "test rax, rax",
    "js 5f",
    "add rsi, rax",
    "sub rdx, rax",
    "jnz 4b",
    "jmp 6f",
    "5: cmp rax, -4", // EINTR
    "je 4b",
    "cmp rax, -11", // EAGAIN
    "je 4b",
    // Nobody reads any more: what follows is dropped.
    "mov rax, gs:[40]",
    "mov dword ptr [rax], -1",
    "6: mov rdi, gs:[48]",
    "mov dword ptr [rdi], 0",
    "mov rax, [r8 + 32]",
    "mov [r8 + 16], rax",
    "8: cmp qword ptr gs:[112], -1",
    "jne 7f",
    "mov r8, [r8 + 136]",
    "test r8, r8",
    "jnz 1b",
    "7: push qword ptr gs:[120]",
    "popfq",
    "mov rax, gs:[64]",
    "mov rdx, gs:[72]",
    "mov rsi, gs:[80]",
    "mov rdi, gs:[88]",
    "mov r11, gs:[96]",
    "mov r8, gs:[104]",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    fn cere_counter_room();
    fn cere_counter_flush();
}

/// What counted code calls when there may be no room.
#[must_use]
pub fn room() -> usize {
    cere_counter_room as *const () as usize
}

/// Sends what the calling thread's buffer holds.
///
/// # Safety
/// The thread has entered a buffer.
pub unsafe fn flush() {
    // SAFETY: it changes RCX alone, whose content says whose buffers are sent.
    unsafe {
        core::arch::asm!("call {}", sym cere_counter_flush, inout("rcx") 1 => _, options(preserves_flags));
    }
}

/// Has counted code of the calling thread find its buffer at `at`; whether it does.
///
/// # Safety
/// Nothing else uses GS in this thread.
pub unsafe fn enter(at: usize) -> bool {
    const ARCH_SET_GS: usize = 0x1001;
    // SAFETY: the kernel changes GS alone.
    unsafe { crate::call::call(libc::SYS_arch_prctl, [ARCH_SET_GS, at, 0, 0, 0, 0]) == 0 }
}
