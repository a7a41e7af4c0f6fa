//! A function on all processors that the process may use, each in a thread that stays on its processor.

use crate::error::TimerError;
use std::collections::BTreeSet;
use std::io;

/// The processors that the process may use, by number: those of all its threads, as each thread of a team may be bound
/// to its own.
pub(crate) fn processors() -> Result<Vec<usize>, TimerError> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc/self/task").map_err(TimerError::Pin)? {
        let name = entry.map_err(TimerError::Pin)?.file_name();
        let thread = name.to_str().and_then(|name| name.parse().ok());
        // Threads that have ended since are gone.
        found.extend(thread.into_iter().flat_map(of_thread));
    }
    if found.is_empty() {
        return Err(TimerError::Pin(io::Error::last_os_error()));
    }
    Ok(found.into_iter().collect())
}

/// The processors that a thread may use; none if there is no such thread.
fn of_thread(thread: libc::pid_t) -> Vec<usize> {
    // SAFETY: a set of processors is words of bits; all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is as large as the size says.
    if unsafe { libc::sched_getaffinity(thread, size_of_val(&set), &mut set) } != 0 {
        return Vec::new();
    }
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the numbers are below the set's size.
    all.filter(|&n| unsafe { libc::CPU_ISSET(n, &set) })
        .collect()
}

/// Moves the calling thread to one processor.
fn pin(processor: usize) -> Result<(), TimerError> {
    // SAFETY: as in `of_thread`.
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
        assert_eq!(of_thread(0), all);
    }

    #[test]
    fn a_bound_caller_does_not_hide_the_other_processors() {
        let all = processors().unwrap();
        let bound = || {
            pin(all[0]).unwrap();
            (of_thread(0), processors().unwrap())
        };
        let found = std::thread::scope(|scope| scope.spawn(bound).join().unwrap());
        assert_eq!(found, (vec![all[0]], all.clone()));
    }
}
