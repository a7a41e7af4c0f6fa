//! What an up-to-date build has to compile and link again, because other regions were chosen.

use super::wrapper::front::ENV_FRONT;
use super::wrapper::{self, ENV_ALL_LOOPS, LinkItem, link_items};
use crate::build::units;
use crate::state;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::build::{ENV_STORE, LinkCommand, Unit};
use cere_format::store::Store;
use cere_system::process::supervise::shell_code;
use std::collections::HashSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Compiles units again by their recorded commands, each in its place.
pub fn compile_again(store: &Store, units: &[&Unit]) -> Result<()> {
    let mut done = HashSet::new();
    for unit in units {
        let command = &unit.command;
        let source = unit.source.display();
        if command.arguments.iter().any(|a| a == "-") {
            bail!(
                E2024,
                "{source} was compiled from standard input, which is gone: remove {} and build again with `cere instrument`; the choice is kept",
                output_of(unit)
            );
        }
        if !done.insert((&command.directory, &command.compiler, &command.arguments)) {
            continue;
        }
        let recorded = (&*command.compiler, &*command.arguments, &*command.directory);
        let code = wrapped(store, recorded, unit, command.front.as_deref())?;
        if code != 0 {
            bail!(
                E2024,
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

/// Runs a recorded command (compiler, arguments, directory) by its wrapper, with the front end that it had and with short loops as in the last build of the unit.
fn wrapped(
    store: &Store,
    recorded: (&str, &[String], &Path),
    unit: &Unit,
    front: Option<&Path>,
) -> Result<u8> {
    let (compiler, arguments, directory) = recorded;
    let tool = compiler.strip_suffix("-22").unwrap_or(compiler);
    let mut command = Command::new(store.wrappers().join(tool));
    command.env_remove(ENV_ALL_LOOPS);
    if unit.command.short.is_none() {
        command.env(ENV_ALL_LOOPS, "1");
    }
    let driver = wrapper::tool(tool).is_some_and(|tool| tool.is_driver());
    match front {
        Some(front) if driver => drop(command.env(ENV_FRONT, front)),
        // By its name, as the build did.
        Some(front) => drop(command.arg0(front)),
        None => {}
    }
    let status = command
        .args(arguments)
        .current_dir(directory)
        .envs(&unit.command.variables)
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
            let code = wrapped(store, recorded, unit, link.front.as_deref())?;
            if code != 0 {
                bail!(
                    E2024,
                    "{} could not be linked again as in the last build (status {code}, in {}): see the messages above, and build it again with `cere instrument`; the choice is kept",
                    link.output.display(),
                    link.directory.display()
                );
            }
        }
        if held(&link, older).is_some() {
            bail!(
                E2025,
                "{} was compiled again with the regions that were asked for, but {} still holds it as it was: it is linked from a copy, such as an archive, that the build did not make again. Remove that copy, or clean the build, and build again with `cere instrument`; the choice is kept",
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
