//! Times in vivo of captured invocations, from a profile of the same command.

use super::choose::Choice;
use super::threads;
use cere_format::capture::RawCapture;
use cere_format::package::InVivo;
use cere_format::profile::{Profile, RegionKey};
use cere_system::console::print;

/// Whether `profile` kept every wanted invocation that was reached, so that another run would add nothing.
pub fn all_known<'a>(profile: &Profile, choices: impl IntoIterator<Item = &'a Choice>) -> bool {
    choices.into_iter().all(|choice| {
        if choice.thread != 0 {
            return profile.over_threads(&choice.key).is_some();
        }
        profile.region(&choice.key).is_none_or(|r| {
            let wanted = choice.invocations.iter().map(|(i, _)| *i);
            let mut came = wanted.filter(|i| *i <= r.invocations);
            came.all(|i| r.trace.get(i).is_some())
        })
    })
}

/// Captured invocations run slower than others. A time in vivo above this many times the captured time belongs to another
/// invocation.
const IMPOSSIBLE: u64 = 2;

/// Why the time of a captured invocation is unknown.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Untimed {
    /// The profile is of another process.
    #[error(
        "it was captured in another process of the run ({captured}) than the one that was profiled ({profiled})"
    )]
    OtherProcess {
        /// Arguments of the captured process.
        captured: String,
        /// Arguments of the profiled process.
        profiled: String,
    },
    /// Nothing tells the process from others.
    #[error(
        "several processes of the run are alike, and which of them was captured is chance: name a variable that tells them apart by --process-key"
    )]
    Chance,
    /// The profile does not have the region.
    #[error("the region did not run in the profile's run")]
    NotRun,
    /// There is no end, or no time.
    #[error("it was not left by its end in the profile's run, or is too short to be timed")]
    NotLeft,
    /// The profile's run ended before it.
    #[error("the region ran only {0} times in the profile's run")]
    NotReached(u64),
    /// The profile does not keep it.
    #[error("the profile's trace has no place for so many invocations: capture fewer in one run")]
    NotKept,
    /// Which invocation a thread runs is chance, and they are not alike.
    #[error(
        "invocations in the profile's threads differ: a fifth takes less than {}, another fifth more than {}, and which of them a thread runs may be chance",
        print::time(*.least),
        print::time(*.most)
    )]
    Differ {
        /// Seconds that a fifth takes at most.
        least: f64,
        /// Seconds that a fifth takes at least.
        most: f64,
    },
    /// The times belong to different invocations.
    #[error(
        "it took {} in the profile's run and {} in the captured one, which is the slower one for the same work: \
         they read different things, or the first was disturbed; profile again",
        print::time(*.profiled),
        print::time(*.captured)
    )]
    Impossible {
        /// Seconds in the profile's run.
        profiled: f64,
        /// Seconds in the captured run.
        captured: f64,
    },
}

/// The undisturbed time of the invocation that `capture` is of.
pub fn of_capture(profile: &Profile, capture: &RawCapture) -> Result<InVivo, Untimed> {
    let time = match capture.thread {
        0 => in_vivo(profile, &capture.key, capture.invocation)?,
        _ => threads::in_vivo(profile, &capture.key)?,
    };
    let most = capture.disturbed_cycles.saturating_mul(IMPOSSIBLE);
    if time.cycles > most && capture.disturbed_cycles > 0 {
        return Err(Untimed::Impossible {
            profiled: time.seconds,
            captured: capture.disturbed_cycles as f64 / profile.tsc_hz,
        });
    }
    Ok(time)
}

/// Seconds that the longest invocation of a region took, if that is known.
pub fn longest(profile: &Profile, key: &RegionKey) -> Option<f64> {
    let first = profile.region(key).map_or(0, |r| r.cycles_max);
    let first = first as f64 / profile.tsc_hz;
    let longest = first.max(threads::longest(profile, key));
    (longest > 0.0).then_some(longest)
}

/// The undisturbed time of an invocation.
fn in_vivo(profile: &Profile, key: &RegionKey, invocation: u64) -> Result<InVivo, Untimed> {
    let region = profile.region(key).ok_or(Untimed::NotRun)?;
    match region.trace.get(invocation) {
        Some(0) => Err(Untimed::NotLeft),
        Some(cycles) => Ok(InVivo {
            cycles,
            seconds: cycles as f64 / profile.tsc_hz,
        }),
        None if invocation > region.invocations => Err(Untimed::NotReached(region.invocations)),
        None => Err(Untimed::NotKept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_format::profile::Trace;
    use cere_testing::profile as fixture;

    fn profile(invocations: u64, trace: Trace) -> (Profile, Choice) {
        let mut profile = fixture::profile(&[("f@a.c:1", None, 1.0, 1.0)]);
        profile.tsc_hz = 100.0;
        profile.regions[0].invocations = invocations;
        profile.regions[0].trace = trace;
        let key = profile.regions[0].key.clone();
        let choice = Choice {
            name: "f@a.c:1".into(),
            key,
            thread: 0,
            named: true,
            invocations: Vec::new(),
        };
        (profile, choice)
    }

    #[test]
    fn what_a_trace_tells() {
        let trace = Trace {
            first: vec![50, 0],
            stride: 4,
            sampled: vec![(4, 25)],
            ..Trace::default()
        };
        let (profile, choice) = profile(6, trace);
        let known = |list: &[u64]| {
            let mut choice = choice.clone();
            choice.invocations = list.iter().map(|i| (*i, None)).collect();
            all_known(&profile, [&choice])
        };
        assert!(known(&[1, 2, 4]) && known(&[9]) && !known(&[1, 3]));
        let time = |invocation| in_vivo(&profile, &choice.key, invocation).map(|t| t.seconds);
        assert_eq!(time(1), Ok(0.5));
        assert_eq!(time(4), Ok(0.25));
        assert_eq!(time(2), Err(Untimed::NotLeft));
        assert_eq!(time(3), Err(Untimed::NotKept));
        assert_eq!(time(9), Err(Untimed::NotReached(6)));
    }
}
