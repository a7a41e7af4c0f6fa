//! Chains of regions with their times, for each thread and each rank.

use cere_format::profile::{Profile, ThreadProfile};
use cere_format::untrusted::visible;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Most frames of a chain; what recurs deeper is taken together. Readers of nested JSON stop at about 1000.
const DEEP: usize = 100;

/// The chains of one thread, by their frames: the program first.
pub struct Lane {
    /// What tells it from the others.
    pub name: String,
    /// By frames.
    pub stacks: BTreeMap<Vec<String>, Times>,
}

/// The times of a chain.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// Seconds in its last frame alone.
    pub own: f64,
    /// Seconds in its last frame and what that calls.
    pub inclusive: f64,
    /// Times its last frame was entered.
    pub invocations: u64,
}

/// The name of the program's file.
pub fn program(profile: &Profile) -> String {
    let own = Some(profile.process.program.as_path()).filter(|p| !p.as_os_str().is_empty());
    let named = profile.command.first().map(Path::new);
    let name = own.or(named).and_then(Path::file_name).unwrap_or_default();
    visible(&name.to_string_lossy())
}

/// The first thread, other threads that entered regions, other ranks.
pub fn lanes(profile: &Profile) -> Vec<Lane> {
    let rank = profile.process.rank.as_deref();
    let of_rank = |name: &str| match rank {
        Some(rank) => format!("rank {} {name}", visible(rank)),
        None => name.to_owned(),
    };
    let mut lanes = vec![first(profile, of_rank("first thread"))];
    for thread in profile.threads.iter().filter(|thread| thread.number > 0) {
        let name = of_rank(&format!("thread {}", thread.number));
        lanes.push(other(profile, thread, name));
    }
    let others = profile
        .ranks
        .iter()
        .filter(|r| Some(r.rank.as_str()) != rank);
    for rank in others {
        let root = [program(profile)];
        let regions = rank.regions.iter().map(|region| {
            let times = Times {
                own: region.self_seconds,
                // What a rank calls is not kept as a tree.
                inclusive: region.self_seconds,
                invocations: region.invocations,
            };
            ([&root[..], &[shown(&region.name)]].concat(), times)
        });
        lanes.push(Lane {
            name: format!("rank {}", visible(&rank.rank)),
            stacks: sum(regions.collect()),
        });
    }
    lanes
}

fn shown(name: &str) -> String {
    visible(name)
}

fn first(profile: &Profile, name: String) -> Lane {
    // Nodes below the depth that is kept share a chain.
    let (mut chains, mut of_node) = (
        Vec::<Vec<String>>::new(),
        Vec::with_capacity(profile.tree.len()),
    );
    let mut all: Vec<Times> = Vec::new();
    for (place, node) in profile.tree.iter().enumerate() {
        let above = node
            .parent
            .filter(|parent| *parent < place)
            .map(|parent| of_node[parent]);
        let shared =
            above.filter(|above: &usize| chains[*above].last().is_some_and(|last| last == DEEPER));
        let chain = shared.unwrap_or_else(|| {
            let own = match node.region {
                None => program(profile),
                Some(region) => profile
                    .regions
                    .get(region)
                    .map_or("?".to_owned(), |r| shown(&r.name)),
            };
            chains.push(deeper(above.map(|above| &chains[above]), own));
            all.push(Times::default());
            chains.len() - 1
        });
        of_node.push(chain);
        all[chain].own += node.self_seconds;
        all[chain].invocations += node.invocations;
        // Of nodes that share a chain, what one calls is in another.
        all[chain].inclusive += match shared {
            Some(_) => 0.0,
            None => node.inclusive_seconds,
        };
    }
    Lane {
        name,
        stacks: sum(chains.into_iter().zip(all).collect()),
    }
}

/// The frame that stands for what is below the deepest one that is kept.
const DEEPER: &str = "(deeper calls)";

/// `above` and `own`; no longer than it may be.
fn deeper(above: Option<&Vec<String>>, own: String) -> Vec<String> {
    let mut frames = above.cloned().unwrap_or_default();
    if frames.len() < DEEP {
        frames.push(own);
    } else if let Some(last) = frames.last_mut() {
        *last = DEEPER.to_owned();
    }
    frames
}

fn other(profile: &Profile, thread: &ThreadProfile, name: String) -> Lane {
    let named = |region: usize| {
        profile
            .over_threads
            .get(region)
            .map_or("?".to_owned(), |r| shown(&r.name))
    };
    let caller = |region: usize| thread.regions.iter().find(|r| r.region == region)?.caller;
    let regions = thread.regions.iter().map(|region| {
        let (mut chain, mut seen) = (vec![region.region], BTreeSet::from([region.region]));
        while let Some(above) = chain.last().and_then(|last| caller(*last)) {
            if !seen.insert(above) {
                break;
            }
            chain.push(above);
        }
        let root = vec![program(profile)];
        let frames = chain.iter().rev();
        let frames = frames.fold(root, |above, region| deeper(Some(&above), named(*region)));
        let times = Times {
            own: region.self_seconds,
            inclusive: region.inclusive_seconds,
            invocations: region.invocations,
        };
        (frames, times)
    });
    Lane {
        name,
        stacks: sum(regions.collect()),
    }
}

/// Chains that are the same in one; callers are there even if they have no time of their own.
fn sum(all: Vec<(Vec<String>, Times)>) -> BTreeMap<Vec<String>, Times> {
    let mut stacks: BTreeMap<Vec<String>, Times> = BTreeMap::new();
    for (frames, times) in all {
        let entry = stacks.entry(frames).or_default();
        entry.own += times.own;
        entry.inclusive += times.inclusive;
        entry.invocations += times.invocations;
    }
    let callers: Vec<Vec<String>> = stacks
        .keys()
        .flat_map(|frames| (1..frames.len()).map(|depth| frames[..depth].to_vec()))
        .collect();
    for frames in callers {
        stacks.entry(frames).or_default();
    }
    stacks
}

/// The file and the line in a region's name, `function@file:line`, which a number may follow.
pub fn place(name: &str) -> Option<(&str, u32)> {
    let (_, place) = name.rsplit_once('@')?;
    let (file, line) = place.rsplit_once(':')?;
    let line = line.split('#').next()?;
    Some((file, line.parse().ok()?))
}
