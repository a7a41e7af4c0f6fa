//! Calls of a function that is a region: only the outermost one is an invocation, those within it are part of it. A call that
//! was left by longjmp is over. No allocation, no lock.

use crate::os::sys;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Frames that are further apart lie on stacks of their own.
const APART: u64 = 1 << 30;

/// Stack pointer of the outermost call in progress, in one thread; 0: none.
#[derive(Debug, Default)]
pub struct Outermost(AtomicUsize);

impl Outermost {
    /// The thread enters the region with this stack pointer. Whether that is an outermost call.
    pub fn enters(&self, stack: usize) -> bool {
        let (before, now) = (self.0.load(Relaxed) as u64, stack as u64);
        let outermost = before == 0 || is_over(before, now);
        if outermost {
            self.0.store(stack, Relaxed);
        }
        outermost
    }

    /// The thread leaves the region with this stack pointer.
    pub fn leaves(&self, stack: usize) {
        if self.0.load(Relaxed) == stack {
            self.0.store(0, Relaxed);
        }
    }
}

/// Whether a region that was entered with stack pointer `before` was left by longjmp, now that one is entered with `now`: a nested
/// probe lies strictly deeper.
#[inline(always)]
pub fn is_over(before: u64, now: u64) -> bool {
    before <= now && before.abs_diff(now) < APART && was_left(before, now)
}

/// Whether code that had stack pointer `before` was left by longjmp, now that code with `now` runs.
#[cold]
pub fn was_left(before: u64, now: u64) -> bool {
    let mut alternate = [0u64; 3];
    // SAFETY: the kernel's stack_t is three words: start, flags, size.
    unsafe {
        let at = alternate.as_mut_ptr() as usize;
        sys::call(libc::SYS_sigaltstack, [0, at, 0, 0, 0, 0]);
    }
    let [start, _, size] = alternate;
    let on = |stack: u64| stack > start && stack - start <= size;
    match (on(before), on(now)) {
        (false, true) => false,
        (true, false) => true,
        _ => before <= now,
    }
}

#[cfg(test)]
mod tests {
    use super::Outermost;

    #[test]
    fn calls_within_a_call_are_no_invocations_until_that_is_over() {
        let calls = Outermost::default();
        assert!(calls.enters(1000));
        assert!(!calls.enters(900));
        calls.leaves(900);
        assert!(!calls.enters(800));
        // The outermost one returns, then it is left by longjmp.
        calls.leaves(1000);
        assert!(calls.enters(800));
        assert!(calls.enters(900));
        assert!(!calls.enters(850));
    }
}
