//! Statistics of times on a machine that others share. No file is opened here and no clock read.
//!
//! | question | answer |
//! |---|---|
//! | where does the median lie? | [`median`], [`interval`], [`ranks`] |
//! | which values are disturbed? | [`far`] |
//! | how do subjects compare that were sampled in turns? | [`Series::ratios`], [`round`] |
//! | how far do values spread? | [`Spread::of`] |
//! | what does a variant gain, and how sure is that? | [`gain`] |
//! | which of many are the fastest? | [`race`] |
//! | do two measures put things in the same order? | [`spearman`] |
//! | is a share of failures chance? | [`fisher`] |

mod fisher;
mod gain;
mod order;
mod race;
mod rank;
mod series;
mod spread;

pub use fisher::fisher;
pub use gain::{Gain, gain, gain_with};
pub use order::{FAR_AT_MOST, FENCE, Ranks, far, interval, median, ranks};
pub use race::race;
pub use rank::spearman;
pub use series::{Series, between, round};
pub use spread::{EmptySample, Spread, middle, weighted_median};
