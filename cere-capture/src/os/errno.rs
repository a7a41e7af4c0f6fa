//! errno, which hooks leave as it is.

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
