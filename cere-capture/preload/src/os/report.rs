//! Messages on standard error.

use super::sys;

/// Writes a line. Allocates: not for handlers.
pub fn complain(message: &str) {
    let text = format!("cere: {message}\n");
    let arguments = [2, text.as_ptr() as usize, text.len(), 0, 0, 0];
    // SAFETY: writes our own text to standard error.
    unsafe { sys::call(libc::SYS_write, arguments) };
}
