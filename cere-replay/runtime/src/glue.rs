//! What the generator's glue defines.

use std::sync::atomic::AtomicU64;

/// A variable that the recompiled code names and the captured image lacks.
#[repr(C)]
#[derive(Debug)]
pub struct Lost {
    /// Where the glue put it, on pages of its own.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Address of its name, a C string.
    pub name: u64,
    /// 0: nothing is known of what it held; 1: some or all of its bytes are not in the image, as nobody read them; 2: all
    /// are there, in another form; 3: it is a symbol that the units refer to and a replay does not have.
    pub kind: u64,
    /// Whether the region has used it.
    pub used: AtomicU64,
}

/// Bytes of a variable, and where they come from.
#[repr(C)]
#[derive(Debug)]
pub struct Row {
    /// Where the region has them.
    pub place: u64,
    /// Where they are kept; 0: they are zero.
    pub kept: u64,
    /// Their number.
    pub length: u64,
    /// 0: `kept` is the initial value; 1: the same bytes in the image; 2: a byte of the image that is 0 or 1.
    pub how: u64,
    /// The value that a kept 0 stands for.
    pub first: u64,
    /// The value that a kept 1 stands for.
    pub other: u64,
}

/// One jump: old address and where the function is now.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// Captured address.
    pub old: u64,
    /// Address in the replay.
    pub new: u64,
}

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
    /// Captured addresses of labels; for the new one the address of a word, with its distance from there, or 0.
    pub static cere_glue_labels: Jump;
    /// Their number.
    pub static cere_glue_label_count: u64;
    /// Variables that the captured image lacks.
    pub static cere_glue_lost: Lost;
    /// Their number.
    pub static cere_glue_lost_count: u64;
    /// Addresses of the rows that say where their bytes are.
    pub static cere_glue_byte_rows: *const Row;
    /// Their number.
    pub static cere_glue_byte_row_count: u64;
    /// The function that code with reported stores calls.
    pub static mut cere_glue_store: u64;
    /// Whether there is such code.
    pub static cere_glue_typed: u64;
    /// Whether the machine code is another one than in vivo.
    pub static cere_glue_other: u64;
    /// Bytes of the thread-local block.
    pub static cere_glue_tls_size: u64;
    /// Address of the reason why code of another architecture cannot go on, a C string, or 0.
    pub static mut cere_glue_refusal: u64;
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
    cere_glue_labels: Jump = Jump { old: 0, new: 0 },
    cere_glue_label_count: u64 = 0,
    cere_glue_other: u64 = 0,
    cere_glue_lost: Lost = Lost { start: 0, size: 0, name: 0, kind: 0, used: AtomicU64::new(0) },
    cere_glue_lost_count: u64 = 0,
    cere_glue_byte_row_count: u64 = 0,
    cere_glue_typed: u64 = 0,
    cere_glue_tls_size: u64 = 0
);

/// As above.
#[cfg(test)]
#[allow(non_upper_case_globals, reason = "named as the glue's symbol")]
pub static mut cere_glue_byte_rows: *const Row = std::ptr::null();

/// As above.
#[cfg(test)]
#[allow(non_upper_case_globals, reason = "named as the glue's symbol")]
pub static mut cere_glue_store: u64 = 0;

/// As above.
#[cfg(test)]
#[allow(non_upper_case_globals, reason = "named as the glue's symbol")]
pub static mut cere_glue_refusal: u64 = 0;

/// As above.
#[cfg(test)]
pub unsafe fn cere_glue_tls() -> *mut u8 {
    std::ptr::NonNull::dangling().as_ptr()
}
