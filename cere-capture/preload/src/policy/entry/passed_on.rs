//! Functions of libc that are continued by a jump, so that they see the caller's stack and return address.

/// Defines functions of these names. Each calls `find(which, first, second)`, with its number and its first two arguments, and
/// continues in the function that this returns.
macro_rules! passed_on {
    ($find:path: $($name:ident = $which:literal),+ $(,)?) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
                "mov rdx, rsi",
                "mov rsi, rdi",
                "mov edi, {which}",
                "call {find}",
                "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "mov r11, rax",
                "xor eax, eax",
                "jmp r11",
                which = const $which,
                find = sym $find,
            )
        }
    )+};
}
pub(super) use passed_on;
