//! What `cere tune` evaluated, from its journal.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// An evaluated variant.
pub struct Trial {
    /// Its flags, with blanks between them.
    pub flags: String,
    /// Its time over that as built; none if it failed.
    pub ratio: Option<f64>,
    /// Hash of its machine code, if it was compiled.
    pub code: Option<String>,
}

/// The trials of the newest search in the store `store`, in the order in which they ended.
pub fn trials(store: &Path) -> Result<Vec<Trial>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(store.join("tune"))? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    let (_, newest) = files.into_iter().max().context("no search")?;
    let mut proposed = HashMap::new();
    let mut trials = Vec::new();
    for line in std::fs::read_to_string(newest)?.lines() {
        let event: Value = serde_json::from_str(line)?;
        if let Some([number, variant]) = event["proposed"].as_array().map(Vec::as_slice) {
            let flags = variant["flags"].as_array().context("flags")?;
            let words = flags.iter().filter_map(Value::as_str);
            proposed.insert(number.to_string(), words.collect::<Vec<_>>().join(" "));
        } else if let Some([number, told]) = event["told"].as_array().map(Vec::as_slice) {
            trials.push(Trial {
                flags: proposed[&number.to_string()].clone(),
                ratio: told["ratio"].as_f64(),
                code: told["code"].as_str().map(str::to_owned),
            });
        }
    }
    Ok(trials)
}
