//! Hardware counters, read in timed replays: the code is the one that is timed, without counters of ours.
//!
//! The kernel opens and reads them ([`cere_replay::counters`]). What its readings mean is decided here, behind [`Source`], so
//! that tests can put other readings there.

use crate::error::CountError;
use cere_format::replay::Verdict;
use cere_replay::counters::{Event, Measured, Reading, Readings};
use cere_replay::{Options, Replay, ReplayError};
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware as Generic};
use serde::Serialize;
use std::io;
use std::path::Path;

/// Share of the time that a counter ran below which its value counts as scaled: what is shown as less than 100.0 %.
const ALWAYS: f64 = 0.9995;
/// Why a counter that can be opened never ran.
const NEVER: &str = "it never ran: others hold the processor's counters (the NMI watchdog, another perf), or the replay ran \
                     on cores of another kind";
/// Who may count.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// What the counters of the processor say of a codelet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hardware {
    /// Invocations that each event was counted in.
    pub invocations: u32,
    /// The events, in the order of [`events`].
    pub events: Vec<EventCount>,
    /// What people should know: a sentence each.
    pub notes: Vec<String>,
    /// Verdict on the state that the measured replay left.
    #[serde(skip)]
    pub verdict: Verdict,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventCount {
    /// Name.
    pub name: &'static str,
    /// Of one invocation, the mean; none if it could not be counted.
    pub value: Option<f64>,
    /// Why it could not be counted.
    pub error: Option<String>,
    /// Share of the time for which it had a counter of the processor. Below 1 the value is scaled by it.
    pub running: Option<f64>,
}

impl EventCount {
    fn failed(name: &'static str, error: String) -> Self {
        Self {
            name,
            value: None,
            error: Some(error),
            running: None,
        }
    }
}

/// The events that are counted, as the kernel has them for any processor.
pub fn events() -> [Event; 13] {
    let (read, write) = (CacheOp::READ, CacheOp::WRITE);
    let (access, miss) = (CacheResult::ACCESS, CacheResult::MISS);
    let cache = |name, which, operation, result| {
        let event = Cache {
            which,
            operation,
            result,
        };
        Event::new(name, event)
    };
    [
        Event::new("instructions", Generic::INSTRUCTIONS),
        Event::new("cycles", Generic::CPU_CYCLES),
        Event::new("branches", Generic::BRANCH_INSTRUCTIONS),
        Event::new("branch_misses", Generic::BRANCH_MISSES),
        Event::new("cache_references", Generic::CACHE_REFERENCES),
        Event::new("cache_misses", Generic::CACHE_MISSES),
        cache("l1d_loads", CacheId::L1D, read, access),
        cache("l1d_load_misses", CacheId::L1D, read, miss),
        cache("l1d_stores", CacheId::L1D, write, access),
        cache("llc_loads", CacheId::LL, read, access),
        cache("llc_load_misses", CacheId::LL, read, miss),
        cache("dtlb_load_misses", CacheId::DTLB, read, miss),
        cache("dtlb_store_misses", CacheId::DTLB, write, miss),
    ]
}

/// Their names.
pub fn names() -> [&'static str; 13] {
    events().map(|event| event.name)
}

/// Where readings come from.
pub trait Source {
    /// Whether the event can be counted.
    ///
    /// # Errors
    /// The kernel's.
    fn probe(&self, event: &Event) -> io::Result<()>;
    /// Counts events that can be, in a replay.
    ///
    /// # Errors
    /// The codelet cannot be replayed.
    fn measure(&self, events: &[Event]) -> Result<(Replay, Measured), ReplayError>;
}

/// The kernel, for the codelet in an unpacked package.
pub struct Kernel<'a> {
    /// The package.
    pub package: &'a Path,
    /// How it is replayed.
    pub options: &'a Options,
}

impl Source for Kernel<'_> {
    fn probe(&self, event: &Event) -> io::Result<()> {
        event.probe()
    }
    fn measure(&self, events: &[Event]) -> Result<(Replay, Measured), ReplayError> {
        cere_replay::measure(self.package, events, self.options)
    }
}

/// Fails if this machine counts none of [`events`].
///
/// # Errors
/// [`CountError::NoHardware`], with what to do.
pub fn check() -> Result<(), CountError> {
    let events = events();
    possible(&events, Event::probe).map(drop)
}

/// Counts the codelet in the unpacked package `package` with the counters of the processor.
///
/// # Errors
/// No counter works; the codelet cannot be replayed.
pub fn count(package: &Path, options: &Options) -> Result<Hardware, CountError> {
    gather(&events(), &Kernel { package, options })
}

/// Each event, or why it cannot be counted; an error if none can be.
fn possible(
    events: &[Event],
    probe: impl Fn(&Event) -> io::Result<()>,
) -> Result<Vec<Result<&Event, EventCount>>, CountError> {
    let probed: Vec<_> = events.iter().map(|event| (event, probe(event))).collect();
    if let Some((event, Err(first))) = probed.first()
        && probed.iter().all(|p| p.1.is_err())
    {
        let paranoid = std::fs::read_to_string(PARANOID).ok();
        let reason = nothing_works(event.name, first, paranoid.as_deref().map(str::trim));
        return Err(CountError::NoHardware(reason));
    }
    let usable = probed.into_iter().map(|(event, probed)| match probed {
        Ok(()) => Ok(event),
        Err(error) => Err(EventCount::failed(event.name, lacking(&error))),
    });
    Ok(usable.collect())
}

/// Why an event cannot be counted although others can.
fn lacking(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL | libc::ENXIO) => {
            format!("the kernel has no such event of this processor ({error})")
        }
        _ => format!("the kernel refuses it ({error})"),
    }
}

/// Why nothing can be counted, and what to do. `paranoid`: who may count.
fn nothing_works(name: &str, error: &io::Error, paranoid: Option<&str>) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "the kernel refuses `{name}` ({error}): {PARANOID} is {}; set it to 2 or less (`sysctl \
             kernel.perf_event_paranoid=2`) or give the command CAP_PERFMON; in a container, its seccomp profile has to \
             allow perf_event_open as well",
            paranoid.unwrap_or("not there")
        ),
        Some(libc::ENOSYS) => format!(
            "this kernel, or this container, has no perf_event_open ({error}): use a kernel with CONFIG_PERF_EVENTS, or \
             allow the call in the container's seccomp profile"
        ),
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => format!(
            "the kernel has no `{name}` here ({error}): virtual machines have no counters unless their host passes them on \
             (QEMU: -cpu host,pmu=on); take such a host, or count without --hardware"
        ),
        _ => format!(
            "the kernel refuses `{name}` ({error}): see whether `perf stat true` counts here, or count without --hardware"
        ),
    }
}

/// Counts `events`, as far as `source` can.
///
/// # Errors
/// None can be counted; the codelet cannot be replayed.
pub fn gather(events: &[Event], source: &impl Source) -> Result<Hardware, CountError> {
    let possible = possible(events, |event| source.probe(event))?;
    let usable: Vec<Event> = possible.iter().flatten().copied().cloned().collect();
    let (replay, measured) = source.measure(&usable)?;
    let mut notes = Vec::new();
    if replay.verdict == Verdict::Different {
        notes.push(format!(
            "hardware counters: the measured replay ended in another state: {}",
            replay.reason
        ));
    }
    let mut readings = measured.readings.iter();
    let events = possible.into_iter().map(|event| match event {
        Ok(event) => {
            let readings = readings.next().copied().unwrap_or_default();
            counted(event.name, readings, measured.invocations, &mut notes)
        }
        Err(failed) => failed,
    });
    Ok(Hardware {
        events: events.collect(),
        invocations: measured.invocations,
        notes,
        verdict: replay.verdict,
    })
}

/// Events of the whole time that a counter was enabled, and the share of it that it ran; none if it never ran.
fn scaled(reading: Reading) -> Option<(f64, f64)> {
    let share = reading.running as f64 / reading.enabled as f64;
    (reading.running > 0).then(|| (reading.value as f64 / share, share))
}

/// An event of one invocation: what was counted with the region less what was counted with nothing.
fn counted(
    name: &'static str,
    readings: Readings,
    invocations: u32,
    notes: &mut Vec<String>,
) -> EventCount {
    if readings.region.enabled == 0 || invocations == 0 {
        return EventCount::failed(name, "it was never enabled".to_owned());
    }
    let Some((value, running)) = scaled(readings.region) else {
        return EventCount::failed(name, NEVER.to_owned());
    };
    if running < ALWAYS {
        notes.push(format!(
            "{name}: counted for {:.1} % of the time, the value is scaled: others use the processor's counters (the NMI \
             watchdog, another perf)",
            100.0 * running
        ));
    }
    let nothing = scaled(readings.nothing).map(|n| n.0);
    if nothing.is_none() {
        notes.push(format!(
            "{name}: what entering the region costs could not be counted and is not subtracted"
        ));
    }
    let value = (value - nothing.unwrap_or(0.0)) / f64::from(invocations);
    EventCount {
        name,
        value: Some(value.max(0.0)),
        error: None,
        running: Some(running),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands in for the kernel, with readings that a test gives.
    struct Told {
        /// For each event: what it reads, or the kernel's error.
        events: Vec<Result<Readings, i32>>,
        invocations: u32,
        verdict: Verdict,
    }

    impl Source for Told {
        fn probe(&self, event: &Event) -> io::Result<()> {
            let at = names().iter().position(|name| *name == event.name).unwrap();
            let told = self.events[at].map(drop);
            told.map_err(io::Error::from_raw_os_error)
        }
        fn measure(&self, events: &[Event]) -> Result<(Replay, Measured), ReplayError> {
            let readings: Vec<_> = self.events.iter().flatten().copied().collect();
            assert_eq!(events.len(), readings.len());
            let measured = Measured {
                invocations: self.invocations,
                readings,
            };
            Ok((replay(self.verdict), measured))
        }
    }

    /// A replay of which only the verdict matters.
    fn replay(verdict: Verdict) -> Replay {
        let value = serde_json::json!({
            "codelet": "c", "flags": [], "verdict": verdict, "reason": "because", "cycles": [], "cycles_min": 0,
            "cycles_median": 0, "seconds_min": 0.0, "seconds_median": 0.0, "seconds_low": 0.0, "seconds_high": 0.0,
            "confidence": 0.0, "spread": 0.0,
            "set_aside": {"faults": 0, "switches": 0, "migrations": 0, "stolen": 0},
            "disturbed": false, "warmup": "cold", "batch": 1, "notes": [], "in_vivo_seconds": null, "repeatable": true,
            "same_code": "yes", "captured_code": null, "comparison": null,
            "preparation": {"restoring": 0.0, "warming": 0.0}, "lacking": [], "asked_more": 0, "executable": "x"
        });
        serde_json::from_value(value).unwrap()
    }

    fn reading(value: u64, enabled: u64, running: u64) -> Reading {
        Reading {
            value,
            enabled,
            running,
        }
    }

    fn of(events: Vec<Result<Readings, i32>>) -> Result<Hardware, CountError> {
        let told = Told {
            events,
            invocations: 10,
            verdict: Verdict::Exact,
        };
        let all: Vec<Event> = super::events()[..told.events.len()].to_vec();
        gather(&all, &told)
    }

    #[test]
    fn the_cost_of_entering_is_subtracted_and_the_mean_is_of_one_invocation() {
        let found = of(vec![Ok(Readings {
            region: reading(10_450, 500, 500),
            nothing: reading(400, 90, 90),
        })])
        .unwrap();
        assert_eq!((found.invocations, found.notes.len()), (10, 0));
        assert_eq!(
            found.events,
            [EventCount {
                name: "instructions",
                value: Some(1005.0),
                error: None,
                running: Some(1.0),
            }]
        );
        // Noise of an event that hardly happens is not less than none.
        let found = of(vec![Ok(Readings {
            region: reading(3, 500, 500),
            nothing: reading(5, 90, 90),
        })]);
        assert_eq!(found.unwrap().events[0].value, Some(0.0));
    }

    #[test]
    fn a_counter_that_others_used_too_is_scaled_and_says_so() {
        let found = of(vec![
            Ok(Readings {
                region: reading(3000, 800, 200),
                nothing: reading(100, 80, 40),
            }),
            Ok(Readings {
                region: reading(9000, 800, 800),
                nothing: reading(7, 80, 0),
            }),
        ])
        .unwrap();
        assert_eq!(
            (found.events[0].value, found.events[0].running),
            (Some(1180.0), Some(0.25))
        );
        assert!(
            found.notes[0].contains("instructions: counted for 25.0 % of the time"),
            "{:?}",
            found.notes
        );
        assert_eq!(
            (found.events[1].value, found.events[1].running),
            (Some(900.0), Some(1.0))
        );
        assert!(found.notes[1].contains("cycles: what entering"));
        assert_eq!(found.notes.len(), 2);
    }

    #[test]
    fn what_was_not_counted_is_no_zero_and_has_its_reason() {
        let zero = Readings {
            region: reading(0, 500, 500),
            nothing: reading(0, 90, 90),
        };
        let never = Readings {
            region: reading(0, 500, 0),
            nothing: reading(0, 90, 0),
        };
        let found = of(vec![
            Ok(zero),
            Err(libc::ENOENT),
            Ok(never),
            Err(libc::EACCES),
            Ok(Readings::default()),
            Ok(zero),
        ])
        .unwrap();
        assert_eq!(found.events[0].value, Some(0.0));
        let reason = |at: usize| {
            let event: &EventCount = &found.events[at];
            assert_eq!((event.value, event.running), (None, None), "{event:?}");
            event.error.clone().expect("a reason")
        };
        assert!(reason(1).contains("no such event of this processor (No such file"));
        assert!(reason(2).contains("never ran"));
        assert!(reason(3).contains("refuses it (Permission denied"));
        assert!(reason(4).contains("never enabled"));
        assert_eq!(
            (found.events[5].name, found.events[5].value),
            ("cache_misses", Some(0.0))
        );
    }

    #[test]
    fn where_nothing_works_one_message_says_what_to_do() {
        let error = of(vec![Err(libc::ENOENT); 13]).unwrap_err().to_string();
        assert!(
            error.contains("no hardware counter") && error.contains("pmu=on"),
            "{error}"
        );
        let refused = io::Error::from_raw_os_error(libc::EACCES);
        let text = nothing_works("instructions", &refused, Some("4"));
        assert!(
            text.contains("perf_event_paranoid is 4; set it to 2 or less"),
            "{text}"
        );
        let none = io::Error::from_raw_os_error(libc::ENOSYS);
        assert!(nothing_works("instructions", &none, None).contains("CONFIG_PERF_EVENTS"));
    }

    #[test]
    fn a_measured_replay_that_ends_elsewhere_is_reported() {
        let told = Told {
            events: vec![Ok(Readings::default())],
            invocations: 1,
            verdict: Verdict::Different,
        };
        let found = gather(&super::events()[..1], &told).unwrap();
        assert_eq!(found.verdict, Verdict::Different);
        assert!(found.notes[0].contains("because"), "{:?}", found.notes);
    }
}
