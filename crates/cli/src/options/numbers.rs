//! Numbers within their ranges.

use anyhow::{Context, Result};

/// Parses a number that `fits`; the error says which one `is_needed`.
pub fn number(text: &str, fits: impl Fn(f64) -> bool, is_needed: &'static str) -> Result<f64> {
    let number = text.parse().ok().filter(|value| fits(*value));
    number.context(is_needed)
}

/// Parses a number of seconds above zero.
pub fn seconds(text: &str) -> Result<f64> {
    let fits = |value| value > 0.0 && value <= 1e9;
    number(text, fits, "a number of seconds above 0 is needed")
}

/// Parses a number of per cent, 0 or more.
pub fn percent(text: &str) -> Result<f64> {
    let needed = "a number of per cent, 0 or more, is needed";
    number(text.trim_end_matches('%'), |value| value >= 0.0, needed)
}

/// Parses a share in per cent, above 0 and up to 100.
pub fn share(text: &str) -> Result<f64> {
    let fits = |value| value > 0.0 && value <= 100.0;
    let needed = "a number of per cent above 0, up to 100, is needed";
    number(text.trim_end_matches('%'), fits, needed)
}

/// Parses a relative error.
pub fn tolerance(text: &str) -> Result<f64> {
    let fits = |value| (0.0..1.0).contains(&value);
    number(text, fits, "a relative error from 0 up to 1 is needed")
}
