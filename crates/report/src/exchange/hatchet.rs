//! A list of trees as Hatchet's and Thicket's `from_literal` take it.

use super::stacks::{Lane, Times, lanes, place};
use cere_format::profile::Profile;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A tree for each thread and rank.
pub fn text(profile: &Profile) -> String {
    let lanes = lanes(profile);
    let several = lanes.len() > 1;
    let trees = lanes.iter().enumerate().flat_map(|(number, lane)| {
        let thread = several.then_some((number, lane.name.as_str()));
        below(lane, &[], thread)
    });
    let trees: Vec<Value> = trees.collect();
    format!("{}\n", Value::from(trees))
}

/// The chains one frame longer than `frames`, each with what is below.
fn below(lane: &Lane, frames: &[String], thread: Option<(usize, &str)>) -> Vec<Value> {
    let next: BTreeMap<&Vec<String>, &Times> = lane
        .stacks
        .range(frames.to_vec()..)
        .take_while(|(chain, _)| chain.starts_with(frames))
        .filter(|(chain, _)| chain.len() == frames.len() + 1)
        .collect();
    let node = |(chain, times): (&Vec<String>, &Times)| {
        let name = chain.last().map_or("", String::as_str);
        let mut frame = json!({"name": name, "type": "region"});
        if let (1, Some((_, thread))) = (chain.len(), thread) {
            frame["name"] = format!("{name}, {thread}").into();
        }
        if let Some((file, line)) = place(name) {
            frame["file"] = file.into();
            frame["line"] = line.into();
        }
        json!({
            "frame": frame,
            "metrics": {"time": times.own, "time (inc)": times.inclusive.max(times.own), "invocations": times.invocations},
            "children": below(lane, chain, thread),
        })
    };
    next.into_iter().map(node).collect()
}
