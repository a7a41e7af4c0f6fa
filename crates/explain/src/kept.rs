//! Explanations in a store: the last one of each region.

use anyhow::{Context, Result};
use cere_format::explain::{EXPLANATION_VERSION, Explanation};
use cere_format::store::Store;
use cere_store::state;
use std::path::PathBuf;

fn at(store: &Store, unit: &str, index: u32) -> PathBuf {
    // A package may give its unit any name.
    let name = state::hash(&format!("{unit}\0{index}"));
    store.explanations().join(format!("{name}.json"))
}

/// Keeps it in `store`, in place of the region's last one.
///
/// # Errors
/// It cannot be written.
pub fn keep(store: &Store, explanation: &Explanation) -> Result<()> {
    let path = at(store, &explanation.unit, explanation.index);
    state::write_json(&path, explanation).context("the explanation cannot be kept for the report")
}

/// The region's explanation that was kept last; none if there is none that this version reads.
#[must_use]
pub fn kept(store: &Store, unit: &str, index: u32) -> Option<Explanation> {
    let found: Explanation = state::read_json(&at(store, unit, index)).ok()?;
    (found.version == EXPLANATION_VERSION && found.unit == unit && found.index == index)
        .then_some(found)
}
