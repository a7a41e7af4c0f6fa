//! How long others leave the caches alone, as a directory remembers it.

use cere_format::machine;
use cere_format::replay::Warmup;
use cere_toolchain::{CompileError, cached, io};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const FILE: &str = "survival.json";
/// A measurement serves processes for this long before one measures again.
const FRESH: Duration = Duration::from_secs(60);
/// And counts for this long.
const COUNTS: Duration = Duration::from_secs(3600);
/// Probes of a measurement, each in memory of its own.
const PROBES: usize = 3;
/// Measurements that count, at most.
const MOST: usize = 9;

/// What was measured since a machine started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Known {
    /// The kernel's identifier of this start.
    boot: String,
    /// Oldest first.
    measured: Vec<Measured>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    /// Seconds since the start.
    at: u64,
    /// [`cere_timing::survival`].
    survival_ns: Option<u64>,
}

impl Known {
    /// What counts for the machine of start `boot` at `now`.
    fn here(self, boot: &str, now: Duration) -> Self {
        let mut measured = self.measured;
        let counts =
            |m: &Measured| self.boot == boot && m.at <= now.as_secs() && since(*m, now) < COUNTS;
        measured.retain(counts);
        measured.drain(..measured.len().saturating_sub(MOST));
        Self {
            boot: boot.to_owned(),
            measured,
        }
    }

    /// Whether none is of the last minute.
    fn is_old(&self, now: Duration) -> bool {
        self.measured.last().is_none_or(|m| since(*m, now) >= FRESH)
    }

    /// The median.
    fn survival(&self) -> Option<u64> {
        let all = self.measured.iter();
        let mut all: Vec<u64> = all.map(|m| m.survival_ns.unwrap_or(u64::MAX)).collect();
        all.sort_unstable();
        let middle = all.get(all.len() / 2).copied();
        middle.filter(|ns| *ns != u64::MAX)
    }
}

fn since(measured: Measured, now: Duration) -> Duration {
    now.saturating_sub(Duration::from_secs(measured.at))
}

/// [`cere_format::replay::ReplayPlan::survival_ns`] of this machine, where the warm-up needs it: the median of what processes
/// that share `cache` measured within the hour. It stays for as long as this process runs, so that times that it compares
/// are of the same warm-up.
///
/// # Errors
/// What was measured cannot be written to `cache`.
pub fn survival(warmup: Warmup, cache: &Path) -> Result<Option<u64>, CompileError> {
    static HERE: Mutex<Option<Option<u64>>> = Mutex::new(None);
    if warmup != Warmup::PageTrace {
        return Ok(None);
    }
    // While one thread measures, the others wait: they would disturb it.
    let mut here = HERE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = *here {
        return Ok(known);
    }
    let file = cache.join(FILE);
    let known = std::fs::read(&file).ok();
    // A file that is cut off or of another version counts as none.
    let known = known.and_then(|text| serde_json::from_slice::<Known>(&text).ok());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now = Duration::try_from(now).unwrap_or_default();
    let mut known = known.unwrap_or_default().here(boot.trim(), now);
    if known.is_old(now) {
        known.measured.push(Measured {
            at: now.as_secs(),
            survival_ns: measure(),
        });
        known = known.here(boot.trim(), now);
        cached::replace(cache, FILE, |made| {
            let text = serde_json::to_vec(&known).unwrap_or_default();
            std::fs::write(made, text).map_err(io("write", made))
        })?;
    }
    Ok(*here.insert(known.survival()))
}

/// The longest of a few probes: what others do in the moment of a probe, and where its memory lies, only ever shortens it, and times in vivo
/// are the least of several runs as well. (Intel Xeon, two cores of a virtual machine: 13 ms, but 0.4 ms in one probe of three.) Without
/// memory for a probe a trace counts as it is.
fn measure() -> Option<u64> {
    let told = cere_format::caches::of(0);
    let caches = machine::corrected(told, machine::corrections());
    let last = caches.iter().map(|cache| cache.size).max()?;
    let mut probes = (0..PROBES).map(|_| cere_timing::survival::survival(last).ok().flatten());
    probes.try_fold(0, |longest, ns| Some(ns?.max(longest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(measured: &[(u64, Option<u64>)]) -> Known {
        let measured = measured.iter();
        Known {
            boot: "here".into(),
            measured: measured
                .map(|&(at, survival_ns)| Measured { at, survival_ns })
                .collect(),
        }
    }

    #[test]
    fn the_median_of_the_last_hour_counts() {
        let seconds = Duration::from_secs;
        let all = known(&[
            (10, Some(1)),
            (4000, Some(900)),
            (4100, None),
            (4200, Some(7)),
        ]);
        let now = all.clone().here("here", seconds(4205));
        assert_eq!(
            now,
            known(&[(4000, Some(900)), (4100, None), (4200, Some(7))])
        );
        assert_eq!(now.survival(), Some(900));
        assert!(!now.is_old(seconds(4259)) && now.is_old(seconds(4260)));
        assert_eq!(
            known(&[(1, None), (2, None), (3, Some(1))]).survival(),
            None
        );
        assert_eq!(Known::default().survival(), None);
    }

    #[test]
    fn another_start_or_machine_begins_anew() {
        let all = known(&[(10, Some(1))]);
        let there = all.clone().here("there", Duration::from_secs(20));
        assert!(there.measured.is_empty() && there.is_old(Duration::from_secs(20)));
        assert!(all.here("here", Duration::from_secs(5)).measured.is_empty());
    }

    #[test]
    fn at_most_nine_are_kept() {
        let many: Vec<_> = (0..20).map(|at| (at, Some(at))).collect();
        let kept = known(&many).here("here", Duration::from_secs(20));
        assert_eq!(kept, known(&many[11..]));
    }
}
