//! What was measured, and what each bandwidth is read off.

use super::kernels::{self, Kernel, Shape};
use super::plan::Spot;
use super::window;
use crate::document::found;
use cere_format::machine::{Bandwidth, Curve, FirstTouch, Found};

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Of each level and memory, of one core, then of more.
    pub bandwidths: Vec<Bandwidth>,
    /// By node.
    pub first_touch: Vec<FirstTouch>,
    /// How each was found; why one was not.
    pub found: Vec<Found>,
    /// Bandwidth by working set, and by cores.
    pub curves: Vec<Curve>,
}

/// The best way to write a kernel, found on one core.
#[derive(Debug, Clone, Copy)]
pub struct Winner {
    pub kernel: Kernel,
    pub shape: Shape,
    pub spot: Spot,
    pub sweeps: u64,
    pub best: window::Best,
}

pub fn add(measured: &mut Measured, winner: &Winner, cores: u32, spot: Spot, best: window::Best) {
    let kernel = winner.kernel;
    let mut how = match kernel {
        Kernel::Random => format!(
            "loads from random lines, {} generators of addresses side by side, a line counted for each",
            kernels::GENERATORS
        ),
        _ => format!(
            "{} bits, {} vectors unrolled, {} streams: the best of those tried; ",
            winner.shape.bits, winner.shape.unroll, winner.shape.streams
        ),
    };
    if kernel != Kernel::Random {
        how += match kernel.moved(spot.level) {
            moved if moved > 1.0 => "moved bytes assume that a store reads its line first",
            _ => "no line is read for a store",
        };
    }
    let mut confidence = best.repeated;
    if !spot.whole {
        how += "; free memory, or the time to touch it, is too little for the whole working set";
        confidence *= 0.5;
    }
    let what = format!("bandwidths[{}]", measured.bandwidths.len());
    measured.found.push(found(what, confidence, how));
    measured.bandwidths.push(Bandwidth {
        level: spot.level,
        name: kernel.name().to_owned(),
        cores,
        bytes_per_second: best.rate,
        moved: kernel.moved(spot.level),
        working_set: match kernel {
            Kernel::Random => window::spread(spot),
            _ => spot.set,
        },
    });
}
