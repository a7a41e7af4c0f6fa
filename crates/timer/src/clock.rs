//! The clocks, their cost and their resolution.

use std::sync::OnceLock;

/// What a time is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Elapsed time, by the time stamp counter. Disturbances only add to it: the minimum of the samples is reported.
    Wall,
    /// Processor time of the calling thread. It errs in both directions: the median of the samples is reported. For
    /// serial kernels on a loaded machine.
    Cpu,
    /// Processor time of all threads of the process, for teams. It is the work of all together: a team that scales
    /// perfectly shows the same time as one thread. The median of the samples is reported.
    ProcessCpu,
}

/// What one reading of a clock costs, and how finely it measures. Seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// What an empty timed part shows: the minimum of many. It is subtracted from every sample.
    pub cost: f64,
    /// Smallest step between two readings that differ: the clock's tick, or the time of a reading if that is longer.
    pub step: f64,
}

impl Resolution {
    /// The clock's least interval that is trusted, in seconds: [`Resolution::FACTOR`] times the larger of cost and step.
    pub fn interval(&self) -> f64 {
        Self::FACTOR * self.cost.max(self.step)
    }

    /// How far above the resolution an interval must be: an error of one step is then 1 % at most.
    pub const FACTOR: f64 = 100.0;
}

impl Clock {
    /// Its reading at the start of a timed part.
    #[inline(always)]
    pub(crate) fn start(self) -> u64 {
        match self {
            Self::Wall => cere_timing::clock::start(),
            _ => self.nanoseconds(),
        }
    }

    /// Its reading at the end of a timed part.
    #[inline(always)]
    pub(crate) fn stop(self) -> u64 {
        match self {
            Self::Wall => cere_timing::clock::stop(),
            _ => self.nanoseconds(),
        }
    }

    fn nanoseconds(self) -> u64 {
        let clock = match self {
            Self::ProcessCpu => libc::CLOCK_PROCESS_CPUTIME_ID,
            _ => libc::CLOCK_THREAD_CPUTIME_ID,
        };
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is a timespec of this frame; both clocks exist on every Linux.
        unsafe { libc::clock_gettime(clock, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// Seconds of one unit of its readings.
    pub(crate) fn unit(self) -> f64 {
        static SECONDS: OnceLock<f64> = OnceLock::new();
        match self {
            Self::Wall => *SECONDS.get_or_init(|| 1.0 / cere_timing::clock::calibrate(20)),
            _ => 1e-9,
        }
    }

    /// Measures cost and resolution on this machine, now (well below a millisecond, and 20 ms on the first call for
    /// [`Clock::Wall`]).
    pub fn resolution(self) -> Resolution {
        let (mut cost, mut step) = (u64::MAX, u64::MAX);
        let mut before = self.start();
        for _ in 0..500 {
            let from = self.start();
            let to = self.stop();
            cost = cost.min(to.saturating_sub(from));
            for later in [from, to] {
                if later > before {
                    step = step.min(later - before);
                    before = later;
                }
            }
        }
        // A clock that never moved has a tick longer than the loop.
        let step = if step == u64::MAX { 4_000_000 } else { step };
        Resolution {
            cost: cost as f64 * self.unit(),
            step: step as f64 * self.unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_has_a_cost_and_a_step() {
        for clock in [Clock::Wall, Clock::Cpu, Clock::ProcessCpu] {
            let found = clock.resolution();
            assert!(found.step > 0.0 && found.cost >= 0.0, "{clock:?} {found:?}");
            assert!(
                found.interval() >= 100.0 * found.step,
                "{clock:?} {found:?}"
            );
        }
    }

    #[test]
    fn processor_time_stands_still_in_a_nap() {
        let (wall, cpu) = (Clock::Wall.start(), Clock::Cpu.start());
        std::thread::sleep(std::time::Duration::from_millis(50));
        let (wall, cpu) = (Clock::Wall.stop() - wall, Clock::Cpu.stop() - cpu);
        let (wall, cpu) = (
            wall as f64 * Clock::Wall.unit(),
            cpu as f64 * Clock::Cpu.unit(),
        );
        assert!(wall >= 0.049 && cpu < wall / 2.0, "{wall} {cpu}");
    }
}
