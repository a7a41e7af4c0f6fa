//! The processes of a run: which one is profiled, and what all ranks of a parallel program did.

use cere_format::profile::{ProcessName, Profile, RankProfile, RankRegion};
use cere_format::rank;
use std::collections::HashMap;
use std::path::PathBuf;

/// The process that a profile is of.
#[derive(Debug, Clone, Default)]
pub enum Which {
    /// The one that was started if that has regions, else the one with the most time in regions: of ranks the slowest.
    #[default]
    Main,
    /// The one of this rank.
    Rank(String),
    /// The one that an earlier run's profile is of.
    Same(ProcessName),
}

/// The profile of a process.
pub struct Of {
    /// Whether it is the one that was started.
    pub main: bool,
    /// Its profile.
    pub profile: Profile,
    /// The raw one.
    pub path: PathBuf,
}

impl Of {
    /// Seconds at work in regions: what waits, in MPI or elsewhere, is not the slowest.
    fn seconds(&self) -> f64 {
        self.profile.work()
    }
}

/// The process that is meant, with the ranks of all; none if it is not there. The second value is how many others there are that
/// are no ranks.
pub fn pick(mut all: Vec<Of>, which: &Which) -> Option<(Of, usize)> {
    let ranks = ranks(&all);
    let place = match which {
        Which::Main => {
            let order = |of: &Of| (of.main && of.seconds() > 0.0, of.seconds());
            let before = |a: &usize, b: &usize| {
                let (a, b) = (order(&all[*a]), order(&all[*b]));
                a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
            };
            (0..all.len()).max_by(before)
        }
        Which::Rank(rank) => (0..all.len())
            .filter(|place| all[*place].profile.process.rank.as_ref() == Some(rank))
            .max_by(|a, b| all[*a].seconds().total_cmp(&all[*b].seconds())),
        Which::Same(name) => (0..all.len()).find(|place| all[*place].profile.process == *name),
    }?;
    let others = all.len() - ranks.len().max(1);
    let mut picked = all.swap_remove(place);
    if ranks.len() > 1 {
        picked.profile.ranks = ranks;
    }
    Some((picked, others))
}

/// What each rank did, by rank. Of several processes of a rank it is the one with the most time in regions.
fn ranks(all: &[Of]) -> Vec<RankProfile> {
    let mut by_rank: HashMap<&str, &Of> = HashMap::new();
    for of in all {
        let Some(rank) = &of.profile.process.rank else {
            continue;
        };
        let known = by_rank.entry(rank).or_insert(of);
        if known.seconds() < of.seconds() {
            *known = of;
        }
    }
    let mut ranks: Vec<RankProfile> = by_rank
        .into_iter()
        .map(|(rank, of)| summary(rank, &of.profile))
        .collect();
    ranks.sort_by(|a, b| rank::order(&a.rank, &b.rank));
    ranks
}

fn summary(rank: &str, profile: &Profile) -> RankProfile {
    let regions = profile.over_threads.iter().map(|region| RankRegion {
        key: region.key.clone(),
        name: region.name.clone(),
        invocations: region.invocations,
        self_seconds: region.self_seconds,
        inclusive_seconds: region.inclusive_seconds,
        mpi_seconds: region.mpi_seconds,
    });
    RankProfile {
        rank: rank.to_owned(),
        program: profile.process.program.clone(),
        seconds: profile.seconds,
        work_seconds: profile.work(),
        mpi_seconds: profile.mpi_seconds,
        regions: regions.collect(),
    }
}
