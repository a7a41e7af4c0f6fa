//! speedscope's file format: a sampled profile for each thread, weights in seconds.

use super::stacks::{lanes, place, program};
use cere_format::profile::Profile;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The file.
pub fn text(profile: &Profile) -> String {
    let mut frames: Vec<Value> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut index = |name: &String| {
        *known.entry(name.clone()).or_insert_with(|| {
            let mut frame = json!({ "name": name });
            if let Some((file, line)) = place(name) {
                frame["file"] = file.into();
                frame["line"] = line.into();
            }
            frames.push(frame);
            frames.len() - 1
        })
    };
    let mut profiles = Vec::new();
    for lane in lanes(profile) {
        let stacks = lane.stacks.iter().filter(|(_, times)| times.own > 0.0);
        let (mut samples, mut weights) = (Vec::new(), Vec::new());
        for (chain, times) in stacks {
            samples.push(chain.iter().map(&mut index).collect::<Vec<_>>());
            weights.push(times.own);
        }
        profiles.push(json!({
            "type": "sampled", "name": lane.name, "unit": "seconds", "startValue": 0,
            "endValue": weights.iter().sum::<f64>(), "samples": samples, "weights": weights,
        }));
    }
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": program(profile),
        "activeProfileIndex": 0,
        "exporter": concat!("cere ", env!("CARGO_PKG_VERSION")),
        "shared": { "frames": frames },
        "profiles": profiles,
    });
    format!("{file}\n")
}
