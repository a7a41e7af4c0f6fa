//! Which codelets are of the current build.

use crate::names::named;
use crate::state;
use anyhow::Result;
use cere_format::package::Manifest;
use cere_format::profile::RegionKey;
use cere_format::store::Store;
use std::collections::HashSet;

/// The current build, if the store knows one with sources.
pub struct Current(Option<Build>);

struct Build {
    /// Its regions with their names.
    regions: HashSet<(RegionKey, String)>,
    /// Ids of its units.
    units: HashSet<String>,
}

impl Current {
    /// Reads the build that `store` records.
    pub fn of(store: &Store) -> Result<Self> {
        if !store.current().is_dir() {
            return Ok(Self(None));
        }
        let units = state::current_units(store)?;
        let regions: HashSet<_> = named(&units).into_iter().map(|n| (n.key, n.name)).collect();
        let units = units.into_iter().map(|unit| unit.id).collect();
        Ok(Self(
            (!regions.is_empty()).then_some(Build { regions, units }),
        ))
    }

    /// Whether the codelet is one of a region that the current build has under this name; none without a build. The
    /// same code under another name (it moved by a line) would be there twice after the next capture.
    pub fn holds(&self, codelet: &Manifest) -> Option<bool> {
        let region = (codelet.key.clone(), codelet.region_name.clone());
        self.0.as_ref().map(|build| build.regions.contains(&region))
    }

    /// Whether the current build has the unit; none without a build.
    pub fn has_unit(&self, id: &str) -> Option<bool> {
        self.0.as_ref().map(|build| build.units.contains(id))
    }
}
