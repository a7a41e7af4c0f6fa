//! A measurement in progress: how much time is left, what is being done, how long a tick is.

use std::time::{Duration, Instant};

/// Told what is being measured.
pub type Progress<'a> = dyn Fn(&str) + Sync + 'a;

/// A measurement in progress.
pub struct Session<'a> {
    /// Whether fewer points and repetitions are wanted.
    pub quick: bool,
    began: Instant,
    end: Instant,
    hertz: f64,
    progress: &'a Progress<'a>,
}

impl<'a> Session<'a> {
    /// Begins a measurement of at most `seconds`.
    #[must_use]
    pub fn new(quick: bool, seconds: f64, progress: &'a Progress<'a>) -> Self {
        let began = Instant::now();
        Self {
            quick,
            began,
            end: began + Duration::from_secs_f64(seconds.clamp(0.0, 1e6)),
            hertz: cere_timing::clock::calibrate(20),
            progress,
        }
    }

    /// Says what is being measured.
    pub fn step(&self, what: &str) {
        (self.progress)(what);
    }

    /// Seconds since the start.
    #[must_use]
    pub fn elapsed(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Seconds left; 0 when time is over.
    #[must_use]
    pub fn left(&self) -> f64 {
        self.end
            .saturating_duration_since(Instant::now())
            .as_secs_f64()
    }

    /// One of two numbers: of a quick measurement, of a full one.
    #[must_use]
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Nanoseconds of `ticks` of the time stamp counter.
    #[must_use]
    pub fn nanoseconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.hertz * 1e9
    }

    /// Nanoseconds that `what` takes, once; the clock's cost is subtracted.
    pub fn time(&self, what: impl FnOnce()) -> f64 {
        let from = cere_timing::clock::start();
        what();
        let ticks = cere_timing::clock::stop().saturating_sub(from);
        self.nanoseconds(ticks.saturating_sub(cere_timing::clock::cost()))
    }

    /// The least nanoseconds of `what` in `times` runs. Noise of other programs only adds to a short run.
    pub fn least(&self, times: usize, mut what: impl FnMut()) -> f64 {
        let runs = (0..times.max(1)).map(|_| self.time(&mut what));
        runs.fold(f64::INFINITY, f64::min)
    }
}
