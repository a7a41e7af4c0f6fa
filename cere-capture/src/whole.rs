//! A profile of all threads: what regions of other threads than the first take is as much the program's work.

use cere_format::profile::{Profile, RegionProfile, Trace, TreeNode};
use std::borrow::Cow;

/// A region in the threads other than the first, teams apart.
#[derive(Default)]
struct Others {
    /// Seconds on processors, regions called excluded.
    own: f64,
    /// Times entered, and the sum of the cycles of these invocations.
    invocations: u64,
    cycles: f64,
    least: u64,
    most: u64,
    /// Index in [`Profile::over_threads`] of the region that calls it, if one does in all threads.
    caller: Option<usize>,
}

/// The profile with the regions of all threads, if other threads than the first and its teams do much: its seconds are processor
/// time, without waiting, and its tree has what other threads do beside what the first one does. Traces are the first thread's.
pub fn over_all_threads(profile: &Profile) -> Cow<'_, Profile> {
    let (Some(_), Some(processor)) = (profile.others_at_work(), profile.processor) else {
        return Cow::Borrowed(profile);
    };
    let others = of_others(profile);
    let mut whole = profile.clone();
    whole.seconds = processor.all;
    only_work(&mut whole, processor.team);
    let places = add_regions(&mut whole, profile, &others);
    add_nodes(&mut whole, &others, &places);
    let outside = whole.outside_mpi().max(f64::MIN_POSITIVE);
    for region in &mut whole.regions {
        region.share = region.self_seconds / outside;
    }
    Cow::Owned(whole)
}

/// What the other threads do in each region of [`Profile::over_threads`].
fn of_others(profile: &Profile) -> Vec<Others> {
    let mut all: Vec<Others> = Vec::new();
    all.resize_with(profile.over_threads.len(), Others::default);
    for thread in profile.threads.iter().filter(|t| t.number > 0) {
        for region in &thread.regions {
            let Some(sum) = all.get_mut(region.region) else {
                continue;
            };
            sum.caller = match sum.invocations {
                0 => region.caller,
                _ => sum.caller.filter(|caller| region.caller == Some(*caller)),
            };
            sum.least = match sum.invocations {
                0 => region.cycles_min,
                _ => sum.least.min(region.cycles_min),
            };
            sum.most = sum.most.max(region.cycles_max);
            sum.own += region.self_seconds - region.waiting_seconds;
            sum.cycles += region.cycles_mean * region.invocations as f64;
            sum.invocations += region.invocations;
        }
    }
    all
}

/// Takes waiting out of the first thread's times, and adds what its teams do.
fn only_work(whole: &mut Profile, team: f64) {
    let parallel = whole.regions.iter().filter(|r| r.parallel);
    let parallel: f64 = parallel.map(|r| r.self_seconds).sum();
    let factor = |region: &RegionProfile| match region.parallel {
        true => 1.0 + team / parallel.max(f64::MIN_POSITIVE),
        false => 1.0 - region.waiting_seconds / region.self_seconds.max(f64::MIN_POSITIVE),
    };
    let factors: Vec<f64> = whole.regions.iter().map(factor).collect();
    for (region, factor) in whole.regions.iter_mut().zip(&factors) {
        region.self_seconds *= factor;
        region.waiting_seconds = 0.0;
    }
    for node in &mut whole.tree {
        node.self_seconds *= node.region.and_then(|r| factors.get(r)).unwrap_or(&1.0);
    }
    sum_up(&mut whole.tree);
    let mut inclusive = vec![0.0; factors.len()];
    for (place, node) in whole.tree.iter().enumerate() {
        if let Some(region) = node.region.filter(|r| !is_inside(&whole.tree, place, *r)) {
            inclusive[region] += node.inclusive_seconds;
        }
    }
    for (region, inclusive) in whole.regions.iter_mut().zip(inclusive) {
        region.inclusive_seconds = inclusive;
    }
}

/// Whether a node lies inside another one of `region`.
fn is_inside(tree: &[TreeNode], place: usize, region: usize) -> bool {
    let mut above = tree[place].parent;
    while let Some(at) = above {
        if tree[at].region == Some(region) {
            return true;
        }
        above = tree[at].parent;
    }
    false
}

/// Computes inclusive times from self times: callers come before what they call.
fn sum_up(tree: &mut [TreeNode]) {
    for node in tree.iter_mut() {
        node.inclusive_seconds = node.self_seconds;
    }
    for place in (1..tree.len()).rev() {
        let inclusive = tree[place].inclusive_seconds;
        if let Some(parent) = tree[place].parent {
            tree[parent].inclusive_seconds += inclusive;
        }
    }
}

/// Adds what the other threads do to the regions. Returns the place of each of [`Profile::over_threads`] among them.
fn add_regions(whole: &mut Profile, profile: &Profile, others: &[Others]) -> Vec<Option<usize>> {
    let add = |(over, sum): (&cere_format::profile::OverThreads, &Others)| {
        let found = whole.regions.iter().position(|r| r.key == over.key);
        if sum.invocations == 0 {
            return found;
        }
        if let Some(found) = found {
            let region = &mut whole.regions[found];
            region.self_seconds += sum.own;
            region.inclusive_seconds += sum.cycles / profile.tsc_hz;
            region.invocations += sum.invocations;
            return Some(found);
        }
        whole.regions.push(RegionProfile {
            name: over.name.clone(),
            key: over.key.clone(),
            invocations: sum.invocations,
            inclusive_seconds: sum.cycles / profile.tsc_hz,
            self_seconds: sum.own,
            share: 0.0,
            parallel: false,
            waiting_seconds: 0.0,
            mpi_seconds: 0.0,
            cycles_min: sum.least,
            cycles_mean: sum.cycles / sum.invocations as f64,
            cycles_max: sum.most,
            noise: 0.0,
            trace: Trace::default(),
        });
        Some(whole.regions.len() - 1)
    };
    profile.over_threads.iter().zip(others).map(add).collect()
}

/// Adds a node for each region in other threads below that of its caller, and what of the processor time no region has to the root.
fn add_nodes(whole: &mut Profile, others: &[Others], places: &[Option<usize>]) {
    let mut nodes: Vec<Option<usize>> = vec![None; others.len()];
    // Callers come first; what is left lies in a circle.
    for _ in 0..others.len() {
        let before = whole.tree.len();
        for (over, sum) in others.iter().enumerate() {
            let ready = sum.caller.is_none_or(|caller| nodes[caller].is_some());
            if sum.invocations > 0 && nodes[over].is_none() && ready {
                nodes[over] = Some(push_node(
                    whole,
                    sum,
                    places[over],
                    sum.caller.and_then(|c| nodes[c]),
                ));
            }
        }
        if whole.tree.len() == before {
            break;
        }
    }
    for (over, sum) in others.iter().enumerate() {
        if sum.invocations > 0 && nodes[over].is_none() {
            push_node(whole, sum, places[over], None);
        }
    }
    sum_up(&mut whole.tree);
    let regions = whole.tree[0].inclusive_seconds - whole.tree[0].self_seconds;
    whole.tree[0].self_seconds = (whole.seconds - regions).max(0.0);
    whole.tree[0].inclusive_seconds = regions + whole.tree[0].self_seconds;
}

fn push_node(
    whole: &mut Profile,
    sum: &Others,
    region: Option<usize>,
    parent: Option<usize>,
) -> usize {
    whole.tree.push(TreeNode {
        region,
        parent: Some(parent.unwrap_or(0)),
        invocations: sum.invocations,
        inclusive_seconds: 0.0,
        self_seconds: sum.own,
    });
    whole.tree.len() - 1
}
