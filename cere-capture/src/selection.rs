//! The regions of a profile that matter (CERE thesis, 3.4). Regions that are too small or too short are removed from the tree,
//! and their self time goes to the regions that call them.

use anyhow::Result;
use cere_catalogue::{OrCoded, codes};
use cere_cluster::{Candidate, Node, Pruned, Rejection, Rule, prune, select};
use cere_format::profile::{Profile, RegionKey, TreeNode};

/// A region is around all if one of its invocations is more than this part of the run: its replay saves little.
const OUTER: f64 = 0.1;
/// Share of the run from which on regions stay in the place of one around them.
const SMALL: f64 = 0.001;
/// Part of the run that may then count for no region.
const LOST: f64 = 0.05;

/// A region that stays in the tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kept {
    /// Its index in the profile.
    pub region: usize,
    /// Its self time and that of dropped regions that it calls, in seconds.
    pub seconds: f64,
}

/// The tree after pruning.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The regions that stay, by falling time.
    pub kept: Vec<Kept>,
    /// Regions that take enough time, but in invocations too short to be timed alone.
    pub short: Vec<(usize, Rejection)>,
}

/// The profile's tree in the form that `cere-cluster` takes.
pub fn tree_nodes(profile: &Profile) -> Vec<Node> {
    let node = |n: &TreeNode| Node {
        parent: n.parent,
        region: n.region,
        own: n.self_seconds,
        inclusive: n.inclusive_seconds,
        invocations: n.invocations,
    };
    profile.tree.iter().map(node).collect()
}

impl Selection {
    /// Drops the short regions first, then those below the share, callees before their callers, because a dropped callee's time
    /// may lift its caller above the share. Where that leaves a region around all that takes little time itself, the small
    /// ones inside stay in its place: see [`OUTER`] and [`SMALL`].
    pub fn of(profile: &Profile) -> Result<Self> {
        let dropped = Self::with(profile, |_| false)?;
        let outer = |kept: &&Kept| {
            let region = &profile.regions[kept.region];
            let invocation = region.inclusive_seconds / region.invocations.max(1) as f64;
            region.share <= LOST && invocation > OUTER * profile.outside_mpi()
        };
        let outer: Vec<usize> = dropped
            .kept
            .iter()
            .filter(outer)
            .map(|k| k.region)
            .collect();
        if outer.is_empty() {
            return Ok(dropped);
        }
        let mut stay: Vec<&RegionKey> = Vec::new();
        for (region, inside) in profile.regions.iter().zip(inside(profile, &outer)) {
            if inside && region.share > SMALL {
                stay.push(&region.key);
            }
        }
        let mut with_small = Self::with(profile, |key| stay.contains(&key))?;
        let mut left = LOST * profile.outside_mpi();
        // The smallest first, for as long as all that go are within the bound.
        let mut goes = Vec::new();
        for kept in with_small.kept.iter().rev() {
            if outer.contains(&kept.region) && kept.seconds <= left {
                left -= kept.seconds;
                goes.push(kept.region);
            }
        }
        with_small.kept.retain(|k| !goes.contains(&k.region));
        let still = |region: &usize| with_small.kept.iter().any(|k| k.region == *region);
        Ok(match outer.iter().all(still) {
            true => dropped,
            false => with_small,
        })
    }

    /// The regions above the share: without the small ones that stay in another's place.
    pub fn large(&self, profile: &Profile) -> impl Iterator<Item = &Kept> {
        let bound = Rule::default().share * profile.outside_mpi();
        self.kept.iter().filter(move |kept| kept.seconds > bound)
    }

    /// The same with regions that are not dropped for their share: those that `stays` says so of, and none in another's place.
    pub fn with(profile: &Profile, stays: impl Fn(&RegionKey) -> bool) -> Result<Self> {
        let rule = Rule::default();
        let (tree, regions) = (tree_nodes(profile), &profile.regions);
        let candidates: Vec<Candidate> = regions
            .iter()
            .map(|r| Candidate {
                share: r.share,
                cycles_mean: r.cycles_mean,
            })
            .collect();
        let answers = select(&candidates, rule).into_iter().enumerate();
        let short: Vec<(usize, Rejection)> = answers
            .filter_map(|(region, answer)| Some((region, answer.err()?)))
            .filter(|(_, why)| matches!(why, Rejection::Short { .. }))
            .collect();
        let mut keep: Vec<bool> = regions
            .iter()
            .map(|r| r.cycles_mean >= rule.cycles)
            .collect();
        loop {
            let own = own_seconds(&tree, &keep)?;
            let bound = rule.share * profile.outside_mpi();
            let small: Vec<bool> = (0..keep.len())
                .map(|region| keep[region] && own[region] <= bound && !stays(&regions[region].key))
                .collect();
            let calls_small = callers(&tree, &small);
            let least = (0..keep.len())
                .filter(|region| small[*region])
                .min_by(|a, b| {
                    let rank = |region: &usize| (calls_small[*region], own[*region]);
                    let ((a, x), (b, y)) = (rank(a), rank(b));
                    a.cmp(&b).then(x.total_cmp(&y))
                });
            if let Some(region) = least {
                keep[region] = false;
                continue;
            }
            let mut kept: Vec<Kept> = (0..keep.len())
                .filter(|region| keep[*region])
                .map(|region| Kept {
                    region,
                    seconds: own[region],
                })
                .collect();
            kept.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
            return Ok(Self { kept, short });
        }
    }
}

/// Which regions are called from one of `outer`, directly or indirectly.
fn inside(profile: &Profile, outer: &[usize]) -> Vec<bool> {
    let tree = &profile.tree;
    let mut found = vec![false; profile.regions.len()];
    for node in tree {
        let Some(region) = node.region else { continue };
        let mut above = node.parent;
        while let Some(at) = above {
            found[region] |= tree[at].region.is_some_and(|r| outer.contains(&r));
            above = tree[at].parent;
        }
    }
    found
}

/// The regions that call one of `of` other than themselves, directly or indirectly.
fn callers(tree: &[Node], of: &[bool]) -> Vec<bool> {
    let mut found = vec![false; of.len()];
    for node in tree {
        let Some(called) = node.region.filter(|region| of[*region]) else {
            continue;
        };
        let mut above = node.parent;
        while let Some(at) = above {
            match tree[at].region {
                Some(region) if region != called => found[region] = true,
                _ => {}
            }
            above = tree[at].parent;
        }
    }
    found
}

/// Self seconds of each region after the regions that `keep` drops gave theirs to their callers.
pub fn own_seconds(tree: &[Node], keep: &[bool]) -> Result<Vec<f64>> {
    Ok(pruned(tree, keep)?.own)
}

/// The tree without the regions that `keep` drops.
pub fn pruned(tree: &[Node], keep: &[bool]) -> Result<Pruned> {
    prune(tree, keep.len(), |region| keep[region]).or_coded(
        codes::E4009,
        || "the profile is damaged: run `cere profile` again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::profile as fixture;

    #[test]
    fn what_is_dropped_lifts_its_callers() {
        // `outer` has next to no time of its own, and calls three of half a per cent and one that is short.
        let mut profile = fixture::profile(&[
            ("outer", None, 0.001, 1e6),
            ("a", Some(0), 0.005, 1e6),
            ("b", Some(0), 0.005, 1e6),
            ("short", Some(0), 0.3, 100.0),
            ("large", Some(0), 0.5, 1e6),
            ("lone", None, 0.009, 1e6),
        ]);
        let kept = |profile: &Profile| {
            let selection = Selection::of(profile).unwrap();
            let short: Vec<usize> = selection.short.iter().map(|s| s.0).collect();
            let kept = selection.kept.into_iter();
            (
                kept.map(|k| (k.region, (k.seconds * 1e3).round()))
                    .collect::<Vec<_>>(),
                short,
            )
        };
        assert_eq!(kept(&profile), (vec![(4, 500.0), (0, 311.0)], vec![3]));
        // The long one counts for itself, and the small ones need nobody around them.
        profile.regions[3].cycles_mean = 1e6;
        profile.regions[0].invocations = 1;
        assert_eq!(
            kept(&profile),
            (vec![(4, 500.0), (3, 300.0), (1, 5.0), (2, 5.0)], vec![])
        );
        // What they leave to it, with its own, may be five hundredths of the run, no more.
        for (left, outer) in [(0.048, false), (0.051, true)] {
            profile.regions[3].cycles_mean = 100.0;
            profile.tree[4].self_seconds = left;
            let kept = kept(&profile).0;
            assert_eq!(kept.iter().any(|k| k.0 == 0), outer, "{kept:?}");
        }
        profile.regions[3].cycles_mean = 1e6;
        profile.tree[4].self_seconds = 0.3;
        // Nor two of three hundredths each.
        let mut two = fixture::profile(&[
            ("first", None, 0.029, 1e6),
            ("a", Some(0), 0.4, 1e6),
            ("second", None, 0.03, 1e6),
            ("b", Some(2), 0.4, 1e6),
        ]);
        two.regions[0].invocations = 1;
        two.regions[2].invocations = 1;
        assert_eq!(
            kept(&two),
            (vec![(1, 400.0), (3, 400.0), (2, 30.0)], vec![])
        );
        // A replay of a tenth of the run saves enough.
        profile.regions[0].invocations = 10;
        assert_eq!(
            kept(&profile),
            (vec![(4, 500.0), (3, 300.0), (0, 11.0)], vec![])
        );
    }
}
