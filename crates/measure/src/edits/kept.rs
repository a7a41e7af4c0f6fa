//! States of the sources that are kept while people edit: one as a baseline, and the fastest right ones.

use super::captured::{Captured, Region};
use super::given::Sources;
use super::{Edit, Tried, Variant};
use anyhow::{Context, Result};
use cere_format::hexadecimal;
use cere_format::store::Store;
use cere_store::{codelets, state};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the sources hold at one time. A file that cannot be read is not part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    files: BTreeMap<PathBuf, Vec<u8>>,
    directories: BTreeSet<PathBuf>,
    /// The directory around all of them.
    root: PathBuf,
}

impl State {
    /// As they are now.
    pub fn now(sources: &Sources) -> Self {
        let content = |file: &PathBuf| Some((file.clone(), std::fs::read(file).ok()?));
        let around = sources.files().iter().filter_map(|file| file.parent());
        let directories = sources.directories().iter().map(PathBuf::as_path);
        Self {
            files: sources.files().iter().filter_map(content).collect(),
            directories: sources.directories().clone(),
            root: around.chain(directories).fold(PathBuf::new(), shared),
        }
    }

    /// The files with the SHA-256 of their contents.
    pub(super) fn hashes(&self) -> impl Iterator<Item = (&Path, String)> {
        let each = self.files.iter();
        each.map(|(file, content)| (file.as_path(), hexadecimal(&Sha256::digest(content))))
    }

    /// Where `file` is in a copy below `tree`.
    fn copy_of(&self, file: &Path, tree: &Path) -> PathBuf {
        tree.join(file.strip_prefix(&self.root).unwrap_or(file))
    }

    /// Writes a copy of the tree into the empty directory `tree`.
    fn write(&self, tree: &Path) -> Result<()> {
        for directory in &self.directories {
            state::make_directory(&self.copy_of(directory, tree))?;
        }
        for (file, content) in &self.files {
            let copy = self.copy_of(file, tree);
            state::make_directory(copy.parent().unwrap_or(tree))?;
            std::fs::write(&copy, content)
                .with_context(|| format!("cannot write {}", copy.display()))?;
        }
        Ok(())
    }

    /// A variant in which the sources stay as they are now, whatever becomes of the files. Its files go to the empty directory `tree`.
    pub fn freeze(&self, tree: &Path) -> Result<Variant> {
        self.write(tree)?;
        let each = self.files.keys();
        let replaced = each.map(|file| (file.clone(), self.copy_of(file, tree)));
        Ok(Variant {
            edit: Edit {
                replaced: replaced.collect(),
                moved: None,
            },
            ..Variant::default()
        })
    }
}

/// The directory around `around`, or nothing, and `path`.
fn shared(around: PathBuf, path: &Path) -> PathBuf {
    if around.as_os_str().is_empty() {
        return path.to_owned();
    }
    let both = around.components().zip(path.components());
    both.take_while(|(one, other)| one == other)
        .map(|(one, _)| one)
        .collect()
}

/// A variant that was the fastest when it was tried.
#[derive(Debug, Clone)]
pub struct Fastest {
    /// The region; none: all of them.
    pub region: Option<String>,
    /// Time over that as captured; of the whole run if it is of all regions.
    pub ratio: f64,
    /// What `cere try` needs to try it again.
    pub option: String,
}

/// The fastest right variants so far.
pub struct Best<'a> {
    store: &'a Store,
    captured: &'a Captured,
    /// By the name of their directory.
    found: BTreeMap<String, Fastest>,
}

/// The directory of the variant that is best for all regions.
const ALL: &str = "all";

impl<'a> Best<'a> {
    /// None yet.
    pub fn new(store: &'a Store, captured: &'a Captured) -> Self {
        Self {
            store,
            captured,
            found: BTreeMap::new(),
        }
    }

    /// The best of each region, and of all together.
    pub fn each(&self) -> impl Iterator<Item = &Fastest> {
        self.found.values()
    }

    /// Keeps `now` where it is right and faster than all before, with regard to intervals faster than the code as captured.
    pub fn consider(&mut self, regions: &[Region], now: &State) -> Result<()> {
        let all_right = regions.iter().flat_map(|r| &r.tried).all(Tried::is_right);
        let (mut saved, mut low_saved) = (0.0, 0.0);
        for region in regions {
            let Some((tried, gain)) = region.tried.last().and_then(|t| Some((t, t.gain?))) else {
                continue;
            };
            let share = region.share.unwrap_or(0.0);
            saved += share * (1.0 - gain.ratio);
            low_saved += share * (1.0 - gain.high);
            if tried.is_right() && gain.high < 1.0 {
                let name = codelets::encoded(&region.name);
                self.keep(name, Some(&region.name), gain.ratio, now)?;
            }
        }
        if regions.len() > 1 && all_right && low_saved > 0.0 {
            self.keep(ALL.to_owned(), None, 1.0 - saved, now)?;
        }
        Ok(())
    }

    fn keep(&mut self, name: String, region: Option<&str>, ratio: f64, now: &State) -> Result<()> {
        let slower = |best: &Fastest| best.ratio > ratio;
        if !self.found.get(&name).is_none_or(slower) {
            return Ok(());
        }
        let place = self.store.best();
        state::make_directory(&place)?;
        let new = tempfile::Builder::new().prefix(".new.").tempdir_in(&place);
        let new = new.with_context(|| format!("cannot write in {}", place.display()))?;
        now.write(new.path())?;
        let tree = place.join(&name);
        if tree.exists() {
            std::fs::remove_dir_all(&tree)
                .with_context(|| format!("cannot remove {}", tree.display()))?;
        }
        std::fs::rename(new.keep(), &tree)
            .with_context(|| format!("cannot write {}", tree.display()))?;
        let fastest = Fastest {
            region: region.map(str::to_owned),
            ratio,
            option: self.option(now, &tree),
        };
        self.found.insert(name, fastest);
        Ok(())
    }

    /// The option that tries the copy in `tree` again: a file if one changed, else the tree.
    fn option(&self, now: &State, tree: &Path) -> String {
        let word = |path: &Path| shell_words::quote(&path.to_string_lossy()).into_owned();
        match &self.captured.changed(now)[..] {
            [file] if self.captured.sources().has_own_name(file) => {
                format!("--source {}", word(&now.copy_of(file, tree)))
            }
            _ => format!("--dir {}", word(tree)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_holds_what_lies_below_the_shared_directory() {
        let around = ["/a/b/src", "/a/b/include", "/a/b/build"].map(Path::new);
        let root = around.into_iter().fold(PathBuf::new(), shared);
        assert_eq!(root, Path::new("/a/b"));
        let state = State {
            files: BTreeMap::from([("/a/b/src/k.c".into(), b"int k;".to_vec())]),
            directories: BTreeSet::from(["/a/b/build".into()]),
            root,
        };
        let tree = tempfile::tempdir().expect("a directory");
        let variant = state.freeze(tree.path()).expect("written");
        let copy = tree.path().join("src/k.c");
        assert_eq!(std::fs::read(&copy).expect("a file"), b"int k;");
        assert_eq!(variant.edit.replaced, [("/a/b/src/k.c".into(), copy)]);
        assert!(tree.path().join("build").is_dir());
    }
}
