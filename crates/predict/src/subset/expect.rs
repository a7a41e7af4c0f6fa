//! What a subset promises: errors of what was left out when it was made.

use crate::subset::choose;
use crate::subset::document::Subset;
use crate::subset::make::{Choosing, Measured, View};
use crate::subset::measurement::Measurement;
use crate::subset::train::train;
use crate::subset::validate::{ByK, Errors, Known, Ratios, point_errors};
use anyhow::{Context, Result};
use cere_catalogue::{bail, ensure};
use cere_cluster::Genetic;
use cere_system::events::Events;
use serde::Serialize;

/// Expected errors, over all machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expected {
    /// The machines that it was made of.
    pub machines: Vec<String>,
    /// Errors of points whose program the clusters were made without; none with one program, and if the metrics were trained, as
    /// they were trained on all programs.
    pub points: Option<Errors>,
    /// Errors of the covered time of such programs.
    pub programs: Option<Errors>,
    /// Errors of points on each machine that the metrics were trained without, if they were trained.
    pub machine_left_out: Vec<(String, Errors)>,
    /// Errors for this number of clusters, with the random partitions that it has to beat.
    pub control: Option<ByK>,
}

/// A way to choose, with what comes of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Clusters.
    pub k: usize,
    /// Codelets of its representatives.
    pub measured: usize,
    /// Seconds of all programs over those of one invocation of each measured codelet.
    pub reduction: f64,
    /// Expected errors, if machines are known.
    pub expected: Option<Expected>,
}

/// Machines where the points of a view were measured.
pub struct Machines<'a> {
    /// What they measured.
    pub all: &'a [Measurement],
    /// Names of their files.
    pub files: Vec<String>,
    /// Seed of the random partitions that the clusters are compared with.
    pub seed: u64,
    /// What is said meanwhile.
    pub events: &'a Events,
}

impl Machines<'_> {
    /// The ratios of the points on each machine.
    ///
    /// # Errors
    /// None of the points was measured by one of them.
    pub fn ratios(&self, view: &View) -> Result<Vec<Ratios>> {
        let mut all = Vec::new();
        for (number, (machine, file)) in self.all.iter().zip(&self.files).enumerate() {
            if let Some(twin) = self.all[..number].iter().position(|m| m.is_same(machine)) {
                bail!(
                    E6314,
                    "{file} is the same measurement as {}: name each once",
                    self.files[twin]
                );
            }
            if machine.model.is_some() {
                self.events.note(format!("{file}: {}", machine.basis()));
            }
            let found = machine.ratios(&view.codelets, &view.points);
            let found: Ratios = found.into_iter().map(|r| Some(r?.value)).collect();
            let (known, points) = (found.iter().flatten().count(), found.len());
            machine.check_measured()?;
            ensure!(
                known > 0,
                E6309,
                "{file} is a result of another subset: it has a time of none of these {points} points; measure an archive that \
                 `cere subset --whole` made of these stores"
            );
            if known < points {
                let lacking = points - known;
                self.events.note(format!(
                    "{file} has no time of {lacking} of {points} points: they are left out"
                ));
            }
            all.push(found);
        }
        Ok(all)
    }
}

/// Errors of programs that clusters like those of `subset` were made without and, with `genetic`, of machines that their metrics were
/// trained without, by the `ratios` of the points on each machine; none if there are no machines.
///
/// # Errors
/// No metrics tell the points apart.
pub fn expected(
    view: &View,
    subset: &Subset,
    choosing: &Choosing,
    machines: &Machines,
    ratios: &[Ratios],
    genetic: Option<&Genetic>,
) -> Result<Option<Expected>> {
    if machines.all.is_empty() {
        return Ok(None);
    }
    let replays = view.replay_seconds();
    let known = Known {
        points: &view.points,
        programs: subset.programs.len(),
        program_seconds: subset.programs.iter().map(|p| p.seconds).sum(),
        replay_seconds: &replays,
        machines: ratios,
    };
    let rows = choose::rows(&view.vectors, choosing.metrics);
    let k = subset.clusters.len();
    let without = match genetic {
        None => known.without_program(&rows, choosing.scaling, k, machines.events)?,
        Some(_) => None,
    };
    let space = choose::space(&rows, choosing.scaling)?;
    let labels: Vec<String> = machines.all.iter().map(|m| m.label.clone()).collect();
    let mut left_out = Vec::new();
    if let Some(genetic) = genetic {
        for (own, left) in ratios.iter().zip(machines.all) {
            // The same target measured again would tell what is left out.
            let each = ratios.iter().zip(machines.all);
            let others = each.filter(|(_, other)| !other.is_of_target(left));
            let others: Vec<Ratios> = others.map(|(ratios, _)| ratios.clone()).collect();
            if others.is_empty() {
                continue;
            }
            let trained = train(
                &view.points,
                &view.vectors,
                &others,
                choosing.scaling,
                genetic,
            )?;
            let rows = choose::rows(&view.vectors, &trained.metrics);
            let space = choose::space(&rows, choosing.scaling)?;
            let clusters = space.clusters(trained.k, 0, &view.points)?;
            let errors = Errors::of(&point_errors(&clusters, own));
            left_out.extend(errors.map(|e| (left.label.clone(), e)));
        }
    }
    Ok(Some(Expected {
        machines: labels,
        points: without.map(|w| w.0),
        programs: without.map(|w| w.1),
        machine_left_out: left_out,
        control: known.by_k(&space, k, machines.seed)?,
    }))
}

/// The two steps, time first and space then, with the most clusters whose representatives have no more codelets than those of
/// `unified`; with one cluster if even that has more.
///
/// # Errors
/// As those of [`expected`] and [`Machines::ratios`].
pub fn two_steps(
    measured: &Measured,
    choosing: &Choosing,
    unified: &Subset,
    machines: &Machines,
    genetic: Option<&Genetic>,
) -> Result<Alternative> {
    let view = measured.view(false);
    let codelets = |subset: &Subset| -> usize {
        let own = subset.clusters.iter().map(|c| c.representative);
        own.map(|p| subset.points[p].members.len()).sum()
    };
    let most = codelets(unified);
    let mut best = None;
    for k in 1..=view.points.len() {
        let subset = view.subset(&Choosing {
            k: Some(k),
            ..choosing.clone()
        })?;
        if best.is_none() || codelets(&subset) <= most {
            best = Some(subset);
        }
    }
    let subset = best.context("there are no regions")?;
    let ratios = machines.ratios(&view)?;
    Ok(Alternative {
        k: subset.clusters.len(),
        measured: codelets(&subset),
        reduction: subset.reduction(),
        expected: expected(&view, &subset, choosing, machines, &ratios, genetic)?,
    })
}
