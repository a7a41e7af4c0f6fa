//! Loops whose inner loops become regions too, as the user chose: the list in the store, and what an up-to-date build has to compile
//! and link again for it.

use super::wrapper::{ENV_ALL_LOOPS, LinkItem, link_items};
use crate::build::units;
use crate::names::{Named, named, pick};
use crate::state;
use anyhow::{Context, Result, bail};
use cere_format::build::{ENV_STORE, LinkCommand, RegionKind, SplitLoop, SplitLoops, Unit};
use cere_format::store::Store;
use cere_system::process::supervise::shell_code;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// Adds the loops that `patterns` name to the store's list; the loops by their names.
pub fn choose(store: &Store, patterns: &[String]) -> Result<Vec<(String, SplitLoop)>> {
    let build = state::current_units(store)?;
    let all = named(&build);
    let names: Vec<&str> = all.iter().map(|n| n.name.as_str()).collect();
    let mut chosen: Vec<(String, SplitLoop)> = Vec::new();
    for pattern in patterns {
        for at in pick(&names, pattern)? {
            check(&all[at], &build)?;
            chosen.push((all[at].name.clone(), SplitLoop::from(&all[at].region)));
        }
    }
    let mut loops = state::split_loops(store)?;
    for (_, split) in &chosen {
        if !loops.contains(split) {
            loops.push(split.clone());
        }
    }
    keep(store, loops)?;
    Ok(chosen)
}

fn keep(store: &Store, loops: Vec<SplitLoop>) -> Result<()> {
    let version = SplitLoops::VERSION;
    state::write_json(&store.split(), &SplitLoops { version, loops })
}

/// An error if splitting the region gives nothing.
fn check(chosen: &Named, build: &[Unit]) -> Result<()> {
    let (name, region) = (&chosen.name, &chosen.region);
    if region.kind == RegionKind::Parallel {
        bail!(
            "--split {name}: this is a parallel region, which is captured as a whole; name a loop (`cere regions` lists them)"
        );
    }
    let unit = build.iter().find(|unit| unit.id == chosen.key.unit);
    let split = unit.is_some_and(|unit| unit.command.split.iter().any(|s| s.is(region)));
    if region.inside == Some(0) && !split {
        bail!(
            "--split {name}: this loop has no loop inside that is not a region already; loops of functions that it calls are regions of their own (`cere regions` lists them)"
        );
    }
    Ok(())
}

/// The units that have one of the loops and were compiled without splitting it.
pub fn unsplit<'a>(build: &'a [Unit], chosen: &[(String, SplitLoop)]) -> Vec<&'a Unit> {
    let lacks = |unit: &&Unit| {
        let has = |split: &SplitLoop| unit.regions.iter().any(|r| split.is(r));
        chosen
            .iter()
            .any(|(_, split)| has(split) && !unit.command.split.contains(split))
    };
    build.iter().filter(lacks).collect()
}

/// Compiles units again by their recorded commands, each in its place.
pub fn compile_again(store: &Store, units: &[&Unit]) -> Result<()> {
    let mut done = HashSet::new();
    for unit in units {
        let command = &unit.command;
        let source = unit.source.display();
        if command.arguments.iter().any(|a| a == "-") {
            bail!(
                "{source} was compiled from standard input, which is gone: remove {} and build again with `cere instrument`; the choice is kept",
                output_of(unit)
            );
        }
        if !done.insert((&command.directory, &command.compiler, &command.arguments)) {
            continue;
        }
        let recorded = (&*command.compiler, &*command.arguments, &*command.directory);
        let code = wrapped(store, recorded, unit)?;
        if code != 0 {
            bail!(
                "{source} could not be compiled again as in the last build (status {code}, in {}): see the compiler's messages above, and build it again with `cere instrument`; the choice is kept",
                command.directory.display()
            );
        }
    }
    Ok(())
}

fn output_of(unit: &Unit) -> String {
    let output = unit.command.output.as_deref();
    output.map_or_else(|| "its object".to_owned(), |o| o.display().to_string())
}

/// Runs a recorded command (compiler, arguments, directory) by its wrapper, with short loops as in the last build of the unit.
fn wrapped(store: &Store, recorded: (&str, &[String], &Path), unit: &Unit) -> Result<u8> {
    let (compiler, arguments, directory) = recorded;
    let tool = compiler.strip_suffix("-22").unwrap_or(compiler);
    let mut command = Command::new(store.wrappers().join(tool));
    command.env_remove(ENV_ALL_LOOPS);
    if unit.command.short.is_none() {
        command.env(ENV_ALL_LOOPS, "1");
    }
    let status = command
        .args(arguments)
        .current_dir(directory)
        .env(ENV_STORE, store.root())
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {compiler} in {}", directory.display()))?;
    Ok(shell_code(status))
}

/// Links images again that still hold one of the units `older`, by their recorded commands; the error names one that holds it all
/// the same.
pub fn link_again(store: &Store, older: &[Unit]) -> Result<()> {
    for link in links(store) {
        let Some(unit) = held(&link, older) else {
            continue;
        };
        let object = unit.command.output.as_deref();
        let names = |item: &LinkItem| matches!(item, LinkItem::File(file) if Some(&*link.directory.join(file)) == object);
        if link_items(&link)?.iter().any(names) {
            let recorded = (&*link.compiler, &*link.arguments, &*link.directory);
            let code = wrapped(store, recorded, unit)?;
            if code != 0 {
                bail!(
                    "{} could not be linked again as in the last build (status {code}, in {}): see the messages above, and build it again with `cere instrument`; the choice is kept",
                    link.output.display(),
                    link.directory.display()
                );
            }
        }
        if held(&link, older).is_some() {
            bail!(
                "{} was compiled again with the loops inside as regions, but {} still holds it as it was: it is linked from a copy, such as an archive, that the build did not make again. Remove that copy, or clean the build, and build again with `cere instrument`; the choice is kept",
                unit.source.display(),
                link.output.display()
            );
        }
    }
    Ok(())
}

fn links(store: &Store) -> Vec<LinkCommand> {
    let entries = std::fs::read_dir(store.links()).into_iter().flatten();
    entries
        .flatten()
        .filter_map(|entry| state::read_json(&entry.path()).ok())
        .collect()
}

/// The first of the units that the image of a link holds, if it is there.
fn held<'u>(link: &LinkCommand, older: &'u [Unit]) -> Option<&'u Unit> {
    let ids = units::of(&std::fs::read(&link.output).ok()?).ok()?;
    older.iter().find(|unit| ids.contains(&unit.id))
}

/// Takes from the list what the build has no more: a loop whose line has changed. What was taken.
pub fn forget(store: &Store, build: &[Unit]) -> Result<Vec<SplitLoop>> {
    let loops = state::split_loops(store)?;
    let there = |split: &SplitLoop| {
        let mut regions = build.iter().flat_map(|unit| &unit.regions);
        regions.any(|region| split.is(region))
    };
    let (kept, gone): (Vec<_>, Vec<_>) = loops.into_iter().partition(there);
    if !gone.is_empty() {
        keep(store, kept)?;
    }
    Ok(gone)
}
