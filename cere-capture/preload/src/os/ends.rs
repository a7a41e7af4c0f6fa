//! Functions that run when a thread ends.

use std::ffi::c_void;

/// A key of the library, whose destructor runs at the end of threads that have a value of it. The last one whose values need no
/// memory, so that the program's have the numbers that they have without.
pub fn take_key(destructor: unsafe extern "C" fn(*mut c_void)) -> libc::pthread_key_t {
    const LAST: libc::pthread_key_t = 31;
    let mut taken = [libc::pthread_key_t::MAX; LAST as usize + 1];
    for key in &mut taken {
        // SAFETY: a key of our own.
        let failed = unsafe { libc::pthread_key_create(key, Some(destructor)) } != 0;
        if failed || *key >= LAST {
            break;
        }
    }
    let taken_at = |key: &libc::pthread_key_t| *key != libc::pthread_key_t::MAX;
    let made = taken.iter().rposition(taken_at);
    for key in &taken[..made.unwrap_or(0)] {
        // SAFETY: nobody has used it.
        unsafe { libc::pthread_key_delete(*key) };
    }
    // No key has the largest number: to set its value fails.
    made.map_or(libc::pthread_key_t::MAX, |made| taken[made])
}
