//! What few codelets say of other machines: the measurements in `tests/bench/machines/`, each with its machine's identity. One of other
//! flags is compared with its own reference; two of different processors by the regions' times in their programs, which they find
//! by name.

use anyhow::{Context, Result};
use cere_predict::subset::validate::{Errors, Ratios, point_errors, program_errors};
use cere_predict::subset::{Cluster, Measurement, Subset};
use std::collections::BTreeMap;
use std::path::Path;

/// Share of a table in per cent.
fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Ratios of the points of `reference` on the machine of `target`, where the same regions of the same programs were timed too.
fn by_name(reference: &Subset, target: &Subset) -> Ratios {
    let seconds: BTreeMap<String, f64> = (0..target.points.len())
        .map(|p| (target.point_name(p), target.points[p].seconds))
        .collect();
    let ratio = |point: usize| {
        let there = seconds.get(&reference.point_name(point))?;
        Some(there / reference.points[point].seconds)
    };
    (0..reference.points.len()).map(ratio).collect()
}

fn row(what: &str, subset: &Subset, ratios: &Ratios) {
    let points = Errors::of(&point_errors(&subset.clusters, ratios));
    let programs = program_errors(
        &subset.clusters,
        &subset.points,
        subset.programs.len(),
        ratios,
    );
    let (Some(points), Some(programs)) = (points, Errors::of(&programs)) else {
        return;
    };
    println!(
        "| {what} | {} | {} | {} | {} | {} | {} |",
        points.of,
        percent(points.median),
        percent(points.p90),
        percent(programs.median),
        percent(programs.p90),
        percent(programs.most)
    );
}

/// Seconds below which an invocation of a codelet is short.
const SHORT: f64 = 1e-4;

/// Clusters of the points with `known` ratios on all targets, by these ratios: no metric could choose better ones.
fn by_ratios(known: &[(usize, Vec<f64>)], clusters: usize) -> Result<Vec<Cluster>> {
    let places: Vec<Vec<f64>> = known.iter().map(|k| k.1.clone()).collect();
    let labels = cere_cluster::kmeans(&places, clusters.min(places.len()), 20, 1)?;
    let members = cere_cluster::by_distance(&places, &labels)?;
    let point = |at: &usize| known[*at].0;
    let clusters = members.iter().filter_map(|members| {
        Some(Cluster {
            representative: point(members.first()?),
            members: members.iter().map(point).collect(),
            checks: Vec::new(),
        })
    });
    Ok(clusters.collect())
}

/// Whether all codelets of a point take so long that their own noise is small.
fn is_long(subset: &Subset, point: usize) -> bool {
    let of = subset.points[point].members.iter();
    let reference = |c: usize| subset.codelets[c].reference.iter().copied();
    of.flat_map(|m| reference(m.0))
        .all(|seconds| seconds >= SHORT)
}

/// Where the errors come from: the clusters as chosen, those that the ratios themselves give, and points without short codelets.
fn causes(targets: &[(&str, &Subset, Ratios)]) -> Result<()> {
    let Some((_, subset, _)) = targets.first() else {
        return Ok(());
    };
    let known = (0..subset.points.len()).filter_map(|point| {
        let each = targets.iter().map(|t| Some(t.2.get(point)?.as_ref()?.ln()));
        Some((point, each.collect::<Option<Vec<f64>>>()?))
    });
    let best = by_ratios(&known.collect::<Vec<_>>(), subset.clusters.len())?;
    println!(
        "\n| target | clusters | as chosen, median | by the ratios themselves | without codelets below 0.1 ms |"
    );
    println!("|---|---|---|---|---|");
    for (name, subset, ratios) in targets {
        let long: Ratios = (0..ratios.len())
            .map(|point| ratios[point].filter(|_| is_long(subset, point)))
            .collect();
        let median = |clusters: &[Cluster], ratios: &Ratios| {
            let errors = Errors::of(&point_errors(clusters, ratios));
            errors.map_or_else(|| "-".to_owned(), |e| percent(e.median))
        };
        println!(
            "| {name} | {} | {} | {} | {} |",
            subset.clusters.len(),
            median(&subset.clusters, ratios),
            median(&best, ratios),
            median(&subset.clusters, &long)
        );
    }
    Ok(())
}

/// Prints the tables.
pub fn run() -> Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
    let mut all: Vec<(String, Measurement)> = Vec::new();
    let entries = std::fs::read_dir(&directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") {
            let name = path.file_stem().unwrap_or_default();
            all.push((
                name.to_string_lossy().into_owned(),
                Measurement::read(&path)?,
            ));
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    println!("## Few codelets, many machines\n");
    println!(
        "| from -> to | points | median | 90th percentile | programs, median | 90th percentile | largest |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, of) in &all {
        let ratios = of.ratios(&of.subset.codelets, &of.subset.points);
        let values: Ratios = ratios.into_iter().map(|r| Some(r?.value)).collect();
        row(&format!("{name} ({})", of.machine.cpu), &of.subset, &values);
    }
    for (from, reference) in &all {
        for (to, target) in &all {
            let other = !reference.machine.is_alike(&target.subset.machine);
            if other && reference.flags.is_empty() && target.flags.is_empty() {
                let ratios = by_name(&reference.subset, &target.subset);
                row(&format!("{from} -> {to}"), &reference.subset, &ratios);
            }
        }
    }
    let targets: Vec<(&str, &Subset, Ratios)> = all
        .iter()
        .filter(|(_, of)| !of.flags.is_empty())
        .map(|(name, of)| {
            let ratios = of.ratios(&of.subset.codelets, &of.subset.points);
            let values = ratios.into_iter().map(|r| Some(r?.value)).collect();
            (name.as_str(), &of.subset, values)
        })
        .collect();
    causes(&targets)?;
    println!();
    Ok(())
}
