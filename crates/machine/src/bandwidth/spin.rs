//! A rendezvous that takes less time than a wake-up by the kernel.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that start a window together.
pub struct Spin {
    count: usize,
    arrived: AtomicUsize,
    last: AtomicUsize,
}

impl Spin {
    /// Of `count` threads.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            count,
            arrived: AtomicUsize::new(0),
            last: AtomicUsize::new(usize::MAX),
        }
    }

    /// Waits for all others in `round`, counted from 0. Whether to go on: no thread does after a round that [`Self::end_at`] named.
    pub fn meet(&self, round: usize) -> bool {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut turns = 0u32;
        while self.arrived.load(Ordering::Acquire) < (round + 1) * self.count {
            turns += 1;
            // A thread that another program keeps off its core is long in coming.
            if turns.is_multiple_of(1 << 14) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        round < self.last.load(Ordering::Acquire)
    }

    /// Makes all threads stop in `round`. The caller must not have met the others in it yet.
    pub fn end_at(&self, round: usize) {
        self.last.fetch_min(round, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_stop_in_the_same_round() {
        let spin = Spin::new(3);
        let rounds = std::thread::scope(|scope| {
            let one = |first: bool| {
                let mut round = 0;
                while spin.meet(round) {
                    round += 1;
                    if first && round == 40 {
                        spin.end_at(round);
                    }
                }
                round
            };
            let threads = [true, false, false].map(|first| scope.spawn(move || one(first)));
            threads.map(|t| t.join().unwrap())
        });
        assert_eq!(rounds, [40; 3]);
    }
}
