//! `cere instrument --split`: loops whose inner loops become regions too.

use anyhow::Result;
use cere_format::build::{SplitLoop, Unit};
use cere_format::store::Store;
use cere_store::build::{again, split};
use cere_store::state;
use cere_system::console::{note, warning};

/// The loops that one build splits.
pub struct Split {
    chosen: Vec<(String, SplitLoop)>,
    /// The units that hold them, as they were before.
    older: Vec<Unit>,
}

impl Split {
    /// Keeps the choice, and compiles the units concerned again, so that the build finds their objects new.
    pub fn before_build(store: &Store, patterns: &[String]) -> Result<Self> {
        if patterns.is_empty() {
            return Ok(Self {
                chosen: Vec::new(),
                older: Vec::new(),
            });
        }
        let chosen = split::choose(store, patterns)?;
        let build = state::current_units(store)?;
        let older: Vec<Unit> = split::unsplit(&build, &chosen)
            .into_iter()
            .cloned()
            .collect();
        for unit in &older {
            note!(
                "compiling {} again, as in the last build",
                unit.source.display()
            );
        }
        again::compile_again(store, &older.iter().collect::<Vec<_>>())?;
        Ok(Self { chosen, older })
    }

    /// Links again what the build left with a unit of before.
    pub fn after_build(&self, store: &Store) -> Result<()> {
        again::link_again(store, &self.older)?;
        if !store.current().is_dir() {
            return Ok(());
        }
        for gone in split::forget(store, &state::current_units(store)?)? {
            warning!(
                "the build has no loop of {} at {}:{} any more, which --split named: its inner loops are no regions; name the loop anew if it only moved (`cere regions` lists the names)",
                gone.function,
                gone.file.display(),
                gone.line
            );
        }
        for (name, _) in &self.chosen {
            note!("{name}: the loops inside are regions too; `cere regions` lists them");
        }
        Ok(())
    }
}
