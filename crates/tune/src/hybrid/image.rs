//! Makes the program's image again from its recorded link and kept units.

use crate::hybrid::choice::Choice;
use crate::hybrid::error::HybridError;
use crate::hybrid::link::{Item, Link};
use crate::hybrid::parts::Workshop;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes};
use cere_format::build::{LinkCommand, Unit};
use cere_format::profile::RegionKey;
use cere_format::store::Store;
use cere_measure::Replays;
use cere_store::build::image::units_of;
use cere_store::build::wrapper;
use cere_store::{components, state};
use cere_system::events::Events;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use wrapper::LinkItem;

/// What an image is compiled with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recipe {
    /// All code but that of `regions`.
    pub rest: Choice,
    /// Regions with their own flags.
    pub regions: BTreeMap<RegionKey, Choice>,
}

/// An image that can be linked again.
pub struct Image<'a> {
    link: Link,
    units: BTreeMap<String, Unit>,
    workshop: Workshop<'a>,
}

impl<'a> Image<'a> {
    /// Opens the image `program`, whose link `store` has recorded. Objects are cached with those of `replays`.
    pub fn open(
        store: &'a Store,
        replays: &Replays,
        program: &Path,
        events: &'a Events,
    ) -> Result<Self> {
        let bytes =
            std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let held = units_of(&bytes)
            .with_context(|| format!("{} is no program and no library", program.display()))?;
        let held: BTreeSet<String> = held.into_iter().collect();
        if held.is_empty() {
            bail!(
                E6504,
                "{} holds no code that `cere instrument` built: build it again with `cere instrument -- <build command>`",
                program.display()
            );
        }
        let command = find_record(store, program, &held)?;
        let mut units = BTreeMap::new();
        for id in &held {
            let path = store.unit_record(id);
            let unit: Unit = state::read_json(&path).or_coded(codes::E6504, || {
                format!(
                    "{} holds the unit {id}, which {} does not know: build it again with `cere instrument`",
                    program.display(),
                    store.root().display()
                )
            })?;
            units.insert(id.clone(), unit);
        }
        let image = Self {
            link: link(command, &units)?,
            units,
            workshop: Workshop {
                store,
                plugin: components::find(components::PLUGIN)?,
                cache: replays.builds(),
                events,
            },
        };
        image.check_inputs(&held)?;
        Ok(image)
    }

    /// Checks that the inputs of its link still hold its units.
    fn check_inputs(&self, held: &BTreeSet<String>) -> Result<()> {
        let there = self.link.units()?;
        let Some(lost) = held.iter().find(|id| !there.contains(*id)) else {
            return Ok(());
        };
        let unit = &self.units[lost];
        let object = unit.command.output.as_deref().unwrap_or(Path::new("?"));
        Err(HybridError::Changed {
            image: self.link.command.output.clone(),
            reason: format!(
                "no input of it holds the code of {} any more ({} was rebuilt since, or the link step has changed)",
                unit.source.display(),
                object.display()
            ),
        }
        .into())
    }

    /// Whether the region's unit is in it.
    pub fn holds(&self, key: &RegionKey) -> bool {
        self.units.contains_key(&key.unit)
    }

    /// Makes it with `recipe`, as `output`.
    pub fn make(&self, recipe: &Recipe, output: &Path) -> Result<()> {
        let output = std::path::absolute(output)?;
        let own = |id: &String| -> BTreeMap<u32, Choice> {
            let own = recipe.regions.iter().filter(|(key, _)| key.unit == *id);
            own.map(|(key, choice)| (key.index, choice.clone()))
                .collect()
        };
        let wanted: Vec<_> = self.units.iter().map(|(id, u)| (u, own(id))).collect();
        let objects = self.workshop.objects(&recipe.rest, &wanted)?;
        self.link(objects, &output)
    }

    /// Makes it with the flags of the build and code that reports what it executes (`cere_format::count`), as `output`.
    pub fn make_counted(&self, output: &Path) -> Result<()> {
        let output = std::path::absolute(output)?;
        let units: Vec<&Unit> = self.units.values().collect();
        let objects = self.workshop.counted(&units)?;
        self.link(objects, &output)
    }

    /// Links it with an object of each unit.
    fn link(&self, objects: Vec<PathBuf>, output: &Path) -> Result<()> {
        let objects: BTreeMap<&str, PathBuf> =
            self.units.keys().map(String::as_str).zip(objects).collect();
        let called = output.file_name().unwrap_or_default().display();
        let _linking = self.workshop.events.work(format!("linking {called}"));
        Ok(self.link.relink(output, |id| objects.get(id).cloned())?)
    }
}

/// The record of the link that made `program`, or that made the file of which it is a copy.
fn find_record(store: &Store, program: &Path, held: &BTreeSet<String>) -> Result<LinkCommand> {
    let program = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let entries = std::fs::read_dir(store.links())
        .into_iter()
        .flatten()
        .flatten();
    let mut copies = Vec::new();
    for entry in entries {
        let link: LinkCommand = state::read_json(&entry.path())?;
        if link.output.canonicalize().is_ok_and(|path| path == program) {
            return Ok(link);
        }
        let same = std::fs::read(&link.output)
            .ok()
            .and_then(|b| units_of(&b).ok());
        if same.is_some_and(|units| units.into_iter().collect::<BTreeSet<_>>() == *held) {
            copies.push(link);
        }
    }
    match copies.pop() {
        Some(link) if copies.is_empty() => Ok(link),
        _ => bail!(
            E6504,
            "{} has no link of {} recorded: build it again with `cere instrument -- <build command>`",
            store.root().display(),
            program.display()
        ),
    }
}

/// Parses the recorded link.
fn link(command: LinkCommand, units: &BTreeMap<String, Unit>) -> Result<Link> {
    let unit_of = |path: &str| {
        let source: PathBuf = command.directory.join(path);
        let own = |unit: &&Unit| {
            unit.command.output.as_ref() == Some(&command.output)
                && (unit.source == source
                    || unit.source.canonicalize().ok() == source.canonicalize().ok())
        };
        units.values().find(own).map(|unit| unit.id.clone())
    };
    let items = wrapper::link_items(&command)?
        .into_iter()
        .map(|item| match item {
            LinkItem::Words(words) => match &words[..] {
                [option] if option.starts_with("-l") && option.len() > 2 => {
                    Item::Library(option[2..].to_owned())
                }
                [option, library] if option == "-l" => Item::Library(library.clone()),
                _ => Item::Words(words),
            },
            LinkItem::Source(path) => Item::Source {
                unit: unit_of(&path),
                path,
            },
            LinkItem::Assembler(path) => Item::Words(vec![path]),
            LinkItem::File(path) => Item::File(path),
        });
    let items = items.collect();
    Ok(Link { command, items })
}

/// A directory for builds that is removed when this command ends.
pub fn scratch(store: &Store) -> Result<tempfile::TempDir> {
    let directory = store.cache();
    state::make_directory(&directory)?;
    tempfile::Builder::new()
        .prefix("hybrid.")
        .tempdir_in(&directory)
        .with_context(|| format!("cannot write in {}", directory.display()))
}
