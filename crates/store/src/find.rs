//! Which packages an argument of `cere replay` means.

use crate::built::Current;
use crate::names::{glob, is_glob, named, pick, select};
use crate::{codelets, missing, state};
use anyhow::Result;
use cere_catalogue::{anyhow, bail};
use cere_format::package::PACKAGE_EXTENSION;
use cere_format::store::Store;
use cere_package::io::read_manifest;
use cere_system::events::Events;
use std::path::{Path, PathBuf};

/// The packages that one of `what` names, each once.
pub fn all(store: &Store, what: &[String], events: &Events) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for what in what {
        for file in packages(store, what, events)? {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// The packages that `what` names: a file, a codelet, or a region with all its codelets.
pub fn packages(store: &Store, what: &str, events: &Events) -> Result<Vec<PathBuf>> {
    let path = Path::new(what);
    if path.is_file() {
        return Ok(vec![std::path::absolute(path)?]);
    }
    if path.is_dir() {
        bail!(
            E4019,
            "{what} is a directory, not a codelet: name a .{PACKAGE_EXTENSION} file, a codelet or a region"
        );
    }
    if path.extension().is_some_and(|e| e == PACKAGE_EXTENSION) {
        bail!(E4019, "there is no codelet file {what}");
    }
    let mut known = codelets::names(store)?;
    if known.is_empty() {
        if !store.root().is_dir() {
            bail!(
                E4002,
                "there is no store {}, so no codelet {what}: name the store with --store, or the file of the codelet",
                store.root().display()
            );
        }
        if let Some(error) = without_codelet(store, what) {
            return Err(error);
        }
        return Err(missing::codelets(
            store,
            cere_catalogue::codes::E6003,
            &[],
            |line| {
                format!(
                    "{what}: the store {} has no codelets: `{line}` takes some, and --store names another store",
                    store.root().display()
                )
            },
        ));
    }
    if let Some((_, file)) = known.iter().find(|(name, _)| name == what) {
        return Ok(vec![file.clone()]);
    }
    let mut what = what;
    if matching(&known, what).is_empty()
        && let Some((regions, of_invocation)) = invocation(&known, what)
    {
        (what, known) = (regions, of_invocation);
    }
    leave_out_older(store, what, &mut known, events)?;
    pick_packages(&known, what).map_err(|error| without_codelet(store, what).unwrap_or(error))
}

/// Codelets by name and file.
type Known = Vec<(String, PathBuf)>;

/// For a region and an invocation, as in `apply:1`: what names the region, and the codelets of that invocation.
fn invocation<'a>(known: &Known, what: &'a str) -> Option<(&'a str, Known)> {
    let (regions, number) = what.rsplit_once(':')?;
    // What follows a file is its line.
    let line = regions
        .rsplit_once('@')
        .is_some_and(|(_, file)| !file.contains(':'));
    if line || number.parse::<u64>().is_err() {
        return None;
    }
    let end = format!(":{number}");
    let mut left = known.clone();
    left.retain(|(name, _)| name.ends_with(&end));
    (!matching(&left, regions).is_empty()).then_some((regions, left))
}

/// The positions of the codelets that `what` may mean: those of the region of that name; or those that it matches as a glob,
/// by their own names or else by their regions'; or those that begin with it.
fn matching(known: &[(String, PathBuf)], what: &str) -> Vec<usize> {
    let find = |f: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..known.len()).filter(|i| f(&known[*i].0)).collect()
    };
    let mut found = find(&|name| region_of(name) == what);
    if found.is_empty() && is_glob(what) {
        found = find(&|name| glob(what, name));
        if found.is_empty() {
            found = find(&|name| glob(what, region_of(name)));
        }
    } else if found.is_empty() {
        found = find(&|name| name.starts_with(what));
    }
    found
}

/// The error for regions of the current build that were never captured, if `what` names such.
fn without_codelet(store: &Store, what: &str) -> Option<anyhow::Error> {
    let all = named(&state::current_units(store).ok()?);
    let chosen = select(&all, &[what.to_owned()]).ok()?;
    let first = &chosen.first()?.name;
    if let [only] = &chosen[..]
        && !only.region.outlined
    {
        let reason = only.region.reason.as_deref().unwrap_or("unknown");
        let noun = only.region.kind.noun();
        return Some(anyhow!(
            E5002,
            "the {noun} {first} is no region, so that there can be no codelet of it: {reason}"
        ));
    }
    let more = match chosen.len() {
        1 => String::new(),
        count => format!(" (and {} more regions that {what} names)", count - 1),
    };
    Some(missing::codelets(
        store,
        cere_catalogue::codes::E5001,
        &[what],
        |line| format!("the region {first}{more} has no codelet: `{line}` takes one"),
    ))
}

/// Where `what` matches codelets of the current build and older ones, removes the older ones from `known`, with a note.
fn leave_out_older(store: &Store, what: &str, known: &mut Known, events: &Events) -> Result<()> {
    let met = matching(known, what);
    if met.len() < 2 {
        return Ok(());
    }
    let current = Current::of(store)?;
    let is_older = |i: &usize| {
        // A damaged one is none's: its replay says so.
        read_manifest(&known[*i].1).is_ok_and(|m| current.holds(&m) == Some(false))
    };
    let older: Vec<usize> = met.iter().copied().filter(is_older).collect();
    if older.is_empty() || older.len() == met.len() {
        return Ok(());
    }
    events.note(format!(
        "left out {} of an older build ({}{}): name one exactly to replay it, `cere codelets --prune` removes them",
        older.len(),
        known[older[0]].0,
        if older.len() > 1 { ", ..." } else { "" }
    ));
    for index in older.into_iter().rev() {
        known.remove(index);
    }
    Ok(())
}

/// The packages of `known` that `what` picks: all codelets of a region, or single codelets.
fn pick_packages(known: &[(String, PathBuf)], what: &str) -> Result<Vec<PathBuf>> {
    let of_region: Vec<PathBuf> = known
        .iter()
        .filter(|(name, _)| region_of(name) == what)
        .map(|(_, file)| file.clone())
        .collect();
    if !of_region.is_empty() {
        return Ok(of_region);
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    if is_glob(what) {
        let met = matching(known, what);
        if !met.is_empty() {
            return Ok(met.into_iter().map(|i| known[i].1.clone()).collect());
        }
    }
    // A prefix that only one region has picks that region, whatever the number of its codelets.
    let mut begun: Vec<&str> = names
        .iter()
        .filter(|name| name.starts_with(what))
        .map(|name| region_of(name))
        .collect();
    begun.sort_unstable();
    begun.dedup();
    if let [only] = begun[..]
        && !names.contains(&what)
    {
        return pick_packages(known, only);
    }
    Ok(pick(&names, what)?
        .into_iter()
        .map(|i| known[i].1.clone())
        .collect())
}

/// The region's part of a codelet's name.
fn region_of(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(region, _)| region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_packages() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        std::fs::create_dir(store.codelets()).unwrap();
        for name in ["f@a.c:1:1", "f@a.c:1:2", "f@a.c:10:1", "g@a.c:3:1"] {
            std::fs::write(codelets::file_of(&store, name), "").unwrap();
        }
        let count = |what: &str| {
            packages(&store, what, &Events::ignored())
                .map(|found| found.len())
                .ok()
        };
        assert_eq!(count("f@a.c:1"), Some(2));
        assert_eq!(count("f@a.c:1:2"), Some(1));
        assert_eq!(count("f@*"), Some(3));
        assert_eq!(count("g"), Some(1));
        assert_eq!(count("f"), None);
        assert_eq!(count("h"), None);
        // A region and an invocation, as codelets are listed.
        assert_eq!(count("g:1"), Some(1));
        assert_eq!(count("g:2"), None);
        assert_eq!(count("f@a.c:1:1"), Some(1));
        assert_eq!(count("f@*:1:1"), Some(1));
        assert_eq!(count("f*:2"), Some(1));
        // A line, though one region of the file has that invocation.
        assert_eq!(count("g@a.c:1"), None);
        assert_eq!(count("f@a*:1"), Some(2));
    }
}
