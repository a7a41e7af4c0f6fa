//! The tree of locality: cores that exchange blocks faster with each other than with others (BlackjackBench 3.1.4). Pure functions.

use super::group::{Pair, components};
use cere_format::machine::Locality;
use cere_timing::stats::median;

/// Bandwidths between pairs at one block size.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Bytes of the block.
    pub block: u64,
    /// Bytes per second of each pair.
    pub pairs: Vec<(Pair, f64)>,
}

/// Least ratio of the bandwidth within groups to that across: less is noise.
pub const CLEAR: f64 = 1.3;

/// Share of the pairs within a group that have to be fast: a neighbour may have slowed down some.
const DENSE: f64 = 0.75;

/// The tree of `cores` from tables in any order; `None` without a pair. It starts with all cores at the largest block; a clique is split
/// at the largest block at which pairs within sub-cliques are clearly faster. Bandwidths are not made monotonic: a block that fits a
/// shared cache may be faster than a smaller one.
#[must_use]
pub fn tree(cores: &[u32], tables: &[Table]) -> Option<Locality> {
    let mut tables: Vec<&Table> = tables.iter().filter(|t| !t.pairs.is_empty()).collect();
    tables.sort_by_key(|table| std::cmp::Reverse(table.block));
    let mut sorted = cores.to_vec();
    sorted.sort_unstable();
    let first = tables.first()?;
    (cores.len() > 1).then(|| node(sorted, first, &tables))
}

fn node(cores: Vec<u32>, at: &Table, tables: &[&Table]) -> Locality {
    let within = tables.iter().enumerate().find_map(|(index, table)| {
        let groups = split(&cores, table)?;
        let larger = groups.into_iter().filter(|g| g.len() > 1);
        // A finer split may show at the same block.
        Some(larger.map(|g| node(g, table, &tables[index..])).collect())
    });
    let all: Vec<f64> = inside(&cores, at).map(|(_, rate)| rate).collect();
    Locality {
        block_bytes: at.block,
        bytes_per_second: median(&all).unwrap_or(0.0),
        within: within.unwrap_or_default(),
        cores,
    }
}

fn inside<'a>(cores: &'a [u32], table: &'a Table) -> impl Iterator<Item = (Pair, f64)> + 'a {
    let both = |((a, b), _): &&(Pair, f64)| cores.contains(a) && cores.contains(b);
    table.pairs.iter().filter(both).copied()
}

/// Sub-cliques of a clique at a block size: at the lowest clear gap between bandwidths above which they come apart; so the coarsest.
#[must_use]
pub fn split(cores: &[u32], table: &Table) -> Option<Vec<Vec<u32>>> {
    let all: Vec<(Pair, f64)> = inside(cores, table).collect();
    let mut rates: Vec<f64> = all.iter().map(|(_, rate)| *rate).collect();
    rates.sort_by(f64::total_cmp);
    let gaps = rates.windows(2).filter(|w| w[1] > w[0] * 1.05);
    gaps.map(|w| (w[0] * w[1]).sqrt()).find_map(|limit| {
        let fast = all.iter().filter(|(_, rate)| *rate > limit);
        let edges: Vec<Pair> = fast.map(|(pair, _)| *pair).collect();
        let groups = components(cores, &edges);
        let dense = |group: &Vec<u32>| {
            let pairs = group.len() * (group.len() - 1) / 2;
            let edges = edges
                .iter()
                .filter(|(a, b)| group.contains(a) && group.contains(b));
            edges.count() as f64 >= DENSE * pairs as f64
        };
        let apart = groups.len() > 1 && groups.iter().any(|g| g.len() > 1);
        (apart && groups.iter().all(dense) && clear(&groups, &all)).then_some(groups)
    })
}

/// Whether pairs within groups are clearly faster: the median of each group than nearly all pairs across.
fn clear(groups: &[Vec<u32>], all: &[(Pair, f64)]) -> bool {
    let within = |group: &Vec<u32>, (a, b): &Pair| group.contains(a) && group.contains(b);
    let across = all
        .iter()
        .filter(|(pair, _)| !groups.iter().any(|g| within(g, pair)));
    let mut across: Vec<f64> = across.map(|(_, rate)| *rate).collect();
    across.sort_by(f64::total_cmp);
    let Some(high) = across.last() else {
        return false;
    };
    let larger = groups.iter().filter(|g| g.len() > 1);
    let medians = larger.map(|group| {
        let rates = all.iter().filter(|(pair, _)| within(group, pair));
        median(&rates.map(|(_, rate)| *rate).collect::<Vec<_>>()).unwrap_or(0.0)
    });
    medians.fold(f64::INFINITY, f64::min) > high * CLEAR.sqrt()
        && groups_median(groups, all) > median(&across).unwrap_or(0.0) * CLEAR
}

fn groups_median(groups: &[Vec<u32>], all: &[(Pair, f64)]) -> f64 {
    let within = |pair: &Pair| {
        groups
            .iter()
            .any(|g| g.contains(&pair.0) && g.contains(&pair.1))
    };
    let rates = all.iter().filter(|(pair, _)| within(pair));
    median(&rates.map(|(_, rate)| *rate).collect::<Vec<_>>()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::group::tests::{noise, pairs};
    use super::*;

    /// Tiers, the widest first: cores in a group, the factor of the bandwidth within, the largest block at which it shows.
    fn table(cores: u32, tiers: &[(u32, f64, u64)], spread: f64, seed: u64) -> Vec<Table> {
        let mut random = noise(seed);
        let blocks = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20];
        let tables = blocks.map(|block| {
            let rate = |(a, b): Pair| {
                let same = tiers
                    .iter()
                    .filter(|(size, _, at)| a / size == b / size && block <= *at);
                let rate = same.fold(1e9, |rate, (_, factor, _)| rate * factor);
                ((a, b), rate * (1.0 - spread * random()))
            };
            Table {
                block,
                pairs: pairs(cores).into_iter().map(rate).collect(),
            }
        });
        tables.to_vec()
    }

    fn shape(node: &Locality) -> Vec<Vec<u32>> {
        let mut all = vec![node.cores.clone()];
        node.within.iter().for_each(|n| all.extend(shape(n)));
        all.sort();
        all
    }

    fn expected(cores: u32, tiers: &[(u32, f64, u64)]) -> Vec<Vec<u32>> {
        let mut all = vec![(0..cores).collect::<Vec<u32>>()];
        for (size, ..) in tiers {
            all.extend((0..cores / size).map(|g| (g * size..(g + 1) * size).collect()));
        }
        all.retain(|group| group.len() > 1);
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn sockets_caches_and_hyperthreads() {
        // 2 sockets, 2 last-level caches each, 4 cores, 2 threads.
        let tiers = [(16, 1.8, 256 << 20), (8, 2.0, 16 << 20), (2, 2.5, 64 << 10)];
        for seed in 1..50 {
            let tables = table(32, &tiers, 0.15, seed);
            let tree = tree(&(0..32).collect::<Vec<_>>(), &tables).unwrap();
            assert_eq!(shape(&tree), expected(32, &tiers), "seed {seed}");
            assert_eq!(
                (tree.block_bytes, tree.within[0].block_bytes),
                (256 << 20, 256 << 20)
            );
            assert_eq!(tree.within[0].within[0].block_bytes, 16 << 20);
            assert_eq!(tree.within[0].within[0].within[0].block_bytes, 64 << 10);
            assert!(tree.within[0].bytes_per_second > tree.bytes_per_second);
        }
    }

    #[test]
    fn flat_machines_are_not_split() {
        for seed in 1..200 {
            for cores in [2, 3, 4, 8, 16] {
                let tables = table(cores, &[], 0.2, seed);
                let tree = tree(&(0..cores).collect::<Vec<_>>(), &tables).unwrap();
                assert!(
                    tree.within.is_empty(),
                    "seed {seed}, {cores} cores: {tree:?}"
                );
            }
        }
        assert_eq!(tree(&[0], &table(1, &[], 0.1, 1)), None);
        assert_eq!(tree(&[0, 1], &[]), None);
    }

    #[test]
    fn random_machines() {
        for seed in 1..=200 {
            let mut random = noise(seed ^ 0xABCD);
            let mut pick = |from: u32, to: u32| from + (random() * f64::from(to - from + 1)) as u32;
            let (threads, per, groups, sockets) = (pick(1, 2), pick(2, 4), pick(1, 3), pick(1, 3));
            let mut factor = || 1.7 + 0.1 * f64::from(pick(0, 13));
            let (size, whole) = (threads * per, threads * per * groups);
            let tiers: Vec<(u32, f64, u64)> = [
                (whole, factor(), 256 << 20),
                (size, factor(), 1 << 20),
                (threads, factor(), 4 << 10),
            ]
            .into_iter()
            .filter(|(size, ..)| *size > 1)
            .collect();
            let cores = whole * sockets;
            let tables = table(cores, &tiers, 0.15, seed);
            let found = tree(&(0..cores).collect::<Vec<_>>(), &tables).unwrap();
            assert_eq!(
                shape(&found),
                expected(cores, &tiers),
                "seed {seed}: {tiers:?}"
            );
        }
    }

    #[test]
    fn a_disturbed_pair_does_not_split_a_group() {
        let tiers = [(4, 2.5, 1 << 20)];
        for seed in 1..100 {
            let mut tables = table(8, &tiers, 0.1, seed);
            // One pair within a group looks as if it were across, at every size.
            for table in &mut tables {
                let pair = table.pairs.iter_mut().find(|(p, _)| *p == (1, 2)).unwrap();
                pair.1 = 0.8e9;
            }
            let found = tree(&(0..8).collect::<Vec<_>>(), &tables).unwrap();
            assert_eq!(shape(&found), expected(8, &tiers), "seed {seed}");
        }
    }
}
