//! A choice of metrics by a genetic algorithm (CERE thesis, 4.3.3).

use crate::subset::choose::{self, Space};
use crate::subset::document::Point;
use crate::subset::document::Scaling;
use crate::subset::validate::{Ratios, with_representatives};
use crate::subset::vectors::Vector;
use anyhow::Result;
use cere_catalogue::bail;
use cere_cluster::{Genetic, genetic};
use cere_count::metrics::METRICS;
use serde::Serialize;

/// The chosen metrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trained {
    /// Their names.
    pub metrics: Vec<&'static str>,
    /// Number of clusters at the elbow.
    pub k: usize,
    /// Largest mean error of points over the training machines, times `k`.
    pub fitness: f64,
    /// Generation in which it was found, from 0.
    pub generation: usize,
    /// Best fitness of each generation.
    pub history: Vec<f64>,
    /// Sets of metrics that were evaluated.
    pub evaluations: usize,
}

/// Searches the metrics whose clusters predict best on `machines`: the largest of their mean errors of points, times the number of
/// clusters at the elbow, is least.
///
/// # Errors
/// There is no machine, or no set of metrics tells points apart.
pub fn train(
    points: &[Point],
    vectors: &[Vector],
    machines: &[Ratios],
    scaling: Scaling,
    settings: &Genetic,
) -> Result<Trained> {
    if machines.is_empty() {
        bail!(
            E6326,
            "metrics are trained on machines where all codelets were measured: name their files with --machines"
        );
    }
    let names: Vec<&'static str> = METRICS.iter().map(|m| m.name).collect();
    // A choice must not gain by points whose time is not known.
    let known: Vec<usize> = (0..points.len())
        .filter(|p| machines.iter().all(|ratios| ratios[*p].is_some()))
        .collect();
    if known.len() < 2 {
        bail!(
            E6326,
            "{} points were measured on all machines: metrics are trained on two or more",
            known.len()
        );
    }
    let points: Vec<Point> = known.iter().map(|p| points[*p].clone()).collect();
    let machines: Vec<Ratios> = machines
        .iter()
        .map(|ratios| known.iter().map(|p| ratios[*p]).collect())
        .collect();
    let all = choose::rows(vectors, &names);
    let rows: Vec<Vec<Option<f64>>> = known.iter().map(|p| all[*p].clone()).collect();
    let space = |bits: &[bool]| -> Result<Space> {
        let chosen = |row: &Vec<Option<f64>>| {
            let each = row.iter().zip(bits).filter(|(_, bit)| **bit);
            each.map(|(value, _)| *value).collect()
        };
        let rows: Vec<Vec<Option<f64>>> = rows.iter().map(chosen).collect();
        choose::space(&rows, scaling)
    };
    let fitness = |bits: &[bool]| -> f64 {
        let Ok(space) = space(bits) else {
            return f64::INFINITY;
        };
        let Ok(clusters) = space.clusters(space.elbow, 0, &points) else {
            return f64::INFINITY;
        };
        let mean = |ratios: &Ratios| {
            let errors = with_representatives(&clusters, ratios);
            errors.iter().sum::<f64>() / errors.len().max(1) as f64
        };
        machines.iter().map(mean).fold(0.0, f64::max) * space.elbow as f64
    };
    let found = genetic(names.len(), settings, fitness)?;
    if !found.fitness.is_finite() {
        bail!(
            E6303,
            "no set of metrics distinguishes the points: measure more programs, or choose by hand with --metrics"
        );
    }
    let chosen = names.iter().zip(&found.bits).filter(|(_, bit)| **bit);
    Ok(Trained {
        metrics: chosen.map(|(name, _)| *name).collect(),
        k: space(&found.bits)?.elbow,
        fitness: found.fitness,
        generation: found.generation,
        history: found.history,
        evaluations: found.evaluations,
    })
}
