//! A profile as text, CSV and JSON.

use cere_format::profile::{Profile, RegionProfile};
use cere_store::build::plain::Plain;
use cere_system::console::{print, short};
use std::path::Path;

/// Columns of a line of the tree that the name does not get: some levels of indentation, seconds, invocations.
const TREE: usize = 32;

/// The table, the tree and the coverage.
pub fn text(profile: &Profile) -> String {
    let heading = [
        "region",
        "self s",
        "share",
        "invocations",
        "inclusive s",
        "cycles/invocation",
    ];
    let rows: Vec<Vec<String>> = profile.regions.iter().map(row).collect();
    let mut text = print::table_of_names(&heading, rows);
    text.push_str("\ntree of regions (inclusive s, invocations)\n");
    let names: Vec<&str> = profile.regions.iter().map(|r| r.name.as_str()).collect();
    let names = short::names(&names, short::columns().saturating_sub(TREE));
    children(profile, &names, 0, 1, &mut text);
    if !profile.elsewhere.is_empty() {
        let rows = profile.elsewhere.iter();
        let rows = rows.map(|e| vec![e.name.clone(), e.entries.to_string()]);
        text.push_str("\nregions in threads other than the first, which are not timed\n");
        text.push_str(&print::table_of_names(
            &["region", "entries"],
            rows.collect(),
        ));
    }
    let others = share_of_others(profile);
    text.push_str(&format!(
        "\n{:.3} s in all, {:.1} % of it in {} regions{}\n",
        profile.seconds,
        profile.coverage * 100.0,
        profile.regions.len(),
        others.map_or(String::new(), |share| format!(
            " of the first thread; {share} of the processor time is in other threads"
        ))
    ));
    text
}

/// The share of the processor time in threads that are neither the first nor of a team, for people; none if it is not
/// notable. Shares of the run and coverages are of the first thread alone.
pub fn share_of_others(profile: &Profile) -> Option<String> {
    let share = profile.processor?.other_share();
    (share >= 0.01).then(|| format!("{:.1} %", share * 100.0))
}

fn row(region: &RegionProfile) -> Vec<String> {
    vec![
        region.name.clone(),
        format!("{:.6}", region.self_seconds),
        format!("{:.2} %", region.share * 100.0),
        region.invocations.to_string(),
        format!("{:.6}", region.inclusive_seconds),
        format!("{:.0}", region.cycles_mean),
    ]
}

fn children(profile: &Profile, names: &[String], parent: usize, depth: usize, text: &mut String) {
    // Deep recursion through many regions: the tree is cut where no screen could show it.
    if depth > 64 {
        return;
    }
    let mut nodes: Vec<usize> = (1..profile.tree.len())
        .filter(|i| profile.tree[*i].parent == Some(parent) && *i != parent)
        .collect();
    nodes.sort_by(|a, b| {
        let seconds = |i: &usize| profile.tree[*i].inclusive_seconds;
        seconds(b).total_cmp(&seconds(a))
    });
    for index in nodes {
        let node = &profile.tree[index];
        let name = node
            .region
            .and_then(|r| names.get(r))
            .map_or("?", String::as_str);
        text.push_str(&format!(
            "{:indent$}{name}  {:.6}  {}\n",
            "",
            node.inclusive_seconds,
            node.invocations,
            indent = depth * 2
        ));
        children(profile, names, index, depth + 1, text);
    }
}

/// The table as CSV with a heading, times in seconds.
pub fn csv(profile: &Profile) -> String {
    let heading = [
        "name",
        "self_seconds",
        "share",
        "invocations",
        "inclusive_seconds",
        "cycles_min",
        "cycles_mean",
        "cycles_max",
    ];
    let rows = profile.regions.iter().map(|r| {
        vec![
            r.name.clone(),
            format!("{:.9}", r.self_seconds),
            format!("{:.6}", r.share),
            r.invocations.to_string(),
            format!("{:.9}", r.inclusive_seconds),
            r.cycles_min.to_string(),
            format!("{:.1}", r.cycles_mean),
            r.cycles_max.to_string(),
        ]
    });
    cere_system::console::csv::text(&heading, rows)
}

/// The profile for scripts; the traces stay in `file`.
pub fn json(profile: &Profile, code: u8, file: &Path, plain: &[Plain]) -> serde_json::Value {
    let regions: Vec<_> = profile
        .regions
        .iter()
        .map(|r| {
            serde_json::json!({"name": r.name, "unit": r.key.unit, "index": r.key.index,
                "self_seconds": r.self_seconds, "inclusive_seconds": r.inclusive_seconds, "share": r.share,
                "invocations": r.invocations,
                "cycles": {"min": r.cycles_min, "mean": r.cycles_mean, "max": r.cycles_max}})
        })
        .collect();
    let tree: Vec<_> = profile
        .tree
        .iter()
        .map(|n| {
            let name = n
                .region
                .and_then(|r| profile.regions.get(r))
                .map(|r| &r.name);
            serde_json::json!({"region": name, "parent": n.parent, "invocations": n.invocations,
                "inclusive_seconds": n.inclusive_seconds, "self_seconds": n.self_seconds})
        })
        .collect();
    let elsewhere: Vec<_> = profile
        .elsewhere
        .iter()
        .map(|e| {
            serde_json::json!({"name": e.name, "unit": e.key.unit, "index": e.key.index, "entries": e.entries})
        })
        .collect();
    let processor = profile.processor.map(|p| {
        serde_json::json!({"seconds": p.all, "first": p.first, "team": p.team, "others": p.others()})
    });
    serde_json::json!({"seconds": profile.seconds, "coverage": profile.coverage, "status": code,
        "processor": processor, "elsewhere": elsewhere,
        "command": profile.command, "tsc_hz": profile.tsc_hz,
        "probe_cycles": {"inside": profile.probe_inside, "outside": profile.probe_outside},
        "regions": regions, "tree": tree, "file": file, "without_units": plain})
}
