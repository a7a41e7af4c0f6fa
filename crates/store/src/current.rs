//! What commands work on: the profile, and the codelets of its build and its command.

use crate::codelets::files;
use crate::notes::{Notes, some};
use crate::{commands, missing, state};
use anyhow::Result;
use cere_catalogue::{OrCoded, codes};
use cere_format::FormatError;
use cere_format::package::Manifest;
use cere_format::profile::{Profile, RegionProfile};
use cere_format::store::Store;
use cere_package::io::read_manifest;
use std::collections::HashSet;
use std::path::PathBuf;

/// A package file and its manifest.
pub type Codelet = (PathBuf, Manifest);

/// The codelets that a command works on.
#[derive(Default)]
pub struct Chosen {
    /// The current build's that were captured in the profile's command.
    pub codelets: Vec<Codelet>,
    /// What their user should know: what is left out and why, which sources changed.
    pub notes: Vec<String>,
    /// Files that cannot be read, each with the reason.
    pub damaged: Vec<(PathBuf, FormatError)>,
}

/// Those of the command and the build of `profile`, which may be none. Those whose command is not known count as such.
pub fn choose(store: &Store, profile: &Profile) -> Result<Chosen> {
    let notes = Notes::of(store)?;
    let mut chosen = Chosen {
        notes: notes.on_profile(profile),
        ..Chosen::default()
    };
    let (mut others, mut older) = (Vec::new(), Vec::new());
    for file in files(store)? {
        let manifest = match read_manifest(&file) {
            Ok(manifest) => manifest,
            Err(error) => {
                chosen.damaged.push((file, error));
                continue;
            }
        };
        let own = manifest.run.as_ref().is_none_or(|run| run.is_of(profile));
        match (notes.current().holds(&manifest), own) {
            (Some(true), true) => chosen.codelets.push((file, manifest)),
            (Some(true), false) => others.push(manifest),
            _ => older.push(manifest.name),
        }
    }
    chosen.notes.extend(commands::left_out(&others, profile));
    if !older.is_empty() {
        let names: Vec<&str> = older.iter().map(String::as_str).collect();
        chosen.notes.push(format!(
            "left out {} of older builds: {}",
            commands::counted(older.len()),
            some(&names)
        ));
    }
    let manifests = || chosen.codelets.iter().map(|(_, manifest)| manifest);
    let mut own = notes.on_older(manifests());
    own.extend(commands::of_another_program(manifests(), profile));
    chosen.notes.append(&mut own);
    Ok(chosen)
}

/// As [`choose`]; an error if a codelet is damaged, or if there are none.
pub fn codelets(store: &Store, profile: &Profile) -> Result<Chosen> {
    let mut chosen = choose(store, profile)?;
    if let Some((file, error)) = chosen.damaged.pop() {
        return Err(error).or_coded(codes::E6013, || {
            format!(
                "the codelet {} is damaged: remove it, and capture it again",
                file.display()
            )
        });
    }
    if chosen.codelets.is_empty() {
        return Err(missing::codelets(store, codes::E6003, &[], |line| {
            let apart: String = chosen.notes.iter().map(|n| format!("; {n}")).collect();
            format!(
                "the store {} has no codelets of the current build and of `{}`: `{line}` takes some{apart}",
                store.root().display(),
                commands::shown(&profile.command)
            )
        }));
    }
    Ok(chosen)
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
        return Err(missing::profile(store, codes::E6002, |line| {
            format!(
                "the profile in {} is of another build than the last one ({} is not in it): run `{line}` again",
                store.root().display(),
                region.name
            )
        }));
    }
    Ok(profile)
}
