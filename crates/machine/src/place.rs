//! Threads on cores.

use crate::Error;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::Barrier;

/// The processors that this thread may use, by number; empty where the kernel does not say.
#[must_use]
pub fn allowed() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    all.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// The processors that threads can be put on; empty where the process may not choose.
#[must_use]
pub fn usable() -> Vec<u32> {
    let mut cores = allowed();
    cores.retain(|core| on(*core, || ()).is_ok());
    cores
}

/// Puts the calling thread on `core` alone.
pub fn pin(core: u32) -> Result<(), Error> {
    let mut set = CpuSet::new();
    let refused = |source| Error::Place { core, source };
    let index = core as usize;
    if index >= CpuSet::MAX_CPU {
        return Err(refused(std::io::Error::from_raw_os_error(libc::EINVAL)));
    }
    set.set(index);
    sched_setaffinity(None, &set).map_err(|e| refused(e.into()))
}

/// What `work` gives on `core`, in a thread of its own.
pub fn on<T: Send>(core: u32, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let mut results = together(&[core], {
        let work = std::sync::Mutex::new(Some(work));
        move |_, _| work.lock().ok().and_then(|mut w| w.take()).map(|w| w())
    })?;
    results
        .pop()
        .flatten()
        .ok_or_else(|| Error::Thread(std::io::Error::other("the thread ended without a result")))
}

/// What `work` gives on each of `cores` at once, in their order. Each thread is given its index and a barrier of all of them. No
/// core may be named twice, or threads that wait for each other take turns.
pub fn together<T: Send>(
    cores: &[u32],
    work: impl Fn(usize, &Barrier) -> T + Sync,
) -> Result<Vec<T>, Error> {
    // A thread that cannot be put on its core must not leave others waiting at the barrier: all find out first.
    let (ready, placed) = (Barrier::new(cores.len()), std::sync::Mutex::new(None));
    let barrier = Barrier::new(cores.len());
    let one = |index: usize| {
        if let Err(error) = pin(cores[index])
            && let Ok(mut placed) = placed.lock()
        {
            *placed = Some(error);
        }
        ready.wait();
        let failed = placed.lock().map_or(true, |placed| placed.is_some());
        (!failed).then(|| work(index, &barrier))
    };
    let results: Vec<Option<T>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores.len())
            .map(|index| scope.spawn(move_ref(&one, index)))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().ok().flatten())
            .collect()
    });
    if let Some(error) = placed.into_inner().ok().flatten() {
        return Err(error);
    }
    let whole: Option<Vec<T>> = results.into_iter().collect();
    whole.ok_or_else(|| Error::Thread(std::io::Error::other("a thread of a probe panicked")))
}

fn move_ref<'a, T>(one: &'a (impl Fn(usize) -> T + Sync), index: usize) -> impl FnOnce() -> T + 'a {
    move || one(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_run_where_they_were_put() {
        let cores = allowed();
        assert!(!cores.is_empty());
        let found = together(&cores, |index, barrier| {
            barrier.wait();
            // SAFETY: asks for the processor of the calling thread.
            (index, unsafe { libc::sched_getcpu() } as u32)
        })
        .unwrap();
        let expected: Vec<(usize, u32)> = cores.iter().copied().enumerate().collect();
        assert_eq!(found, expected);
        assert_eq!(on(cores[0], || 7).unwrap(), 7);
        assert_eq!(allowed(), cores, "the caller stays where it was");
    }

    #[test]
    fn a_core_that_is_not_there() {
        let error = on(1023, || ()).unwrap_err().to_string();
        assert!(error.contains("processor 1023"), "{error}");
        let cores = [allowed()[0], 1023];
        assert!(together(&cores, |_, barrier| barrier.wait().is_leader()).is_err());
    }
}
