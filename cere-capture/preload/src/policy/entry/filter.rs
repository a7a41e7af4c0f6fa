//! System call filters (seccomp). Under a filter of the program, the library's own calls could end it: results are finished
//! before. `prctl` and `syscall` install filters.

use super::active;
use super::passed_on::passed_on;
use crate::os::errno::keep_errno;
use crate::os::report::complain;
use crate::os::section::in_library;
use std::sync::atomic::{AtomicBool, Ordering};

static SEALED: AtomicBool = AtomicBool::new(false);

/// Whether results were finished because of a filter.
pub fn is_sealed() -> bool {
    SEALED.load(Ordering::Relaxed)
}

/// The program is about to call a function that may install a filter.
fn look_for_filter(function: &str, first: usize, second: usize) {
    let option = match (function, first as i64) {
        ("prctl", _) => first,
        (_, libc::SYS_prctl) => second,
        (_, libc::SYS_seccomp) => libc::PR_SET_SECCOMP as usize,
        _ => return,
    };
    if option == libc::PR_SET_SECCOMP as usize && active::deactivate() {
        keep_errno(finish_before_filter);
    }
}

fn finish_before_filter() {
    in_library(|| {
        complain(
            "the program puts a system call filter (seccomp) in force, under which the calls of CERE could end it: nothing \
             that comes after is timed or captured. For that, run it without the filter",
        );
    });
    SEALED.store(true, Ordering::Relaxed);
    active::finish_results();
}

passed_on!(look_for_filter: prctl, syscall);
