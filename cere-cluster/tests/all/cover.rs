//! The cheapest cover against all choices there are, and on trees of hundreds of regions.

use cere_cluster::{Cover, CoverError, Goal, Node, cover};
use proptest::prelude::*;

/// A tree from the parent, region and self time of each node below the root.
fn tree(own: f64, nodes: &[(usize, usize, f64)]) -> Vec<Node> {
    let mut tree = vec![Node {
        parent: None,
        region: None,
        own,
        inclusive: own,
        invocations: 1,
    }];
    for (parent, region, own) in nodes {
        tree.push(Node {
            parent: Some(*parent),
            region: Some(*region),
            own: *own,
            inclusive: *own,
            invocations: 1,
        });
    }
    for node in (1..tree.len()).rev() {
        if let Some(parent) = tree[node].parent {
            tree[parent].inclusive += tree[node].inclusive;
        }
    }
    tree
}

fn goal(coverage: f64) -> Goal {
    Goal {
        coverage,
        ..Goal::default()
    }
}

fn above(tree: &[Node], mut node: usize) -> Vec<usize> {
    let mut regions = Vec::new();
    while let Some(parent) = tree[node].parent {
        regions.extend(tree[parent].region);
        node = parent;
    }
    regions
}

/// Cost and coverage of a choice; none if a region of it lies inside another.
fn worth(tree: &[Node], costs: &[Option<f64>], chosen: &[usize]) -> Option<(f64, f64)> {
    let (mut cost, mut time) = (0.0, 0.0);
    for region in chosen {
        cost += costs[*region]?;
    }
    for (node, of) in tree.iter().enumerate() {
        if of.region.is_some_and(|r| chosen.contains(&r)) {
            let above: Vec<usize> = above(tree, node);
            let own = |r: &usize| Some(*r) == of.region;
            if above.iter().any(|r| !own(r) && chosen.contains(r)) {
                return None;
            }
            if !above.iter().any(own) {
                time += of.inclusive;
            }
        }
    }
    Some((cost, time / tree[0].inclusive))
}

/// A call of 1 and 2 within 0 is cheaper apart; all of it needs 0.
#[test]
fn inside_or_outside() {
    let tree = tree(2.0, &[(0, 0, 1.0), (1, 1, 60.0), (1, 2, 30.0), (0, 3, 7.0)]);
    let costs = [Some(5.0), Some(1.0), Some(1.0), Some(9.0)];
    let of = |coverage| {
        let found = cover(&tree, &costs, goal(coverage)).unwrap();
        assert_eq!(found.gap, 0.0);
        (
            found.regions,
            found.cost,
            (found.coverage * 1e6).round() / 1e6,
        )
    };
    assert_eq!(of(0.0), (vec![], 0.0, 0.0));
    assert_eq!(of(0.5), (vec![1], 1.0, 0.6));
    assert_eq!(of(0.9), (vec![1, 2], 2.0, 0.9));
    assert_eq!(of(0.905), (vec![0], 5.0, 0.91));
    assert_eq!(of(0.95), (vec![1, 2, 3], 11.0, 0.97));
    assert_eq!(of(0.98), (vec![0, 3], 14.0, 0.98));
    let wanted = 0.99;
    let Err(CoverError::Unreachable { best, .. }) = cover(&tree, &costs, goal(wanted)) else {
        panic!("the root's own time was covered");
    };
    assert!((best - 0.98).abs() < 1e-9);
    let none = cover(&tree, &[None; 4], goal(0.1)).unwrap_err();
    assert_eq!(
        none,
        CoverError::Unreachable {
            wanted: 0.1,
            best: 0.0
        }
    );
    assert_eq!(
        none.to_string(),
        "no choice of regions covers 10.00 % of the run: 0.00 % is the most that those that may be chosen reach"
    );
}

#[test]
fn input_without_an_answer() {
    let good = tree(1.0, &[(0, 0, 1.0)]);
    let of =
        |tree: &[Node], cost, coverage| cover(tree, &[Some(cost)], goal(coverage)).unwrap_err();
    assert!(matches!(of(&[], 1.0, 0.5), CoverError::Tree(_)));
    assert!(matches!(
        of(&good, f64::NAN, 0.5),
        CoverError::Cost { region: 0, .. }
    ));
    assert!(matches!(of(&good, 1.0, 1.5), CoverError::Coverage(_)));
    assert_eq!(of(&tree(0.0, &[(0, 0, 0.0)]), 1.0, 0.5), CoverError::NoTime);
    let limit = Goal {
        seconds: 0.0,
        ..Goal::default()
    };
    assert!(matches!(
        cover(&good, &[None], limit),
        Err(CoverError::Limit(_))
    ));
}

/// Trees of up to `regions` regions, each in up to twice as many places; times and costs differ by orders.
fn random(regions: usize) -> impl Strategy<Value = (Vec<Node>, Vec<Option<f64>>)> {
    let time = (0.0..6.0f64).prop_map(|t| 10f64.powf(t));
    let nodes = (regions / 2)..(2 * regions);
    let places = prop::collection::vec((any::<prop::sample::Index>(), 0..regions, time), nodes);
    let cost = prop::option::weighted(0.9, (0.0..3.0f64).prop_map(|c| 10f64.powf(c)));
    (places, prop::collection::vec(cost, regions), 0.0..1e5f64).prop_map(|(places, costs, own)| {
        let nodes: Vec<(usize, usize, f64)> = places
            .iter()
            .enumerate()
            .map(|(before, (parent, region, own))| (parent.index(before + 1), *region, *own))
            .collect();
        (tree(own, &nodes), costs)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn against_all_choices((tree, costs) in random(11), coverage in 0.0..1.0f64) {
        let choices: Vec<(f64, f64)> = (0..1 << costs.len())
            .filter_map(|set: u32| {
                let chosen: Vec<usize> = (0..costs.len()).filter(|r| set >> r & 1 == 1).collect();
                worth(&tree, &costs, &chosen)
            })
            .collect();
        let best = choices.iter().map(|c| c.1).fold(0.0, f64::max);
        match cover(&tree, &costs, goal(coverage)) {
            Ok(Cover { regions, cost, coverage: covered, gap }) => {
                let (own, share) = worth(&tree, &costs, &regions).expect("no region inside another");
                prop_assert!((own - cost).abs() < 1e-9 * (1.0 + cost));
                prop_assert!((share - covered).abs() < 1e-9);
                prop_assert!(covered >= coverage - 1e-6, "{covered} {coverage}");
                prop_assert_eq!(gap, 0.0);
                let enough = choices.iter().filter(|c| c.1 >= coverage + 1e-6);
                let least = enough.map(|c| c.0).fold(f64::INFINITY, f64::min);
                prop_assert!(cost <= least * (1.0 + 1e-6), "{cost} {least}");
            }
            Err(CoverError::Unreachable { best: said, .. }) => {
                prop_assert!((said - best).abs() < 1e-6 && best < coverage + 1e-6);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, failure_persistence: None, ..Default::default() })]

    /// Hundreds of regions: proved, well within the limit.
    #[test]
    fn hundreds((tree, costs) in random(300)) {
        let costs: Vec<Option<f64>> = costs.iter().map(|c| Some(c.unwrap_or(1.0))).collect();
        let Err(CoverError::Unreachable { best, .. }) = cover(&tree, &costs, goal(1.0)) else {
            return Ok(());
        };
        for part in [0.5, 0.9, 0.95, 0.99] {
            let found = cover(&tree, &costs, goal(best * part)).unwrap();
            prop_assert_eq!(found.gap, 0.0);
            prop_assert!(worth(&tree, &costs, &found.regions).is_some());
        }
    }
}

/// Costs that follow the times, so that nearly all choices are nearly as good: what is not proved is said.
#[test]
fn hard() {
    let nodes: Vec<(usize, usize, f64)> = (0..300)
        .map(|r| (0, r, 1000.0 + (r * 7919 % 1009) as f64))
        .collect();
    let costs: Vec<Option<f64>> = nodes.iter().map(|n| Some(100.0 + n.2)).collect();
    let tree = tree(0.0, &nodes);
    for seconds in [1e-6, 0.01, 1.0] {
        let coverage = 0.5;
        let found = match cover(&tree, &costs, Goal { coverage, seconds }) {
            Err(CoverError::Unsolved(_)) if seconds < 1.0 => continue,
            found => found.unwrap(),
        };
        let (cost, share) = worth(&tree, &costs, &found.regions).unwrap();
        assert!((cost - found.cost).abs() < 1e-6 && share >= 0.5 - 1e-6);
        // The longest first is a good choice; no bound can lie above it.
        let mut order: Vec<usize> = (0..300).collect();
        order.sort_by(|a, b| nodes[*b].2.total_cmp(&nodes[*a].2));
        let (mut longest, mut covered) = (0.0, 0.0);
        for region in order {
            if covered < tree[0].inclusive / 2.0 {
                covered += nodes[region].2;
                longest += nodes[region].2 + 100.0;
            }
        }
        assert!((0.0..=1.0).contains(&found.gap));
        assert!(found.cost * (1.0 - found.gap) <= longest * (1.0 + 1e-9));
    }
}
