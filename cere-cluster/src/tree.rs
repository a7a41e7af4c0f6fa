//! The tree of regions calling regions, and the time of dropped regions.

use crate::point::valid;

/// A region under a particular chain of callers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node {
    /// The calling node, which comes before this one; none for the root alone, which is node 0.
    pub parent: Option<usize>,
    /// The region; none for the root.
    pub region: Option<usize>,
    /// Time inside, regions called excluded.
    pub own: f64,
    /// Time inside, regions called included.
    pub inclusive: f64,
    /// Times entered.
    pub invocations: u64,
}

/// Why nodes are not a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// No root.
    #[error("the tree of regions has no nodes")]
    Empty,
    /// A node without a caller before it, or a root with one or with a region.
    #[error("node {node} of the tree of regions is not called by a node before it")]
    Parent {
        /// Which.
        node: usize,
    },
    /// A region number that is too large.
    #[error("node {node} of the tree of regions names none of the {regions} regions")]
    Region {
        /// Which.
        node: usize,
        /// Regions there are.
        regions: usize,
    },
    /// A time that is negative, infinite or not a number.
    #[error("node {node} of the tree of regions has an impossible time")]
    Time {
        /// Which.
        node: usize,
    },
}

/// Checks the assumptions of the functions here.
pub(crate) fn check(tree: &[Node], regions: usize) -> Result<(), TreeError> {
    if tree.is_empty() {
        return Err(TreeError::Empty);
    }
    for (node, of) in tree.iter().enumerate() {
        let called = of.parent.is_some_and(|parent| parent < node);
        if called != (node > 0) || (node == 0 && of.parent.or(of.region).is_some()) {
            return Err(TreeError::Parent { node });
        }
        if node > 0 && of.region.is_none_or(|region| region >= regions) {
            return Err(TreeError::Region { node, regions });
        }
        if !valid(of.own) || !valid(of.inclusive) {
            return Err(TreeError::Time { node });
        }
    }
    Ok(())
}

/// Self times after regions were dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct Pruned {
    /// A self time a region, in order; 0 for a dropped one.
    pub own: Vec<f64>,
    /// The root's self time and that of dropped regions that no kept one called.
    pub uncovered: f64,
}

/// Gives the self time of the regions that `keep` does not keep to those that called them, node by node: to the nearest
/// kept caller, or to nobody. `regions` is their number.
pub fn prune(
    tree: &[Node],
    regions: usize,
    keep: impl Fn(usize) -> bool,
) -> Result<Pruned, TreeError> {
    check(tree, regions)?;
    let mut pruned = Pruned {
        own: vec![0.0; regions],
        uncovered: 0.0,
    };
    let mut heirs: Vec<Option<usize>> = Vec::with_capacity(tree.len());
    for node in tree {
        let above = node.parent.and_then(|parent| heirs[parent]);
        let heir = node.region.filter(|region| keep(*region)).or(above);
        match heir {
            Some(region) => pruned.own[region] += node.own,
            None => pruned.uncovered += node.own,
        }
        heirs.push(heir);
    }
    Ok(pruned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(parent: usize, region: usize, own: f64) -> Node {
        Node {
            parent: Some(parent),
            region: Some(region),
            own,
            inclusive: own,
            invocations: 1,
        }
    }

    fn tree() -> Vec<Node> {
        let root = Node {
            parent: None,
            region: None,
            own: 1.0,
            inclusive: 31.0,
            invocations: 1,
        };
        // 0 calls 1 calls 2; 2 is called from outside as well.
        vec![
            root,
            node(0, 0, 2.0),
            node(1, 1, 4.0),
            node(2, 2, 8.0),
            node(0, 2, 16.0),
        ]
    }

    #[test]
    fn to_the_nearest_kept_caller() {
        let of = |kept: &[usize]| {
            let pruned = prune(&tree(), 3, |r| kept.contains(&r)).unwrap();
            (pruned.own, pruned.uncovered)
        };
        assert_eq!(of(&[0, 1, 2]), (vec![2.0, 4.0, 24.0], 1.0));
        assert_eq!(of(&[0, 2]), (vec![6.0, 0.0, 24.0], 1.0));
        assert_eq!(of(&[0]), (vec![14.0, 0.0, 0.0], 17.0));
        assert_eq!(of(&[1]), (vec![0.0, 12.0, 0.0], 19.0));
        assert_eq!(of(&[]), (vec![0.0; 3], 31.0));
    }

    #[test]
    fn what_is_no_tree() {
        let with = |change: fn(&mut Vec<Node>)| {
            let mut tree = tree();
            change(&mut tree);
            prune(&tree, 3, |_| true).unwrap_err()
        };
        assert_eq!(with(Vec::clear), TreeError::Empty);
        assert_eq!(
            with(|t| t[0].region = Some(0)),
            TreeError::Parent { node: 0 }
        );
        assert_eq!(with(|t| t[1].parent = None), TreeError::Parent { node: 1 });
        assert_eq!(
            with(|t| t[1].parent = Some(2)),
            TreeError::Parent { node: 1 }
        );
        let region = TreeError::Region {
            node: 2,
            regions: 3,
        };
        assert_eq!(with(|t| t[2].region = Some(3)), region);
        assert_eq!(with(|t| t[2].region = None), region);
        assert_eq!(with(|t| t[3].own = f64::NAN), TreeError::Time { node: 3 });
    }
}
