//! Metric vectors of codelets, kept in their stores' caches: they do not change, and take longer than all else.

use anyhow::{Context, Result};
use cere_count::metrics::METRICS;
use cere_measure::{Replays, Settings};
use cere_store::state;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Version of the kept vectors: another set of metrics, or another meaning of one, is another version.
const VECTORS: u32 = 2;

/// The metrics of a codelet whose invocation takes one second.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    values: BTreeMap<String, f64>,
    missing: BTreeMap<String, String>,
}

/// Metrics by name; those without a value are not there.
pub type Vector = BTreeMap<String, f64>;

/// The metrics of the codelet in `file`, measured now if `cache` does not have them.
///
/// # Errors
/// It cannot be replayed or counted.
pub fn vector(
    replays: &Replays,
    settings: &Settings,
    measuring: &cere_count::metrics::Settings,
    cache: &Path,
    file: &Path,
    sha256: &str,
) -> Result<Vector> {
    let path = path(settings, measuring, cache, sha256);
    if let Ok(kept) = state::read_json::<Kept>(&path) {
        return Ok(kept.values);
    }
    let (package, ..) = replays.unpack(file)?;
    let how = replays.options(settings, None)?;
    let mut vector = cere_count::metrics::vector::vector(&package, measuring, &how)?;
    vector.time(1.0);
    let mut kept = Kept {
        values: BTreeMap::new(),
        missing: BTreeMap::new(),
    };
    for metric in METRICS.iter() {
        match vector.values.get(metric.name) {
            Some(Ok(value)) => drop(kept.values.insert(metric.name.to_owned(), *value)),
            Some(Err(why)) => drop(kept.missing.insert(metric.name.to_owned(), why.to_string())),
            None => {}
        }
    }
    state::write_json(&path, &kept).context("the metrics cannot be kept")?;
    Ok(kept.values)
}

fn path(
    settings: &Settings,
    measuring: &cere_count::metrics::Settings,
    cache: &Path,
    sha256: &str,
) -> PathBuf {
    let key = format!(
        "{VECTORS}\0{sha256}\0{:?}\0{:?}\0{:?}\0{}\0{}\0{}",
        settings.flags,
        settings.warmup,
        measuring.geometry,
        measuring.seed,
        measuring.budget,
        env!("CARGO_PKG_VERSION")
    );
    cache
        .join("metrics")
        .join(format!("{}.json", state::hash(&key)))
}

/// The vector of an invocation that takes `seconds`: rates per second fall with the time, times rise with it.
#[must_use]
pub fn timed(mut vector: Vector, seconds: f64) -> Vector {
    for metric in METRICS.iter().filter(|m| m.group == "rate") {
        if let Some(value) = vector.get_mut(metric.name) {
            match ["s", "ns/instruction"].contains(&metric.unit) {
                true => *value *= seconds,
                false => *value /= seconds,
            }
        }
    }
    vector
}

/// The vector of a point: the mean over its codelets, weighted by their shares of the time; of those that have a value.
#[must_use]
pub fn mean(parts: &[(f64, &Vector)]) -> Vector {
    let mut mean = Vector::new();
    for metric in METRICS.iter() {
        let known = parts
            .iter()
            .filter_map(|(share, vector)| Some((*share, *vector.get(metric.name)?)));
        let (mut sum, mut whole) = (0.0, 0.0);
        for (share, value) in known {
            sum += share * value;
            whole += share;
        }
        if whole > 0.0 {
            mean.insert(metric.name.to_owned(), sum / whole);
        }
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_time() {
        let rates: Vec<&str> = METRICS
            .iter()
            .filter(|m| m.group == "rate")
            .map(|m| m.unit)
            .collect();
        // Each unit is one that `timed` knows to rise or to fall.
        for unit in &rates {
            assert!(
                ["s", "ns/instruction", "Mflop/s", "MB/s"].contains(unit),
                "{unit}"
            );
        }
        let vector = Vector::from([
            ("seconds".to_owned(), 1.0),
            ("ns_per_instruction".to_owned(), 8.0),
            ("mflops".to_owned(), 6.0),
            ("instructions".to_owned(), 5.0),
        ]);
        let timed = timed(vector, 0.5);
        let value = |name: &str| timed[name];
        assert_eq!(value("seconds"), 0.5);
        assert_eq!(value("ns_per_instruction"), 4.0);
        assert_eq!(value("mflops"), 12.0);
        assert_eq!(value("instructions"), 5.0);
    }

    #[test]
    fn means_are_of_what_has_a_value() {
        let one = Vector::from([("mflops".to_owned(), 1.0), ("seconds".to_owned(), 4.0)]);
        let other = Vector::from([("mflops".to_owned(), 5.0)]);
        let mean = mean(&[(0.75, &one), (0.25, &other)]);
        assert_eq!(mean["mflops"], 2.0);
        assert_eq!(mean["seconds"], 4.0);
        assert!(!mean.contains_key("instructions"));
    }
}
