//! The fastest right variants while people edit.

use super::Tried;
use super::captured::{Captured, Region};
use super::contents::State;
use anyhow::{Context, Result};
use cere_format::store::Store;
use cere_store::{codelets, state};
use std::collections::BTreeMap;
use std::path::Path;

/// A variant that was the fastest when it was tried.
#[derive(Debug, Clone)]
pub struct Fastest {
    /// The region; none: all of them.
    pub region: Option<String>,
    /// Time over that as captured; of the whole run if it is of all regions.
    pub ratio: f64,
    /// What `cere try` needs to try it again.
    pub option: String,
}

/// The fastest right variants so far.
pub struct Best<'a> {
    store: &'a Store,
    captured: &'a Captured,
    /// By the name of their directory.
    found: BTreeMap<String, Fastest>,
}

/// The directory of the variant that is best for all regions.
const ALL: &str = "all";

impl<'a> Best<'a> {
    /// None yet.
    pub fn new(store: &'a Store, captured: &'a Captured) -> Self {
        Self {
            store,
            captured,
            found: BTreeMap::new(),
        }
    }

    /// The best of each region, and of all together.
    pub fn each(&self) -> impl Iterator<Item = &Fastest> {
        self.found.values()
    }

    /// Keeps `now` where it is right and faster than all before, with regard to intervals faster than the code as captured.
    pub fn consider(&mut self, regions: &[Region], now: &State) -> Result<()> {
        let all_right = regions.iter().flat_map(|r| &r.tried).all(Tried::is_right);
        let (mut saved, mut low_saved) = (0.0, 0.0);
        for region in regions {
            let Some((tried, gain)) = region.tried.last().and_then(|t| Some((t, t.gain?))) else {
                continue;
            };
            let share = region.share.unwrap_or(0.0);
            saved += share * (1.0 - gain.ratio);
            low_saved += share * (1.0 - gain.high);
            if tried.is_right() && gain.high < 1.0 {
                let name = codelets::encoded(&region.name);
                self.keep(name, Some(&region.name), gain.ratio, now)?;
            }
        }
        if regions.len() > 1 && all_right && low_saved > 0.0 {
            self.keep(ALL.to_owned(), None, 1.0 - saved, now)?;
        }
        Ok(())
    }

    fn keep(&mut self, name: String, region: Option<&str>, ratio: f64, now: &State) -> Result<()> {
        let slower = |best: &Fastest| best.ratio > ratio;
        if !self.found.get(&name).is_none_or(slower) {
            return Ok(());
        }
        let place = self.store.best();
        state::make_directory(&place)?;
        let new = tempfile::Builder::new().prefix(".new.").tempdir_in(&place);
        let new = new.with_context(|| format!("cannot write in {}", place.display()))?;
        now.write(new.path())?;
        let tree = place.join(&name);
        if tree.exists() {
            std::fs::remove_dir_all(&tree)
                .with_context(|| format!("cannot remove {}", tree.display()))?;
        }
        std::fs::rename(new.keep(), &tree)
            .with_context(|| format!("cannot write {}", tree.display()))?;
        let fastest = Fastest {
            region: region.map(str::to_owned),
            ratio,
            option: self.option(now, &tree),
        };
        self.found.insert(name, fastest);
        Ok(())
    }

    /// The option that tries the copy in `tree` again: a file if one changed, else the tree.
    fn option(&self, now: &State, tree: &Path) -> String {
        let word = |path: &Path| shell_words::quote(&path.to_string_lossy()).into_owned();
        match &self.captured.changed(now)[..] {
            [file] if self.captured.sources().has_own_name(file) => {
                format!("--source {}", word(&now.copy_of(file, tree)))
            }
            _ => format!("--dir {}", word(tree)),
        }
    }
}
