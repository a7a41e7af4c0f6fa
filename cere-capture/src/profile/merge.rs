//! Merges several runs of one command into one profile: a disturbance seldom hits the same invocation twice.

use cere_format::profile::{
    OverThreads, Profile, RankProfile, RankRegion, RegionKey, RegionProfile, TreeNode,
};
use std::collections::HashMap;

/// The median; for an even number the lower of the two middle values.
fn lower_median<T: Copy>(
    mut values: Vec<T>,
    order: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> Option<T> {
    values.sort_by(order);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// The [`lower_median`] of times.
pub fn seconds(values: impl Iterator<Item = f64>) -> Option<f64> {
    lower_median(values.collect(), f64::total_cmp)
}

/// Median cycles of one invocation over the runs that kept it; 0 if none did.
fn cycles(values: impl Iterator<Item = u64>) -> u64 {
    lower_median(values.filter(|c| *c > 0).collect(), u64::cmp).unwrap_or(0)
}

/// Merges `runs` of the same command, at least one: the run of median length, with each time replaced by its median over
/// the runs, invocation by invocation. The second value describes what could not be merged.
pub fn merge(mut runs: Vec<Profile>) -> Option<(Profile, Option<String>)> {
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let at = runs.len().checked_sub(1)? / 2;
    let mut base = runs.swap_remove(at);
    if runs.is_empty() {
        return Some((base, None));
    }
    base.runs = 1 + runs.len() as u32;
    let by_key: Vec<HashMap<RegionKey, &RegionProfile>> = runs
        .iter()
        .map(|run| run.regions.iter().map(|r| (r.key.clone(), r)).collect())
        .collect();
    let mut apart = Vec::new();
    for region in &mut base.regions {
        let others: Option<Vec<&RegionProfile>> = by_key
            .iter()
            .map(|run| run.get(&region.key).copied())
            .map(|other| other.filter(|o| have_same_invocations(o, region)))
            .collect();
        match others {
            Some(others) => merge_region(region, &others),
            None => apart.push(region.name.as_str()),
        }
    }
    let note = (!apart.is_empty()).then(|| {
        format!(
            "the runs differ: {} ({} in all) had other invocations in another run; times are of one run alone there",
            apart[0],
            apart.len()
        )
    });
    merge_tree(&mut base, &runs);
    merge_threads(&mut base, &runs);
    merge_ranks(&mut base, &runs);
    compute_shares(&mut base);
    Some((base, note))
}

/// Computes shares and coverage again after times were changed.
pub fn compute_shares(profile: &mut Profile) {
    let own: f64 = profile.regions.iter().map(|r| r.self_seconds).sum();
    let seconds = profile.outside_mpi().max(f64::MIN_POSITIVE);
    profile.coverage = (own / seconds).min(1.0);
    for region in &mut profile.regions {
        region.share = region.self_seconds / seconds;
    }
}

/// Whether both have the same invocations.
fn have_same_invocations(a: &RegionProfile, b: &RegionProfile) -> bool {
    let sampled = |r: &RegionProfile| r.trace.sampled.iter().map(|s| s.0).collect::<Vec<_>>();
    a.invocations == b.invocations
        && a.trace.first.len() == b.trace.first.len()
        && sampled(a) == sampled(b)
}

fn merge_region(region: &mut RegionProfile, others: &[&RegionProfile]) {
    let own = region.clone();
    let all = || others.iter().copied().chain(std::iter::once(&own));
    region.noise = estimate_noise(&all().collect::<Vec<_>>());
    for (place, kept) in region.trace.first.iter_mut().enumerate() {
        *kept = cycles(all().map(|r| r.trace.first[place]));
    }
    for (place, kept) in region.trace.sampled.iter_mut().enumerate() {
        kept.1 = cycles(all().map(|r| r.trace.sampled[place].1));
    }
    let time = |of: fn(&RegionProfile) -> f64| seconds(all().map(of)).unwrap_or(0.0);
    region.self_seconds = time(|r| r.self_seconds);
    region.waiting_seconds = time(|r| r.waiting_seconds).min(region.self_seconds);
    region.mpi_seconds = time(|r| r.mpi_seconds);
    region.inclusive_seconds = time(|r| r.inclusive_seconds);
    region.cycles_mean = time(|r| r.cycles_mean);
    region.cycles_min = cycles(all().map(|r| r.cycles_min));
    region.cycles_max = cycles(all().map(|r| r.cycles_max));
}

/// Estimated mean error of the median over `runs`, over the mean time. Each run's times are first divided by their mean: a
/// run that is slower as a whole must not make classes.
fn estimate_noise(runs: &[&RegionProfile]) -> f64 {
    let times = |run: &RegionProfile| -> Vec<u64> {
        let sampled = run.trace.sampled.iter().map(|s| s.1);
        run.trace.first.iter().copied().chain(sampled).collect()
    };
    let runs: Vec<Vec<u64>> = runs.iter().map(|run| times(run)).collect();
    let count = runs.iter().map(Vec::len).min().unwrap_or(0);
    let known: Vec<usize> = (0..count)
        .filter(|place| runs.iter().all(|run| run[*place] > 0))
        .collect();
    let means = runs.iter().map(|run| {
        let sum: f64 = known.iter().map(|place| run[*place] as f64).sum();
        sum / known.len() as f64
    });
    let means: Vec<f64> = means.collect();
    let (mut sum, mut pairs) = (0.0, 0.0);
    for a in 0..runs.len() {
        for b in 0..a {
            let apart = |place: &usize| {
                (runs[a][*place] as f64 / means[a] - runs[b][*place] as f64 / means[b]).abs()
            };
            sum += known.iter().map(apart).sum::<f64>();
            pairs += known.len() as f64;
        }
    }
    if pairs == 0.0 {
        return 0.0;
    }
    // For normal errors the mean error of the median of three runs is 0.48 of the mean distance between two runs. It falls with
    // the square root of their number.
    0.48 * (3.0 / runs.len() as f64).sqrt() * (sum / pairs)
}

/// Sets the times over all threads to their medians. Which thread of a pool does what differs between runs: that is one run's.
fn merge_threads(base: &mut Profile, runs: &[Profile]) {
    for region in &mut base.over_threads {
        let others: Option<Vec<&OverThreads>> = runs
            .iter()
            .map(|run| run.over_threads(&region.key))
            .collect();
        let Some(others) = others else { continue };
        let own = region.clone();
        let all = || others.iter().copied().chain(std::iter::once(&own));
        let time = |of: fn(&OverThreads) -> f64| seconds(all().map(of)).unwrap_or(0.0);
        region.self_seconds = time(|r| r.self_seconds);
        region.inclusive_seconds = time(|r| r.inclusive_seconds);
        region.waiting_seconds = time(|r| r.waiting_seconds).min(region.self_seconds);
        region.mpi_seconds = time(|r| r.mpi_seconds);
        region.first_share = time(|r| r.first_share);
        for (place, cycles) in region.cycles.iter_mut().enumerate() {
            let of = |r: &OverThreads| r.cycles.get(place).copied();
            *cycles = all()
                .map(of)
                .collect::<Option<Vec<f64>>>()
                .and_then(|all| seconds(all.into_iter()))
                .unwrap_or(*cycles);
        }
    }
    let work = |a: &OverThreads, b: &OverThreads| b.work().total_cmp(&a.work());
    // The threads refer to places.
    if !base.over_threads.is_sorted_by(|a, b| work(a, b).is_le()) {
        let keys: Vec<RegionKey> = base.over_threads.iter().map(|r| r.key.clone()).collect();
        base.over_threads.sort_by(work);
        let over = &base.over_threads;
        for region in base.threads.iter_mut().flat_map(|t| &mut t.regions) {
            let now = |before: usize| over.iter().position(|r| r.key == keys[before]);
            region.region = now(region.region).unwrap_or(0);
            region.caller = region.caller.and_then(now);
        }
    }
    let all = || runs.iter().chain(std::iter::once(&*base));
    base.mpi_seconds = seconds(all().map(|run| run.mpi_seconds)).unwrap_or(0.0);
}

/// The chain of regions from the root to each node.
fn chains(profile: &Profile) -> Vec<Vec<RegionKey>> {
    let mut chains: Vec<Vec<RegionKey>> = Vec::with_capacity(profile.tree.len());
    for node in &profile.tree {
        let above = node.parent.and_then(|parent| chains.get(parent));
        let mut chain = above.cloned().unwrap_or_default();
        let region = node.region.and_then(|place| profile.regions.get(place));
        chain.extend(region.map(|r| r.key.clone()));
        chains.push(chain);
    }
    chains
}

/// Sets the times of nodes that every run has to their medians.
fn merge_tree(base: &mut Profile, runs: &[Profile]) {
    let own = chains(base);
    let others: Vec<HashMap<Vec<RegionKey>, &TreeNode>> = runs
        .iter()
        .map(|run| chains(run).into_iter().zip(&run.tree).collect())
        .collect();
    for (node, chain) in base.tree.iter_mut().zip(own) {
        let found: Option<Vec<&TreeNode>> =
            others.iter().map(|run| run.get(&chain).copied()).collect();
        let Some(found) = found.filter(|all| all.iter().all(|n| n.invocations == node.invocations))
        else {
            continue;
        };
        let before = node.clone();
        let all = || found.iter().copied().chain(std::iter::once(&before));
        let time = |of: fn(&TreeNode) -> f64| seconds(all().map(of)).unwrap_or(0.0);
        node.self_seconds = time(|n| n.self_seconds);
        node.inclusive_seconds = time(|n| n.inclusive_seconds);
    }
}

/// Sets the times of ranks to their medians over runs.
fn merge_ranks(base: &mut Profile, runs: &[Profile]) {
    for rank in &mut base.ranks {
        let others = runs.iter().flat_map(|run| &run.ranks);
        let others: Vec<&RankProfile> = others.filter(|other| other.rank == rank.rank).collect();
        let own = rank.clone();
        let all = || others.iter().copied().chain(std::iter::once(&own));
        let median = |of: fn(&RankProfile) -> f64| seconds(all().map(of)).unwrap_or(0.0);
        rank.seconds = median(|r| r.seconds);
        rank.work_seconds = median(|r| r.work_seconds);
        rank.mpi_seconds = median(|r| r.mpi_seconds);
        for region in &mut rank.regions {
            let same = || {
                all()
                    .flat_map(|r| &r.regions)
                    .filter(|r| r.key == region.key)
            };
            let median = |of: fn(&RankRegion) -> f64| seconds(same().map(of)).unwrap_or(0.0);
            let own = median(|r| r.self_seconds);
            let whole = median(|r| r.inclusive_seconds);
            let mpi = median(|r| r.mpi_seconds);
            (
                region.self_seconds,
                region.inclusive_seconds,
                region.mpi_seconds,
            ) = (own, whole, mpi);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::profile as fixture;

    fn run(times: [u64; 3], own: f64) -> Profile {
        let mut profile = fixture::profile(&[("f", None, own, 1e6), ("g", Some(0), 0.1, 1e6)]);
        profile.regions[0].invocations = 3;
        profile.regions[0].trace.first = times.to_vec();
        profile.seconds = 0.9 + own / 10.0;
        profile
    }

    #[test]
    fn noise_is_what_runs_do_not_share() {
        let of = |times: &[[u64; 3]]| {
            let runs: Vec<Profile> = times.iter().map(|t| run(*t, 0.5)).collect();
            merge(runs).unwrap().0.regions[0].noise
        };
        // Twice as slow as a whole, and invocations that differ in every run alike.
        assert_eq!(of(&[[10, 90, 20], [20, 180, 40], [10, 90, 20]]), 0.0);
        // 1.2, 0.8, 1.0 of the mean against 0.8, 1.2, 1.0.
        let found = of(&[[120, 80, 100], [80, 120, 100]]);
        assert!((found - 0.48 * 1.5f64.sqrt() * 0.8 / 3.0).abs() < 1e-9);
        assert_eq!(of(&[[10, 90, 20]]), 0.0);
        assert_eq!(of(&[[0, 0, 0], [0, 0, 0]]), 0.0);
    }

    #[test]
    fn each_invocation_by_itself() {
        let runs = vec![
            run([10, 90, 10], 0.5),
            run([70, 12, 12], 0.4),
            run([11, 11, 0], 0.6),
        ];
        let (merged, note) = merge(runs.clone()).unwrap();
        assert_eq!((note, merged.runs), (None, 3));
        assert_eq!(merged.regions[0].trace.first, [11, 12, 10]);
        assert_eq!(merged.regions[0].self_seconds, 0.5);
        assert!((merged.seconds - 0.95).abs() < 1e-9);
        assert!((merged.coverage - 0.6 / 0.95).abs() < 1e-9);
        assert_eq!(merged.tree[1].self_seconds, 0.5);

        let mut apart = runs;
        apart[0].regions[0].invocations = 4;
        let (merged, note) = merge(apart).unwrap();
        assert!(note.unwrap().contains("f (1 in all)"));
        assert_eq!(merged.regions[0].trace.first, [10, 90, 10]);
        assert_eq!(merged.regions[1].self_seconds, 0.1);
        assert!(merge(Vec::new()).is_none());
    }
}
