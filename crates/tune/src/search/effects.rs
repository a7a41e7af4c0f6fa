//! The main effect of each choice on the logarithm of the ratio, shrunk to zero for few samples.

use super::point::Ground;
use super::trial::{Outcome, Trial};

/// Samples without effect that each choice is assumed to have (ridge regression): one lucky variant proves little.
const SHRINKAGE: f64 = 1.0;
/// Sweeps over all choices; effects converge long before.
const SWEEPS: usize = 20;
/// Upper limit of a ratio: a variant that takes ten times as long must not outweigh the others.
const WORST: f64 = 2.0;
/// Minimum spread of logarithms, as measurements have it.
const NOISE: f64 = 0.005;
/// Failures without a success after which a choice is given up.
const FAILURES: usize = 3;

/// Knowledge about one choice.
#[derive(Debug, Clone, Default)]
pub(super) struct Effect {
    /// The logarithm that it adds to that of the ratio; negative is faster.
    pub(super) mean: f64,
    /// Standard error of `mean`.
    pub(super) error: f64,
    /// Variants proposed with it.
    pub(super) tried: usize,
    succeeded: usize,
    failed: usize,
}

impl Effect {
    /// Whether it has failed so often that it must be the cause.
    pub(super) fn fails(&self) -> bool {
        self.succeeded == 0 && self.failed >= FAILURES
    }
}

/// By group and choice, from 1; entry 0 is no choice, without effect.
pub(super) struct Effects(Vec<Vec<Effect>>);

impl Effects {
    pub(super) fn of(ground: &Ground, trials: &[Trial]) -> Self {
        let of_group = |group| vec![Effect::default(); ground.choices(group) + 1];
        let mut effects = Self((0..ground.groups()).map(of_group).collect());
        let mut samples: Vec<(&[usize], f64)> = Vec::new();
        for trial in trials {
            let Some(choices) = trial.point.choices() else {
                continue;
            };
            for (group, &choice) in choices.iter().enumerate() {
                let effect = &mut effects.0[group][choice];
                effect.tried += 1;
                effect.succeeded += usize::from(trial.ratio().is_some());
                effect.failed += usize::from(trial.outcome == Outcome::Failed);
            }
            if let Some(ratio) = trial.ratio() {
                samples.push((choices, ratio.min(WORST).ln()));
            }
        }
        effects.fit(&samples);
        effects
    }

    pub(super) fn choice(&self, group: usize, choice: usize) -> &Effect {
        &self.0[group][choice]
    }

    pub(super) fn group(&self, group: usize) -> &[Effect] {
        &self.0[group]
    }

    /// Importance of a group: the range of its effects plus their uncertainty.
    pub(super) fn importance(&self, group: usize) -> f64 {
        let usable = || self.0[group].iter().filter(|e| !e.fails());
        let most = |of: fn(&Effect) -> f64| usable().map(of).fold(0.0, f64::max);
        most(|e| e.mean) + most(|e| -e.mean) + most(|e| e.error)
    }

    /// Gauss-Seidel on the normal equations: each effect in turn becomes the shrunk mean of what the others leave.
    fn fit(&mut self, samples: &[(&[usize], f64)]) {
        let mut left: Vec<f64> = samples.iter().map(|s| s.1).collect();
        for _ in 0..SWEEPS {
            for group in 0..self.0.len() {
                for (choice, effect) in self.0[group].iter_mut().enumerate().skip(1) {
                    let with = || {
                        let all = samples.iter().enumerate();
                        all.filter(|(_, s)| s.0[group] == choice).map(|(i, _)| i)
                    };
                    let sum: f64 = with().map(|i| left[i] + effect.mean).sum();
                    let mean = sum / (effect.succeeded as f64 + SHRINKAGE);
                    let change = mean - effect.mean;
                    effect.mean = mean;
                    with().for_each(|i| left[i] -= change);
                }
            }
        }
        let squares: f64 = left.iter().map(|l| l * l).sum();
        let spread = (squares / left.len().max(1) as f64).sqrt().max(NOISE);
        for effect in self.0.iter_mut().flat_map(|g| g.iter_mut().skip(1)) {
            effect.error = spread / (effect.succeeded as f64 + SHRINKAGE).sqrt();
        }
    }
}
