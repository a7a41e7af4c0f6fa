//! Points, series, and what has no point.

use crate::roofline::measure::{Times, Work};
use anyhow::{Context, Result};
use cere_format::machine::Machine;
use cere_format::store::Store;
use cere_machine::roofs::{self, MEMORY, Roof};
use cere_store::state;
use cere_timing::stats::Spread;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A codelet in a state, under flags and with threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Name.
    pub codelet: String,
    /// Its region.
    pub region: String,
    /// The size that a kernel of the user's own was called with.
    pub size: Option<u64>,
    /// Flags after those of the build.
    pub flags: String,
    /// Threads.
    pub threads: u32,
    /// As [`crate::roofline::State::name`].
    pub state: String,
    /// `f64` or `f32`: the type of most operations, whose peaks are the roofs.
    pub element: String,
    /// W: floating-point operations.
    pub flops: u64,
    /// Q: bytes by the level that they come from or go to.
    pub bytes: BTreeMap<String, u64>,
    /// W / Q by level; none where nothing moves.
    pub intensity: BTreeMap<String, Option<f64>>,
    /// t: the median.
    pub seconds: f64,
    /// Quartiles of t: the box.
    pub seconds_box: [f64; 2],
    /// Least and greatest t: the whiskers.
    pub seconds_whiskers: [f64; 2],
    /// Repetitions that count.
    pub repetitions: usize,
    /// W / t.
    pub flops_per_second: f64,
    /// The roof that binds; none if the machine has none.
    pub bound_by: Option<String>,
    /// What that roof allows at the point's intensity, in operations per second.
    pub ceiling: Option<f64>,
    /// W / t over the ceiling. Above 1 the measurement is disturbed, or a roof too low.
    pub share_of_roof: Option<f64>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// Points that are joined, by their numbers in the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// For people.
    pub name: String,
    /// Numbers of points, from 0.
    pub points: Vec<usize>,
}

/// What has no point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Apart {
    /// Name.
    pub codelet: String,
    /// Flags after those of the build.
    pub flags: String,
    /// Its state; none if that does not matter.
    pub state: Option<String>,
    /// Why.
    pub reason: String,
    /// Whether that is a failure; code without floating point is none.
    pub failed: bool,
}

/// The machine of the roofs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Of {
    /// Its processor.
    pub cpu: String,
    /// Its identity.
    pub id: String,
    /// Whether the points were measured on it.
    pub here: bool,
}

/// A roofline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The machine.
    pub machine: Of,
    /// Name of the simulated caches.
    pub geometry: String,
    /// The ceilings of all points.
    pub roofs: Vec<Roof>,
    /// The points.
    pub points: Vec<Point>,
    /// The same region, flags, threads and state, by rising work: joined by lines.
    pub series: Vec<Series>,
    /// The same codelet, otherwise different: joined by dashes.
    pub equal: Vec<Series>,
    /// What has no point.
    pub apart: Vec<Apart>,
    /// What holds for all points.
    pub notes: Vec<String>,
}

/// What a point is of.
pub struct Subject<'a> {
    /// Name of the codelet.
    pub codelet: &'a str,
    /// Its region.
    pub region: &'a str,
    /// Size of a kernel of the user's own.
    pub size: Option<u64>,
    /// Flags in one line.
    pub flags: &'a str,
    /// Its state.
    pub state: crate::roofline::State,
}

/// Makes the point of `subject`, and leaves its roofs in `roofs`.
///
/// # Errors
/// There are no times.
pub fn point(
    subject: &Subject,
    work: &Work,
    times: &Times,
    machine: &Machine,
    all: &mut Vec<Roof>,
) -> Result<Point> {
    let spread = Spread::of(&times.seconds)?;
    let bytes = match subject.state.data {
        true => work.warm.clone(),
        false => work.cold.clone(),
    };
    let threads = work.threads.max(1);
    let roofs = roofs::of(machine, &work.element, threads);
    let ceiling = roofs::lowest(&roofs, work.flops, &bytes);
    let flops_per_second = work.flops as f64 / spread.median;
    let share = ceiling
        .as_ref()
        .map(|c| flops_per_second / c.flops_per_second);
    let mut notes: Vec<String> = work.notes.iter().chain(&times.notes).cloned().collect();
    notes.extend(share.filter(|s| *s > 1.0).map(|s| {
        format!("it is above its roof, by {:.0} %: the time is disturbed, or the roof was measured too low", (s - 1.0) * 100.0)
    }));
    let other = roofs.iter().find(|r| r.cores != threads);
    notes.extend(other.map(|r| {
        format!(
            "{} stands for the roofs of {threads} threads, which were not measured",
            r.name
        )
    }));
    for roof in roofs {
        if !all.contains(&roof) {
            all.push(roof);
        }
    }
    let intensity = |(level, n): (&String, &u64)| {
        (
            level.clone(),
            (*n > 0).then(|| work.flops as f64 / *n as f64),
        )
    };
    Ok(Point {
        codelet: subject.codelet.to_owned(),
        region: subject.region.to_owned(),
        size: subject.size,
        flags: subject.flags.to_owned(),
        threads,
        state: subject.state.name(),
        element: work.element.clone(),
        flops: work.flops,
        intensity: bytes.iter().map(intensity).collect(),
        bytes,
        seconds: spread.median,
        seconds_box: [spread.lower, spread.upper],
        seconds_whiskers: [spread.min, spread.max],
        repetitions: times.seconds.len(),
        flops_per_second,
        bound_by: ceiling.as_ref().map(|c| c.roof.clone()),
        ceiling: ceiling.map(|c| c.flops_per_second),
        share_of_roof: share,
        notes,
    })
}

/// Groups of at least `least` points with the same name, in the order of the points.
fn groups(points: &[Point], least: usize, name: impl Fn(&Point) -> String) -> Vec<Series> {
    let mut found: Vec<Series> = Vec::new();
    for (number, point) in points.iter().enumerate() {
        let name = name(point);
        match found.iter_mut().find(|s| s.name == name) {
            Some(series) => series.points.push(number),
            None => found.push(Series {
                name,
                points: vec![number],
            }),
        }
    }
    found.retain(|s| s.points.len() >= least);
    found
}

fn kept_at(store: &Store) -> PathBuf {
    store.cache().join("roofline.json")
}

impl Document {
    /// Without points. `here`: whether `machine` is the one that measures.
    #[must_use]
    pub fn new(machine: &Machine, here: bool, geometry: String) -> Self {
        let mut notes = vec![
            "fetches of instructions are not in the traffic: only data are simulated".to_owned(),
        ];
        notes.extend((!here).then(|| {
            format!(
                "the roofs are those of another machine, {}: the times are of this one",
                machine.identity.cpu
            )
        }));
        Self {
            machine: Of {
                cpu: machine.identity.cpu.clone(),
                id: machine.identity.id.clone(),
                here,
            },
            geometry,
            roofs: Vec::new(),
            points: Vec::new(),
            series: Vec::new(),
            equal: Vec::new(),
            apart: Vec::new(),
            notes,
        }
    }

    /// Keeps it in the store's cache, where `cere report` finds it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, store: &Store) -> Result<()> {
        state::write_json(&kept_at(store), self)
            .context("the roofline cannot be kept for the report")
    }

    /// The one that was kept last; none if there is none that this version reads.
    #[must_use]
    pub fn kept(store: &Store) -> Option<Self> {
        state::read_json(&kept_at(store)).ok()
    }

    /// Finds the series among the points, and levels with traffic that have no roof.
    pub fn join(&mut self) {
        let has_roof = |level: &String| self.roofs.iter().any(|r| r.level.as_ref() == Some(level));
        let missing: Vec<String> = self.levels().into_iter().filter(|l| !has_roof(l)).collect();
        let what = missing.join(", ");
        self.notes.extend((!missing.is_empty()).then(|| {
            format!("the machine's bandwidth of {what} was not measured: no such roof can bind")
        }));
        self.series = groups(&self.points, 1, |p| {
            let flags = match p.flags.as_str() {
                "" => String::new(),
                flags => format!(" {flags}"),
            };
            let threads = match p.threads {
                1 => String::new(),
                n => format!(", {n} threads"),
            };
            format!("{}{flags}{threads}, {}", p.region, p.state)
        });
        for series in &mut self.series {
            series.points.sort_by_key(|n| self.points[*n].flops);
        }
        self.equal = groups(&self.points, 2, |p| p.codelet.clone());
    }

    /// Whether something that should have a point has none.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.apart.iter().any(|a| a.failed)
    }

    /// Levels of the points' traffic, the nearest to the core first.
    #[must_use]
    pub fn levels(&self) -> Vec<String> {
        let mut levels: Vec<String> = self
            .points
            .iter()
            .flat_map(|p| p.bytes.keys().cloned())
            .collect();
        levels.sort_by_key(|level| (level == MEMORY, level.clone()));
        levels.dedup();
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roofline::State;
    use cere_format::machine::Bandwidth;
    use cere_format::replay::Verdict;

    fn machine() -> Machine {
        let bandwidth = |cores| Bandwidth {
            level: 0,
            name: "load".to_owned(),
            cores,
            bytes_per_second: 1e9 * f64::from(cores),
            moved: 1.0,
            working_set: 0,
        };
        Machine {
            bandwidths: vec![bandwidth(1), bandwidth(2)],
            ..Machine::default()
        }
    }

    /// Points of as much work as threads, in two states each.
    fn document(threads: &[u32], seconds: &[f64]) -> Document {
        let machine = machine();
        let mut document = Document::new(&machine, true, "test".to_owned());
        for &threads in threads {
            let bytes = |n: u64| BTreeMap::from([("L1".to_owned(), 800), (MEMORY.to_owned(), n)]);
            let work = Work {
                verdict: Verdict::Exact,
                reason: String::new(),
                threads,
                flops: 100 * u64::from(threads),
                element: "f64".to_owned(),
                cold: bytes(400),
                warm: bytes(0),
                notes: Vec::new(),
            };
            let times = Times {
                verdict: Verdict::Exact,
                reason: String::new(),
                seconds: seconds.to_vec(),
                notes: Vec::new(),
            };
            for state in [State::ALL[0], State::ALL[3]] {
                let subject = Subject {
                    codelet: "f@a.c:1:2",
                    region: "f@a.c:1",
                    size: None,
                    flags: "",
                    state,
                };
                let point = point(&subject, &work, &times, &machine, &mut document.roofs);
                document.points.push(point.expect("a point"));
            }
        }
        document.join();
        document
    }

    #[test]
    fn boxes_are_quartiles_and_whiskers_extremes() {
        let found = &document(&[1], &[5e-7, 1e-7, 2e-7, 4e-7, 3e-7]).points[0];
        assert_eq!(found.seconds, 3e-7);
        assert_eq!(found.seconds_box, [2e-7, 4e-7]);
        assert_eq!(found.seconds_whiskers, [1e-7, 5e-7]);
        assert_eq!(found.intensity[MEMORY], Some(0.25));
    }

    #[test]
    fn a_share_above_one_stays_and_is_noted() {
        // 0.25 flop per byte at 1 GB/s: 0.25 Gflop/s, and the point has 0.5.
        let above = document(&[1], &[2e-7]);
        let share = above.points[0].share_of_roof.unwrap();
        assert!((share - 2.0).abs() < 1e-9, "{share}");
        assert!(above.points[0].notes[0].contains("above its roof, by 100 %"));
        let below = document(&[1], &[1e-6]);
        assert!(below.points[0].share_of_roof.unwrap() < 1.0 && below.points[0].notes.is_empty());
    }

    #[test]
    fn what_has_no_roof_is_noted() {
        let document = document(&[1, 3], &[1e-6]);
        let warm = &document.points[1];
        assert_eq!(
            (warm.bound_by.as_ref(), warm.intensity[MEMORY]),
            (None, None)
        );
        assert!(
            document
                .notes
                .iter()
                .any(|n| n.contains("bandwidth of L1 was not measured"))
        );
        let three = &document.points[2];
        assert_eq!(three.bound_by.as_deref(), Some("memory load, 2 cores"));
        assert!(
            three.notes[0].contains("stands for the roofs of 3 threads"),
            "{three:?}"
        );
    }

    #[test]
    fn series_rise_and_equals_are_joined() {
        let document = document(&[2, 1], &[1e-6]);
        let points = |all: &[Series]| all.iter().map(|s| s.points.clone()).collect::<Vec<_>>();
        assert_eq!(points(&document.series), [[0], [1], [2], [3]]);
        assert_eq!(points(&document.equal), [[0, 1, 2, 3]]);
        let mut same = document.clone();
        same.points.iter_mut().for_each(|p| p.threads = 1);
        same.join();
        assert_eq!(points(&same.series), [[2, 0], [3, 1]]);
    }
}
