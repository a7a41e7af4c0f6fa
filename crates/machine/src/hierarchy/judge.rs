//! How far the parameters of caches can be relied on, and why.

use super::caches::Ways;
use super::levels::{Plateau, Size};
use crate::document::found;
use cere_format::machine::Found;

/// Two sizes that differ by at most this share agree.
const AGREES: f64 = 0.125;

/// A level with its size, and the one behind it.
pub struct Level {
    /// Its plateau.
    pub near: Plateau,
    /// The plateau behind it.
    pub far: Plateau,
    /// What was read off.
    pub size: Size,
    /// Whether the curve goes on beyond it.
    pub ends: bool,
}

/// Confidence of a size, and how it was found.
pub fn judge(
    at: usize,
    level: &Level,
    way: Option<(u32, usize)>,
    told: Option<&cere_format::caches::Cache>,
    size: usize,
    trust: f64,
) -> (f64, String) {
    if let Some((ways, way)) = way
        && ways as usize * way == size
    {
        // Two methods that share nothing agree: what others did in the meantime did not matter.
        return (
            0.98,
            format!(
                "the time by working set rises there, and {ways} lines of each of {way} bytes' sets stay"
            ),
        );
    }
    if !level.ends {
        return (
            0.2 * trust,
            "the largest working set that was measured: its end was not reached".into(),
        );
    }
    let shape = match level.size.fit {
        Some(fit) => format!(
            "the rise of the time fits {} sets of pages with {} ways and pages at random, residual {:.3}",
            fit.sets, fit.ways, fit.residual
        ),
        None => "one step of the time by working set".into(),
    };
    // A level that cores share holds less for one of them, and rises with what others do.
    let shared = if at >= 2 { 0.7 } else { 1.0 };
    let confidence = level.size.confidence * trust * shared;
    match told {
        Some(told) if (size as f64 / told.size as f64 - 1.0).abs() <= AGREES => (
            1.0 - 0.5 * (1.0 - confidence),
            format!(
                "{shape}; the system says about the same, {} KiB",
                told.size >> 10
            ),
        ),
        _ => (confidence, shape),
    }
}

/// How the ways were found, or why they are not.
pub fn ways_found(
    at: usize,
    level: &Level,
    all: &[Ways],
    way: Option<(u32, usize)>,
    confidence: f64,
) -> Found {
    let what = format!("caches[{at}].ways");
    match way {
        Some((ways, way)) => {
            let agrees = (f64::from(ways) * way as f64 / level.size.size - 1.0).abs() < 0.125;
            let how = format!("lines {way} bytes apart, and twice as far apart: {ways} stay");
            found(what, if agrees { confidence.max(0.9) } else { 0.3 }, how)
        }
        None if at >= 2 => found(
            what,
            0.0,
            "not observable: the sets of this level are hashed over slices, and its index is physical",
        ),
        None if all.len() > at => found(
            what,
            0.0,
            "not observable: lines at any stride do not collide; the pages below huge ones are small (a hypervisor), or the index is hashed",
        ),
        None => found(
            what,
            0.0,
            "not measured: time was over, or the level before has no known ways",
        ),
    }
}
