//! Wake-ups of a captured invocation for threads outside teams. Those would run beside it, so they are woken once memory is open.

use crate::os::sys;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Different words that can be noted.
const ROOM: usize = 256;

/// Arguments of futex: word, operation, number of threads, their bits.
struct Wake([AtomicUsize; 4]);

static NOTED: [Wake; ROOM] = [const { Wake([const { AtomicUsize::new(0) }; 4]) }; ROOM];
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Notes a call of futex that wakes threads, to be made later. In turn.
pub fn wake_later(a: [usize; 6]) -> Result<(), &'static str> {
    let this = [a[0], a[1], a[2], a[5]];
    let length = LENGTH.load(SeqCst);
    let same = |wake: &&Wake| [0, 1, 3].map(|i| wake.0[i].load(SeqCst) == this[i]) == [true; 3];
    if let Some(known) = NOTED[..length].iter().find(same) {
        let sum = known.0[2].load(SeqCst).saturating_add(this[2]);
        known.0[2].store(sum.min(i32::MAX as usize), SeqCst);
        return Ok(());
    }
    let wake = NOTED
        .get(length)
        .ok_or("more wake-ups of other threads than can be noted")?;
    for (word, value) in wake.0.iter().zip(this) {
        word.store(value, SeqCst);
    }
    LENGTH.store(length + 1, SeqCst);
    Ok(())
}

/// Makes the calls that were noted. Memory is open.
pub fn wake_now() {
    let length = LENGTH.swap(0, SeqCst);
    for wake in &NOTED[..length] {
        let [at, operation, count, bits] = [0, 1, 2, 3].map(|i| wake.0[i].load(SeqCst));
        // SAFETY: the program's own call: it wakes whoever waits on the word.
        unsafe { sys::call(libc::SYS_futex, [at, operation, count, 0, 0, bits]) };
    }
}

/// In a forked child: nobody waits.
pub fn reset_in_child() {
    LENGTH.store(0, SeqCst);
}
