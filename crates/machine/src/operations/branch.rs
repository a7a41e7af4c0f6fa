//! What a branch costs that is predicted wrongly.

use crate::session::Session;
use cere_arch::loops::branches;

/// Directions in a run: no predictor remembers so many that follow no rule.
const DIRECTIONS: usize = 1 << 18;
/// Runs of each kind.
const RUNS: usize = 8;

/// Nanoseconds that a wrong prediction adds: directions at random against directions that never change, half of which are wrong.
#[must_use]
pub fn wrong_nanoseconds(session: &Session) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32 & 1) as u8
    };
    let chance: Vec<u8> = (0..DIRECTIONS).map(|_| random()).collect();
    let time = |bytes: &[u8]| session.least(RUNS, || branches(std::hint::black_box(bytes)));
    let always = (time(&[0; DIRECTIONS]) + time(&[1; DIRECTIONS])) / 2.0;
    let wrong = DIRECTIONS as f64 / 2.0;
    ((time(&chance) - always) / wrong).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_at_random_cost_something() {
        let session = Session::new(true, 10.0, &|_| ());
        let found = wrong_nanoseconds(&session);
        assert!(found > 0.2 && found < 500.0, "{found}");
    }
}
