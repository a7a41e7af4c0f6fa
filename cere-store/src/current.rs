//! What the store has of the current build: its profile, its codelets.

use crate::codelets::files;
use crate::names::named;
use crate::{missing, state};
use anyhow::{Context, Result};
use cere_format::package::Manifest;
use cere_format::profile::{Profile, RegionKey, RegionProfile};
use cere_format::store::Store;
use cere_package::io::read_manifest;
use std::collections::HashSet;
use std::path::PathBuf;

/// The regions of the current build with their names, if the store knows one whose sources are still there.
pub struct Current(Option<HashSet<(RegionKey, String)>>);

impl Current {
    /// Reads the build that `store` records.
    pub fn of(store: &Store) -> Result<Self> {
        if !store.current().is_dir() {
            return Ok(Self(None));
        }
        let regions: HashSet<_> = named(&state::current_units(store)?)
            .into_iter()
            .map(|n| (n.key, n.name))
            .collect();
        Ok(Self((!regions.is_empty()).then_some(regions)))
    }

    /// Whether the codelet is one of a region that the current build has under this name; none without a build. The
    /// same code under another name (it moved by a line) would be there twice after the next capture.
    pub fn holds(&self, codelet: &Manifest) -> Option<bool> {
        let region = (codelet.key.clone(), codelet.region_name.clone());
        self.0.as_ref().map(|regions| regions.contains(&region))
    }
}

/// A package file and its manifest.
pub type Codelet = (PathBuf, Manifest);

/// The current build's codelets.
pub fn codelets(store: &Store) -> Result<Vec<Codelet>> {
    let current = Current::of(store)?;
    let mut found = Vec::new();
    for file in files(store)? {
        let manifest = read_manifest(&file).with_context(|| {
            format!(
                "the codelet {} is damaged: remove it, and capture it again",
                file.display()
            )
        })?;
        if current.holds(&manifest) == Some(true) {
            found.push((file, manifest));
        }
    }
    if found.is_empty() {
        return Err(missing::codelets(store, &[], |line| {
            format!(
                "the store {} has no codelets of the current build: `{line}` takes some",
                store.root().display()
            )
        }));
    }
    Ok(found)
}

/// The store's last profile, if it is of the build that the store records; that build's regions.
pub fn profile(store: &Store) -> Result<Profile> {
    let profile = state::profile(store)?;
    let built: HashSet<(String, u32)> = state::current_units(store)?
        .into_iter()
        .flat_map(|u| u.regions.into_iter().map(move |r| (u.id.clone(), r.index)))
        .collect();
    let older = |r: &&RegionProfile| !built.contains(&(r.key.unit.clone(), r.key.index));
    if let Some(region) = profile.regions.iter().find(older) {
        return Err(missing::profile(store, |line| {
            format!(
                "the profile in {} is of another build than the last one ({} is not in it): run `{line}` again",
                store.root().display(),
                region.name
            )
        }));
    }
    Ok(profile)
}
