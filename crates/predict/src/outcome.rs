//! What each prediction says of a time: of other threads, other flags, other machines.

use cere_system::console::print;
use cere_timing::stats::around_rounds;
use serde::Serialize;

/// A predicted time, and the measured one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Predicted seconds; none if it cannot be predicted.
    pub predicted_seconds: Option<f64>,
    /// Lower end of the 95 % interval; none if it is not known.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Measured seconds, if it was measured.
    pub measured_seconds: Option<f64>,
    /// Share of the time that codelets stand for, 0 to 1.
    pub covered: f64,
    /// Why something is not known.
    pub reason: Option<String>,
}

/// Headings of [`Outcome::cells`].
pub const HEADING: [&str; 3] = ["predicted", "measured", "error"];

impl Outcome {
    /// Of rounds: `seconds`, with the interval that their spread gives.
    #[must_use]
    pub fn of_rounds(seconds: f64, rounds: &[f64], covered: f64) -> Self {
        let interval = around_rounds(seconds, rounds);
        Self {
            predicted_seconds: Some(seconds),
            low: interval.map(|i| i.0),
            high: interval.map(|i| i.1),
            covered,
            ..Self::default()
        }
    }

    /// Predicted over measured, less 1.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        error(self.predicted_seconds?, self.measured_seconds)
    }

    /// For a table.
    #[must_use]
    pub fn cells(&self) -> [String; 3] {
        let time = |s: Option<f64>| s.map_or("-".to_owned(), print::time);
        let within = |s, (low, high)| print::time_within(s, low, high);
        let interval = self.predicted_seconds.zip(self.low.zip(self.high));
        [
            interval.map_or_else(|| time(self.predicted_seconds), |(s, i)| within(s, i)),
            time(self.measured_seconds),
            self.error()
                .map_or("-".to_owned(), |e| format!("{:+.1} %", e * 100.0)),
        ]
    }
}

/// An error in per cent with its interval: `+2.4 ± 0.8 %`.
#[must_use]
pub fn error_within(error: f64, (low, high): (f64, f64)) -> String {
    let [error, low, high] = [error, low, high].map(|share| share * 100.0);
    let text = format!("+{} %", print::within(error, low, high));
    let signed = text.replace('(', "(+").replace(" to ", " to +");
    signed.replace("+-", "-")
}

/// Predicted over measured, less 1; none without a measured time.
#[must_use]
pub fn error(predicted: f64, measured: Option<f64>) -> Option<f64> {
    let measured = measured.filter(|s| *s > 0.0)?;
    Some(predicted / measured - 1.0)
}

#[cfg(test)]
mod tests {
    use super::error_within;

    #[test]
    fn errors_have_signs() {
        assert_eq!(error_within(0.0238, (0.016, 0.031)), "+2.4 ± 0.8 %");
        assert_eq!(error_within(-0.02, (-0.04, 0.001)), "-2 ± 2 %");
        assert_eq!(error_within(0.14, (-0.67, 2.94)), "+14 (-67 to +294) %");
    }
}
