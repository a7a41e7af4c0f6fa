//! A team's caches are flushed on every processor (Whaley and Castaldo, section 5.2).

mod chase;

use cere_timer::{Flush, Invocations, State, Timer};
use chase::{follow, operand};

/// Places of the chase are in pages of their own: no prefetcher helps.
const STEP: usize = 65 * 64;

/// Processors of the calling thread.
fn processors() -> Vec<usize> {
    // SAFETY: all zero is the empty set; it is as large as the size says.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        let all = 0..libc::CPU_SETSIZE as usize;
        all.filter(|&n| libc::CPU_ISSET(n, &set)).collect()
    }
}

/// Binds the calling thread to a processor.
fn bind(processor: usize) {
    // SAFETY: all zero is the empty set; it is as large as the size says.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// Cycles of the shortest chase by a thread on one processor, prepared by a team of another.
fn elsewhere(processor: usize, state: State) -> u64 {
    let sizes = cere_format::caches::of(0);
    let sizes: Vec<usize> = sizes.iter().map(|c| c.size as usize).collect();
    let (mut shortest, mut calls) = (u64::MAX, 0);
    Timer::new()
        .flush(Flush::Walk)
        .caches(&sizes)
        .parallel(true)
        .samples(30)
        .invocations(Invocations::One)
        .operand(operand::<STEP>(256 * STEP, state))
        .time(|operands| {
            let offsets = operands.values(0);
            let work = || {
                bind(processor);
                let from = cere_timing::clock::start();
                follow::<STEP>(offsets);
                cere_timing::clock::stop() - from
            };
            let took = std::thread::scope(|scope| scope.spawn(work).join().expect("a chase"));
            // The dummy call is not in context.
            if calls > 0 {
                shortest = shortest.min(took);
            }
            calls += 1;
        })
        .expect("a time");
    shortest
}

#[test]
fn a_team_is_flushed_on_every_processor() {
    let processors = processors();
    let (first, last) = (processors[0], processors[processors.len() - 1]);
    bind(first);
    let (cold, warm) = (elsewhere(last, State::Cold), elsewhere(last, State::Warm));
    // Not against a walk on the first processor alone: where a host moves its processors about, that flushes all too.
    assert!(cold > 4 * warm, "flushed everywhere {cold}, nowhere {warm}");
}
