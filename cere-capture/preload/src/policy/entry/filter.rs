//! System call filters (seccomp). Under a filter of the program, the library's own calls could end it: results are finished
//! before. `prctl` and `syscall` install filters.

use super::active;
use super::passed_on::passed_on;
use crate::os::errno::keep_errno;
use crate::os::report::complain;
use crate::os::section::in_library;
use crate::os::symbols::find_next;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

const NAMES: [&CStr; 2] = [c"prctl", c"syscall"];
/// Addresses of the functions of [`NAMES`].
static REAL: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Whether results were finished because of a filter.
pub fn is_sealed() -> bool {
    SEALED.load(Ordering::Relaxed)
}

static SEALED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Address of the function to jump to. The call's registers are saved on the stack.
extern "C" fn find_target(which: usize, first: usize, second: usize) -> usize {
    let brings_filter = match which {
        0 => first == libc::PR_SET_SECCOMP as usize,
        _ => {
            first == libc::SYS_seccomp as usize
                || first == libc::SYS_prctl as usize && second == libc::PR_SET_SECCOMP as usize
        }
    };
    if brings_filter && active::deactivate() {
        keep_errno(finish_before_filter);
    }
    keep_errno(|| find_next(&REAL[which], NAMES[which]))
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

passed_on!(find_target: prctl = 0, syscall = 1);
