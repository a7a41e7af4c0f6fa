//! Times in vivo of captured invocations, from a profile of the same command.

use super::choose::Choice;
use cere_format::capture::RawCapture;
use cere_format::package::InVivo;
use cere_format::profile::{Profile, RegionKey};
use cere_system::console::print;

/// Whether `profile` kept every wanted invocation that was reached, so that another run would add nothing.
pub fn all_known<'a>(profile: &Profile, choices: impl IntoIterator<Item = &'a Choice>) -> bool {
    choices.into_iter().all(|choice| {
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

/// The undisturbed time of the invocation that `capture` is of, or why it is unknown.
pub fn of_capture(profile: &Profile, capture: &RawCapture) -> Result<InVivo, String> {
    let time = in_vivo(profile, &capture.key, capture.invocation)?;
    let most = capture.disturbed_cycles.saturating_mul(IMPOSSIBLE);
    if time.cycles > most && capture.disturbed_cycles > 0 {
        return Err(format!(
            "it took {} in the profile's run and {} in the captured one, which is the slower one for the same work: \
             they read different things, or the first was disturbed; profile again",
            print::time(time.seconds),
            print::time(capture.disturbed_cycles as f64 / profile.tsc_hz)
        ));
    }
    Ok(time)
}

/// The undisturbed time of an invocation, or why it is unknown.
fn in_vivo(profile: &Profile, key: &RegionKey, invocation: u64) -> Result<InVivo, String> {
    let Some(region) = profile.region(key) else {
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
        assert!(time(2).unwrap_err().contains("not left"));
        assert!(time(3).unwrap_err().contains("no place"));
        assert!(time(9).unwrap_err().contains("only 6 times"));
    }
}
