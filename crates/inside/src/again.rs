//! Executing a program in the place of the one that runs, before `main`.

use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Executes `file` with the arguments of this process, and its environment with `set`. Returns if the kernel refuses. Nothing else of the
/// process changes: what is ignored or blocked stays so.
///
/// # Safety
/// The process has one thread, which has not reached `main`.
pub unsafe fn execute(file: &Path, set: &[(&str, &OsStr)]) -> std::io::Error {
    let text = |bytes: &OsStr| CString::new(bytes.as_bytes()).unwrap_or_default();
    let words: Vec<CString> = std::env::args_os().map(|word| text(&word)).collect();
    let mut pointers: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    for (name, value) in set {
        let (name, value) = (text(OsStr::new(name)), text(value));
        // SAFETY: the only thread; C strings, which are copied.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
    }
    let file = text(file.as_os_str());
    // SAFETY: C strings, and a list of them that ends in null.
    unsafe { libc::execv(file.as_ptr(), pointers.as_ptr()) };
    std::io::Error::last_os_error()
}
