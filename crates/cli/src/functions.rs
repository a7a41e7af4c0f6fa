//! `cere instrument --functions`: functions that are regions as a whole.

use anyhow::Result;
use cere_format::build::Unit;
use cere_format::store::Store;
use cere_store::build::functions::Made;
use cere_store::build::{again, functions};
use cere_store::state;
use cere_system::console::{note, warning};

/// The functions that one build names.
pub struct Functions {
    patterns: Vec<String>,
    /// The units in which other functions were regions before.
    older: Vec<Unit>,
}

impl Functions {
    /// Keeps the choice, and compiles the units concerned again, so that the build finds their objects new.
    pub fn before_build(store: &Store, patterns: &[String]) -> Result<Self> {
        let mut older = Vec::new();
        if !patterns.is_empty() {
            let all = functions::choose(store, patterns)?;
            if store.current().is_dir() {
                let build = state::current_units(store)?;
                older.extend(functions::lacking(&build, &all).into_iter().cloned());
            }
        }
        for unit in &older {
            note!(
                "compiling {} again, as in the last build",
                unit.source.display()
            );
        }
        again::compile_again(store, &older.iter().collect::<Vec<_>>())?;
        Ok(Self {
            patterns: patterns.to_vec(),
            older,
        })
    }

    /// Links again what the build left with a unit of before, and says what became of the choice.
    pub fn after_build(&self, store: &Store) -> Result<()> {
        again::link_again(store, &self.older)?;
        if self.patterns.is_empty() || !store.current().is_dir() {
            return Ok(());
        }
        let build = state::current_units(store)?;
        for pattern in self.patterns.iter().filter(|p| !p.is_empty()) {
            report(pattern, &functions::made_of(&build, pattern));
        }
        Ok(())
    }
}

/// Names in a message.
const SHOWN: usize = 3;

fn report(pattern: &str, made: &Made) {
    match made {
        Made::Regions { outlined, refused } => {
            match outlined.len() {
                0 => {}
                1 => note!("--functions {pattern}: {} is a region", outlined[0]),
                more => note!(
                    "--functions {pattern}: {more} functions are regions; `cere regions` lists them"
                ),
            }
            for (name, reason) in refused.iter().take(SHOWN) {
                warning!(
                    "{name} is no region as a whole: {reason}; its loops are regions as before"
                );
            }
            if refused.len() > SHOWN {
                warning!(
                    "likewise of {} more functions: `cere regions` lists them with the reasons",
                    refused.len() - SHOWN
                );
            }
        }
        Made::Dropped => warning!(
            "--functions {pattern}: the compiler dropped the function, as nothing uses it: there is nothing to capture"
        ),
        Made::Declared(symbol) => warning!(
            "--functions {pattern}: the build only declares {symbol}; its code is in a library, or was compiled without cere's wrappers: compile it with `cere instrument` too. The choice is kept"
        ),
        Made::Nothing(alike) if alike.is_empty() => warning!(
            "--functions {pattern}: the build has no function of that name; patterns are names with scopes and without parameters (`Grid::step`), symbols, or globs of those. The choice is kept for later builds"
        ),
        Made::Nothing(alike) => warning!(
            "--functions {pattern}: the build has no function of that name (near: {}). The choice is kept for later builds",
            alike.join(", ")
        ),
    }
}
