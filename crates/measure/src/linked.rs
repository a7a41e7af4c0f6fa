//! Times of regions in the linked program, in the plain and in another build, run in turns.

use crate::{Bench, Turns};
use anyhow::Result;
use cere_capture::input::Input;
use cere_capture::launch::Output;
use cere_capture::profile;
use cere_capture::profile::{Run, Which};
use cere_format::profile::RegionKey;
use cere_format::store::Store;
use cere_store::build::image::{Image, Program};
use cere_system::events::{Events, Progress};
use cere_timing::stats::{Gain, Series, gain};
use std::path::Path;

/// How regions are timed in a build.
pub struct Linked<'a> {
    /// The store that knows the regions; the caller holds its lock.
    pub store: &'a Store,
    /// The program.
    pub program: &'a Program,
    /// Its process that is timed.
    pub which: Which,
    /// Program and arguments as given.
    pub command: &'a [String],
    /// The program's standard input.
    pub input: Input,
    /// Seconds that a run may take.
    pub timeout: Option<f64>,
    /// What is done.
    pub events: &'a Events,
}

/// A region's time in another build.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegionTimes {
    /// Median seconds of all its invocations in a run of the plain build.
    pub plain: f64,
    /// Its time in the other build over its time in the plain build at that moment.
    pub gain: Gain,
}

impl RegionTimes {
    /// Of the part `region` of samples of the plain build, subject 0, and of the other one, subject 1; none if it did not run.
    pub fn of(series: &Series, region: usize) -> Option<Self> {
        Some(Self {
            plain: cere_timing::stats::median(&series.times(0, region))?,
            gain: gain(&series.part_ratios(1, region))?,
        })
    }

    /// Seconds in the other build, at the plain build's speed.
    pub fn other(&self) -> f64 {
        self.plain * self.gain.ratio
    }
}

impl Linked<'_> {
    /// Times of `regions` in the builds `plain` and `other`, in `rounds` rounds; `None` for a region that did not run.
    pub fn compare(
        &mut self,
        plain: &Path,
        other: &Path,
        regions: &[RegionKey],
        rounds: u32,
    ) -> Result<Vec<Option<RegionTimes>>> {
        for build in [plain, other] {
            Image::open(build, self.store)?;
        }
        let timing = Timing {
            progress: self
                .events
                .steps("timing regions", u64::from(rounds) * 2 + 1),
            linked: self,
            builds: [plain, other],
            regions,
        };
        let mut turns = Turns::new(timing, 1);
        for _ in 0..rounds {
            turns.round(&[1])?;
        }
        let series = turns.series();
        let times = (0..regions.len()).map(|region| RegionTimes::of(series, region));
        Ok(times.collect())
    }
}

/// The regions of two builds, timed in runs of the program.
struct Timing<'t, 'a> {
    linked: &'t mut Linked<'a>,
    builds: [&'t Path; 2],
    regions: &'t [RegionKey],
    progress: Progress,
}

impl Bench for Timing<'_, '_> {
    type Error = anyhow::Error;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>> {
        let mut feed = self.linked.input.for_next_run()?;
        let run = Run {
            store: self.linked.store,
            program: self.linked.program,
            build: Some(self.builds[subject]),
            which: &self.linked.which,
            command: self.linked.command,
            timeout: self.linked.timeout,
            output: Output::Dropped,
            trace: &[],
            only: Some(self.regions),
            environment: &[],
            energy: None,
            events: self.linked.events,
        };
        let found = profile::collect(&run, feed.stdin.take())?.profile;
        self.progress.step();
        let seconds = |key| found.region(key).map_or(0.0, |r| r.inclusive_seconds);
        Ok(Ok(self.regions.iter().map(seconds).collect()))
    }
}
