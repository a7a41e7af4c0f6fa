//! What few codelets say of other machines: the measurements in `tests/bench/machines/`, each with its machine's identity. One of other
//! flags is compared with its own reference; two of different processors by the regions' times in their programs, which they find
//! by name.

use anyhow::{Context, Result};
use cere_predict::subset::validate::{Errors, Ratios, point_errors, program_errors};
use cere_predict::subset::{Measurement, Subset};
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

/// Prints the table.
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
    println!();
    Ok(())
}
