//! errno, which hooks leave as it is.

/// Sets errno, for a function of the program's that fails.
pub fn set(error: i32) {
    // SAFETY: errno's address is valid in the calling thread.
    unsafe { *libc::__errno_location() = error };
}

/// The calling thread's errno.
pub fn get() -> i32 {
    // SAFETY: errno's address is valid in the calling thread.
    unsafe { *libc::__errno_location() }
}

/// Runs `f` and puts errno back.
pub fn keep_errno<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: errno's address is valid in the calling thread.
    unsafe {
        let errno = *libc::__errno_location();
        let result = f();
        *libc::__errno_location() = errno;
        result
    }
}
