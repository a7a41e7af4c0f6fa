//! How long a captured invocation may go on beside threads that stand still. One that waits for them never ends.

use crate::engine::state::Engine;
use crate::os::signals;

/// Seconds without a known time.
const UNKNOWN: f64 = 10.0;
/// So many times its longest time in the profile: a capture takes a multiple of it.
const TIMES: f64 = 100.0;
/// Seconds at least.
const LEAST: f64 = 1.0;
/// Of long ones: so many seconds, and so many times.
const LONG: f64 = 10.0;

/// Seconds that an invocation may take whose longest one took `seconds` in the profile.
pub fn limit(seconds: Option<f64>) -> f64 {
    seconds.map_or(UNKNOWN, |seconds| {
        (TIMES * seconds).min(LONG + LONG * seconds).max(LEAST)
    })
}

/// The captured invocation begins: it is looked at twice in that time ([`is_over`]).
pub fn begin(seconds: Option<f64>) {
    signals::watch(limit(seconds) / 2.0);
}

/// Whether the captured invocation has touched nothing new since this was asked last. One that waits does not; one that does gets
/// more time, since each page costs the capture some.
pub fn is_over(engine: &mut Engine) -> bool {
    let Some(level) = engine.level.as_mut() else {
        return false;
    };
    let before = level.looked_at.replace(level.faults);
    before == Some(level.faults)
}

/// Why an invocation is refused that was given up.
pub fn reason(seconds: Option<f64>) -> String {
    let limit = limit(seconds);
    let known = seconds.map(|seconds| {
        let milliseconds = seconds * 1000.0;
        format!(" (in the profile it took {milliseconds:.3} ms at most)")
    });
    format!(
        "it waits for another thread: those stand still while it runs, and it has not ended after {limit:.1} s{}",
        known.unwrap_or_else(|| ", or it takes long: no profile says how long".into())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_from_the_profile() {
        assert_eq!(limit(None), 10.0);
        assert_eq!(limit(Some(0.001)), 1.0);
        assert_eq!(limit(Some(0.05)), 5.0);
        assert_eq!(limit(Some(60.0)), 610.0);
    }
}
