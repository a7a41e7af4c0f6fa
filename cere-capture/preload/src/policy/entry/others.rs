//! Functions of libc that wait for another thread, or use its state. That lies on the other thread's stack and in lists of libc,
//! of which a replay has neither: a captured invocation that calls one for another thread ends there.

use super::passed_on::passed_on;
use crate::engine::{gate, status};
use crate::os::errno::keep_errno;
use crate::os::symbols::find_next;
use crate::os::thread;
use crate::policy::cause;
use std::ffi::CStr;
use std::sync::atomic::AtomicUsize;

/// The functions. Each takes a thread as first argument.
const NAMES: [&CStr; 16] = [
    c"pthread_join",
    c"pthread_tryjoin_np",
    c"pthread_timedjoin_np",
    c"pthread_clockjoin_np",
    c"pthread_detach",
    c"pthread_cancel",
    c"pthread_kill",
    c"pthread_sigqueue",
    c"pthread_setname_np",
    c"pthread_getschedparam",
    c"pthread_setschedparam",
    c"pthread_setschedprio",
    c"pthread_getaffinity_np",
    c"pthread_setaffinity_np",
    c"thrd_join",
    c"thrd_detach",
];
/// Addresses of the functions of [`NAMES`].
static REAL: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];

/// Address of the function to jump to. The call's registers are saved on the stack.
extern "C" fn find_target(which: usize, thread: usize, _: usize) -> usize {
    // The C library's number of a thread is its pointer.
    if status::captures() && gate::is_captured() && thread != thread::pointer() {
        cause::meet_other(NAMES[which].to_str().unwrap_or_default());
    }
    keep_errno(|| find_next(&REAL[which], NAMES[which]))
}

passed_on!(find_target:
    pthread_join = 0,
    pthread_tryjoin_np = 1,
    pthread_timedjoin_np = 2,
    pthread_clockjoin_np = 3,
    pthread_detach = 4,
    pthread_cancel = 5,
    pthread_kill = 6,
    pthread_sigqueue = 7,
    pthread_setname_np = 8,
    pthread_getschedparam = 9,
    pthread_setschedparam = 10,
    pthread_setschedprio = 11,
    pthread_getaffinity_np = 12,
    pthread_setaffinity_np = 13,
    thrd_join = 14,
    thrd_detach = 15,
);
