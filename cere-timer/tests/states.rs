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

fn cold_and_warm(timer: impl Fn() -> Timer<'static>) {
    let (warm, _) = times(&timer, &[(SMALL, State::Warm)], 0);
    let (cold, mode) = times(&timer, &[(SMALL, State::Cold)], 0);
    assert!(cold > 4.0 * warm, "cold {cold}, warm {warm}, {mode:?}");
}

#[test]
fn cold_is_cold_by_addresses() {
    cold_and_warm(|| {
        Timer::new()
            .flush(Flush::Address)
            .invocations(Invocations::One)
    });
    cold_and_warm(|| {
        Timer::new()
            .flush(Flush::Address)
            .invocations(Invocations::Several)
    });
}
