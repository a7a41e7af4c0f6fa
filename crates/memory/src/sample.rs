//! Set sampling: groups of sets, some of which are simulated.

use crate::cache::{Divider, Generator};
use crate::counters::{LevelErrors, Sampling};
use crate::geometry::MAX_LEVELS;
use crate::{Geometry, GeometryError};

/// Groups at most, where the sets allow fewer.
const GROUPS: u64 = 4096;
/// A group that is not simulated.
const SKIPPED: u32 = u32::MAX;

/// What standard errors are stated of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    pub misses: [u64; MAX_LEVELS],
    pub write_backs: [u64; MAX_LEVELS],
    /// Bytes.
    pub read: u64,
    /// Bytes.
    pub written: u64,
}

/// Which lines are simulated, and what each of their groups counted.
pub struct Sample {
    divider: Divider,
    /// By group: its place in `totals`, or [`SKIPPED`].
    places: Box<[u32]>,
    totals: Box<[Totals]>,
    skipped: u64,
    /// Nothing is counted while this is set.
    pub warming: bool,
}

impl Sample {
    /// 1 of `of` groups, drawn by a seed.
    pub fn new(geometry: &Geometry, of: u32, seed: u64) -> Result<Self, GeometryError> {
        let refuse = |why: String| Err(GeometryError::Sampling { of, why });
        if of == 0 {
            return refuse("the rate must be 1 or more".into());
        }
        let Some(first) = geometry.levels.first() else {
            return refuse("there is no level".into());
        };
        if first.line < 64 || geometry.levels.iter().any(|l| l.line != first.line) {
            return refuse("all levels must have the same line, of 64 bytes or more".into());
        }
        let sets = geometry.levels.iter().map(|l| l.sets());
        let mut groups = sets.reduce(common_divisor).unwrap_or(1);
        while groups > GROUPS && groups.is_multiple_of(2) {
            groups /= 2;
        }
        if groups < u64::from(of) {
            return refuse(format!(
                "the sets of all levels have no divisor as large; the largest is {groups}"
            ));
        }
        let simulated = groups as usize / of as usize;
        let mut order: Vec<u32> = (0..groups as u32).collect();
        let mut generator = Generator::new(seed ^ 0x5e75);
        let mut places = vec![SKIPPED; groups as usize];
        for place in 0..simulated {
            let left = groups as usize - place;
            let drawn = place + generator.below(left as u64) as usize;
            order.swap(place, drawn);
            places[order[place] as usize] = place as u32;
        }
        Ok(Self {
            divider: Divider::new(groups),
            places: places.into(),
            totals: vec![Totals::default(); simulated].into(),
            skipped: 0,
            warming: false,
        })
    }

    /// The place of a line's group; `None` if it is not simulated, which is counted if it is a demand.
    #[inline]
    pub fn group(&mut self, line: u64, demand: bool) -> Option<usize> {
        let place = self.places[self.divider.rest(line) as usize];
        if place != SKIPPED {
            return Some(place as usize);
        }
        if demand && !self.warming {
            self.skipped += 1;
        }
        None
    }

    /// Adds to a group what changed.
    pub fn add(&mut self, group: usize, before: &Totals, after: &Totals) {
        if self.warming {
            return;
        }
        let total = &mut self.totals[group];
        for level in 0..MAX_LEVELS {
            total.misses[level] += after.misses[level] - before.misses[level];
            total.write_backs[level] += after.write_backs[level] - before.write_backs[level];
        }
        total.read += after.read - before.read;
        total.written += after.written - before.written;
    }

    /// Adds bytes written around the caches.
    pub fn add_written(&mut self, group: usize, bytes: u64) {
        if !self.warming {
            self.totals[group].written += bytes;
        }
    }

    /// A count of the simulated groups as one of all.
    pub fn scale(&self, count: u64) -> u64 {
        let (of, simulated) = (self.places.len() as u128, self.totals.len() as u128);
        let scaled = (u128::from(count) * of + simulated / 2) / simulated;
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// Forgets what was counted.
    pub fn reset(&mut self) {
        self.totals.fill(Totals::default());
        self.skipped = 0;
    }

    /// The standard errors.
    pub fn errors(&self, levels: usize) -> Sampling {
        let error = |of: &dyn Fn(&Totals) -> u64| {
            let (simulated, all) = (self.totals.len() as f64, self.places.len() as f64);
            if self.totals.len() == self.places.len() {
                return 0.0;
            }
            if self.totals.len() < 2 {
                return f64::INFINITY;
            }
            let counts = || self.totals.iter().map(|t| of(t) as f64);
            let mean = counts().sum::<f64>() / simulated;
            let squares: f64 = counts().map(|c| (c - mean).powi(2)).sum();
            let variance = squares / (simulated - 1.0);
            all * (variance / simulated * (1.0 - simulated / all)).sqrt()
        };
        let of_level = |level: usize| LevelErrors {
            misses: error(&|t| t.misses[level]),
            write_backs: error(&|t| t.write_backs[level]),
        };
        Sampling {
            simulated: self.totals.len() as u32,
            of: self.places.len() as u32,
            skipped: self.skipped,
            levels: (0..levels).map(of_level).collect(),
            bytes_read: error(&|t| t.read),
            bytes_written: error(&|t| t.written),
        }
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => common_divisor(b, a % b),
    }
}
