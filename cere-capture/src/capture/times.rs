//! Times in vivo of captured invocations, from a profile of the same command.

use super::choose::Choice;
use super::threads;
use super::untimed::Untimed;
use cere_format::capture::RawCapture;
use cere_format::package::InVivo;
use cere_format::profile::{Profile, RegionKey};

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
