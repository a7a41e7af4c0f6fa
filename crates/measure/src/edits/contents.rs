//! What the sources hold at one time.

use super::given::Sources;
use super::{Edit, Variant};
use anyhow::{Context, Result};
use cere_format::hexadecimal;
use cere_store::state;
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
    pub(super) fn copy_of(&self, file: &Path, tree: &Path) -> PathBuf {
        tree.join(file.strip_prefix(&self.root).unwrap_or(file))
    }

    /// Writes a copy of the tree into the empty directory `tree`.
    pub(super) fn write(&self, tree: &Path) -> Result<()> {
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
