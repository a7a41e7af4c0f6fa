//! Edits as people give them: files, patches, trees.

use super::Variant;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes};
use cere_format::build::Unit;
use cere_store::build::wrapper::edited::Edit;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// All files that the units were compiled from, and the directories of the compiles.
pub struct Sources {
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl Sources {
    /// Of these units.
    pub fn of<'a>(units: impl Iterator<Item = &'a Unit>) -> Self {
        let (mut files, mut directories) = (BTreeSet::new(), BTreeSet::new());
        for unit in units {
            files.extend(unit.sources.iter().map(|source| source.file.clone()));
            files.insert(unit.source.clone());
            directories.insert(unit.command.directory.clone());
        }
        Self { files, directories }
    }

    /// The files.
    pub fn files(&self) -> &BTreeSet<PathBuf> {
        &self.files
    }

    /// The directories of the compiles.
    pub fn directories(&self) -> &BTreeSet<PathBuf> {
        &self.directories
    }

    /// Whether no other file has the name of this one.
    pub fn has_own_name(&self, file: &Path) -> bool {
        let same = |other: &&PathBuf| other.file_name() == file.file_name();
        self.files.iter().filter(same).count() == 1
    }

    /// The file whose path ends in `path`.
    fn ending_in(&self, path: &Path, given: &Path) -> Result<PathBuf> {
        let found: Vec<&PathBuf> = self.files.iter().filter(|f| f.ends_with(path)).collect();
        match &found[..] {
            [only] => Ok((*only).clone()),
            [] => bail!(
                E5308,
                "{}: no source of the chosen codelets is called {}: they are made of {}",
                given.display(),
                path.display(),
                self.listed()
            ),
            [first, second, ..] => bail!(
                E5308,
                "{}: both {} and {} are called {}: say which, as ORIGINAL={}",
                given.display(),
                first.display(),
                second.display(),
                path.display(),
                given.display()
            ),
        }
    }

    fn listed(&self) -> String {
        const NAMED: usize = 5;
        let mut names: Vec<String> = self
            .files
            .iter()
            .take(NAMED)
            .map(|file| file.display().to_string())
            .collect();
        if self.files.len() > NAMED {
            names.push(format!("{} more", self.files.len() - NAMED));
        }
        names.join(", ")
    }

    /// `FILE` in the place of the source of its name, or `ORIGINAL=FILE`.
    pub fn file(&self, given: &str) -> Result<Variant> {
        let (original, new) = match given.split_once('=') {
            Some((original, new)) => (Some(Path::new(original)), Path::new(new)),
            None => (None, Path::new(given)),
        };
        let new = std::path::absolute(new)?;
        if !new.is_file() {
            bail!(
                E5310,
                "--source {given}: there is no file {}",
                new.display()
            );
        }
        let original = match original {
            Some(original) => self.ending_in(original, &new)?,
            None => self.ending_in(Path::new(new.file_name().unwrap_or_default()), &new)?,
        };
        Ok(Variant {
            name: given.to_owned(),
            edit: Edit {
                replaced: vec![(original, new)],
                moved: None,
            },
            ..Variant::default()
        })
    }

    /// A patch as `diff -u` and `git diff` write it, applied to the sources as they are. New files go to the directory `scratch`.
    pub fn patch(&self, file: &Path, scratch: &Path) -> Result<Variant> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("--patch {}: cannot read it", file.display()))?;
        let mut replaced = Vec::new();
        for (number, (name, part)) in parts(&text).into_iter().enumerate() {
            let original = self.patched(&name, file)?;
            let before = std::fs::read_to_string(&original)
                .with_context(|| format!("cannot read {}", original.display()))?;
            let fails = |why: String| {
                cere_catalogue::anyhow!(
                    E5311,
                    "--patch {}: it does not apply to {}: {why}",
                    file.display(),
                    original.display()
                )
            };
            let patch = diffy::Patch::from_str(&part).map_err(|e| fails(e.to_string()))?;
            let after = diffy::apply(&before, &patch).map_err(|e| fails(e.to_string()))?;
            let new = scratch.join(format!("patched-{number}"));
            std::fs::write(&new, after)
                .with_context(|| format!("cannot write {}", new.display()))?;
            replaced.push((original, new));
        }
        if replaced.is_empty() {
            bail!(
                E5311,
                "--patch {}: it holds no change of a file: a patch as `diff -u` or `git diff` writes it is needed",
                file.display()
            );
        }
        Ok(Variant {
            name: file.display().to_string(),
            edit: Edit {
                replaced,
                moved: None,
            },
            ..Variant::default()
        })
    }

    /// The file that a patch names, with or without its first directory.
    fn patched(&self, name: &str, patch: &Path) -> Result<PathBuf> {
        let whole = Path::new(name);
        let without: PathBuf = whole.components().skip(1).collect();
        for candidate in [without.as_path(), whole] {
            let named = !candidate.as_os_str().is_empty();
            if named && let Ok(found) = self.ending_in(candidate, patch) {
                return Ok(found);
            }
        }
        self.ending_in(whole, patch)
    }

    /// A copy of the build's tree.
    pub fn tree(&self, tree: &Path) -> Result<Variant> {
        let to = tree
            .canonicalize()
            .with_context(|| format!("--dir {}: it cannot be opened", tree.display()))?;
        let from = self.root(&to)?;
        Ok(Variant {
            name: tree.display().to_string(),
            edit: Edit {
                replaced: Vec::new(),
                moved: Some((from, to)),
            },
            ..Variant::default()
        })
    }

    /// The highest directory around the build whose files the tree has.
    fn root(&self, tree: &Path) -> Result<PathBuf> {
        let Some(first) = self.files.iter().find(|file| file.is_absolute()) else {
            bail!(
                E5312,
                "--dir {}: the chosen codelets have no sources",
                tree.display()
            );
        };
        let around = self.directories.iter().chain(&self.files);
        let ancestors = around.flat_map(|path| path.ancestors().map(Path::to_owned));
        let mut candidates: Vec<PathBuf> = ancestors.collect();
        candidates.sort_by_key(|path| path.components().count());
        candidates.dedup();
        let shared = |root: &PathBuf| {
            let own: Vec<&Path> = self
                .files
                .iter()
                .filter_map(|file| file.strip_prefix(root).ok())
                .collect();
            !own.is_empty() && own.iter().any(|rest| tree.join(rest).is_file())
        };
        candidates.into_iter().find(shared).or_coded(codes::E5312, || {
            format!(
                "--dir {}: it has no file of the build in the place that it had there (such as {})",
                tree.display(),
                first.display()
            )
        })
    }
}

/// The parts of a patch, one a file, each with the file's name.
fn parts(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for (number, line) in lines.iter().enumerate() {
        let next = lines.get(number + 1).copied().unwrap_or_default();
        if line.starts_with("--- ") && next.starts_with("+++ ") {
            let named = |line: &str| {
                let name = line[4..].split('\t').next().unwrap_or_default();
                name.trim_end().to_owned()
            };
            let new = named(next);
            let name = if new == "/dev/null" { named(line) } else { new };
            found.push((name, String::new()));
            inside = true;
        }
        inside &= !line.starts_with("diff ") && !line.starts_with("index ");
        if let Some((_, part)) = found.last_mut().filter(|_| inside) {
            part.push_str(line);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_has_a_part_for_each_file() {
        let text = "diff --git a/x.c b/x.c\nindex 1..2 100644\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n\
                    diff --git a/y.h b/y.h\n--- a/y.h\t2026\n+++ b/y.h\t2026\n@@ -1 +1 @@\n-c\n+d\n";
        let found = parts(text);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b/x.c", "b/y.h"]);
        let patch = diffy::Patch::from_str(&found[0].1).expect("a patch");
        assert_eq!(diffy::apply("a\n", &patch).expect("applied"), "b\n");
        assert!(parts("no patch\n").is_empty());
    }
}
