//! A chase through an operand, whose time shows where the operand is.

use cere_timer::{Operand, State};
use std::hint::black_box;

/// Writes a cycle through an operand, a place each `STEP` bytes, as offsets of 8 bytes, in a random order.
fn chase<const STEP: usize>(bytes: &mut [u8]) {
    let lines = bytes.len() / STEP;
    let mut order: Vec<usize> = (0..lines).collect();
    let mut state = 12345u64;
    for last in (1..lines).rev() {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    for (at, &line) in order.iter().enumerate() {
        let next = order[(at + 1) % lines] * STEP / 8;
        bytes[line * STEP..][..8].copy_from_slice(&next.to_le_bytes());
    }
}

/// Follows the whole cycle of an operand's values.
pub fn follow<const STEP: usize>(offsets: &[usize]) {
    let mut at = 0;
    for _ in 0..offsets.len() * 8 / STEP {
        at = offsets[at];
    }
    black_box(at);
}

/// An operand with such a cycle.
pub fn operand<'a, const STEP: usize>(bytes: usize, state: State) -> Operand<'a> {
    Operand::new(bytes, 64, 0, state)
        .expect("an operand")
        .filled(chase::<STEP>)
}
