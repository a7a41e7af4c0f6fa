//! Times in vivo of captured invocations, out of a profile of the same command.

use super::choose::Choice;
use cere_format::package::InVivo;
use cere_format::profile::{Profile, RegionKey, RegionProfile};

fn region<'a>(profile: &'a Profile, key: &RegionKey) -> Option<&'a RegionProfile> {
    profile.regions.iter().find(|r| r.key == *key)
}

/// Whether another run would tell no more: `profile` kept each of `invocations` that came.
pub fn all_known<'a>(
    profile: &Profile,
    choices: impl IntoIterator<Item = &'a Choice>,
    invocations: &[u64],
) -> bool {
    choices.into_iter().all(|choice| {
        region(profile, &choice.key).is_none_or(|r| {
            let mut came = invocations.iter().filter(|i| **i <= r.invocations);
            came.all(|i| r.trace.get(*i).is_some())
        })
    })
}

/// The undisturbed time of an invocation, or why it is unknown.
pub fn in_vivo(profile: &Profile, key: &RegionKey, invocation: u64) -> Result<InVivo, String> {
    let Some(region) = region(profile, key) else {
        return Err("the region did not run in the profile's run".into());
    };
    match region.trace.get(invocation) {
        Some(0) => Err(
            "it was not left by its end in the profile's run, or is too short to be timed".into(),
        ),
        Some(cycles) => Ok(InVivo {
            cycles,
            seconds: cycles as f64 / profile.tsc_hz,
        }),
        None if invocation > region.invocations => Err(format!(
            "the region ran only {} times in the profile's run",
            region.invocations
        )),
        None => Err(
            "the profile's trace has no place for so many invocations: capture fewer in one run"
                .into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_format::profile::{PROFILE_VERSION, Trace};

    fn profile(invocations: u64, trace: Trace) -> (Profile, Choice) {
        let key = RegionKey {
            unit: "u".into(),
            index: 0,
        };
        let region = RegionProfile {
            key: key.clone(),
            name: "f@a.c:1".into(),
            invocations,
            inclusive_seconds: 1.0,
            self_seconds: 1.0,
            share: 1.0,
            cycles_min: 1,
            cycles_mean: 1.0,
            cycles_max: 1,
            trace,
        };
        let profile = Profile {
            version: PROFILE_VERSION,
            command: Vec::new(),
            directory: "/".into(),
            program: String::new(),
            seconds: 1.0,
            coverage: 1.0,
            tsc_hz: 100.0,
            probe_inside: 0.0,
            probe_outside: 0.0,
            regions: vec![region],
            tree: Vec::new(),
        };
        let choice = Choice {
            name: "f@a.c:1".into(),
            key,
            named: true,
        };
        (profile, choice)
    }

    #[test]
    fn what_a_trace_tells() {
        let trace = Trace {
            first: vec![50, 0],
            stride: 4,
            sampled: vec![(4, 25)],
        };
        let (profile, choice) = profile(6, trace);
        let known = |list: &[u64]| all_known(&profile, [&choice], list);
        assert!(known(&[1, 2, 4]) && known(&[9]) && !known(&[1, 3]));
        let time = |invocation| in_vivo(&profile, &choice.key, invocation).map(|t| t.seconds);
        assert_eq!(time(1), Ok(0.5));
        assert_eq!(time(4), Ok(0.25));
        assert!(time(2).unwrap_err().contains("not left"));
        assert!(time(3).unwrap_err().contains("no place"));
        assert!(time(9).unwrap_err().contains("only 6 times"));
    }
}
