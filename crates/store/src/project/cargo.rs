//! The programs of a cargo package or workspace.

use super::text::{files, read};
use std::fs;
use std::path::{Path, PathBuf};

/// Most packages of a workspace that are read.
const MOST: usize = 500;

/// The programs in `target` of the package or workspace in `directory`; none if there is no `Cargo.toml` that can be read.
pub fn programs(directory: &Path, target: &Path) -> Option<Vec<PathBuf>> {
    let manifest = manifest(directory)?;
    let mut names = of_package(directory, &manifest);
    for member in members(directory, &manifest) {
        if let Some(manifest) = self::manifest(&member) {
            names.extend(of_package(&member, &manifest));
        }
    }
    Some(names.into_iter().map(|name| target.join(name)).collect())
}

fn manifest(directory: &Path) -> Option<toml::Table> {
    read(&directory.join("Cargo.toml"))?.parse().ok()
}

fn of_package(directory: &Path, manifest: &toml::Table) -> Vec<String> {
    let mut names = Vec::new();
    let Some(package) = manifest.get("package") else {
        return names;
    };
    let bins = manifest.get("bin").and_then(toml::Value::as_array);
    let named = bins
        .into_iter()
        .flatten()
        .filter_map(|bin| bin.get("name")?.as_str());
    names.extend(named.map(str::to_owned));
    if names.is_empty() && directory.join("src/main.rs").is_file() {
        names.extend(
            package
                .get("name")
                .and_then(|n| n.as_str())
                .map(str::to_owned),
        );
    }
    let others = files(&directory.join("src/bin"));
    let others = others
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let others = others.filter_map(|path| path.file_stem()?.to_str().map(str::to_owned));
    for name in others {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The folders of a workspace's members; of a glob, those that its last star stands for.
fn members(directory: &Path, manifest: &toml::Table) -> Vec<PathBuf> {
    let members = manifest.get("workspace").and_then(|w| w.get("members"));
    let members = members
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten();
    let folders = members.filter_map(toml::Value::as_str).flat_map(|member| {
        match member.strip_suffix("/*") {
            Some(above) => below(&directory.join(above)),
            None => vec![directory.join(member)],
        }
    });
    folders.take(MOST).collect()
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .take(MOST)
        .map(|e| e.path())
        .filter(|p| p.is_dir())
        .collect();
    folders.sort();
    folders
}
