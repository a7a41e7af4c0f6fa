//! Short timed runs of a kernel.

use super::deadline::Deadline;
use super::kernels::{GENERATORS, Job, Kernel, Shape, code};
use super::plan::Spot;
use crate::Error;
use crate::code::Code;
use cere_timing::area::{Area, HUGE, Pages, SMALL};
use cere_timing::clock;

/// Bytes between arrays beyond whole pages: a load does not look like a store just before it, whose address differs above bit 12 alone.
const SKEW: u64 = 128;
/// Bytes of a window in a larger working set: the next window takes the next part, so that in memory none finds its lines in a cache.
/// A part is the same memory for all kernels, whatever their number of arrays.
const PART: u64 = 4 << 20;
/// Bytes that a part has room for beyond its arrays.
const SPARE: u64 = 4 * (4096 + SKEW);

/// Bytes of memory that any kernel needs for a working set.
#[must_use]
pub fn room(spot: Spot) -> usize {
    (parts(spot.set) * (spot.set.min(PART) + SPARE)).max(spread(spot)) as usize
}

/// Windows that go through a working set.
fn parts(set: u64) -> u64 {
    set.div_ceil(PART).max(1)
}

/// Bytes that random loads go over: a power of two, within a cache not more than the working set, in memory not less.
#[must_use]
pub fn spread(spot: Spot) -> u64 {
    match spot.level {
        0 => spot.set.next_power_of_two().max(4096),
        _ => 1 << spot.set.max(4096).ilog2(),
    }
}

/// Memory for `spot`, touched by the calling thread, and the spot that fits what could be touched before `deadline`, or an eighth of it:
/// in a virtual machine the host may have to find each page.
pub fn area(spot: Spot, deadline: &Deadline) -> Result<(Area, Spot), Error> {
    let area = Area::untouched(room(spot), Pages::Huge)?;
    let mut touched = 0;
    while touched < area.len() && (touched < area.len() / 8 || !deadline.over()) {
        for page in (touched..area.len().min(touched + HUGE)).step_by(SMALL) {
            // SAFETY: inside the area.
            unsafe { (area.address() as *mut u8).add(page).write_volatile(0) };
        }
        touched += HUGE;
    }
    let mut fits = spot;
    while room(fits) > touched.max(1 << 20) && fits.set > 1 << 16 {
        fits.set = fits.set / 8 * 7;
        fits.whole = false;
    }
    Ok((area, fits))
}

/// A kernel on a working set.
pub struct Runner {
    code: Code,
    kernel: Kernel,
    shape: Shape,
    spot: Spot,
    base: u64,
    sweeps: u64,
}

/// When a window was, in ticks, and the program's bytes in it.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// First tick.
    pub from: u64,
    /// Last.
    pub to: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Runner {
    /// Of a kernel in memory of at least [`room`] bytes at `base`, which must stay there.
    ///
    /// # Safety
    /// The memory is the caller's own, writable, aligned to 64 and lives as long as the runner is used.
    pub unsafe fn new(kernel: Kernel, shape: Shape, spot: Spot, base: u64) -> Result<Self, Error> {
        Ok(Self {
            code: code(kernel, shape)?,
            kernel,
            shape,
            spot,
            base,
            sweeps: 1,
        })
    }

    fn job(&self, turn: u64) -> (Job, u64) {
        if self.kernel == Kernel::Random {
            let job = Job {
                arrays: [self.base, 0, 0],
                stream: spread(self.spot),
                sweeps: self.sweeps * 64,
                scalar: f64::from_bits(turn),
            };
            return (job, job.sweeps * GENERATORS * 64);
        }
        let (count, granule) = (self.kernel.arrays(), self.shape.granule());
        let part = self.spot.set.min(PART);
        let at = self.base + turn % parts(self.spot.set) * (part + SPARE);
        let array = (part / count / granule).max(1) * granule;
        let apart = array.next_multiple_of(4096) + SKEW;
        let job = Job {
            arrays: [0, 1, 2].map(|index| at + index * apart),
            stream: array / u64::from(self.shape.streams),
            sweeps: self.sweeps,
            scalar: 3.0,
        };
        (job, array * count * self.sweeps)
    }

    /// One window, in the part of the working set that comes in `turn`: callers count up over all kernels.
    pub fn run(&mut self, turn: &mut u64) -> Window {
        let (job, bytes) = self.job(*turn);
        *turn += 1;
        let from = clock::start();
        // SAFETY: the job lies inside the memory that `new` was promised.
        unsafe { self.code.call([&raw const job as u64, 0, 0, 0]) };
        let to = clock::stop();
        Window { from, to, bytes }
    }

    /// Goes through the working set once, for what has to lie in a cache.
    pub fn warm(&mut self, turn: &mut u64) {
        if self.spot.level > 0 {
            for _ in 0..parts(self.spot.set) {
                self.run(turn);
            }
        }
    }

    /// Makes windows at least `ticks` long, up to twice that; warms up. Parts of a larger working set are gone through once.
    pub fn calibrate(&mut self, ticks: u64, turn: &mut u64) {
        if self.spot.set > PART && self.kernel != Kernel::Random {
            return;
        }
        self.run(turn);
        loop {
            let window = self.run(turn);
            if window.to.saturating_sub(window.from) >= ticks || self.sweeps > 1 << 32 {
                return;
            }
            self.sweeps *= 2;
        }
    }

    /// Sweeps of a window, as calibrated.
    #[must_use]
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// Takes the sweeps of another runner.
    pub fn with_sweeps(mut self, sweeps: u64) -> Self {
        self.sweeps = sweeps.max(1);
        self
    }
}

/// The best rate of many windows, and how well it is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// Bytes per second.
    pub rate: f64,
    /// 1 if the third best is the same; a tenth less leaves a half.
    pub repeated: f64,
}

/// Of rates.
#[must_use]
pub fn best(mut rates: Vec<f64>) -> Option<Best> {
    rates.retain(|rate| rate.is_finite());
    rates.sort_by(|a, b| b.total_cmp(a));
    let rate = *rates.first()?;
    let third = rates.get(2).copied().unwrap_or(0.0);
    let repeated = (1.0 - 5.0 * (1.0 - third / rate)).clamp(0.0, 1.0);
    Some(Best { rate, repeated })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_trusted_if_it_comes_again() {
        let found = best(vec![5.0, 9.0, 10.0, 9.5, f64::INFINITY]).unwrap();
        assert_eq!(found.rate, 10.0);
        assert!((found.repeated - 0.5).abs() < 1e-9);
        assert_eq!(best(vec![10.0, 4.0, 3.0]).unwrap().repeated, 0.0);
        assert_eq!(best(vec![]), None);
    }
}
