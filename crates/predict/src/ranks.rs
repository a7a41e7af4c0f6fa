//! A run in ranks: it takes as long as the rank with the most work, which waits least, and what that rank spends in MPI, as measured.

use cere_format::profile::{Profile, RankProfile, RankRegion, RegionKey};
use cere_system::console::print;
use serde::Serialize;

/// Minimum share of a rank's time outside of MPI in regions that are not predicted, above which that is told.
const TOLD: f64 = 0.01;

/// What a rank does in the measured runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank {
    /// What its launcher calls it.
    name: String,
    /// Whether the codelets are of it.
    own: bool,
    /// Seconds in no predicted region, and not in MPI.
    outside: f64,
    /// Seconds in MPI.
    mpi: f64,
    /// Seconds in each region of the plan, in their order, and those of them in MPI.
    regions: Vec<(f64, f64)>,
}

/// The regions of a plan with a number of threads, in their order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Changed {
    /// Seconds in the rank that the codelets are of.
    pub seconds: f64,
    /// Its time over that of the measured runs.
    pub ratio: f64,
}

/// A rank with a number of threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankTime {
    /// What its launcher calls it.
    pub rank: String,
    /// Predicted seconds outside of MPI.
    pub work_seconds: f64,
    /// Seconds in MPI, waiting included, as measured with as many threads as at capture.
    pub mpi_seconds: f64,
}

/// How the time of a run is composed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverRanks {
    /// The rank with the most work.
    pub slowest: String,
    /// Its predicted seconds outside of MPI.
    pub work_seconds: f64,
    /// Its seconds in MPI, as measured with as many threads as at capture.
    pub mpi_seconds: f64,
    /// Its seconds outside of MPI in the runs with this number of threads, if there were any.
    pub measured_work_seconds: Option<f64>,
    /// Its seconds in MPI in those runs.
    pub measured_mpi_seconds: Option<f64>,
    /// Every rank, in their order.
    pub ranks: Vec<RankTime>,
}

impl Rank {
    fn of(rank: &RankProfile, keys: &[RegionKey], own: Option<&str>) -> Self {
        let region = |key: &RegionKey| {
            let found = rank.regions.iter().find(|r| r.key == *key);
            found.map_or((0.0, 0.0), |r| {
                // Older profiles have no inclusive time.
                (r.inclusive_seconds.max(r.self_seconds), r.mpi_seconds)
            })
        };
        let regions: Vec<(f64, f64)> = keys.iter().map(region).collect();
        let inside: f64 = regions.iter().map(|(whole, mpi)| whole - mpi).sum();
        Self {
            name: rank.rank.clone(),
            own: own == Some(&*rank.rank),
            outside: (rank.seconds - rank.mpi_seconds - inside).max(0.0),
            mpi: rank.mpi_seconds,
            regions,
        }
    }

    /// Seconds outside of MPI as measured.
    fn work(&self) -> f64 {
        let inside = self.regions.iter().map(|(whole, mpi)| whole - mpi);
        self.outside + inside.sum::<f64>()
    }

    /// The same where the regions have `changed`.
    fn changed(&self, changed: &[Changed]) -> RankTime {
        let each = self.regions.iter().zip(changed);
        let inside = each.map(|((whole, mpi), changed)| match self.own {
            true => changed.seconds - mpi,
            false => (whole - mpi) * changed.ratio,
        });
        RankTime {
            rank: self.name.clone(),
            work_seconds: self.outside + inside.sum::<f64>(),
            mpi_seconds: self.mpi,
        }
    }
}

/// The ranks in `runs` that time the regions `keys`; `own` is the one that the codelets are of. Of each it is the run in which it was
/// fastest outside the regions, and the fastest time of each region. Empty if the program has no ranks.
pub fn of(runs: &[Profile], keys: &[RegionKey], own: Option<&str>) -> Vec<Rank> {
    let first = runs.first().map_or(&[][..], |run| &run.ranks);
    let over_runs = |rank: &RankProfile| {
        let all = runs.iter().flat_map(|run| &run.ranks);
        let same = all.filter(|other| other.rank == rank.rank);
        let mut found: Vec<Rank> = same.map(|rank| Rank::of(rank, keys, own)).collect();
        let rest = |rank: &Rank| rank.outside + rank.mpi;
        found.sort_by(|a, b| rest(a).total_cmp(&rest(b)));
        let mut fastest = found[0].clone();
        for other in &found[1..] {
            for (region, other) in fastest.regions.iter_mut().zip(&other.regions) {
                if other.0 < region.0 {
                    *region = *other;
                }
            }
        }
        fastest
    };
    first.iter().map(over_runs).collect()
}

/// The name of the rank that the codelets are of.
pub fn own(ranks: &[Rank]) -> Option<String> {
    let own = ranks.iter().find(|rank| rank.own)?;
    Some(own.name.clone())
}

/// The run whose regions have `changed`; none without ranks.
pub fn compose(ranks: &[Rank], changed: &[Changed]) -> Option<OverRanks> {
    let ranks: Vec<RankTime> = ranks.iter().map(|rank| rank.changed(changed)).collect();
    let more = |a: &&RankTime, b: &&RankTime| a.work_seconds.total_cmp(&b.work_seconds);
    let slowest = ranks.iter().max_by(more)?.clone();
    Some(OverRanks {
        slowest: slowest.rank,
        work_seconds: slowest.work_seconds,
        mpi_seconds: slowest.mpi_seconds,
        measured_work_seconds: None,
        measured_mpi_seconds: None,
        ranks,
    })
}

impl OverRanks {
    /// Seconds of the run.
    pub fn seconds(&self) -> f64 {
        self.work_seconds + self.mpi_seconds
    }

    /// Adds what the slowest rank did in runs with this number of threads, whose ranks are `measured`.
    pub fn add(&mut self, measured: &[Rank]) {
        if let Some(rank) = measured.iter().find(|rank| rank.name == self.slowest) {
            self.measured_work_seconds = Some(rank.work());
            self.measured_mpi_seconds = Some(rank.mpi);
        }
    }
}

/// What a reader should know of the ranks in `profile`, of whose regions `parallel` are parallel and `keys` are in the plan.
pub fn notes(
    profile: &Profile,
    parallel: impl Fn(&RegionKey) -> bool,
    keys: &[RegionKey],
) -> Vec<String> {
    if profile.ranks.is_empty() {
        let alone = (profile.mpi_seconds > 0.0).then(|| {
            "the program uses MPI, and one rank of it ran: `cere profile -- mpirun -n N ...` and the same with `cere capture` show several".to_owned()
        });
        return alone.into_iter().collect();
    }
    let own = profile.process.rank.as_deref().unwrap_or("?");
    let (others, same): (Vec<_>, Vec<_>) =
        (profile.ranks.iter()).partition(|rank| rank.program != profile.process.program);
    let mut notes = Vec::new();
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|rank| &*rank.rank).collect();
        notes.push(format!(
            "other programs than that of rank {own} run in rank {}: their own regions count as profiled",
            names.join(", ")
        ));
    }
    for rank in same {
        let elsewhere = |r: &&RankRegion| parallel(&r.key) && !keys.contains(&r.key);
        let found = rank.regions.iter().filter(elsewhere);
        let largest = found
            .clone()
            .max_by(|a, b| a.self_seconds.total_cmp(&b.self_seconds));
        let seconds: f64 = found.map(|r| r.self_seconds).sum();
        if let Some(largest) =
            largest.filter(|_| seconds > TOLD * (rank.seconds - rank.mpi_seconds))
        {
            notes.push(format!(
                "rank {0} spends {1} in parallel regions that rank {own} does not run, as {2}: they count as profiled. \
                 `cere capture --rank {0}` makes it the rank to predict from",
                rank.rank,
                print::time(seconds),
                largest.name
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::profile as fixture;

    /// A run of ranks: seconds, those in MPI, those in the only region.
    fn run(ranks: &[(f64, f64, f64)]) -> Profile {
        let mut run = fixture::profile(&[("f", None, 0.5, 1.0)]);
        let region = |seconds: f64| RankRegion {
            key: run.regions[0].key.clone(),
            name: "f".into(),
            invocations: 1,
            self_seconds: seconds,
            inclusive_seconds: seconds,
            mpi_seconds: 0.0,
        };
        let rank = |(number, (seconds, mpi, inside)): (usize, &(f64, f64, f64))| RankProfile {
            rank: number.to_string(),
            program: run.process.program.clone(),
            seconds: *seconds,
            work_seconds: *inside,
            mpi_seconds: *mpi,
            regions: Vec::from_iter((*inside > 0.0).then(|| region(*inside))),
        };
        run.ranks = ranks.iter().enumerate().map(rank).collect();
        run
    }

    fn keys() -> Vec<RegionKey> {
        vec![run(&[]).regions[0].key.clone()]
    }

    fn composed(ranks: &[Rank], seconds: f64, ratio: f64) -> (String, f64, f64) {
        let found = compose(ranks, &[Changed { seconds, ratio }]).unwrap();
        assert_eq!(found.seconds(), found.work_seconds + found.mpi_seconds);
        let round = |seconds: f64| (seconds * 1e9).round() / 1e9;
        (
            found.slowest.clone(),
            round(found.work_seconds),
            round(found.mpi_seconds),
        )
    }

    #[test]
    fn another_rank_becomes_the_slowest() {
        // Rank 0 works for 0.9 s, most of it in the region; rank 1 for 0.6, of which 0.1; rank 2 never runs it.
        let run = run(&[(1.0, 0.1, 0.8), (1.0, 0.4, 0.1), (1.0, 0.7, 0.0)]);
        let ranks = of(&[run], &keys(), Some("0"));
        assert_eq!(own(&ranks).as_deref(), Some("0"));
        assert_eq!(composed(&ranks, 0.8, 1.0), ("0".into(), 0.9, 0.1));
        assert_eq!(composed(&ranks, 0.4, 0.5), ("1".into(), 0.55, 0.4));
        assert_eq!(composed(&ranks, 1.6, 2.0), ("0".into(), 1.7, 0.1));
    }

    #[test]
    fn of_several_runs_the_fast_ones_count() {
        let runs = [
            run(&[(1.0, 0.2, 0.5), (1.0, 0.4, 0.5)]),
            run(&[(1.1, 0.1, 0.7), (1.1, 0.6, 0.4)]),
        ];
        let mut found = compose(
            &of(&runs, &keys(), Some("0")),
            &[Changed {
                seconds: 0.5,
                ratio: 1.0,
            }],
        )
        .unwrap();
        // Outside of the region rank 0 takes 0.5 and 0.4 s, of which 0.2 and 0.1 in MPI.
        assert!((found.work_seconds - 0.8).abs() < 1e-9, "{found:?}");
        assert!((found.mpi_seconds - 0.1).abs() < 1e-9, "{found:?}");
        found.add(&of(&runs[..1], &keys(), None));
        assert_eq!(found.measured_mpi_seconds, Some(0.2));
    }

    #[test]
    fn what_the_reader_has_to_know() {
        let mut run = run(&[(1.0, 0.1, 0.8), (1.0, 0.4, 0.1)]);
        let told = |run: &Profile, keys: &[RegionKey]| notes(run, |_| true, keys).join("; ");
        assert_eq!(told(&run, &keys()), "");
        assert!(
            told(&run, &[]).contains("rank 0 spends 800.000 ms"),
            "{}",
            told(&run, &[])
        );
        run.ranks[1].program = "other".into();
        assert!(told(&run, &keys()).starts_with("other programs than that of rank"));
        run.ranks.clear();
        assert_eq!(told(&run, &keys()), "");
        run.mpi_seconds = 0.1;
        assert!(told(&run, &keys()).contains("one rank of it ran"));
        assert_eq!(compose(&[], &[]), None);
    }
}
