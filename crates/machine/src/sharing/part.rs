//! A part of the measurement: the cores that it is given, and what it finds.

use cere_format::machine::{Curve, Found};

/// Cores that have a cache together; `None` where it was not observed.
pub type Groups = Option<Vec<Vec<u32>>>;

/// A part of what was measured.
#[derive(Debug)]
pub struct Part<T> {
    pub value: T,
    pub found: Vec<Found>,
    pub curves: Vec<Curve>,
}

/// The cores of a measurement.
#[derive(Debug, Clone)]
pub struct Cores {
    /// Those measured.
    pub measured: Vec<u32>,
    /// How many threads can be put on.
    pub allowed: usize,
}
