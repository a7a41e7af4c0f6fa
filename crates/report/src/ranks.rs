//! The processes of a parallel program.

use super::format::{Cell, name, percent, time};
use cere_format::profile::Profile;

/// The section on ranks.
pub struct Ranks {
    /// The rank that all other tables are of.
    pub own: String,
    /// A row a rank.
    pub ranks: Vec<Rank>,
    /// A row a region.
    pub regions: Vec<Region>,
}

/// A process.
pub struct Rank {
    pub rank: String,
    /// Run time.
    pub seconds: Cell,
    /// Work in regions.
    pub regions: Cell,
    /// Time in MPI.
    pub mpi: Cell,
    /// Run and work as shares of the longest run, in per cent.
    pub bar: (f64, f64),
}

/// A region over all processes.
pub struct Region {
    pub name: String,
    pub least: Cell,
    pub mean: Cell,
    pub most: Cell,
    /// Mean time in MPI.
    pub mpi: Cell,
    /// The rank with the largest time.
    pub slowest: String,
    /// The largest over the mean, less 1.
    pub imbalance: Cell,
}

/// None if the program has no ranks.
pub fn ranks(profile: &Profile) -> Option<Ranks> {
    let longest = profile.ranks.iter().map(|r| r.seconds).fold(0.0, f64::max);
    let share = |seconds: f64| match longest > 0.0 {
        true => 100.0 * seconds / longest,
        false => 0.0,
    };
    let ranks: Vec<Rank> = profile
        .ranks
        .iter()
        .map(|rank| Rank {
            rank: rank.rank.clone(),
            seconds: Cell::new(rank.seconds, time),
            regions: Cell::new(rank.work_seconds, time),
            mpi: Cell::new(rank.mpi_seconds, time),
            bar: (share(rank.seconds), share(rank.work_seconds)),
        })
        .collect();
    let regions = profile.over_ranks().into_iter().map(|region| Region {
        name: name(&region.name),
        least: Cell::new(region.least, time),
        mean: Cell::new(region.mean, time),
        most: Cell::new(region.most, time),
        mpi: Cell::new(region.mpi, time),
        imbalance: Cell::new(region.imbalance(), percent),
        slowest: region.slowest,
    });
    (!ranks.is_empty()).then(|| Ranks {
        own: profile.process.rank.clone().unwrap_or_default(),
        regions: regions.collect(),
        ranks,
    })
}
