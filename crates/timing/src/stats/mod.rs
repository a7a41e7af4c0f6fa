//! Statistics of times on a machine that others share. No file is opened here and no clock read.
//!
//! | question | answer |
//! |---|---|
//! | where does the median lie? | [`median`], [`interval`], [`ranks`] |
//! | which values are disturbed? | [`far`] |
//! | how do subjects compare if they are sampled in turns? | [`Series::ratios`], [`round`] |
//! | how far do values spread? | [`Spread::of`] |
//! | how much does a variant gain, and in which interval? | [`gain`] |
//! | which of many are the fastest? | [`race`] |
//! | do two measures put things in the same order? | [`spearman`] |
//! | is a share of failures chance? | [`fisher`] |
//! | how wide is an interval from few values? | [`student`], [`around`], [`around_rounds`] |
//!
//! Is a variant faster than the baseline, on a machine that slows down by 10 % a sample?
//!
//! ```
//! use cere_timing::stats::{Series, gain, round};
//!
//! let mut series = Series::default();
//! let mut speed = 1.0;
//! for number in 0..7 {
//!     // The baseline, subject 0, before and after the variant, subject 1, which takes 0.8 of its time.
//!     for subject in round(&[1], 1, number).into_iter().chain([0]) {
//!         series.add(subject, vec![if subject == 0 { speed } else { 0.8 * speed }]);
//!         speed *= 1.1;
//!     }
//! }
//! let gain = gain(&series.part_ratios(1, 0)).expect("ratios");
//! assert!((gain.ratio - 0.8).abs() < 0.01);
//! assert!(gain.low <= gain.ratio && gain.ratio <= gain.high && gain.level > 0.95);
//! ```

mod fisher;
mod gain;
mod order;
mod race;
mod rank;
mod series;
mod spread;
mod student;

pub use fisher::fisher;
pub use gain::{Gain, gain, gain_with};
pub use order::{FAR_AT_MOST, FENCE, Ranks, far, interval, median_of_rising, ranks};
pub use race::race;
pub use rank::spearman;
pub use series::{Series, between, round};
pub use spread::{EmptySample, Spread, median, weighted_median};
pub use student::{around, around_rounds, student};
