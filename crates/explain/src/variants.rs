//! Replays of a changed codelet: the same code on other memory, or the same memory with a cause of time taken out of the code.

use anyhow::{Result, bail};
use cere_count::Counts;
use cere_count::class::Operation;
use cere_count::codelet::Counted;
use cere_format::build::Ablation;
use cere_format::replay::{Repetitions, Warmup};
use cere_replay::Options;
use std::path::Path;

/// A time, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// Median seconds of an invocation.
    pub seconds: f64,
    /// Ends of the interval.
    pub interval: (f64, f64),
}

/// What is otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// These ranges of pages share few frames, so that all of it is in the first cache.
    Compact(Vec<(u64, u64)>),
    /// Pages that were not there at entry are.
    Present,
    /// Huge pages.
    Huge,
    /// A cause is taken out of the code.
    Code(Ablation),
    /// One thread.
    Alone,
}

/// Largest relative difference of executed branches and floating-point operations between runs that do the same work.
const SAME_WORK: f64 = 0.02;
/// Frames of physical memory that compacted data shares, in all: they leave room in the smallest first cache, of 8 pages.
const FRAMES: u64 = 6;
/// Flags under which loops are taken as free of dependences: the widest vectors of this machine.
const WIDEST: [&str; 4] = [
    "-O3",
    "-march=native",
    "-ffast-math",
    "-mprefer-vector-width=512",
];

/// Whether the system gives huge pages.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// A codelet whose replays are changed.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Directory of the unpacked package.
    pub package: &'a Path,
    /// How it is replayed unchanged.
    pub options: &'a Options,
    /// What it executes unchanged.
    pub counted: &'a Counted<'a>,
}

impl Subject<'_> {
    fn options(&self, change: &Change) -> Options {
        let mut options = self.options.clone();
        options.settings.compare = false;
        options.keepers = None;
        options.settings.repetitions = Repetitions {
            least: 5,
            most: 300,
            precision: 0.01,
            seconds: 1.0,
        };
        match change {
            Change::Compact(ranges) => {
                options.memory.compact = ranges.clone();
                options.memory.frames = (FRAMES / ranges.len().max(1) as u64).max(1);
                options.settings.warmup = Some(Warmup::WorkingSet);
            }
            // The system has just filled a fresh page with zeros.
            Change::Present => {
                options.memory.present = true;
                options.settings.warmup = Some(Warmup::WorkingSet);
            }
            Change::Huge => options.memory.huge = true,
            Change::Alone => options.settings.team.threads = Some(1),
            Change::Code(what) => {
                options.ablation = Some(*what);
                if *what == Ablation::Dependences {
                    let wide = WIDEST.map(str::to_owned);
                    options.settings.flags.extend(wide);
                }
            }
        }
        options
    }

    /// The time of an invocation with `change`.
    ///
    /// # Errors
    /// It cannot be replayed so, or does other work then: its course depends on what was changed.
    pub fn time(&self, change: &Change) -> Result<Timed> {
        if *change == Change::Huge
            && std::fs::read_to_string(HUGE_PAGES).is_ok_and(|t| t.contains("[never]"))
        {
            bail!("this system gives no huge pages ({HUGE_PAGES} is never)");
        }
        let options = self.options(change);
        self.does_the_same(change, &options)?;
        time(self.package, &options)
    }

    /// Fails if the changed codelet executes other branches, or other floating-point work.
    fn does_the_same(&self, change: &Change, options: &Options) -> Result<()> {
        if matches!(change, Change::Present | Change::Huge | Change::Alone) {
            return Ok(());
        }
        let changed = Counted::new(self.package, options)?;
        let (was, is) = (&self.counted.counts, &changed.counts);
        // The compiler asks first whether a division can be a short one, and a root one of a negative number.
        let asks = match change {
            Change::Code(Ablation::Divisions) => 2 * divisions(was),
            _ => 0,
        };
        let differs = |was: u64, is: u64| {
            let most = was.max(is).max(1) as f64;
            was.abs_diff(is) as f64 > SAME_WORK * most + asks as f64
        };
        // Vectors take several iterations at once.
        let wide = *change == Change::Code(Ablation::Dependences);
        if !wide && (differs(was.branches, is.branches) || differs(was.taken, is.taken)) {
            bail!("its branches depend on the values that were changed");
        }
        let lacks = |was: u64, is: u64| is.saturating_mul(2) < was;
        let lacks_loads = lacks(was.memory.load_bytes, is.memory.load_bytes);
        if wide && (lacks(was.flops.total, is.flops.total) || lacks_loads) {
            bail!("the compiler leaves out work then");
        }
        Ok(())
    }
}

/// Integer divisions and roots that were executed.
fn divisions(counts: &Counts) -> u64 {
    let integer = counts.mix.iter().filter(|m| m.kind == "integer-div");
    let roots = counts
        .work
        .iter()
        .filter(|w| w.operation == Operation::Sqrt);
    let integer: u64 = integer.map(|m| m.instructions).sum();
    integer + roots.map(|w| w.instructions).sum::<u64>()
}

/// The time of an invocation in a replay with `options`.
///
/// # Errors
/// It cannot be replayed, or measures nothing.
pub fn time(package: &Path, options: &Options) -> Result<Timed> {
    let replay = cere_replay::replay(package, options)?;
    if replay.cycles.is_empty() {
        bail!("the replay measured nothing");
    }
    Ok(Timed {
        seconds: replay.seconds_median,
        interval: (replay.seconds_low, replay.seconds_high),
    })
}
