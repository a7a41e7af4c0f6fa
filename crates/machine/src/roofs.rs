//! Ceilings of a measured machine.

use cere_format::machine::{Bandwidth, Machine, Peak, USABLE};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kinds of accesses whose best bandwidth is a roof. Non-temporal stores and random loads are not what plain code does.
const KINDS: [&str; 4] = ["load", "store", "copy", "triad"];

/// Name of the traffic with memory.
pub const MEMORY: &str = "memory";

/// The name of a level that bytes come from: `L1`, or [`MEMORY`] for 0.
#[must_use]
pub fn level_name(level: u32) -> String {
    match level {
        0 => MEMORY.to_owned(),
        n => format!("L{n}"),
    }
}

/// A ceiling: of arithmetic or of traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Roof {
    /// For people: `L2 copy, 1 core`.
    pub name: String,
    /// What the bytes come from, as [`level_name`]; none for arithmetic.
    pub level: Option<String>,
    /// `f32` or `f64`; none for traffic.
    pub element: Option<String>,
    /// Cores that work at once.
    pub cores: u32,
    /// Of arithmetic.
    pub flops_per_second: Option<f64>,
    /// Of traffic: what memory or the cache moves, write-allocates and write-backs included.
    pub bytes_per_second: Option<f64>,
}

/// What stops a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling {
    /// Name of the roof.
    pub roof: String,
    /// Operations per second that it allows at the point's intensity.
    pub flops_per_second: f64,
}

/// The number of cores measured that is nearest to `threads` from below, or the smallest.
fn nearest(measured: impl Iterator<Item = u32> + Clone, threads: u32) -> Option<u32> {
    let below = measured.clone().filter(|n| *n <= threads).max();
    below.or_else(|| measured.min())
}

fn cores(n: u32) -> String {
    match n {
        1 => "1 core".to_owned(),
        n => format!("{n} cores"),
    }
}

/// Whether the measurement says that the value at this path is unsure: then it is no roof.
fn is_unsure(machine: &Machine, list: &str, place: usize) -> bool {
    let what = format!("{list}[{place}]");
    let mut found = machine.found.iter();
    found.any(|f| f.what == what && f.confidence < USABLE)
}

/// `value` as a number that a ceiling can have.
fn possible(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// Bytes a second that loads alone get from the level of this name, which is less than what loads and stores move together; `None` where
/// that was not measured.
#[must_use]
pub fn loads(machine: &Machine, level: &str, threads: u32) -> Option<f64> {
    let all = machine.bandwidths.iter().enumerate();
    let of_level = all.filter(|(at, b)| {
        let wanted = b.name == "load" && level_name(b.level) == level;
        wanted && possible(b.bytes_per_second) && !is_unsure(machine, "bandwidths", *at)
    });
    let of_level = of_level.map(|(_, b)| b);
    let wanted = nearest(of_level.clone().map(|b| b.cores), threads)?;
    let found = of_level.filter(|b| b.cores == wanted);
    found.map(|b| b.bytes_per_second).reduce(f64::max)
}

/// The best bandwidth of each level.
fn bandwidths(machine: &Machine, threads: u32) -> Vec<Roof> {
    let usable = |(at, b): (usize, &Bandwidth)| {
        let plain = KINDS.contains(&b.name.as_str()) && possible(b.bytes_per_second * b.moved);
        plain && !is_unsure(machine, "bandwidths", at)
    };
    let all = machine.bandwidths.iter().enumerate();
    let all: Vec<&Bandwidth> = all.filter(|b| usable(*b)).map(|(_, b)| b).collect();
    let mut levels: Vec<u32> = all.iter().map(|b| b.level).collect();
    // Memory, 0, comes last.
    levels.sort_unstable_by_key(|level| level.wrapping_sub(1));
    levels.dedup();
    let best = |level: u32| {
        let of_level = all.iter().copied().filter(|b| b.level == level);
        let wanted = nearest(of_level.clone().map(|b| b.cores), threads)?;
        let traffic = |b: &Bandwidth| b.bytes_per_second * b.moved;
        let best = of_level
            .filter(|b| b.cores == wanted)
            .max_by(|a, b| traffic(a).total_cmp(&traffic(b)))?;
        Some(Roof {
            name: format!("{} {}, {}", level_name(level), best.name, cores(wanted)),
            level: Some(level_name(level)),
            element: None,
            cores: wanted,
            flops_per_second: None,
            bytes_per_second: Some(traffic(best)),
        })
    };
    levels.into_iter().filter_map(best).collect()
}

fn peak_name(peak: &Peak) -> String {
    let bits = match (peak.bits, peak.element.as_str()) {
        (64, "f64") | (32, "f32") => "scalar".to_owned(),
        (bits, _) => format!("{bits} bit"),
    };
    format!(
        "{} {} {bits}, {}",
        peak.name,
        peak.element,
        cores(peak.cores)
    )
}

/// The ceilings of `machine` for code of `element` (`f64` or `f32`) on `threads` threads: the best bandwidth of each level, then
/// peaks by falling height. Where so many cores were not measured, of the next smaller number that was.
#[must_use]
pub fn of(machine: &Machine, element: &str, threads: u32) -> Vec<Roof> {
    let usable = |(at, p): &(usize, &Peak)| {
        let wanted = p.element == element && possible(p.flops_per_second);
        wanted && !is_unsure(machine, "peaks", *at)
    };
    let peaks = machine.peaks.iter().enumerate().filter(usable);
    let peaks = peaks.map(|(_, peak)| peak);
    let wanted = nearest(peaks.clone().map(|p| p.cores), threads);
    let mut peaks: Vec<&Peak> = peaks.filter(|p| Some(p.cores) == wanted).collect();
    peaks.sort_by(|a, b| b.flops_per_second.total_cmp(&a.flops_per_second));
    let mut roofs = bandwidths(machine, threads);
    roofs.extend(peaks.into_iter().map(|p| Roof {
        name: peak_name(p),
        level: None,
        element: Some(p.element.clone()),
        cores: p.cores,
        flops_per_second: Some(p.flops_per_second),
        bytes_per_second: None,
    }));
    roofs
}

/// The lowest ceiling of a point of so many `flops` that moves so many `bytes` by level: the bandwidth of each level at the point's
/// intensity there, and the highest peak. `None` without roofs.
#[must_use]
pub fn lowest(roofs: &[Roof], flops: u64, bytes: &BTreeMap<String, u64>) -> Option<Ceiling> {
    let of_level = |roof: &Roof| {
        let moved = *bytes.get(roof.level.as_ref()?)?;
        let height = roof.bytes_per_second? * flops as f64 / moved as f64;
        (moved > 0).then_some(height)
    };
    let peaks = roofs.iter().filter_map(|r| Some((r, r.flops_per_second?)));
    let peak = peaks.max_by(|a, b| a.1.total_cmp(&b.1));
    let levels = roofs.iter().filter_map(|r| Some((r, of_level(r)?)));
    let lowest = levels.chain(peak).min_by(|a, b| a.1.total_cmp(&b.1));
    lowest.map(|(roof, flops_per_second)| Ceiling {
        roof: roof.name.clone(),
        flops_per_second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bandwidth(
        level: u32,
        name: &str,
        cores: u32,
        bytes_per_second: f64,
        moved: f64,
    ) -> Bandwidth {
        Bandwidth {
            level,
            name: name.to_owned(),
            cores,
            bytes_per_second,
            moved,
            working_set: 0,
        }
    }

    fn peak(name: &str, bits: u32, cores: u32, flops_per_second: f64) -> Peak {
        Peak {
            name: name.to_owned(),
            element: "f64".to_owned(),
            bits,
            cores,
            flops_per_second,
            streams: 8,
        }
    }

    fn machine() -> Machine {
        Machine {
            peaks: vec![
                peak("add", 64, 1, 4e9),
                peak("fma", 256, 1, 32e9),
                peak("fma", 256, 4, 120e9),
            ],
            bandwidths: vec![
                bandwidth(0, "load", 1, 8e9, 1.0),
                bandwidth(0, "copy", 1, 7e9, 1.5),
                bandwidth(0, "nt-store", 1, 50e9, 1.0),
                bandwidth(1, "load", 1, 100e9, 1.0),
                bandwidth(2, "load", 1, 40e9, 1.0),
                bandwidth(0, "load", 4, 20e9, 1.0),
            ],
            ..Machine::default()
        }
    }

    fn bytes(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
        of.iter()
            .map(|(level, n)| ((*level).to_owned(), *n))
            .collect()
    }

    #[test]
    fn roofs_are_traffic_of_the_best_kind() {
        let roofs = of(&machine(), "f64", 1);
        let names: Vec<&str> = roofs.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(loads(&machine(), MEMORY, 1), Some(8e9));
        assert_eq!(loads(&machine(), MEMORY, 9), Some(20e9));
        assert_eq!(loads(&machine(), "L3", 1), None);
        assert_eq!(
            names,
            [
                "L1 load, 1 core",
                "L2 load, 1 core",
                "memory copy, 1 core",
                "fma f64 256 bit, 1 core",
                "add f64 scalar, 1 core"
            ]
        );
        // A copy moves three bytes for two of the program's.
        assert_eq!(roofs[2].bytes_per_second, Some(10.5e9));
        assert!(of(&machine(), "f32", 1).iter().all(|r| r.level.is_some()));
    }

    #[test]
    fn what_is_unsure_is_no_roof() {
        let unsure = |what: &str, confidence| cere_format::machine::Found {
            what: what.to_owned(),
            confidence,
            how: String::new(),
        };
        let machine = Machine {
            found: vec![
                unsure("bandwidths[1]", 0.3),
                unsure("bandwidths[4]", 0.0),
                unsure("bandwidths[3]", 0.9),
                unsure("peaks[1]", 0.4),
            ],
            ..machine()
        };
        let roofs = of(&machine, "f64", 1);
        let names: Vec<&str> = roofs.iter().map(|r| r.name.as_str()).collect();
        let left = [
            "L1 load, 1 core",
            "memory load, 1 core",
            "add f64 scalar, 1 core",
        ];
        assert_eq!(names, left);
    }

    #[test]
    fn cores_are_the_next_smaller_number() {
        let four = of(&machine(), "f64", 6);
        let memory = four
            .iter()
            .find(|r| r.level.as_deref() == Some(MEMORY))
            .unwrap();
        assert_eq!((memory.cores, memory.bytes_per_second), (4, Some(20e9)));
        let peaks: Vec<u32> = four
            .iter()
            .filter(|r| r.level.is_none())
            .map(|r| r.cores)
            .collect();
        assert_eq!(peaks, [4]);
        assert_eq!(of(&machine(), "f64", 3)[2].cores, 1);
    }

    #[test]
    fn the_lowest_ceiling_binds() {
        let roofs = of(&machine(), "f64", 1);
        let found = |of: &[(&str, u64)]| lowest(&roofs, 100, &bytes(of)).unwrap();
        // 1 flop per byte of memory: 10.5 Gflop/s; a hundredth of the bytes: the peak.
        let memory = found(&[("L1", 200), ("L2", 110), (MEMORY, 100)]);
        assert_eq!(
            (memory.roof.as_str(), memory.flops_per_second),
            ("memory copy, 1 core", 10.5e9)
        );
        let near = found(&[("L1", 2000), ("L2", 110), (MEMORY, 1)]);
        assert_eq!(
            (near.roof.as_str(), near.flops_per_second),
            ("L1 load, 1 core", 5e9)
        );
        let peak = found(&[("L1", 20), ("L2", 0), (MEMORY, 0)]);
        assert_eq!(
            (peak.roof.as_str(), peak.flops_per_second),
            ("fma f64 256 bit, 1 core", 32e9)
        );
        assert_eq!(lowest(&[], 100, &bytes(&[(MEMORY, 1)])), None);
    }
}
