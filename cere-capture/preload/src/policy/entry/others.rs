//! Functions of libc that wait for another thread, or use its state. That lies on the other thread's stack and in lists of libc,
//! of which a replay has neither: a captured invocation that calls one for another thread ends there.

use super::passed_on::passed_on;
use crate::os::thread;
use crate::policy::needs::{self, Needs};

/// The captured invocation is about to call a function whose first argument is a thread.
fn meet(function: &'static str, thread: usize, _: usize) {
    // The C library's number of a thread is its pointer.
    if thread != thread::pointer() {
        needs::refuse_call(Needs::OtherThread, function);
    }
}

passed_on!(meet:
    pthread_join,
    pthread_tryjoin_np,
    pthread_timedjoin_np,
    pthread_clockjoin_np,
    pthread_detach,
    pthread_cancel,
    pthread_kill,
    pthread_sigqueue,
    pthread_setname_np,
    pthread_getschedparam,
    pthread_setschedparam,
    pthread_setschedprio,
    pthread_getaffinity_np,
    pthread_setaffinity_np,
    thrd_join,
    thrd_detach,
);
