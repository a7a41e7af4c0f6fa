//! Assembly of executables of their own. As macros ([`entry!`](crate::entry), [`switch!`](crate::switch!),
//! [`stubs!`](crate::stubs)): what it refers to is the executable's.

pub use crate::here::switch::{argument, begin};

use crate::float::Control;

/// What the switch to the captured stack is given, and what it leaves. The assembly knows the offsets.
#[repr(C)]
#[derive(Debug)]
pub struct Switch {
    /// Trampoline of the region, `void (void *arguments)`.
    pub invoke: u64,
    /// Its argument.
    pub arguments: u64,
    /// Stack pointer just before the call.
    pub stack_pointer: u64,
    /// Of floating point.
    pub control: Control,
    /// Counter before the call.
    pub start: u64,
    /// Counter after it.
    pub end: u64,
    /// Which processor read the counter before the call; 0 where no register says that.
    pub processor_before: u32,
    /// Which one read it after the call.
    pub processor_after: u32,
}

/// Bytes between two stubs.
pub const STUB: usize = 16;
