//! The variants of one region that are timed in turns.

use crate::Variant;
use anyhow::Error;
use cere_measure::{Bench, Builds, Measure, Target, Turns};
use cere_replay::Team;

/// Arms that are timed between two timings of the code as built.
const PAIR: usize = 2;

/// A variant with a team.
pub struct Arm<'b> {
    /// What is replayed.
    pub variant: Variant,
    /// Its builds.
    pub builds: &'b Builds,
    /// Its team, if not that of the capture.
    pub team: Option<Team>,
}

impl<'b> Arm<'b> {
    /// With the team of the capture.
    pub fn of(variant: &Variant, builds: &'b Builds) -> Self {
        Self {
            variant: variant.clone(),
            builds,
            team: None,
        }
    }
}

/// Arms of one region; the first one is the baseline.
pub struct Arms<'t, 'b> {
    lab: &'t dyn Measure,
    target: &'t Target,
    arms: Vec<Arm<'b>>,
    /// Whether the results of an arm were judged: they may be other ones by rounding, which is looked at once.
    pub judged: Vec<bool>,
    /// Seconds that the longest timing took, with start and restoring.
    pub wall: f64,
}

impl<'t, 'b> Arms<'t, 'b> {
    /// Arms to be timed in turns, the baseline first.
    pub fn turns(lab: &'t dyn Measure, target: &'t Target, arms: Vec<Arm<'b>>) -> Turns<Self> {
        let judged = vec![false; arms.len()];
        let arms = Self {
            lab,
            target,
            arms,
            judged,
            wall: 0.0,
        };
        Turns::new(arms, PAIR)
    }
}

impl Bench for Arms<'_, '_> {
    type Error = Error;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>, Error> {
        let arm = &self.arms[subject];
        let judged = !std::mem::replace(&mut self.judged[subject], true);
        let team = arm.team.as_ref();
        let timed = self
            .lab
            .time(self.target, &arm.variant, arm.builds, judged, team);
        Ok(timed.map(|timed| {
            self.wall = self.wall.max(timed.wall);
            timed.costs
        }))
    }
}

/// Times of an arm over those of the baseline, in the order of the rounds.
pub fn ratios(turns: &Turns<Arms>, arm: usize) -> Vec<f64> {
    let target = turns.bench.target;
    turns
        .series()
        .ratios(arm, |base, now| target.ratio(base, now))
}
