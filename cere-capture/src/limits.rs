//! Where the library, or the command, would change what the program may have. Ordinary code.

use crate::{arena, heap, keep_errno, process};
use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;

unsafe extern "C" {
    fn pthread_getattr_default_np(attributes: *mut libc::pthread_attr_t) -> c_int;
    fn pthread_setattr_default_np(attributes: *const libc::pthread_attr_t) -> c_int;
}

/// The command gives the program an unlimited stack. For libc that means threads with less of it than under the
/// usual limit: they get what they have then.
pub fn keep_thread_stacks() {
    const USUAL: usize = 8 << 20;
    // SAFETY: structures of our own, initialised by the first call on each.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let mut size = 0;
        if libc::getrlimit(libc::RLIMIT_STACK, &mut limit) != 0
            || limit.rlim_cur != libc::RLIM_INFINITY
            || pthread_getattr_default_np(&mut attributes) != 0
        {
            return;
        }
        if libc::pthread_attr_getstacksize(&attributes, &mut size) == 0 && size < USUAL {
            libc::pthread_attr_setstacksize(&mut attributes, USUAL);
            pthread_setattr_default_np(&attributes);
        }
        libc::pthread_attr_destroy(&mut attributes);
    }
}

/// Locks what is the program's. The library's address space is far more than the machine has memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = crate::next(&REAL, c"mlockall");
    // SAFETY: libc's function.
    let real = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(c_int) -> c_int>(real) };
    let all = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    // SAFETY: locks memory, as the program wants.
    unsafe {
        if flags & libc::MCL_CURRENT == 0 || flags & !all != 0 {
            return real(flags);
        }
        let future = flags & libc::MCL_FUTURE != 0;
        if future && real(flags & !libc::MCL_CURRENT) != 0 {
            return -1;
        }
        let on_fault = u32::from(flags & libc::MCL_ONFAULT != 0);
        let done = keep_errno(|| heap::in_library(|| lock_current(on_fault)));
        if done {
            return 0;
        }
        *libc::__errno_location() = libc::EPERM;
        -1
    }
}

/// Locks all mappings but ours; false if the program may not.
unsafe fn lock_current(on_fault: u32) -> bool {
    let own = arena::range();
    for mapping in process::mappings().unwrap_or_default() {
        let (start, end) = (mapping.start as usize, mapping.end as usize);
        if arena::ours(start) || own.0 <= start && start < own.1 || mapping.path.starts_with("[v") {
            continue;
        }
        // SAFETY: a mapping of the program. As in `mlockall`, memory that cannot be had is no error.
        let result = unsafe { libc::mlock2(start as *const _, end - start, on_fault) };
        // SAFETY: errno's address is valid in the calling thread.
        if result != 0 && unsafe { *libc::__errno_location() } == libc::EPERM {
            return false;
        }
    }
    true
}
