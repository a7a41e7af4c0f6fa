//! Start and length of the page traces of wanted invocations.

use cere_format::PAGE;
use cere_format::capture::{TracePlan, TraceStart};
use cere_format::machine;
use cere_format::profile::{Profile, RegionKey};

/// Assumed bytes of the largest cache where the system does not report it.
const CACHE: u64 = 32 << 20;

/// How pages are traced before captured invocations.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// Pages that stay open while pages are traced, until faults get too many.
    pub slots: u32,
    /// Maximum pages of a trace; `None` for as many as fill the largest cache twice.
    pub pages: Option<u64>,
    /// A trace begins at least this many invocations of its region earlier.
    pub invocations: u64,
    /// A trace begins at least this many seconds earlier, as far as the profile shows; `None`: see [`Tracing::fitting`].
    pub window: Option<f64>,
}

/// Seconds of a trace: this machine's caches hold nothing older that a region is likely to use.
const WINDOW: f64 = 0.05;
/// Seconds of a trace that is cut short: other users of a shared machine leave in its caches what was touched in the last 5 to 15 ms.
const SHORT: f64 = 0.02;
/// Share of a run that its traces may take.
const TRACED: f64 = 0.5;

impl Tracing {
    /// With a window for `count` traces in a run of `seconds`, if none is given: where many invocations are captured in a short run, traces
    /// are shorter, down to [`SHORT`], so that about half of the run is traced.
    pub fn fitting(mut self, seconds: Option<f64>, count: usize) -> Self {
        let fits = seconds.map_or(WINDOW, |seconds| TRACED * seconds / count.max(1) as f64);
        self.window.get_or_insert(fits.clamp(SHORT, WINDOW));
        self
    }

    /// The plan for the preload library.
    pub fn plan(&self) -> TracePlan {
        let cache = machine::caches_of(0)
            .last()
            .map_or(CACHE, |cache| cache.size);
        let pages = self.pages.unwrap_or(2 * cache / PAGE);
        TracePlan {
            slots: self.slots,
            pages,
            // Just enough faults to fill the trace before the FIFO grows: each takes some microseconds.
            faults: (pages + pages / 4).clamp(1000, 100_000),
        }
    }

    /// Where the traces of `invocations` (from 1) of the region `key` begin. `name` gives names of regions.
    pub fn starts(
        &self,
        profile: Option<&Profile>,
        key: &RegionKey,
        invocations: &[u64],
        name: impl Fn(&RegionKey) -> String,
    ) -> Vec<TraceStart> {
        let mut starts = Vec::new();
        for &invocation in invocations {
            let earlier = invocation
                .checked_sub(self.invocations)
                .filter(|count| *count > 0)
                .map(|count| (key.clone(), count));
            let mut events = vec![earlier];
            events.extend(
                profile.and_then(|p| by_time(p, key, invocation, self.window.unwrap_or(WINDOW))),
            );
            // Nothing comes before the program's start.
            if events.contains(&None) {
                events = vec![None];
            }
            events.dedup();
            starts.extend(events.into_iter().map(|event| {
                TraceStart {
                    invocation,
                    name: event
                        .as_ref()
                        .map_or("the program's start".into(), |(key, count)| {
                            format!("{}, invocation {count}", name(key))
                        }),
                    event,
                }
            }));
        }
        starts
    }
}

/// The last event of the profile at least `window` seconds before the invocation. `Some(None)` is the program's start,
/// `None` that the profile does not show it.
fn by_time(
    profile: &Profile,
    key: &RegionKey,
    invocation: u64,
    window: f64,
) -> Option<Option<(RegionKey, u64)>> {
    let region = profile.region(key)?;
    let start = region.trace.start(invocation)?;
    if profile.timeline.is_empty() {
        return None;
    }
    let latest = start as f64 - window * profile.tsc_hz;
    let early = |p: &cere_format::profile::Passage| p.start as f64 <= latest;
    let place = profile.timeline.partition_point(early);
    let Some(passage) = place.checked_sub(1).map(|i| profile.timeline[i]) else {
        return Some(None);
    };
    let region = profile.regions.get(passage.region)?;
    Some(Some((region.key.clone(), passage.invocation)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_format::profile::Passage;

    fn key(index: u32) -> RegionKey {
        RegionKey {
            unit: "0".repeat(32),
            index,
        }
    }

    /// A profile at 100 Hz: region 0 runs at 1, 2, 3 s, region 1 at 0.5, 1.5, 2.5 s.
    fn profile(timeline: &[(usize, u64, u64)]) -> Profile {
        let region = |name| (name, None, 0.5, 1e4);
        let mut profile = cere_testing::profile::profile(&[region("r0"), region("r1")]);
        profile.tsc_hz = 100.0;
        for (region, starts) in [(0, [100, 200, 300]), (1, [50, 150, 250])] {
            let trace = &mut profile.regions[region].trace;
            trace.first = vec![1; 3];
            trace.first_starts = starts.to_vec();
        }
        let passage = |(region, invocation, start): &(usize, u64, u64)| Passage {
            region: *region,
            invocation: *invocation,
            start: *start,
        };
        profile.timeline = timeline.iter().map(passage).collect();
        profile
    }

    #[test]
    fn many_traces_in_a_short_run_are_short() {
        let fitted = |window, seconds, count| {
            let tracing = Tracing {
                window,
                ..options(1, 0.0)
            };
            tracing.fitting(seconds, count).window
        };
        assert_eq!(fitted(None, Some(60.0), 50), Some(0.05));
        assert_eq!(fitted(None, Some(2.5), 50), Some(0.025));
        assert_eq!(fitted(None, Some(0.1), 50), Some(0.02));
        assert_eq!(fitted(None, None, 50), Some(0.05));
        assert_eq!(fitted(Some(0.2), Some(1.0), 50), Some(0.2));
    }

    const ALL: [(usize, u64, u64); 6] = [
        (1, 1, 50),
        (0, 1, 100),
        (1, 2, 150),
        (0, 2, 200),
        (1, 3, 250),
        (0, 3, 300),
    ];

    fn options(earlier: u64, window: f64) -> Tracing {
        Tracing {
            slots: 64,
            pages: None,
            invocations: earlier,
            window: Some(window),
        }
    }

    fn events(
        options: &Tracing,
        profile: Option<&Profile>,
        invocation: u64,
    ) -> Vec<Option<(u32, u64)>> {
        let name = |k: &RegionKey| format!("r{}", k.index);
        let starts = options.starts(profile, &key(0), &[invocation], name);
        assert!(starts.iter().all(|s| s.invocation == invocation));
        starts
            .iter()
            .map(|s| s.event.as_ref().map(|(k, n)| (k.index, *n)))
            .collect()
    }

    #[test]
    fn by_invocations_alone() {
        assert_eq!(events(&options(1, 0.05), None, 3), [Some((0, 2))]);
        assert_eq!(events(&options(2, 0.05), None, 3), [Some((0, 1))]);
        assert_eq!(events(&options(3, 0.05), None, 3), [None]);
        assert_eq!(events(&options(9, 0.05), None, 3), [None]);
        assert_eq!(events(&options(1, 0.05), None, 1), [None]);
        // A profile without a timeline, and one that never saw the invocation, tell nothing.
        let silent = profile(&[]);
        assert_eq!(events(&options(1, 9.0), Some(&silent), 3), [Some((0, 2))]);
        let seen = profile(&ALL);
        assert_eq!(events(&options(1, 0.05), Some(&seen), 7), [Some((0, 6))]);
    }

    #[test]
    fn by_time_as_well() {
        let seen = profile(&ALL);
        let of = |window| events(&options(1, window), Some(&seen), 3);
        assert_eq!(of(0.1), [Some((0, 2)), Some((1, 3))]);
        assert_eq!(of(0.5), [Some((0, 2)), Some((1, 3))]);
        assert_eq!(of(0.51), [Some((0, 2))]);
        assert_eq!(of(1.2), [Some((0, 2)), Some((1, 2))]);
        assert_eq!(of(2.5), [Some((0, 2)), Some((1, 1))]);
        assert_eq!(of(2.51), [None]);
        // A timeline that was thinned.
        let thin = profile(&[(1, 1, 50), (0, 2, 200)]);
        assert_eq!(
            events(&options(1, 1.2), Some(&thin), 3),
            [Some((0, 2)), Some((1, 1))]
        );
    }

    #[test]
    fn events_have_names() {
        let name = |k: &RegionKey| format!("r{}", k.index);
        let starts = options(1, 1.2).starts(Some(&profile(&ALL)), &key(0), &[1, 3], name);
        let names: Vec<&str> = starts.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "the program's start",
                "r0, invocation 2",
                "r1, invocation 2"
            ]
        );
    }

    #[test]
    fn a_plan_of_this_machine() {
        let plan = options(1, 0.05).plan();
        assert!(plan.pages >= 1 && plan.faults >= 1000);
    }
}
