//! Which questions of the captured thread to the kernel are caught.

use super::{clock, status};
use crate::os::signals;

/// Lets the captured thread's system calls through, or catches them, and with captures its readings of the time stamp counter.
pub fn catch_calls(catch: bool) {
    clock::watch_counter(catch && status::captures());
    signals::let_calls(!catch);
}
