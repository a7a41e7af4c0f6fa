//! A subset from stores: reference times, metrics, clusters.

use crate::subset::archive::{self, Contents, Prebuilt};
use crate::subset::choose::{self, Space};
use crate::subset::collect::{Collected, Found, collect};
use crate::subset::document::{
    Choice, Codelet, Point, SUBSET_VERSION, Scaling, Subset, replay_seconds,
};
use crate::subset::machine::Machine;
use crate::subset::rounds::fast;
use crate::subset::times::{self, Code};
use crate::subset::vectors::{self, Vector};
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_cluster::Dropped;
use cere_format::replay::Warmup;
use cere_format::store::Store;
use cere_measure::{Replays, Settings};
use cere_system::console::print;
use cere_system::events::Events;
use std::collections::BTreeMap;
use std::path::Path;

/// What to make it from, and how.
pub struct Request<'a> {
    /// A store for each program.
    pub stores: &'a [Store],
    /// How codelets are replayed: as built.
    pub settings: &'a Settings,
    /// How metrics are measured.
    pub measuring: &'a cere_count::metrics::Settings,
    /// Rounds of reference times.
    pub rounds: usize,
    /// Whether reference times of earlier calls are ignored.
    pub again: bool,
    /// Points that are needed at least, unless codelets are points.
    pub least: usize,
    /// Whether codelets are points.
    pub unified: bool,
    /// What is said meanwhile.
    pub events: &'a Events,
}

/// All that is known of the codelets of the stores.
pub struct Measured {
    /// Programs, codelets, and the regions whose codelets were measured.
    pub collected: Collected,
    /// Metrics of each codelet.
    vectors: Vec<Option<Vector>>,
    /// Reference times of each codelet, round by round; empty if it failed.
    reference: Vec<Vec<f64>>,
    warmup: Option<Warmup>,
    geometry: String,
}

/// What is clustered: regions or, in time and space at once, codelets.
pub struct View<'a> {
    measured: &'a Measured,
    unified: bool,
    /// The codelets of the points.
    pub codelets: Vec<Codelet>,
    /// The points.
    pub points: Vec<Point>,
    /// Metrics of each point.
    pub vectors: Vec<Vector>,
}

/// How a subset is chosen from points.
#[derive(Debug, Clone)]
pub struct Choosing<'a> {
    /// The metrics that count.
    pub metrics: &'a [&'a str],
    /// How they become coordinates.
    pub scaling: Scaling,
    /// Clusters; none: as many as the elbow says.
    pub k: Option<usize>,
    /// Checks of each cluster, at most.
    pub checks: usize,
}

/// Measures all codelets of the stores: their times here in several rounds, and their metrics. Codelets that cannot be measured
/// are named, and left out with the time of their classes.
///
/// # Errors
/// A store cannot be used, or nothing can be measured.
pub fn measure(request: &Request) -> Result<Measured> {
    let mut collected = collect(request.stores, request.events)?;
    if !request.unified && request.least > collected.regions.len() {
        bail!(
            E6301,
            "{} points cannot make {} clusters: take --clusters {} or fewer",
            collected.regions.len(),
            request.least,
            collected.regions.len()
        );
    }
    let replays: Vec<Replays> = request
        .stores
        .iter()
        .map(|store| Replays::open(store, request.events))
        .collect::<Result<_>>()?;
    let reference = reference(request, &collected, &replays);
    let found = metrics(request, &collected, &replays, &reference);
    let known = |codelet: usize| found[codelet].is_some();
    for region in &mut collected.regions {
        let program = &collected.programs[region.program].name;
        if let Some(left_out) = keep_measured(region, known) {
            let text = format!("{program}/{}: {left_out}", region.name);
            request.events.note(text);
        }
    }
    collected.regions.retain(|r| !r.members.is_empty());
    if collected.regions.is_empty() {
        bail!(E6319, "no codelet can be measured: see the reasons above");
    }
    Ok(Measured {
        vectors: found,
        warmup: request.settings.warmup,
        geometry: request.measuring.geometry.name.clone(),
        collected,
        reference: reference
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect(),
    })
}

/// A region is left out if its codelets stand for less of it than this.
const LEAST_MEASURED: f64 = 0.5;

/// Leaves out the codelets of a region that are not `known`, with the time of their classes; all of them if that is the most of it. What
/// was left out, in words.
fn keep_measured(region: &mut Point, known: impl Fn(usize) -> bool) -> Option<String> {
    let before = region.members.len();
    region.members.retain(|m| known(m.0));
    if region.members.len() == before {
        return None;
    }
    let share: f64 = region.members.iter().map(|m| m.1).sum();
    if share < LEAST_MEASURED {
        region.members.clear();
        return Some("counts as uncovered".to_owned());
    }
    region.members.iter_mut().for_each(|m| m.1 /= share);
    region.seconds *= share;
    Some(format!(
        "the classes of {} codelets, {:.1} % of its time, count as uncovered",
        before - region.members.len(),
        100.0 * (1.0 - share)
    ))
}

/// Reference times: rounds over all codelets, as the speed of a shared machine changes. None of a codelet that fails.
fn reference(
    request: &Request,
    collected: &Collected,
    replays: &[Replays],
) -> Vec<Option<Vec<f64>>> {
    let codelets = &collected.codelets;
    let cache = |of: &Found| request.stores[of.store].cache();
    let key = |of: &Found| times::key(request.settings, &of.sha256);
    let mut all: Vec<Option<Vec<f64>>> = codelets
        .iter()
        .map(|of| match request.again {
            true => Some(Vec::new()),
            false => {
                let mut kept = times::kept(&cache(of), &key(of));
                // The fastest of more rounds is faster.
                kept.truncate(request.rounds);
                Some(kept)
            }
        })
        .collect();
    let steps = (request.rounds * codelets.len()) as u64;
    let bar = request.events.steps("timing", steps);
    for round in 0..request.rounds {
        for (of, seconds) in codelets.iter().zip(&mut all) {
            bar.step();
            let Some(known) = seconds.as_mut().filter(|s| s.len() <= round) else {
                continue;
            };
            bar.at(&of.manifest.name);
            let replays = &replays[of.store];
            let timed = times::round(replays, request.settings, &of.file, Code::Compiled, false);
            let kept = timed.and_then(|timed| {
                known.push(timed.seconds);
                times::keep(&cache(of), &key(of), known)
            });
            if let Err(error) = kept {
                let (name, why) = (&of.manifest.name, print::error(&error));
                request.events.note(format!("not timed: {name}: {why}"));
                *seconds = None;
            }
        }
    }
    all
}

/// Metrics of the codelets that have a time; none of one that fails.
fn metrics(
    request: &Request,
    collected: &Collected,
    replays: &[Replays],
    reference: &[Option<Vec<f64>>],
) -> Vec<Option<Vector>> {
    let steps = collected.codelets.len() as u64;
    let bar = request.events.steps("measuring", steps);
    let each = collected.codelets.iter().zip(reference);
    each.map(|(of, seconds)| {
        bar.at(&of.manifest.name);
        let seconds = seconds.as_ref();
        let found = seconds.map(|seconds| {
            let vector = vectors::vector(
                &replays[of.store],
                request.settings,
                request.measuring,
                &request.stores[of.store].cache(),
                &of.file,
                &of.sha256,
            );
            vector.map(|v| vectors::timed(v, fast(seconds)))
        });
        bar.step();
        match found? {
            Ok(vector) => Some(vector),
            Err(error) => {
                let (name, why) = (&of.manifest.name, print::error(&error));
                request.events.note(format!("not measured: {name}: {why}"));
                None
            }
        }
    })
    .collect()
}

impl Measured {
    /// Regions as points or, if `unified`, codelets.
    #[must_use]
    pub fn view(&self, unified: bool) -> View<'_> {
        let mut points = match unified {
            true => self.collected.unified(),
            false => self.collected.regions.clone(),
        };
        let of_point = |point: &Point| {
            let parts = point.members.iter();
            let parts: Vec<(f64, &Vector)> = parts
                .filter_map(|(codelet, share)| Some((*share, self.vectors[*codelet].as_ref()?)))
                .collect();
            vectors::mean(&parts)
        };
        let vectors = points.iter().map(of_point).collect();
        let mut codelets = Vec::new();
        let mut places = BTreeMap::new();
        for point in &mut points {
            for (codelet, _) in &mut point.members {
                let next = codelets.len();
                let place = *places.entry(*codelet).or_insert(next);
                if place == next {
                    codelets.push(self.codelet(*codelet, point.program));
                }
                *codelet = place;
            }
        }
        View {
            measured: self,
            unified,
            codelets,
            points,
            vectors,
        }
    }

    fn codelet(&self, codelet: usize, program: usize) -> Codelet {
        let of = &self.collected.codelets[codelet];
        Codelet {
            name: of.manifest.name.clone(),
            program,
            bytes: std::fs::metadata(&of.file).map_or(0, |m| m.len()),
            sha256: of.sha256.clone(),
            reference: self.reference[codelet].clone(),
        }
    }
}

impl View<'_> {
    /// The subset of these points.
    ///
    /// # Errors
    /// There are fewer points than clusters, or the metrics do not tell points apart.
    pub fn subset(&self, choosing: &Choosing) -> Result<Subset> {
        let metrics = choosing.metrics;
        let space = choose::space(&choose::rows(&self.vectors, metrics), choosing.scaling)?;
        let k = choosing.k.unwrap_or(space.elbow);
        let mut subset = Subset {
            version: SUBSET_VERSION,
            id: String::new(),
            machine: Machine::here(),
            choice: Choice {
                unified: self.unified,
                metrics: space
                    .scores
                    .columns
                    .iter()
                    .map(|c| metrics[*c].to_owned())
                    .collect(),
                dropped: dropped(&space, metrics),
                logarithm: choosing.scaling.logarithm,
                components: choosing.scaling.components,
                warmup: self.measured.warmup,
                geometry: self.measured.geometry.clone(),
            },
            programs: self.measured.collected.programs.clone(),
            codelets: self.codelets.clone(),
            points: self.points.clone(),
            clusters: space.clusters(k, choosing.checks, &self.points)?,
            dendrogram: space.dendrogram,
            variance: space.variance,
            elbow: space.elbow,
        };
        subset.identify()?;
        Ok(subset)
    }

    /// Seconds of one invocation of each point's codelets, together.
    #[must_use]
    pub fn replay_seconds(&self) -> Vec<f64> {
        replay_seconds(&self.points, &self.codelets)
    }
}

/// Writes `subset` with the packages of what is measured, or of all codelets if `whole`, to `output`, and linked replays of them if
/// `prebuilt`.
///
/// # Errors
/// A replay cannot be built; the archive cannot be written.
pub fn write(
    output: &Path,
    request: &Request,
    view: &View,
    subset: &Subset,
    whole: bool,
    prebuilt: bool,
) -> Result<()> {
    let chosen: Vec<usize> = match whole {
        true => (0..subset.codelets.len()).collect(),
        false => subset.measured(),
    };
    let mut packages = BTreeMap::new();
    let mut linked = Vec::new();
    let replays: Vec<Replays> = request
        .stores
        .iter()
        .map(|store| Replays::open(store, request.events))
        .collect::<Result<_>>()?;
    let bar = request.events.steps("packing", chosen.len() as u64);
    for codelet in chosen {
        let sha256 = &subset.codelets[codelet].sha256;
        let mut all = view.measured.collected.codelets.iter();
        let found = all.find(|of| of.sha256 == *sha256);
        let found = found.context("a codelet has no file")?;
        bar.at(&found.manifest.name);
        packages.insert(sha256.clone(), found.file.clone());
        if prebuilt {
            let replays = &replays[found.store];
            let (package, manifest, _) = replays.unpack(&found.file)?;
            let options = replays.options(request.settings, None)?;
            linked.push(Prebuilt {
                sha256: sha256.clone(),
                built: cere_replay::build(&package, &manifest, &options)?,
            });
        }
        bar.step();
    }
    drop(bar);
    archive::write(
        output,
        &Contents {
            subset,
            vectors: &view.vectors,
            packages: &packages,
            prebuilt: &linked,
        },
    )
}

fn dropped(space: &Space, metrics: &[&str]) -> Vec<(String, String)> {
    let each = space.scores.dropped.iter();
    each.map(|(column, why)| {
        let why = match why {
            Dropped::Constant => "all points have one value".to_owned(),
            Dropped::Missing { points } => format!("{points} points have no value"),
        };
        (metrics[*column].to_owned(), why)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_without_a_time_are_left_out() {
        let region = || Point {
            name: "f@a.c:1".into(),
            program: 0,
            seconds: 1.0,
            members: vec![(4, 0.6), (7, 0.3), (9, 0.1)],
        };
        let mut whole = region();
        assert_eq!(keep_measured(&mut whole, |_| true), None);
        assert_eq!(whole, region());
        let mut most = region();
        let told = keep_measured(&mut most, |c| c != 7).unwrap();
        assert!(told.contains("1 codelets, 30.0 %"), "{told}");
        assert!((most.seconds - 0.7).abs() < 1e-12);
        assert!((most.members.iter().map(|m| m.1).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((most.members[0].1 - 6.0 / 7.0).abs() < 1e-12);
        let mut little = region();
        let told = keep_measured(&mut little, |c| c != 4).unwrap();
        assert!(told.contains("uncovered") && little.members.is_empty());
    }
}
