//! A run in ranks: it takes as long as the rank with the most work, which waits least, and what that rank spends in MPI, as measured.

use anyhow::Result;
use cere_catalogue::bail;
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

/// The region of `rank`, if that runs it.
fn region<'r>(rank: &'r RankProfile, key: &RegionKey) -> Option<&'r RankRegion> {
    rank.regions.iter().find(|r| r.key == *key)
}

impl Rank {
    /// With all of its time in the regions `keys`.
    fn of(rank: &RankProfile, keys: &[RegionKey], own: Option<&str>) -> Self {
        let times = |key: &RegionKey| {
            region(rank, key).map_or((0.0, 0.0), |r| {
                // Older profiles have no inclusive time.
                (r.inclusive_seconds.max(r.self_seconds), r.mpi_seconds)
            })
        };
        Self::with(rank, keys.iter().map(times).collect(), own)
    }

    fn with(rank: &RankProfile, regions: Vec<(f64, f64)>, own: Option<&str>) -> Self {
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
            true => (changed.seconds - mpi).max(0.0),
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

/// The ranks of `profile` with what of their time the regions in `shares` stand for: each with its share of the run in the profiled
/// rank, and in the others as much more or less as they spend in the region itself. Empty if the program has no ranks.
pub fn by_shares(profile: &Profile, shares: &[(RegionKey, f64)]) -> Vec<Rank> {
    let own = profile.process.rank.as_deref();
    let Some(base) = profile.ranks.iter().find(|r| Some(&*r.rank) == own) else {
        return Vec::new();
    };
    let times = |rank: &RankProfile| {
        let times = shares.iter().map(|(key, share)| {
            let seconds = match (region(rank, key), region(base, key)) {
                (Some(here), Some(base)) => {
                    let whole = (base.self_seconds + base.mpi_seconds).max(f64::MIN_POSITIVE);
                    share * profile.seconds * (here.self_seconds / whole)
                }
                _ => 0.0,
            };
            (seconds, 0.0)
        });
        times.collect()
    };
    let each = profile.ranks.iter();
    each.map(|rank| Rank::with(rank, times(rank), own))
        .collect()
}

/// The run in which each region takes `ratios` of its time, in every rank; none without ranks.
pub fn compose_ratios(ranks: &[Rank], ratios: &[f64]) -> Option<OverRanks> {
    let own = ranks.iter().find(|rank| rank.own)?;
    let changed = own.regions.iter().zip(ratios);
    let changed = changed.map(|((seconds, _), ratio)| Changed {
        seconds: seconds * ratio,
        ratio: *ratio,
    });
    compose(ranks, &changed.collect::<Vec<_>>())
}

/// Fails if `run` has no profile of a rank that is in `profile`: without it there would be no slowest rank to speak of.
pub fn check(profile: &Profile, run: &Profile) -> Result<()> {
    let ran = |rank: &&RankProfile| {
        let mut ranks = run.ranks.iter().map(|r| &r.rank);
        ranks.any(|r| *r == rank.rank) || run.process.rank.as_ref() == Some(&rank.rank)
    };
    let lost = profile.ranks.iter().filter(|rank| !ran(rank));
    let lost: Vec<&str> = lost.map(|rank| &*rank.rank).collect();
    if !lost.is_empty() {
        bail!(
            E6028,
            "a run left no profile of rank {}, which the profile has: did it fail there, or did the launcher start fewer ranks?",
            lost.join(", ")
        );
    }
    Ok(())
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

/// What a reader should know of the ranks in `profile`, in which `regions`, those with a key that is `elsewhere`, would be predicted if
/// the rank that the codelets are of ran them.
pub fn notes(
    profile: &Profile,
    regions: &str,
    elsewhere: impl Fn(&RegionKey) -> bool,
) -> Vec<String> {
    let mut notes: Vec<String> = profile.not_seen().into_iter().map(|(silent, launched)| {
        format!("{silent} of the {launched} processes that the launcher started are not in the profile: what they do is not predicted")
    }).collect();
    if profile.ranks.is_empty() {
        if profile.mpi_seconds > 0.0 && notes.is_empty() {
            notes.push("the program uses MPI, and one rank of it ran: `cere profile -- mpirun -n N ...` and the same with `cere capture` show several".to_owned());
        }
        return notes;
    }
    let own = profile.process.rank.as_deref().unwrap_or("?");
    let (others, same): (Vec<_>, Vec<_>) =
        (profile.ranks.iter()).partition(|rank| rank.program != profile.process.program);
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|rank| &*rank.rank).collect();
        notes.push(format!(
            "other programs than that of rank {own} run in rank {}: their own regions count as profiled",
            names.join(", ")
        ));
    }
    for rank in same {
        let found = rank.regions.iter().filter(|r| elsewhere(&r.key));
        let largest = found
            .clone()
            .max_by(|a, b| a.self_seconds.total_cmp(&b.self_seconds));
        let seconds: f64 = found.map(|r| r.self_seconds).sum();
        if let Some(largest) =
            largest.filter(|_| seconds > TOLD * (rank.seconds - rank.mpi_seconds))
        {
            notes.push(format!(
                "rank {0} spends {1} in {regions} that rank {own} does not run, as {2}: they count as profiled. \
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
        let told = |run: &Profile, keys: &[RegionKey]| {
            notes(run, "regions", |key| !keys.contains(key)).join("; ")
        };
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
        // Another process of the launcher left nothing.
        run.process.rank = Some("0".into());
        run.launched = Some(2);
        assert!(told(&run, &keys()).starts_with("1 of the 2 processes"));
    }

    #[test]
    fn a_rank_may_not_be_lost() {
        let (two, mut one) = (run(&[(1.0, 0.1, 0.8); 2]), run(&[]));
        one.process.rank = Some("0".into());
        assert!(check(&two, &two).is_ok() && check(&one, &one).is_ok());
        let why = check(&two, &one).unwrap_err().to_string();
        assert!(why.contains("no profile of rank 1,"), "{why}");
    }

    #[test]
    fn regions_change_in_every_rank_by_its_own_time() {
        // The region stands for half of the second of rank 0, with what it calls.
        let mut run = run(&[(1.0, 0.1, 0.4), (1.0, 0.2, 0.56), (1.0, 0.8, 0.0)]);
        run.seconds = 1.0;
        run.process.rank = Some("0".into());
        let ranks = by_shares(&run, &[(keys()[0].clone(), 0.5)]);
        let composed = |ratio| compose_ratios(&ranks, &[ratio]).unwrap();
        let near = |found: OverRanks, slowest: &str, work: f64, mpi: f64| {
            assert_eq!(found.slowest, slowest);
            assert!((found.work_seconds - work).abs() < 1e-9, "{found:?}");
            assert!((found.mpi_seconds - mpi).abs() < 1e-9, "{found:?}");
        };
        // Rank 0 has 0.4 s outside of it, and rank 1, with 1.4 times the time in the region itself, 0.1 s.
        near(composed(1.0), "0", 0.9, 0.1);
        near(composed(0.5), "0", 0.65, 0.1);
        near(composed(2.0), "1", 1.5, 0.2);
        run.process.rank = None;
        assert!(by_shares(&run, &[]).is_empty());
        assert_eq!(compose_ratios(&[], &[]), None);
    }
}
