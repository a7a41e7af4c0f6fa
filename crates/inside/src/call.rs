//! System calls without libc: no errno, no thread-local storage, no function that the program may have replaced, so that
//! handlers can make them.
//!
//! All of it lies in one section, the only code that Syscall User Dispatch lets through to the kernel ([`dispatch`]). Code of
//! others that has to make calls of its own in there puts itself into the section `cere_calls`.
//!
//! The calls of `cere_timing::clock` are inlined between two readings of the counter.

pub use cere_arch::call::{call, plain, restorer};
pub use cere_arch::thread::pointer as thread_pointer;

/// Has the calling thread's system calls from outside the section caught while `selector` is 1; or no more. Zero or a negated
/// error.
///
/// # Safety
/// The selector stays while the thread lives, and SIGSYS has a handler.
pub unsafe fn dispatch(selector: Option<*const u8>) -> isize {
    const PR_SET_SYSCALL_USER_DISPATCH: usize = 59;
    let (start, length) = cere_arch::call::section();
    let arguments = match selector {
        Some(at) => [
            PR_SET_SYSCALL_USER_DISPATCH,
            1,
            start,
            length,
            at as usize,
            0,
        ],
        None => [PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0, 0],
    };
    // SAFETY: the kernel reads the selector, which stays by the contract.
    unsafe { call(libc::SYS_prctl, arguments) }
}

/// Has the calling thread's readings of the time stamp counter fault, or not.
///
/// # Safety
/// SIGSEGV has a handler that answers readings.
pub unsafe fn trap_counter(yes: bool) {
    let how = if yes {
        libc::PR_TSC_SIGSEGV
    } else {
        libc::PR_TSC_ENABLE
    };
    // SAFETY: the handler answers readings, by the contract; where the kernel refuses, they are as ever.
    unsafe {
        call(
            libc::SYS_prctl,
            [libc::PR_SET_TSC as usize, how as usize, 0, 0, 0, 0],
        )
    };
}
