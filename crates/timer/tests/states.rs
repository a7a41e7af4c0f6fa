//! Operands are where their states say: shown by the time of dependent loads through them, with large factors.

mod chase;

use cere_timer::{Flush, Invocations, Mode, State, Timer};
use chase::{follow, operand};
use std::sync::{Mutex, MutexGuard, PoisonError};

const LINE: usize = 64;

/// One test at a time: they would flush each other's operands.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

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

/// Seconds of a chase through operands of these states, and the timer's mode.
fn times<'a>(
    timer: impl Fn() -> Timer<'a>,
    operands: &[(usize, State)],
    followed: usize,
) -> (f64, Mode) {
    let timer = operands.iter().fold(timer(), |t, &(bytes, state)| {
        t.operand(operand::<LINE>(bytes, state))
    });
    let found = timer
        .samples(15)
        .time(|operands| follow::<LINE>(operands.values(followed)))
        .expect("a time");
    assert_eq!(found.usage.faults, 0, "pages were touched before");
    (found.seconds, found.mode)
}

const SMALL: usize = 16 << 10;

fn cold_and_warm(factor: f64, timer: impl Fn() -> Timer<'static>) {
    let (warm, _) = times(&timer, &[(SMALL, State::Warm)], 0);
    let (cold, mode) = times(&timer, &[(SMALL, State::Cold)], 0);
    assert!(cold > factor * warm, "cold {cold}, warm {warm}, {mode:?}");
}

#[test]
fn cold_is_cold_by_addresses() {
    let _one = alone();
    for often in [Invocations::One, Invocations::Several] {
        cold_and_warm(4.0, || {
            Timer::new().flush(Flush::Address).invocations(often)
        });
    }
}

#[test]
fn cold_is_cold_by_a_walk() {
    let _one = alone();
    for often in [Invocations::One, Invocations::Several] {
        // Told, and unknown.
        for caches in [&told()[..], &[]] {
            let timer = || Timer::new().flush(Flush::Walk).invocations(often);
            cold_and_warm(2.0, || timer().caches(caches));
        }
    }
}

#[test]
fn levels_are_ordered() {
    let _one = alone();
    let levels = cere_format::caches::of(0).len() as u32;
    let farther = (2..=levels).map(State::InLevel).chain([State::Cold]);
    let states: Vec<State> = [State::Warm].into_iter().chain(farther).collect();
    let one = || Timer::new().invocations(Invocations::One);
    // Several times in turns: others may empty a cache for a while.
    let mut shortest = vec![f64::INFINITY; states.len()];
    for _ in 0..3 {
        for (state, shortest) in states.iter().zip(&mut shortest) {
            let (found, _) = times(one, &[(SMALL, *state)], 0);
            *shortest = found.min(*shortest);
        }
    }
    for ((state, found), nearer) in states.iter().zip(&shortest).skip(1).zip(&shortest) {
        assert!(*found > 1.5 * nearer, "{state:?}: {found} after {nearer}");
    }
}

#[test]
fn each_operand_has_its_own_state() {
    let _one = alone();
    const BYTES: usize = 8 << 10;
    for states in [[State::Cold, State::Warm], [State::Warm, State::Cold]] {
        let timer = states.iter().fold(Timer::new(), |t, &state| {
            t.operand(operand::<LINE>(BYTES, state))
        });
        let mut shortest = [u64::MAX; 2];
        let mut calls = 0;
        let found = timer
            .samples(15)
            .invocations(Invocations::One)
            .time(|operands| {
                for (index, shortest) in shortest.iter_mut().enumerate() {
                    let from = cere_timing::clock::start();
                    follow::<LINE>(operands.values(index));
                    let took = cere_timing::clock::stop() - from;
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
