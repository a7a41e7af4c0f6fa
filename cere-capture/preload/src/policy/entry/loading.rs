//! `dlopen` and `dlclose`: regions come and go with images.

use super::{active, hook, start};
use crate::os::errno::keep_errno;
use crate::os::report::complain;
use crate::os::section::in_library;
use crate::os::symbols::find_next;
use crate::os::{images, sys};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::AtomicUsize;

/// libc's `dlopen` uses the RUNPATH and `$ORIGIN` of its caller: its return address has to lie in the caller's image.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    core::arch::naked_asm!("mov rdx, [rsp]", "jmp {}", sym dlopen_from)
}

unsafe extern "C" fn dlopen_from(file: *const c_char, flags: c_int, caller: usize) -> *mut c_void {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = find_next(&REAL, c"dlopen");
    // SAFETY: libc's dlopen; what it returns to is a return instruction.
    let handle = unsafe {
        match images::return_after(caller) {
            Some(at) => sys::cere_call_from(real, file.cast(), flags, at),
            None => std::mem::transmute::<
                usize,
                unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void,
            >(real)(file, flags),
        }
    };
    if !handle.is_null() && active::is_active() {
        keep_errno(|| {
            if let Err(message) = in_library(start::arm_images) {
                complain(&message);
            }
        });
        hook::begin_windows();
    }
    handle
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = find_next(&REAL, c"dlclose");
    // SAFETY: libc's dlclose.
    let result = unsafe {
        std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> c_int>(real)(handle)
    };
    if active::is_active() {
        keep_errno(|| in_library(start::forget_images));
    }
    result
}
