//! Compiles a unit's kept IR to one object: whole, or as one part for each region with its own flags and one for the rest.

use crate::hybrid::choice::Choice;
use crate::hybrid::error::HybridError;
use cere_format::build::{BUILD_VERSION, CountPlan, ENV_COUNT, ENV_SPLIT, SplitPlan, Unit};
use cere_format::store::Store;
use cere_sandbox::Sandbox;
use cere_system::events::Events;
use cere_toolchain::command::{Line, hash, run};
use cere_toolchain::several::several;
use cere_toolchain::unit::{self, Job, LLD, Recipe, compiler, tools};
use cere_toolchain::{cached, flags, io};
use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Makes objects of a store's units.
pub struct Workshop<'a> {
    /// The kept units.
    pub store: &'a Store,
    /// The pass plugin.
    pub plugin: PathBuf,
    /// Objects by content.
    pub cache: PathBuf,
    /// What is said meanwhile.
    pub events: &'a Events,
}

/// Prefix of the symbols by which the parts of a unit refer to each other.
fn prefix(unit: &Unit) -> String {
    format!("cere.hybrid.{}.", unit.id.get(..16).unwrap_or(&unit.id))
}

impl Workshop<'_> {
    /// Makes the object of each unit. The choices beside a unit are for its regions by index, `rest` is for all other code.
    pub fn objects(
        &self,
        rest: &Choice,
        wanted: &[(&Unit, BTreeMap<u32, Choice>)],
    ) -> Result<Vec<PathBuf>, HybridError> {
        let mut own = Vec::new();
        for (unit, choices) in wanted {
            let regions: Vec<u32> = choices.keys().copied().collect();
            let parts = choices.iter();
            own.extend(parts.map(|(i, choice)| (*unit, plan(unit, Some(*i), &regions), choice)));
        }
        let steps = (own.len() + wanted.len()) as u64;
        let bar = self.events.steps("compiling", steps);
        let made = several(own.len(), |place| {
            let (unit, plan, choice) = &own[place];
            let part = self.part(unit, plan.clone(), choice);
            bar.step();
            part
        });
        let made: Vec<PathBuf> = made.into_iter().collect::<Result<_, _>>()?;
        let mut left = &made[..];
        let mut parts = Vec::new();
        for (_, choices) in wanted {
            let (these, others) = left.split_at(choices.len());
            parts.push(these);
            left = others;
        }
        let joined = several(wanted.len(), |place| {
            let (unit, choices) = &wanted[place];
            let object = self.join(unit, rest, choices, parts[place]);
            bar.step();
            object
        });
        joined.into_iter().collect()
    }

    /// An object of each unit at the flags of the build, whose code reports what it executes.
    pub fn counted(&self, units: &[&Unit]) -> Result<Vec<PathBuf>, HybridError> {
        std::fs::create_dir_all(&self.cache).map_err(io("create", &self.cache))?;
        let bar = self.events.steps("compiling", units.len() as u64);
        let own = Sandbox::none();
        let made = several(units.len(), |place| {
            let unit = units[place];
            let plan = CountPlan {
                version: BUILD_VERSION,
                unit: unit.id.clone(),
            };
            let job = Job {
                recipe: Recipe {
                    language: unit.language,
                    codegen: &unit.command.codegen,
                    flags: &[],
                    passes: None,
                    plugin: &self.plugin,
                    variable: ENV_COUNT,
                    prepare: false,
                    sandbox: &own,
                },
                ir: self.store.unit_ir(&unit.id),
                plan: &serde_json::to_vec(&plan).expect("a plan is plain data"),
                source: &unit.source.to_string_lossy(),
                limit: None,
            };
            let object = unit::object(job, &self.cache, ".counted.o");
            bar.step();
            object
        });
        Ok(made.into_iter().collect::<Result<_, _>>()?)
    }

    /// The unit's object: the parts of its regions and the rest.
    fn join(
        &self,
        unit: &Unit,
        rest: &Choice,
        choices: &BTreeMap<u32, Choice>,
        parts: &[PathBuf],
    ) -> Result<PathBuf, HybridError> {
        if parts.is_empty() {
            return self.part(unit, plan(unit, None, &[]), rest);
        }
        let mut shared = BTreeSet::new();
        for part in parts {
            shared.extend(undefined_symbols(part)?);
        }
        let at = format!("{}at.", prefix(unit));
        shared.retain(|name| name.starts_with(&at) || unit.defines.contains(name));
        let regions: Vec<u32> = choices.keys().copied().collect();
        let mut others = plan(unit, None, &regions);
        others.shared = shared.into_iter().collect();
        let mut objects = vec![self.part(unit, others, rest)?];
        objects.extend_from_slice(parts);
        let names: Vec<&[u8]> = objects
            .iter()
            .map(|o| o.as_os_str().as_encoded_bytes())
            .collect();
        let key = hash(&[names.concat().as_slice(), &tools(&[])?]);
        cached::get(&self.cache, &format!("{key}.hybrid.o"), |made| {
            let line = Line::new(LLD).arg("-r").args(&objects).arg("-o").path(made);
            run(&line, &unit.source.to_string_lossy())?;
            Ok(())
        })
    }

    fn part(
        &self,
        unit: &Unit,
        mut plan: SplitPlan,
        choice: &Choice,
    ) -> Result<PathBuf, HybridError> {
        // Not a package: the user's own code needs no sandbox.
        let own = Sandbox::none();
        flags::check(&choice.flags)?;
        let codegen = &unit.command.codegen;
        let tool = compiler(unit.language, choice.passes.is_some());
        let change = flags::change(
            codegen,
            unit.language,
            tool,
            &choice.flags,
            &own,
            self.events,
        )?;
        plan.retarget = change.retarget;
        plan.team = choice.team;
        std::fs::create_dir_all(&self.cache).map_err(io("create", &self.cache))?;
        let job = Job {
            recipe: Recipe {
                language: unit.language,
                codegen,
                flags: &change.flags,
                passes: choice.passes.as_deref(),
                plugin: &self.plugin,
                variable: ENV_SPLIT,
                prepare: true,
                sandbox: &own,
            },
            ir: self.store.unit_ir(&unit.id),
            plan: &serde_json::to_vec(&plan).expect("a plan is plain data"),
            source: &unit.source.to_string_lossy(),
            limit: None,
        };
        Ok(unit::object(job, &self.cache, ".part.o")?)
    }
}

fn plan(unit: &Unit, part: Option<u32>, regions: &[u32]) -> SplitPlan {
    SplitPlan {
        version: BUILD_VERSION,
        part,
        prefix: prefix(unit),
        regions: regions.to_vec(),
        shared: Vec::new(),
        retarget: Default::default(),
        team: None,
    }
}

/// Undefined symbols of an object.
fn undefined_symbols(path: &Path) -> Result<Vec<String>, HybridError> {
    let unreadable = |reason: object::Error| HybridError::Unreadable {
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let bytes = std::fs::read(path).map_err(io("read", path))?;
    let file = object::File::parse(&*bytes).map_err(unreadable)?;
    let undefined = file.symbols().filter(|s| s.is_undefined());
    let names = undefined.filter_map(|s| s.name().ok().map(str::to_owned));
    Ok(names.filter(|name| !name.is_empty()).collect())
}
