//! The program's own time while pages are traced: without the time that faults take.

/// Nanoseconds that count of a time without faults, at most. After a longer one what is open is what the program uses again and
/// again, whenever it was opened.
const MOST: u64 = 500_000;

/// A clock that stands still while a fault is handled. Times are in nanoseconds.
#[derive(Debug)]
pub struct Pace {
    /// The program's time so far.
    program: u64,
    /// When the handler of the last fault was done.
    done: u64,
    /// The thread that it ran in.
    thread: u32,
    /// The shortest time from there to the next handler in the same thread: what the kernel takes for a fault.
    fault: u64,
}

impl Pace {
    /// A clock at zero.
    pub const fn new() -> Pace {
        Pace {
            program: 0,
            done: 0,
            thread: 0,
            fault: u64::MAX,
        }
    }

    /// The handler of a fault of `thread` begins.
    pub fn stop(&mut self, now: u64, thread: u32) {
        let passed = now.saturating_sub(self.done);
        if thread == self.thread {
            self.fault = self.fault.min(passed);
        }
        self.pass(passed.saturating_sub(self.fault), now);
        self.thread = thread;
    }

    /// The program has called a hook.
    pub fn pause(&mut self, now: u64) {
        self.pass(now.saturating_sub(self.done), now);
    }

    fn pass(&mut self, time: u64, now: u64) {
        self.program += time.min(MOST);
        self.done = now;
    }

    /// The handler or hook is done.
    pub fn go_on(&mut self, now: u64) {
        self.done = now;
    }

    /// The program's time when the last handler or hook began.
    pub fn time(&self) -> u64 {
        self.program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_take_no_time() {
        let mut pace = Pace::new();
        pace.stop(1_000_000, 0);
        let mut now = 1_000_000;
        // The kernel takes 2 µs for each, the handler 5, the program 10; 0 once.
        for program in [0, 10, 10, 10] {
            now += 5_000;
            pace.go_on(now);
            now += 2_000 + program * 1_000;
            pace.stop(now, 0);
        }
        assert_eq!(pace.time(), 30_000);
    }

    #[test]
    fn of_a_long_time_a_part_counts() {
        let mut pace = Pace::new();
        pace.stop(10, 0);
        pace.stop(10_000_000, 0);
        assert_eq!(pace.time(), MOST);
    }

    #[test]
    fn threads_that_wait_for_each_other_say_nothing_of_the_kernel() {
        let mut pace = Pace::new();
        pace.stop(2_000, 0);
        pace.go_on(3_000);
        pace.stop(3_001, 1);
        pace.go_on(4_000);
        pace.stop(16_000, 1);
        assert_eq!(pace.time(), 10_000);
    }
}
