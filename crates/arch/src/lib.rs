//! What depends on the processor's architecture: one interface, one folder for each architecture behind it, and `lacking/` for what
//! several do not have. Nothing else in the
//! workspace asks what it is compiled for.
//!
//! | module | what |
//! |---|---|
//! | [`call`] | system calls without libc, and the section that Syscall User Dispatch lets through |
//! | [`counter`] | the counter that times: readings that wait for what comes before, as functions and as assembly |
//! | [`counting`] | the register and the code that counted code writes its stream with |
//! | [`feature`] | what the processor says of itself |
//! | [`float`] | the control of floating point, from the captured one |
//! | [`jump`] | machine code that leads elsewhere |
//! | [`lines`] | the size of a cache line, and what throws one out of the caches |
//! | [`loops`] | loops of probes |
//! | [`numbers`] | numbers of system calls as packages have them |
//! | [`mod@questions`] | functions of the C library that ask the kernel, where their calls cannot be caught |
//! | [`register`] | registers of an interrupted thread: faults, system calls |
//! | [`mod@switch`] | assembly of executables of their own: entry, the switch to another stack, stubs |
//! | [`thread`] | the thread pointer and what lies there |
//! | [`target`] | the architectures that code is made for, whatever this one is |

pub mod call;
mod fault;
#[cfg(target_arch = "aarch64")]
#[path = "aarch64/mod.rs"]
mod here;
#[cfg(target_arch = "riscv64")]
#[path = "riscv64/mod.rs"]
mod here;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64/mod.rs"]
mod here;
pub mod numbers;
pub mod register;
pub mod switch;
pub mod target;

pub use here::{HERE, counter, counting, feature, float, jump, lines, loops, questions, thread};

/// Bytes of a page of this machine's memory.
#[must_use]
pub fn page() -> u64 {
    // SAFETY: asks for a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}
