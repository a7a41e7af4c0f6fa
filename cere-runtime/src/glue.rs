//! What the generator's glue defines.

use crate::code::Jump;

#[cfg(not(test))]
unsafe extern "C" {
    /// The region's trampoline.
    pub static cere_glue_invoke: u64;
    /// Old addresses of recompiled functions.
    pub static cere_glue_jumps: Jump;
    /// Their number.
    pub static cere_glue_jump_count: u64;
    /// Functions of other images, with the jumps near that lead there.
    pub static cere_glue_thunks: Jump;
    /// Their number.
    pub static cere_glue_thunk_count: u64;
    /// Bytes of the thread-local block.
    pub static cere_glue_tls_size: u64;
    /// The thread-local block of this thread.
    pub fn cere_glue_tls() -> *mut u8;
}

/// Stands for the glue in unit tests, which have none.
macro_rules! absent {
    ($($name:ident: $type:ty = $value:expr),*) => {
        $(#[cfg(test)]
        #[allow(non_upper_case_globals, reason = "named as the glue's symbol")]
        pub static $name: $type = $value;)*
    };
}
absent!(
    cere_glue_invoke: u64 = 0,
    cere_glue_jumps: Jump = Jump { old: 0, new: 0 },
    cere_glue_jump_count: u64 = 0,
    cere_glue_thunks: Jump = Jump { old: 0, new: 0 },
    cere_glue_thunk_count: u64 = 0,
    cere_glue_tls_size: u64 = 0
);

/// As above.
#[cfg(test)]
pub unsafe fn cere_glue_tls() -> *mut u8 {
    std::ptr::NonNull::dangling().as_ptr()
}
