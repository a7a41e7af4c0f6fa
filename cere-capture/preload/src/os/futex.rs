//! Waiting for a word of memory to change, within the process.

use super::sys;
use std::sync::atomic::AtomicU32;

/// Wakes so many threads that wait on the word.
pub fn wake(word: &AtomicU32, threads: i32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    call(word, operation, threads as usize, 0);
}

/// Waits while the word has this value, for at most a time in seconds and nanoseconds. False if that is over.
pub fn wait(word: &AtomicU32, value: u32, most: [i64; 2]) -> bool {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let result = call(word, operation, value as usize, most.as_ptr() as usize);
    result != -(libc::ETIMEDOUT as isize)
}

fn call(word: &AtomicU32, operation: i32, value: usize, most: usize) -> isize {
    let (word, operation) = (word.as_ptr() as usize, operation as usize);
    // SAFETY: a word that stays, and none or a time of the caller's frame.
    unsafe { sys::call(libc::SYS_futex, [word, operation, value, most, 0, 0]) }
}
