//! Predicts programs on other machines, from what `cere measure` measured of a subset there (CERE thesis, 6.4).

use super::outcome::{HEADING, Outcome};
use crate::subset::model::{self, Predicted, Refused};
use crate::subset::validate::Errors;
use crate::subset::{Machine, Measurement, Model, Subset};
use anyhow::Result;
use cere_catalogue::{bail, ensure};
use cere_system::console::print;
use serde::Serialize;

/// All programs on a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnMachine {
    /// Name of the measurement.
    pub label: String,
    /// Id of the subset.
    pub subset: String,
    /// The machine.
    pub machine: Machine,
    /// What its times are, for people: measured, or modelled.
    pub basis: String,
    /// The model that they are of; none: they were measured.
    pub model: Option<Model>,
    /// Flags after those of the build.
    pub flags: Vec<String>,
    /// The programs of the subset.
    pub programs: Vec<Predicted>,
    /// Clusters that say nothing there.
    pub refused: Vec<Refused>,
    /// Standard deviation of the logarithm of a member's ratio from its representative's.
    pub deviation: Option<f64>,
    /// Checks that it was made of.
    pub checks: usize,
    /// Noise of the machine while it measured.
    pub noise: Option<f64>,
    /// Representatives that stand for members which nothing checks there.
    pub unchecked: Vec<String>,
    /// Errors of the points that are predicted by their representatives and were measured nevertheless; none if there are none.
    pub point_errors: Option<Errors>,
    /// Predicted seconds of all programs over those of one invocation of each codelet that the prediction needs.
    pub reduction: Option<f64>,
}

/// Predicts the programs of `subset`, or of the measured subset, on the machine of `measurement`.
///
/// # Errors
/// The measurement is one of other codelets.
pub fn predict(
    measurement: &Measurement,
    subset: Option<&Subset>,
    disagree: f64,
) -> Result<OnMachine> {
    let subset = subset.unwrap_or(&measurement.subset);
    let ratios = measurement.ratios(&subset.codelets, &subset.points);
    measurement.check_measured()?;
    let needed = |p: &usize| ratios[*p].is_some();
    ensure!(
        subset
            .clusters
            .iter()
            .any(|c| needed(&c.representative) || c.checks.iter().any(needed)),
        E6309,
        "{} is a result of another subset: it has no time of a representative of this one; measure this one there",
        measurement.label
    );
    let found = model::predict(subset, &ratios, disagree);
    let errors: Vec<f64> = found
        .ratios
        .iter()
        .zip(&ratios)
        .filter_map(|(predicted, measured)| {
            let (predicted, own) = (*predicted)?;
            let measured = measured.as_ref()?;
            (!own).then(|| (predicted / measured.value - 1.0).abs())
        })
        .collect();
    let mut programs = found.programs;
    for program in &mut programs {
        program.outcome.measured_seconds = measurement.programs.get(&program.name).copied();
    }
    let predicted: f64 = programs
        .iter()
        .filter_map(|p| p.outcome.predicted_seconds)
        .sum();
    let replays = measurement.seconds_of(subset, &subset.measured());
    Ok(OnMachine {
        label: measurement.label.clone(),
        subset: subset.id.clone(),
        machine: measurement.machine.clone(),
        basis: measurement.basis(),
        model: measurement.model.clone(),
        flags: measurement.flags.clone(),
        programs,
        refused: found.refused,
        deviation: found.deviation,
        checks: found.checks,
        noise: measurement.noise,
        unchecked: found.unchecked,
        point_errors: Errors::of(&errors),
        reduction: (replays > 0.0).then(|| predicted / replays),
    })
}

/// The machines for a program, the fastest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// The program.
    pub program: String,
    /// Label and time of each measurement, by rising time; those without one come last.
    pub machines: Vec<(String, Outcome)>,
    /// Labels of those that are modelled, whose times are no measurements.
    pub modelled: Vec<String>,
    /// Whether the first is surely the fastest: its interval meets none of the others', and none is modelled.
    pub sure: bool,
}

/// Ranks machines, or flags, or compilers, for each program.
///
/// # Errors
/// The predictions are of different programs, or there is one only.
pub fn rank(all: &[OnMachine]) -> Result<Vec<Ranked>> {
    let [first, rest @ ..] = all else {
        bail!(
            E6324,
            "there is nothing to rank: no measurement is named; `cere measure` makes one on each machine"
        );
    };
    if rest.is_empty() {
        bail!(
            E6322,
            "--rank compares several measurements: name more files with --machine"
        );
    }
    if let Some(other) = rest.iter().find(|o| o.subset != first.subset) {
        bail!(
            E6309,
            "{} and {} are results of different subsets: measure one subset on all machines",
            first.label,
            other.label
        );
    }
    let modelled: Vec<String> = (all.iter())
        .filter(|of| of.model.is_some())
        .map(|of| of.label.clone())
        .collect();
    let ranked = |(place, program): (usize, &Predicted)| {
        let mut machines: Vec<(String, Outcome)> = all
            .iter()
            .map(|of| (of.label.clone(), of.programs[place].outcome.clone()))
            .collect();
        let seconds = |o: &Outcome| o.predicted_seconds.unwrap_or(f64::INFINITY);
        machines.sort_by(|a, b| seconds(&a.1).total_cmp(&seconds(&b.1)));
        let slower = |high: f64| {
            let mut others = machines[1..].iter();
            others.all(|(_, o)| o.low.is_some_and(|low| high < low))
        };
        let sure = modelled.is_empty() && machines[0].1.high.is_some_and(slower);
        Ranked {
            program: program.name.clone(),
            machines,
            modelled: modelled.clone(),
            sure,
        }
    };
    Ok(first.programs.iter().enumerate().map(ranked).collect())
}

/// A prediction for people.
#[must_use]
pub fn text(of: &OnMachine) -> String {
    let row = |p: &Predicted| {
        let [predicted, measured, error] = p.outcome.cells();
        vec![
            p.name.clone(),
            print::time(p.reference_seconds),
            predicted,
            measured,
            error,
            format!("{:.0} %", 100.0 * p.outcome.covered),
            p.outcome.reason.clone().unwrap_or_default(),
        ]
    };
    let [predicted, measured, error] = HEADING;
    let heading = [
        "<program",
        "reference",
        predicted,
        measured,
        error,
        "covered",
        "<",
    ];
    let mut text = format!("{}: {}\n{}\n", of.label, of.machine.describe(), of.basis);
    let rows: Vec<_> = of.programs.iter().map(row).collect();
    text += &print::table(&heading, &rows);
    if let Some(deviation) = of.deviation {
        text += &format!(
            "\nmembers deviate from their representatives by {:.1} % ({} checks)\n",
            100.0 * deviation,
            of.checks
        );
    }
    if let Some(noise) = of.noise {
        text += &format!(
            "noise of the machine while it measured: {:.1} %\n",
            100.0 * noise
        );
    }
    if let Some(e) = &of.point_errors {
        text += &format!(
            "points that were predicted and measured: median error {:.1} %, 90th percentile {:.1} %, {} points\n",
            100.0 * e.median,
            100.0 * e.p90,
            e.of
        );
    }
    if let Some(reduction) = of.reduction {
        text += &format!("reduction {reduction:.1}\n");
    }
    if !of.unchecked.is_empty() {
        text += &format!("not checked: the clusters of {}\n", of.unchecked.join(", "));
    }
    for refused in &of.refused {
        text += &format!(
            "refused: the cluster of {}, {} of the programs on the reference: {}\n",
            refused.representative,
            print::time(refused.seconds),
            refused.reason
        );
    }
    text
}

/// A ranking for people.
#[must_use]
pub fn rank_text(all: &[Ranked]) -> String {
    let mut rows = Vec::new();
    for ranked in all {
        for (place, (label, outcome)) in ranked.machines.iter().enumerate() {
            let [predicted, measured, error] = outcome.cells();
            rows.push(vec![
                match place {
                    0 => ranked.program.clone(),
                    _ => String::new(),
                },
                label.clone(),
                predicted,
                measured,
                error,
                match (place, ranked.sure, &outcome.reason) {
                    (_, _, Some(reason)) => reason.clone(),
                    (0, true, _) => "surely the fastest".to_owned(),
                    (0, false, _) => "not surely the fastest".to_owned(),
                    _ => String::new(),
                },
            ]);
        }
    }
    let [predicted, measured, error] = HEADING;
    let heading = ["<program", "<machine", predicted, measured, error, "<"];
    let mut text = print::table(&heading, &rows);
    if let Some(modelled) = all.first().map(|r| &r.modelled).filter(|m| !m.is_empty()) {
        text += &format!(
            "\nmodelled by llvm-mca, caches not simulated: no measurement of {}\n",
            modelled.join(", ")
        );
    }
    text
}
