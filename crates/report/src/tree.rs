//! The tree of regions as rows.

use super::format::{self, brief, count, share};
use super::ids::Ids;
use cere_format::profile::Profile;

/// Share of the run time below which a branch is not shown.
const LEAST: f64 = 0.0005;
/// Maximum number of rows.
const MOST: usize = 600;
/// Maximum depth of indentation.
const DEEP: usize = 20;

/// A node.
pub struct Row {
    /// Levels below the program, from 0.
    pub depth: usize,
    /// The same, bounded.
    pub indent: usize,
    /// Whether nodes follow below it.
    pub opens: bool,
    /// The region's page, if it has one.
    pub id: Option<String>,
    pub name: String,
    /// Shares as text and as lengths of bars from 0 to 100.
    pub own: String,
    /// Self time over the run time, per cent.
    pub own_bar: String,
    /// Time with what it calls over the run time, per cent.
    pub inclusive_bar: String,
    /// Time with what it calls.
    pub inclusive: String,
    /// Number of invocations.
    pub invocations: String,
}

/// The rows, callers first and the longest branch first, and the number of nodes that are not shown.
pub fn rows(profile: &Profile, ids: &Ids) -> (Vec<Row>, usize) {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); profile.tree.len()];
    for (node, entry) in profile.tree.iter().enumerate() {
        if let Some(below) = entry
            .parent
            .filter(|p| *p < node)
            .and_then(|p| children.get_mut(p))
        {
            below.push(node);
        }
    }
    let total = profile.seconds.max(f64::MIN_POSITIVE);
    let seconds = |node: &usize| profile.tree[*node].inclusive_seconds;
    for below in &mut children {
        below.retain(|node| seconds(node) / total >= LEAST);
        below.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    }
    let mut rows = Vec::new();
    // Depth first without recursion: a program may recurse deeper than a stack reaches.
    let mut pending: Vec<(usize, usize)> =
        profile.tree.first().map(|_| (0, 0)).into_iter().collect();
    while let Some((node, depth)) = pending.pop() {
        if rows.len() == MOST {
            break;
        }
        let entry = &profile.tree[node];
        let region = entry.region.and_then(|r| profile.regions.get(r));
        let name = match (region, entry.region) {
            (Some(region), _) => format::name(&region.name),
            (None, None) => "the whole program".to_owned(),
            (None, Some(_)) => "?".to_owned(),
        };
        let bar = |seconds: f64| format!("{:.2}", (seconds / total * 100.0).clamp(0.0, 100.0));
        rows.push(Row {
            depth,
            indent: depth.min(DEEP),
            opens: !children[node].is_empty(),
            id: entry.region.and_then(|r| ids.of(r)),
            name,
            own: share(entry.self_seconds / total),
            own_bar: bar(entry.self_seconds),
            inclusive_bar: bar(entry.inclusive_seconds),
            inclusive: brief(entry.inclusive_seconds),
            invocations: count(entry.invocations),
        });
        pending.extend(children[node].iter().rev().map(|child| (*child, depth + 1)));
    }
    let hidden = profile.tree.len().saturating_sub(rows.len());
    (rows, hidden)
}
