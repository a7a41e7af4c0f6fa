//! How long a replay may take. A region that waits for something that no replay has never ends.

use crate::{Options, plan};
use cere_format::package::Manifest;
use cere_format::replay::ReplayPlan;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Of a replay whose time in vivo is not known, of counted code at least, and of a compiler.
pub const UNKNOWN: Duration = Duration::from_secs(600);
/// Any other at least.
const LEAST: f64 = 10.0;
/// So many times what the runs take in vivo, for short ones. Long ones: so many seconds, and so many times.
const SHORT: f64 = 100.0;
const LONG: (f64, f64) = (60.0, 20.0);
/// Runs that are not timed.
const UNTIMED: f64 = 10.0;
/// Seconds of restoring and warming up a page, and of the rest of each run, on a slow machine.
const PAGE: f64 = 2e-6;
const RUN: f64 = 0.002;
/// Seconds of reading a page from a slow disk.
const READ: f64 = 50e-6;

/// How long a replay may take, and why.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// So long.
    pub time: Duration,
    why: Why,
}

#[derive(Debug, Clone, Copy)]
enum Why {
    /// It was given.
    Given,
    /// The time in vivo is not known.
    Unknown,
    /// Seconds in vivo, and how many runs are expected.
    Expected(f64, f64),
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self.why {
            Why::Given => Ok(()),
            Why::Unknown => f.write_str(
                ", the limit where the time in vivo is not known; --timeout gives it more time",
            ),
            Why::Expected(seconds, runs) => write!(
                f,
                ": in vivo the region takes {}, and {runs:.0} runs of it were expected. It waits for what no replay has, or \
                 takes much longer here; --timeout gives it more time",
                cere_system::console::print::time(seconds)
            ),
        }
    }
}

/// The limit of a replay as planned, of code that is `counted` or not.
pub(crate) fn of(
    manifest: &Manifest,
    plan: &ReplayPlan,
    counted: bool,
    options: &Options,
) -> Limit {
    if let Some(time) = options.settings.timeout {
        let why = Why::Given;
        return Limit { time, why };
    }
    let Some(vivo) = manifest.in_vivo else {
        let (time, why) = (UNKNOWN, Why::Unknown);
        return Limit { time, why };
    };
    // With fewer threads each does more.
    let threads = |wanted| plan::threads(manifest, wanted).unwrap_or(1).max(1);
    let (captured, now) = (threads(None), threads(options.settings.team.threads));
    let share = (f64::from(captured) / f64::from(now)).max(1.0);
    let seconds = vivo.seconds.max(1e-9) * share;
    let rule = plan.repetitions;
    let fitting = rule.seconds / seconds;
    let runs = fitting.clamp(f64::from(rule.least), f64::from(rule.most.max(rule.least)));
    let energy = plan.energy.as_ref().map_or(0.0, |energy| {
        // As many again for what is prepared and not run.
        2.0 * f64::from(energy.rounds) * (energy.seconds / seconds).max(1.0)
    });
    let runs = runs + energy;
    let time = limit(seconds, runs + UNTIMED, manifest.pages as f64);
    // Threads that wait for one another take turns on a processor.
    let processors = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    let time = time.mul_f64((f64::from(now) / processors).max(1.0));
    let time = match counted {
        true => time.max(UNKNOWN),
        false => time,
    };
    let why = Why::Expected(vivo.seconds, runs + UNTIMED);
    Limit { time, why }
}

/// The limit of `runs` of so many seconds, with so many pages.
fn limit(seconds: f64, runs: f64, pages: f64) -> Duration {
    let work = seconds * runs;
    let work = (SHORT * work).min(LONG.0 + LONG.1 * work);
    let around = READ * pages + runs * (RUN + PAGE * pages);
    let limit = (work + around).max(LEAST).ceil();
    Duration::try_from_secs_f64(limit).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_from_the_time_in_vivo() {
        assert_eq!(limit(11e-6, 1010.0, 8.0).as_secs(), 10);
        assert_eq!(limit(11e-6, 20.0, 1e6).as_secs(), 91);
        assert_eq!(limit(1.0, 20.0, 0.0).as_secs(), 461);
        // A hundred times, where that is less.
        assert_eq!(limit(0.01, 20.0, 0.0).as_secs(), 21);
    }
}
