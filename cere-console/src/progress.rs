//! Progress on stderr, where that is a terminal and the command is not to be quiet. Messages of [`mod@crate::print`] go above it.

use crate::print::{SHOWN, Verbosity, time, verbosity};
use cere_format::untrusted::visible;
pub use indicatif::ProgressBar;
use indicatif::{HumanDuration, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::time::Duration;

/// A bar over `total` steps, with the time left; its message names the present step.
pub fn bar(what: &'static str, total: u64) -> ProgressBar {
    let bar = shown(ProgressBar::new(total));
    let style = ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len}{left} {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.with_key("left", left));
    bar.set_prefix(what);
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// A spinner for work whose length is not known, with the time that it has taken.
pub fn spinner(what: String) -> ProgressBar {
    spinner_of(what, None, Duration::from_millis(100))
}

/// A spinner for one run of a program, with the time that it has taken and, where an earlier run told, that it will take.
/// It moves seldom: the run may be timed.
pub fn run(what: String, expected: Option<f64>) -> ProgressBar {
    spinner_of(what, expected, Duration::from_millis(500))
}

fn spinner_of(what: String, expected: Option<f64>, every: Duration) -> ProgressBar {
    let spinner = shown(ProgressBar::new_spinner()).with_message(visible(&what));
    let style = ProgressStyle::with_template("{spinner} {msg}{taken}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    spinner.set_style(
        style.with_key("taken", move |state: &ProgressState, to: &mut dyn Write| {
            let _ = to.write_str(&taken(state.elapsed(), expected));
        }),
    );
    spinner.enable_steady_tick(every);
    spinner
}

/// Has `bar` drawn with the others, or nowhere.
fn shown(bar: ProgressBar) -> ProgressBar {
    match verbosity() {
        Verbosity::Quiet => {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            bar
        }
        Verbosity::Normal | Verbosity::Verbose => SHOWN.add(bar),
    }
}

/// The time left, once a step is done that tells.
fn left(state: &ProgressState, to: &mut dyn Write) {
    if state.pos() > 0 && state.len().is_some_and(|len| state.pos() < len) {
        let _ = write!(to, " {} left", HumanDuration(state.eta()));
    }
}

/// From the first second on, the time taken and that expected.
fn taken(elapsed: Duration, expected: Option<f64>) -> String {
    if elapsed < Duration::from_secs(1) {
        return String::new();
    }
    match expected {
        Some(expected) if expected >= 1.0 => {
            format!(" ({} s of about {:.0} s)", elapsed.as_secs(), expected)
        }
        Some(expected) => format!(" ({} s of about {})", elapsed.as_secs(), time(expected)),
        None => format!(" ({} s)", elapsed.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_has_taken() {
        let after = |seconds| Duration::from_secs(seconds);
        assert_eq!(taken(after(0), Some(9.0)), "");
        assert_eq!(taken(after(3), Some(12.4)), " (3 s of about 12 s)");
        assert_eq!(taken(after(3), Some(0.5)), " (3 s of about 500.000 ms)");
        assert_eq!(taken(after(75), None), " (75 s)");
    }
}
