//! What the probes call.

/// Defines a hook of this name. It adds the stack pointer before the call as fourth argument and jumps to `event`.
macro_rules! hook {
    ($name:ident, $event:path) => {
        std::arch::global_asm!(
            concat!(".globl ", stringify!($name)),
            concat!(".hidden ", stringify!($name)),
            concat!(".type ", stringify!($name), ",@function"),
            concat!(stringify!($name), ":"),
            "lea rcx, [rsp + 8]",
            "jmp {event}",
            concat!(".size ", stringify!($name), ", .-", stringify!($name)),
            event = sym $event,
        );

        unsafe extern "C" {
            /// The hook.
            pub fn $name(
                region: *mut cere_format::abi::RegionDescriptor,
                event: u32,
                arguments: *mut u8,
            );
        }
    };
}
pub(crate) use hook;
