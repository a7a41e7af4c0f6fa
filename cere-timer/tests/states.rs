//! Operands are where their states say: shown by the time of dependent loads through them, with large factors.

use cere_timer::{Flush, Invocations, Mode, Operand, Operands, State, Timer};
use std::hint::black_box;

const LINE: usize = 64;

/// Writes a cycle through all lines of an operand, as offsets of 8 bytes, in an order that no prefetcher follows.
fn chase(bytes: &mut [u8]) {
    let lines = bytes.len() / LINE;
    let mut order: Vec<usize> = (0..lines).collect();
    let mut state = 12345u64;
    for last in (1..lines).rev() {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    for (at, &line) in order.iter().enumerate() {
        let next = order[(at + 1) % lines] * LINE / 8;
        bytes[line * LINE..][..8].copy_from_slice(&next.to_le_bytes());
    }
}

/// Follows the whole cycle of an operand.
fn follow(operands: &Operands, index: usize) {
    let offsets = operands.values::<usize>(index);
    let mut at = 0;
    for _ in 0..offsets.len() * 8 / LINE {
        at = offsets[at];
    }
    black_box(at);
}

fn operand<'a>(bytes: usize, state: State) -> Operand<'a> {
    Operand::new(bytes, 64, 0, state)
        .expect("an operand")
        .filled(chase)
}

/// Seconds of a chase through operands of these states, and the timer's mode.
fn times<'a>(
    timer: impl Fn() -> Timer<'a>,
    operands: &[(usize, State)],
    followed: usize,
) -> (f64, Mode) {
    let timer = operands.iter().fold(timer(), |t, &(bytes, state)| {
        t.operand(operand(bytes, state))
    });
    let found = timer
        .samples(15)
        .time(|operands| follow(operands, followed))
        .expect("a time");
    assert_eq!(found.usage.faults, 0, "pages were touched before");
    (found.seconds, found.mode)
}

const SMALL: usize = 16 << 10;

/// Caches as small as the first two levels, the second one enlarged fourfold: what is walked out of them is in the real
/// second level no more.
fn told() -> [usize; 2] {
    let caches = cere_format::caches::of(0);
    let size = |level: u32, otherwise: usize| {
        let found = caches.iter().find(|c| c.level == level);
        found.map_or(otherwise, |c| c.size as usize)
    };
    [size(1, 32 << 10), 4 * size(2, 2 << 20)]
}

fn cold_and_warm(factor: f64, timer: impl Fn() -> Timer<'static>) {
    let (warm, _) = times(&timer, &[(SMALL, State::Warm)], 0);
    let (cold, mode) = times(&timer, &[(SMALL, State::Cold)], 0);
    assert!(cold > factor * warm, "cold {cold}, warm {warm}, {mode:?}");
}

#[test]
fn cold_is_cold_by_addresses() {
    for often in [Invocations::One, Invocations::Several] {
        cold_and_warm(4.0, || {
            Timer::new().flush(Flush::Address).invocations(often)
        });
    }
}

#[test]
fn cold_is_cold_by_a_walk() {
    for often in [Invocations::One, Invocations::Several] {
        let timer = || Timer::new().flush(Flush::Walk).invocations(often);
        cold_and_warm(2.0, || timer().caches(&told()));
    }
}

#[test]
fn levels_are_ordered() {
    let levels = cere_format::caches::of(0).len() as u32;
    let states = (2..=levels).map(State::InLevel).chain([State::Cold]);
    let one = || Timer::new().invocations(Invocations::One);
    let (mut nearer, _) = times(one, &[(SMALL, State::Warm)], 0);
    for state in states {
        let (found, _) = times(one, &[(SMALL, state)], 0);
        assert!(found > 1.5 * nearer, "{state:?}: {found} after {nearer}");
        nearer = found;
    }
}

#[test]
fn each_operand_has_its_own_state() {
    const BYTES: usize = 8 << 10;
    for states in [[State::Cold, State::Warm], [State::Warm, State::Cold]] {
        let timer = states
            .iter()
            .fold(Timer::new(), |t, &state| t.operand(operand(BYTES, state)));
        let mut shortest = [u64::MAX; 2];
        let mut calls = 0;
        let found = timer
            .samples(15)
            .invocations(Invocations::One)
            .time(|operands| {
                for (index, shortest) in shortest.iter_mut().enumerate() {
                    let from = cere_clock::start();
                    follow(operands, index);
                    let took = cere_clock::stop() - from;
                    // The dummy call is not in context.
                    if calls > 0 {
                        *shortest = took.min(*shortest);
                    }
                }
                calls += 1;
            })
            .expect("a time");
        assert_eq!((found.copies, found.usage.faults), (vec![1, 1], 0));
        let [first, second] = shortest;
        let (cold, warm) = if states[0] == State::Cold {
            (first, second)
        } else {
            (second, first)
        };
        assert!(cold > 4 * warm, "cold {cold}, warm {warm}");
    }
}

/// The shortest chase of a thread that stays on a processor of its own.
fn elsewhere(processor: usize, parallel: bool) -> u64 {
    let (mut shortest, mut calls) = (u64::MAX, 0);
    Timer::new()
        .flush(Flush::Walk)
        .caches(&told())
        .parallel(parallel)
        .samples(15)
        .invocations(Invocations::One)
        .operand(operand(SMALL, State::Cold))
        .time(|operands| {
            let first = operands.values::<usize>(0);
            let took = std::thread::scope(|scope| {
                let work = || {
                    // SAFETY: all zero is the empty set; it is as large as the size says.
                    unsafe {
                        let mut set: libc::cpu_set_t = std::mem::zeroed();
                        libc::CPU_SET(processor, &mut set);
                        libc::sched_setaffinity(0, size_of_val(&set), &set);
                    }
                    let from = cere_clock::start();
                    let mut at = 0;
                    for _ in 0..first.len() * 8 / LINE {
                        at = first[at];
                    }
                    black_box(at);
                    cere_clock::stop() - from
                };
                scope.spawn(work).join().expect("a chase")
            });
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
    // SAFETY: as above.
    let processors = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        (0..libc::CPU_SETSIZE as usize)
            .filter(|&n| libc::CPU_ISSET(n, &set))
            .collect::<Vec<_>>()
    };
    let last = processors[processors.len() - 1];
    let (alone, team) = (elsewhere(last, false), elsewhere(last, true));
    // A second processor keeps its lines when the first one walks.
    let wanted = if processors.len() > 1 {
        2 * alone
    } else {
        alone / 2
    };
    assert!(team > wanted, "flushed everywhere {team}, here {alone}");
}
