//! Counters of the kernel that measure the region. They are opened and read by the command; here they are switched on and off.

use crate::error::Error;
use cere_format::replay::{CounterSet, Repetitions};
use cere_inside::call::call;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// `PERF_EVENT_IOC_ENABLE`: for this process's main thread and all threads that it started.
const ENABLE: usize = 0x2400;
/// `PERF_EVENT_IOC_DISABLE`.
const DISABLE: usize = 0x2401;

/// Whether a switch was refused.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// No counters.
pub const NONE: &[i32] = &[];

fn switch(counter: i32, request: usize) {
    let arguments = [counter as usize, request, 0, 0, 0, 0];
    // SAFETY: the requests take no pointer. The region's own answers do not catch this call.
    if unsafe { call(libc::SYS_ioctl, arguments) } != 0 {
        REFUSED.store(true, Relaxed);
    }
}

/// Has `counters` count from now on.
pub fn enable(counters: &[i32]) {
    for counter in counters {
        switch(*counter, ENABLE);
    }
}

/// Has them stop; in the other order, so that the first encloses all.
pub fn disable(counters: &[i32]) {
    for counter in counters.iter().rev() {
        switch(*counter, DISABLE);
    }
}

/// Repeats as `rule` says: its minimum of invocations for each set, or as many as its seconds allow, one at least. `run` runs the
/// region with these counters, or nothing in its place. Returns the invocations of each set.
pub fn measure(
    sets: &[CounterSet],
    rule: Repetitions,
    mut run: impl FnMut(Measured<'_>),
) -> Result<u32, Error> {
    let began = cere_timing::clock::monotonic_ns();
    let mut rounds = 0;
    while rounds < rule.least.max(1) {
        for set in sets {
            run(Measured::Region(&set.region));
            run(Measured::Nothing(&set.nothing));
        }
        rounds += 1;
        if REFUSED.load(Relaxed) {
            return Err(Error::NoCounters);
        }
        let passed = cere_timing::clock::monotonic_ns().saturating_sub(began);
        if passed as f64 * 1e-9 > rule.seconds {
            break;
        }
    }
    Ok(rounds)
}

/// What runs while counters count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured<'a> {
    /// The region.
    Region(&'a [i32]),
    /// Nothing, in the region's place.
    Nothing(&'a [i32]),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_measures_the_region_and_nothing_equally_often() {
        let set = |at: i32| CounterSet {
            region: vec![at],
            nothing: vec![at + 1],
        };
        let sets = [set(10), set(20)];
        let order = |rule: Repetitions| {
            let mut ran = Vec::new();
            let rounds = measure(&sets, rule, |measured| {
                ran.push(match measured {
                    Measured::Region(counters) => counters[0],
                    Measured::Nothing(counters) => -counters[0],
                });
            });
            (rounds.expect("nothing is refused"), ran)
        };
        let once = [10, -11, 20, -21];
        assert_eq!(order(Repetitions::exactly(2)), (2, once.repeat(2)));
        let hurried = Repetitions {
            seconds: 0.0,
            ..Repetitions::exactly(9)
        };
        assert_eq!(order(hurried), (1, once.to_vec()));
    }
}
