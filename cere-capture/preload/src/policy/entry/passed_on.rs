//! Functions of libc that are continued by a jump, so that they see the caller's stack and return address.

/// Defines functions of these names. Each calls `$before`, with its name and its first two arguments, and continues in libc's. The
/// call's registers are saved on the stack.
macro_rules! passed_on {
    ($before:path: $($name:ident),+ $(,)?) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            /// The address to jump to.
            extern "C" fn find(first: usize, second: usize) -> usize {
                static REAL: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
                $before(stringify!($name), first, second);
                let name = $crate::os::symbols::c_name!($name);
                $crate::os::errno::keep_errno(|| $crate::os::symbols::find_next(&REAL, name))
            }
            std::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
                "call {find}",
                "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "mov r11, rax",
                "xor eax, eax",
                "jmp r11",
                find = sym find,
            )
        }
    )+};
}
pub(super) use passed_on;
