//! The switch to the captured stack. It is also the outermost frame that an exception leaving the region can
//! reach: its own personality routine claims every exception, so no C++ runtime is needed.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use cere_arch::switch::Switch;

/// The exception that no handler inside the region takes, or 0. It leaves the region by unwinding, or the region
/// returns it to the code around, which was to go on with it.
pub static EXCEPTION: AtomicU64 = AtomicU64::new(0);

cere_arch::switch!();

unsafe extern "C" {
    /// Runs the region; 0 when it returned, 1 when an exception left it.
    pub fn cere_switch(switch: *mut Switch) -> i32;
    fn cere_switch_landing();
    fn cere_switch_end();
    fn _Unwind_SetIP(context: *mut c_void, address: usize);
}

/// Whether the code at `address` is that of `cere_switch`.
pub fn holds(address: usize) -> bool {
    let (start, end) = (
        cere_switch as *const () as usize,
        cere_switch_end as *const () as usize,
    );
    (start..end).contains(&address)
}

/// Personality routine of `cere_switch`: claims every exception.
#[unsafe(no_mangle)]
extern "C" fn cere_personality(
    _version: i32,
    actions: i32,
    _class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> i32 {
    const SEARCH_PHASE: i32 = 1;
    const HANDLER_FOUND: i32 = 6;
    const INSTALL_CONTEXT: i32 = 7;
    if actions & SEARCH_PHASE != 0 {
        EXCEPTION.store(exception as u64, Relaxed);
        return HANDLER_FOUND;
    }
    // SAFETY: the unwinder hands over its context; the landing is in the same frame.
    unsafe { _Unwind_SetIP(context, cere_switch_landing as *const () as usize) };
    INSTALL_CONTEXT
}

/// Ends the exception that left the region, if one did, as the handler that took it in vivo.
pub fn end_exception() {
    let exception = EXCEPTION.swap(0, Relaxed);
    // SAFETY: null-terminated names.
    let (begin, end) = unsafe {
        (
            libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_begin_catch".as_ptr()),
            libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_end_catch".as_ptr()),
        )
    };
    if exception == 0 || begin.is_null() || end.is_null() {
        return;
    }
    // SAFETY: the functions of the C++ runtime, with their types, and an exception that nobody handled.
    unsafe {
        let begin: extern "C" fn(u64) -> *mut c_void = std::mem::transmute(begin);
        let end: extern "C-unwind" fn() = std::mem::transmute(end);
        begin(exception);
        end();
    }
}
