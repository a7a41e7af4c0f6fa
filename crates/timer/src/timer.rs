//! Takes the samples.

use crate::clock::{Clock, Resolution};
use crate::error::TimerError;
use crate::flush::{self, Flush, Flusher};
use crate::measurement::{Measurement, Mode, Summary};
use crate::operand::Operand;
use crate::sets::Operands;
use cere_timing::clock::Usage;
use std::hint::black_box;

/// How often a kernel shall run in one timed part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Invocations {
    /// Once if it takes [`Resolution::interval`] or longer, else as often as that takes.
    #[default]
    Chosen,
    /// Once, however short it is.
    One,
    /// Several times, two or more, however long it is.
    Several,
}

/// Times kernels on operands in given states.
#[derive(Debug)]
pub struct Timer<'a> {
    clock: Clock,
    samples: usize,
    invocations: Invocations,
    flush: Flush,
    parallel: bool,
    caches: Vec<usize>,
    operands: Vec<Operand<'a>>,
}

impl Default for Timer<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// Samples unless told otherwise: the fewest with an interval of 95 %, and the most that the method asks for.
const SAMPLES: usize = 7;
/// Invocations of a timed part, at most.
const MOST: usize = 1 << 22;

pub(crate) fn check_samples(samples: usize) -> Result<(), TimerError> {
    if (1..=1_000_000).contains(&samples) {
        Ok(())
    } else {
        Err(TimerError::Samples(samples))
    }
}

impl<'a> Timer<'a> {
    /// A timer without operands: wall time, 7 samples, one thread, [`Flush::available`], the caches that the system
    /// shows.
    pub fn new() -> Self {
        // SAFETY: asks for a number.
        let processor = unsafe { libc::sched_getcpu() };
        let caches = cere_format::machine::caches_of(u32::try_from(processor).unwrap_or(0));
        Self {
            clock: Clock::Wall,
            samples: SAMPLES,
            invocations: Invocations::Chosen,
            flush: Flush::available(),
            parallel: false,
            caches: caches.iter().map(|c| c.size as usize).collect(),
            operands: Vec::new(),
        }
    }

    /// Times by `clock`.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Takes so many samples, 1 to 1000000; fewer than 6 have no interval of 95 %.
    #[must_use]
    pub fn samples(mut self, samples: usize) -> Self {
        self.samples = samples;
        self
    }

    /// Sets how often the kernel runs in one timed part.
    #[must_use]
    pub fn invocations(mut self, invocations: Invocations) -> Self {
        self.invocations = invocations;
        self
    }

    /// Sets how cold operands are flushed.
    #[must_use]
    pub fn flush(mut self, flush: Flush) -> Self {
        self.flush = flush;
        self
    }

    /// For kernels that use a team of threads: walks and reads happen on all processors that the process may use, and
    /// copies of operands take as many times the area.
    #[must_use]
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.parallel = parallel;
        self
    }

    /// Sets the bytes of the caches by level, the first next to the core: for machines, such as virtual ones, whose
    /// system shows none or wrong ones.
    #[must_use]
    pub fn caches(mut self, bytes: &[usize]) -> Self {
        self.caches = bytes.to_vec();
        self
    }

    /// Adds an operand: the kernel gets them by index, from 0.
    #[must_use]
    pub fn operand(mut self, operand: Operand<'a>) -> Self {
        self.operands.push(operand);
        self
    }

    /// Times `kernel`. It runs four times or more before the first sample: a dummy call, then calls that show its length.
    /// Operands are made anew.
    ///
    /// # Errors
    /// [`TimerError`] if operands cannot be had or cannot be in their states.
    pub fn time(&self, mut kernel: impl FnMut(&mut Operands)) -> Result<Measurement, TimerError> {
        check_samples(self.samples)?;
        let resolution = self.clock.resolution();
        flush::check(&self.caches, &self.operands)?;
        let mut laid_out = Operands::new(&self.operands, &vec![1; self.operands.len()])?;
        // The dummy call: it loads the code, and starts the kernel's threads.
        kernel(&mut laid_out);
        let flusher = Flusher::new(self.flush, &self.caches, self.parallel, &self.operands)?;
        let mut run = self.choose(&flusher, laid_out, resolution, &mut kernel)?;
        let mut usage = Usage::default();
        let mut samples = Vec::with_capacity(self.samples);
        for _ in 0..self.samples {
            let (ticks, during) = run.sample(self.clock, &mut kernel)?;
            usage.faults += during.faults;
            usage.switches += during.switches;
            samples.push(run.seconds(ticks, self.clock, resolution));
        }
        let overhead = run.overhead(self.clock, resolution)?;
        let Summary {
            spread,
            interval,
            level,
        } = Summary::of(&samples)?;
        Ok(Measurement {
            clock: self.clock,
            seconds: match self.clock {
                Clock::Wall => spread.min,
                Clock::Cpu | Clock::ProcessCpu => spread.median,
            },
            samples,
            spread,
            interval,
            level,
            mode: run.mode(),
            copies: run.copies,
            resolution,
            overhead,
            flush: self.flush,
            areas: flusher.sized.clone(),
            usage,
        })
    }

    /// Chooses how often the kernel runs in a timed part.
    fn choose<'f>(
        &self,
        flusher: &'f Flusher,
        operands: Operands,
        resolution: Resolution,
        kernel: &mut impl FnMut(&mut Operands),
    ) -> Result<Run<'f>, TimerError> {
        let wanted = resolution.interval();
        let mut run = Run {
            flusher,
            operands,
            copies: flusher.copies(&self.operands, 1)?,
            invocations: 1,
        };
        let mut length = run.least(kernel)?;
        let single = match self.invocations {
            Invocations::Chosen => length >= wanted,
            Invocations::One => true,
            Invocations::Several => false,
        };
        let mut count = 1;
        // Invocations after the first are faster, so the first guess is often too low.
        while !single && (count == 1 || length < 0.8 * wanted) && count < MOST {
            let factor = (1.2 * wanted / length.max(1e-10)).clamp(2.0, 64.0);
            count = ((count as f64 * factor).ceil() as usize).min(MOST);
            drop(run);
            run = Run::new(flusher, &self.operands, count)?;
            length = run.least(kernel)?;
        }
        Ok(run)
    }
}

/// Working sets, and how often the kernel runs over them in a timed part.
struct Run<'f> {
    flusher: &'f Flusher,
    operands: Operands,
    copies: Vec<usize>,
    invocations: usize,
}

impl<'f> Run<'f> {
    fn new(
        flusher: &'f Flusher,
        operands: &[Operand<'_>],
        invocations: usize,
    ) -> Result<Self, TimerError> {
        let copies = flusher.copies(operands, invocations)?;
        Ok(Self {
            flusher,
            operands: Operands::new(operands, &copies)?,
            copies,
            invocations,
        })
    }

    fn mode(&self) -> Mode {
        match self.invocations {
            1 => Mode::Single,
            invocations => Mode::Multiple(invocations),
        }
    }

    /// One timed part after the operands are in their states: units of the clock, and what disturbed it.
    fn sample(
        &mut self,
        clock: Clock,
        kernel: &mut impl FnMut(&mut Operands),
    ) -> Result<(u64, Usage), TimerError> {
        self.operands.rewind();
        // SAFETY: the operands own the memory of their ranges.
        unsafe { self.flusher.prepare(self.operands.ranges())? };
        let before = cere_timing::clock::usage();
        let ticks = repeat(clock, self.invocations, &mut self.operands, kernel);
        Ok((ticks, cere_timing::clock::usage().since(before)))
    }

    /// The shortest of three timed parts by the wall clock, in seconds.
    fn least(&mut self, kernel: &mut impl FnMut(&mut Operands)) -> Result<f64, TimerError> {
        let mut least = u64::MAX;
        for _ in 0..3 {
            least = least.min(self.sample(Clock::Wall, kernel)?.0);
        }
        Ok(least as f64 * Clock::Wall.unit())
    }

    /// Seconds of one invocation.
    fn seconds(&self, ticks: u64, clock: Clock, resolution: Resolution) -> f64 {
        let part = ticks as f64 * clock.unit() - resolution.cost;
        part.max(0.0) / self.invocations as f64
    }

    /// What the loop takes without a kernel, in seconds of one invocation.
    fn overhead(&mut self, clock: Clock, resolution: Resolution) -> Result<f64, TimerError> {
        let mut least = f64::INFINITY;
        for _ in 0..3 {
            let empty = &mut |operands: &mut Operands| {
                black_box(operands);
            };
            let ticks = repeat(clock, self.invocations, &mut self.operands, empty);
            least = least.min(self.seconds(ticks, clock, resolution));
        }
        Ok(least)
    }
}

/// The timed part: nothing but calls, and the way to the next working set.
#[inline(never)]
fn repeat(
    clock: Clock,
    invocations: usize,
    operands: &mut Operands,
    kernel: &mut impl FnMut(&mut Operands),
) -> u64 {
    let from = clock.start();
    for _ in 0..invocations {
        kernel(black_box(&mut *operands));
        operands.step();
    }
    clock.stop().saturating_sub(from)
}
