//! `dlopen` and `dlclose`: regions come and go with images.

use super::{active, hook, start};
use crate::os::report::complain;
use crate::os::section::unnoticed;
use crate::os::symbols::next;
use crate::os::{images, sys};
use std::ffi::{c_char, c_int, c_void};

/// libc's `dlopen` uses the RUNPATH and `$ORIGIN` of its caller: its return address has to lie in the caller's image.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    core::arch::naked_asm!("mov rdx, [rsp]", "jmp {}", sym dlopen_from)
}

unsafe extern "C" fn dlopen_from(file: *const c_char, flags: c_int, caller: usize) -> *mut c_void {
    type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    // SAFETY: libc's dlopen; what it returns to is a return instruction.
    let handle = unsafe {
        let real = next!(c"dlopen", Open);
        match images::return_after(caller) {
            Some(at) => sys::cere_call_from(real as usize, file.cast(), flags, at),
            None => real(file, flags),
        }
    };
    if !handle.is_null() && active::is_active() {
        unnoticed(|| start::arm_images().unwrap_or_else(|e| complain(&e.to_string())));
        hook::begin_windows();
    }
    handle
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // SAFETY: libc's dlclose.
    let result = unsafe { next!(c"dlclose", unsafe extern "C" fn(*mut c_void) -> c_int)(handle) };
    if active::is_active() {
        unnoticed(start::forget_images);
    }
    result
}
