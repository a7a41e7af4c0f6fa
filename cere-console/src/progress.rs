//! Progress on stderr, where that is a terminal.

use crate::print::{Verbosity, verbosity};
use cere_format::untrusted::visible;
pub use indicatif::ProgressBar;
use indicatif::ProgressStyle;
use std::time::Duration;

/// A bar over `total` steps; its message tells the present one.
pub fn bar(what: &'static str, total: u64) -> ProgressBar {
    if verbosity() == Verbosity::Quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    let style =
        ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len}, {eta} left {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(what);
    bar
}

/// A spinner for work whose length is not known.
pub fn spinner(what: String) -> ProgressBar {
    if verbosity() == Verbosity::Quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
    let spinner = ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        .with_message(visible(&what));
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
