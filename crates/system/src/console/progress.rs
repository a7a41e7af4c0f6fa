//! Progress on stderr, where that is a terminal and the command is not to be quiet. Messages of [`mod@crate::console::print`] go above it.

use crate::console::print::{SHOWN, Verbosity, time, verbosity};
use cere_format::untrusted::visible;
pub use indicatif::ProgressBar;
use indicatif::{HumanDuration, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::time::Duration;

/// A bar over `total` steps with the estimated time left; its message names the current step.
pub fn bar(what: &'static str, total: u64) -> ProgressBar {
    let bar = add_to_screen(ProgressBar::new(total));
    let style = ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len}{left} {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.with_key("left", write_time_left));
    bar.set_prefix(what);
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// A spinner for work of unknown length, with the elapsed time.
pub fn spinner(what: String) -> ProgressBar {
    spinner_of(what, None, Duration::from_millis(100))
}

/// A spinner for one run of a program, with the elapsed time and, if known from an earlier run, the expected time. It is drawn
/// seldom because the run may be timed.
pub fn run(what: String, expected: Option<f64>) -> ProgressBar {
    spinner_of(what, expected, Duration::from_millis(500))
}

fn spinner_of(what: String, expected: Option<f64>, every: Duration) -> ProgressBar {
    let spinner = add_to_screen(ProgressBar::new_spinner()).with_message(visible(&what));
    let style = ProgressStyle::with_template("{spinner} {msg}{taken}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    spinner.set_style(
        style.with_key("taken", move |state: &ProgressState, to: &mut dyn Write| {
            let _ = to.write_str(&elapsed_and_expected(state.elapsed(), expected));
        }),
    );
    spinner.enable_steady_tick(every);
    spinner
}

/// Draws `bar` with the others, or hides it if there is no terminal or the command is quiet.
fn add_to_screen(bar: ProgressBar) -> ProgressBar {
    match verbosity() {
        Verbosity::Quiet => {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            bar
        }
        Verbosity::Normal | Verbosity::Verbose => SHOWN.add(bar),
    }
}

/// The estimated time left, once a step is done.
fn write_time_left(state: &ProgressState, to: &mut dyn Write) {
    if state.pos() > 0 && state.len().is_some_and(|len| state.pos() < len) {
        let _ = write!(to, " {} left", HumanDuration(state.eta()));
    }
}

/// The elapsed and the expected time, from the first second on.
fn elapsed_and_expected(elapsed: Duration, expected: Option<f64>) -> String {
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
        assert_eq!(elapsed_and_expected(after(0), Some(9.0)), "");
        assert_eq!(
            elapsed_and_expected(after(3), Some(12.4)),
            " (3 s of about 12 s)"
        );
        assert_eq!(
            elapsed_and_expected(after(3), Some(0.5)),
            " (3 s of about 500.000 ms)"
        );
        assert_eq!(elapsed_and_expected(after(75), None), " (75 s)");
    }
}
