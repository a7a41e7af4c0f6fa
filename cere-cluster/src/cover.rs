//! The cheapest regions to replay that cover enough of the run, as an integer program.

use crate::point::valid;
use crate::tree::{Node, TreeError, check};
use good_lp::solvers::microlp::{MicroLpProblem, MicroLpSolution, microlp};
use good_lp::{
    Expression, ProblemVariables, ResolutionError, Solution, SolverModel, Variable,
    WithInitialSolution, WithTimeLimit, variable,
};
use std::collections::BTreeSet;

/// The goal of a cover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Share of the run's time that the chosen regions must cover, 0 to 1.
    pub coverage: f64,
    /// Seconds after which the best choice found so far is good enough.
    pub seconds: f64,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            coverage: 0.95,
            seconds: 10.0,
        }
    }
}

/// A choice of regions.
#[derive(Debug, Clone, PartialEq)]
pub struct Cover {
    /// The chosen regions, rising.
    pub regions: Vec<usize>,
    /// Sum of their costs.
    pub cost: f64,
    /// Share of the run's time inside them, 0 to 1.
    pub coverage: f64,
    /// No choice costs less than `cost * (1 - gap)`: 0 if this one is proved to be the cheapest, 1 if nothing is proved.
    pub gap: f64,
}

/// No choice was made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CoverError {
    /// The tree is invalid.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A coverage that is not between 0 and 1.
    #[error("the coverage {0} is not between 0 and 1")]
    Coverage(f64),
    /// A limit that is not a positive number of seconds.
    #[error("the time limit of {0} seconds is not above zero")]
    Limit(f64),
    /// A cost that is negative, infinite or not a number.
    #[error("region {region} costs {cost}")]
    Cost {
        /// Which.
        region: usize,
        /// Its cost.
        cost: f64,
    },
    /// The run took no time.
    #[error("the run took no time: there is nothing to cover")]
    NoTime,
    /// The coverage cannot be reached.
    #[error(
        "no choice of regions covers {:.2} % of the run: {:.2} % is the most that those that may be chosen reach",
        wanted * 100.0, best * 100.0
    )]
    Unreachable {
        /// Coverage asked for.
        wanted: f64,
        /// The best reachable one.
        best: f64,
    },
    /// The solver failed.
    #[error("the integer program was not solved: {0}")]
    Unsolved(String),
}

/// Coverages this close are the same; solvers compute in floating point.
const CLOSE: f64 = 1e-7;

/// The cheapest regions that cover the goal's share of the root's inclusive time. A region covers its inclusive time; of
/// two of which one is somewhere called from inside the other, one at most is chosen, so nothing is covered twice.
/// `costs` has an entry a region, in any unit; none: it cannot be chosen.
pub fn cover(tree: &[Node], costs: &[Option<f64>], goal: Goal) -> Result<Cover, CoverError> {
    check(tree, costs.len())?;
    for (region, cost) in costs.iter().enumerate() {
        if let Some(cost) = cost.filter(|cost| !valid(*cost)) {
            return Err(CoverError::Cost { region, cost });
        }
    }
    if !(0.0..=1.0).contains(&goal.coverage) {
        return Err(CoverError::Coverage(goal.coverage));
    }
    if !(goal.seconds > 0.0 && goal.seconds.is_finite()) {
        return Err(CoverError::Limit(goal.seconds));
    }
    let total = tree[0].inclusive;
    if total == 0.0 {
        return Err(CoverError::NoTime);
    }
    let shares: Vec<f64> = times(tree, costs.len()).iter().map(|t| t / total).collect();
    let eligible = |region: usize| costs[region].is_some() && shares[region] > 0.0;
    let program = Program {
        chains: chains(tree, eligible),
        regions: (0..costs.len()).filter(|r| eligible(*r)).collect(),
        shares: &shares,
        seconds: goal.seconds,
    };
    let cost = |region: usize| costs[region].unwrap_or(0.0);
    let widest = program.widest()?;
    let share = |region: usize| shares[region];
    let best = sum(&widest, share);
    if best < goal.coverage - CLOSE {
        return Err(CoverError::Unreachable {
            wanted: goal.coverage,
            best,
        });
    }
    let (regions, gap) = program.cheapest(cost, goal.coverage.min(best), &widest)?;
    Ok(Cover {
        cost: sum(&regions, cost),
        coverage: sum(&regions, share),
        regions,
        gap,
    })
}

fn sum(regions: &[usize], of: impl Fn(usize) -> f64) -> f64 {
    // `Iterator::sum` of nothing is -0.
    regions.iter().fold(0.0, |sum, region| sum + of(*region))
}

/// Inclusive time a region, recursion counted once.
fn times(tree: &[Node], regions: usize) -> Vec<f64> {
    let mut times = vec![0.0; regions];
    for node in tree {
        if let Some(region) = node.region
            && !above(tree, node).any(|other| other == region)
        {
            times[region] += node.inclusive;
        }
    }
    times
}

/// Regions of the callers of `node`, nearest first.
fn above<'a>(tree: &'a [Node], node: &Node) -> impl Iterator<Item = usize> + use<'a> {
    let up = |at: &usize| tree[*at].parent;
    std::iter::successors(node.parent, up).filter_map(|at| tree[at].region)
}

/// Sets of regions of which at most one can be chosen: the chains of callers down to the leaves, without chains that are
/// part of another.
fn chains(tree: &[Node], eligible: impl Fn(usize) -> bool) -> Vec<BTreeSet<usize>> {
    let mut leaf = vec![true; tree.len()];
    for node in tree {
        if let Some(parent) = node.parent {
            leaf[parent] = false;
        }
    }
    let all: BTreeSet<BTreeSet<usize>> = tree
        .iter()
        .zip(leaf)
        .filter(|(_, leaf)| *leaf)
        .map(|(node, _)| {
            let chain = node.region.into_iter().chain(above(tree, node));
            chain.filter(|region| eligible(*region)).collect()
        })
        .collect();
    let mut all: Vec<BTreeSet<usize>> = all.into_iter().filter(|chain| chain.len() > 1).collect();
    all.sort_by_key(|chain| std::cmp::Reverse(chain.len()));
    let mut kept: Vec<BTreeSet<usize>> = Vec::new();
    for chain in all {
        if !kept.iter().any(|longer| chain.is_subset(longer)) {
            kept.push(chain);
        }
    }
    kept
}

struct Program<'a> {
    regions: Vec<usize>,
    chains: Vec<BTreeSet<usize>>,
    shares: &'a [f64],
    seconds: f64,
}

impl Program<'_> {
    /// The choice that covers most.
    fn widest(&self) -> Result<Vec<usize>, CoverError> {
        let (variables, chosen) = self.variables();
        let share = self.sum(&chosen, |region| self.shares[region]);
        let model = self.exclude(variables.maximise(share).using(microlp), &chosen);
        let (regions, gap) = self.solve(model, &chosen)?;
        if gap > CLOSE {
            let text = format!("the best coverage is known to {:.1} % only", gap * 100.0);
            return Err(CoverError::Unsolved(text));
        }
        Ok(regions)
    }

    /// The cheapest choice that covers `coverage`, and its gap; `known` is one that does.
    fn cheapest(
        &self,
        cost: impl Fn(usize) -> f64,
        coverage: f64,
        known: &[usize],
    ) -> Result<(Vec<usize>, f64), CoverError> {
        // The solver's tolerances are absolute.
        let most = self.regions.iter().map(|r| cost(*r)).fold(0.0, f64::max);
        let scale = if most > 0.0 { most } else { 1.0 };
        let (variables, chosen) = self.variables();
        let objective = self.sum(&chosen, |region| cost(region) / scale);
        let mut model = self.exclude(variables.minimise(objective).using(microlp), &chosen);
        model.add_constraint(
            self.sum(&chosen, |region| self.shares[region])
                .geq(coverage),
        );
        let start = self.regions.iter().zip(&chosen);
        let start = start.map(|(region, x)| (*x, f64::from(u8::from(known.contains(region)))));
        self.solve(model.with_initial_solution(start), &chosen)
    }

    fn variables(&self) -> (ProblemVariables, Vec<Variable>) {
        let mut variables = ProblemVariables::new();
        let chosen = self
            .regions
            .iter()
            .map(|_| variables.add(variable().binary()));
        let chosen = chosen.collect();
        (variables, chosen)
    }

    fn sum(&self, chosen: &[Variable], of: impl Fn(usize) -> f64) -> Expression {
        let terms = self.regions.iter().zip(chosen);
        let terms = terms.map(|(region, x)| (of(*region), *x));
        terms.filter(|t| t.0 != 0.0).map(|(f, x)| f * x).sum()
    }

    fn exclude(&self, mut model: MicroLpProblem, chosen: &[Variable]) -> MicroLpProblem {
        for chain in &self.chains {
            let of = |region| f64::from(u8::from(chain.contains(&region)));
            model.add_constraint(self.sum(chosen, of).leq(1.0));
        }
        model
    }

    fn solve(
        &self,
        model: MicroLpProblem,
        chosen: &[Variable],
    ) -> Result<(Vec<usize>, f64), CoverError> {
        if self.regions.is_empty() {
            return Ok((Vec::new(), 0.0));
        }
        let unsolved = |e| match e {
            ResolutionError::Other(why) => CoverError::Unsolved(why.into()),
            e => CoverError::Unsolved(e.to_string()),
        };
        let solution: MicroLpSolution = model
            .with_time_limit(self.seconds)
            .solve()
            .map_err(unsolved)?;
        let chosen = self.regions.iter().zip(chosen);
        let regions = chosen
            .filter(|(_, x)| solution.value(**x) > 0.5)
            .map(|(region, _)| *region)
            .collect();
        Ok((regions, solution.into_inner().gap().unwrap_or(1.0)))
    }
}
