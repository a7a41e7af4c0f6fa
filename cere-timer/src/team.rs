//! A function on all processors that the process may use, each in a thread that stays on its processor.

use crate::error::TimerError;
use std::io;

/// The processors that the calling thread may use, by number.
pub(crate) fn processors() -> Result<Vec<usize>, TimerError> {
    // SAFETY: a set of processors is words of bits; all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is as large as the size says.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } != 0 {
        return Err(TimerError::Pin(io::Error::last_os_error()));
    }
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the numbers are below the set's size.
    Ok(all
        .filter(|&n| unsafe { libc::CPU_ISSET(n, &set) })
        .collect())
}

/// Moves the calling thread to one processor.
fn pin(processor: usize) -> Result<(), TimerError> {
    // SAFETY: as in `processors`.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number comes from such a set.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: `set` is as large as the size says.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(TimerError::Pin(io::Error::last_os_error())),
    }
}

/// Runs `work` on each of `processors` at once and waits. Without any, here.
pub(crate) fn on_each(processors: &[usize], work: impl Fn() + Sync) -> Result<(), TimerError> {
    if processors.is_empty() {
        work();
        return Ok(());
    }
    let one = |processor: usize| pin(processor).map(|()| work());
    std::thread::scope(|scope| {
        let start =
            |&processor| std::thread::Builder::new().spawn_scoped(scope, move || one(processor));
        let started: Result<Vec<_>, _> = processors.iter().map(start).collect();
        let started = started.map_err(TimerError::Pin)?;
        let ended = started.into_iter().map(|thread| {
            let died = |_| Err(TimerError::Pin(io::Error::other("a thread died")));
            thread.join().unwrap_or_else(died)
        });
        ended.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    #[test]
    fn each_processor_works_once_and_the_caller_stays_free() {
        let all = processors().unwrap();
        let seen = Mutex::new(Vec::new());
        // SAFETY: asks for a number.
        let here = || unsafe { libc::sched_getcpu() } as usize;
        on_each(&all, || seen.lock().unwrap().push(here())).unwrap();
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen.len(), all.len());
        assert_eq!(
            seen.into_iter().collect::<BTreeSet<_>>(),
            all.iter().copied().collect()
        );
        assert_eq!(processors().unwrap(), all);
    }
}
