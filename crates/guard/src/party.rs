//! What is compared: a build, a state of the sources, flags.

use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes, ensure};
use cere_format::build::Unit;
use cere_format::store::Store;
use cere_measure::edits::given::Sources;
use cere_store::build::wrapper::edited::Edit;
use cere_store::state;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// A side as people name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// The code as captured.
    Captured,
    /// The sources as they are.
    Sources,
    /// The captured code under flags after those of the build.
    Flags(Vec<String>),
    /// A copy of the source tree.
    Tree(PathBuf),
    /// A commit of the repository that the sources are in.
    Revision(String),
    /// The codelets of another store.
    Store(PathBuf),
    /// Records of replays, as `cere results --json` writes them.
    Records(PathBuf),
}

/// What is needed instead.
const NEEDED: &str = "captured, sources, flags:FLAGS, dir:TREE, git:COMMIT, a directory with a store, or a file of `cere results --json` is needed";

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let path = Path::new(text);
        Ok(match (kind, rest) {
            ("captured", "") => Self::Captured,
            ("sources", "") => Self::Sources,
            ("flags", flags) if !flags.trim().is_empty() => Self::Flags(
                cere_toolchain::flags::split(flags).map_err(|e| format!("{text}: {e}"))?,
            ),
            ("dir", tree) if !tree.is_empty() => Self::Tree(tree.into()),
            ("git", commit) if !commit.is_empty() && !commit.starts_with('-') => {
                Self::Revision(commit.into())
            }
            ("cc", _) => {
                return Err(format!(
                    "{text}: another compiler makes another build: build, profile and capture with it under another --store, and name that directory"
                ));
            }
            _ if path.is_dir() => Self::Store(path.into()),
            _ if path.is_file() => Self::Records(path.into()),
            _ => return Err(format!("{text} names nothing to compare: {NEEDED}")),
        })
    }
}

/// A side, ready to be built.
pub struct Party {
    /// What people call it.
    pub name: String,
    /// The store with its codelets.
    pub store: Store,
    /// Where its sources are; none: the code is the captured one.
    pub edit: Option<Edit>,
    /// Flags after those of the build.
    pub flags: Vec<String>,
    /// A checkout of its own.
    _checkout: Option<tempfile::TempDir>,
}

impl Party {
    /// `given`, which people call `name`, of codelets in `store` where it names no other one. Records are no side to be built.
    pub fn open(given: &Given, name: &str, store: &Store) -> Result<Self> {
        let mut party = Self {
            name: name.to_owned(),
            store: store.clone(),
            edit: None,
            flags: Vec::new(),
            _checkout: None,
        };
        match given {
            Given::Captured => {}
            Given::Sources => party.edit = Some(Edit::default()),
            Given::Flags(flags) => party.flags.clone_from(flags),
            Given::Tree(tree) => {
                let units = state::current_units(store)?;
                party.edit = Some(Sources::of(units.iter()).tree(tree)?.edit);
            }
            Given::Revision(commit) => {
                let units = state::current_units(store)?;
                let (moved, checkout) =
                    check_out(commit, &units).with_context(|| format!("git:{commit}"))?;
                party.edit = Some(Edit {
                    replaced: Vec::new(),
                    moved: Some(moved),
                });
                party._checkout = Some(checkout);
            }
            Given::Store(path) => party.store = store_in(path)?,
            Given::Records(path) => bail!(
                E6119,
                "{} holds records of replays: they are compared with records, of a file or of a store",
                path.display()
            ),
        }
        Ok(party)
    }
}

/// The store in `path`, or in its `.cere`.
pub fn store_of(path: &Path) -> Result<Store> {
    let inner = path.join(".cere");
    let path = if inner.is_dir() { &inner } else { path };
    let path = path
        .canonicalize()
        .with_context(|| format!("{} cannot be opened", path.display()))?;
    Ok(Store::new(path))
}

/// The same, if it has codelets.
pub fn store_in(path: &Path) -> Result<Store> {
    let store = store_of(path)?;
    let path = store.root();
    ensure!(
        store.codelets().is_dir(),
        E6120,
        "{} is no store with codelets: `cere capture` takes some",
        path.display()
    );
    Ok(store)
}

/// A checkout of `commit` outside of the user's tree: the repository and its copy.
fn check_out(commit: &str, units: &[Unit]) -> Result<((PathBuf, PathBuf), tempfile::TempDir)> {
    let directory = units.iter().find_map(|unit| unit.source.parent());
    let directory = directory.context("the store knows no source")?;
    let top = git(directory, &["rev-parse", "--show-toplevel"])?;
    let top = PathBuf::from(top.trim_end());
    let commit_id = git(
        directory,
        &[
            "rev-parse",
            "--verify",
            "--end-of-options",
            &format!("{commit}^{{commit}}"),
        ],
    )?;
    let checkout = tempfile::tempdir().context("cannot write temporary files")?;
    let place = checkout.path().canonicalize()?;
    let archive = place.join(".archive.tar");
    let output = format!("--output={}", archive.display());
    git(
        &top,
        &["archive", "--format=tar", &output, commit_id.trim_end()],
    )?;
    let file = std::fs::File::open(&archive)
        .with_context(|| format!("cannot read {}", archive.display()))?;
    tar::Archive::new(file)
        .unpack(&place)
        .with_context(|| format!("git:{commit} cannot be unpacked in {}", place.display()))?;
    std::fs::remove_file(&archive)?;
    Ok(((top, place), checkout))
}

/// What git prints in `directory`.
fn git(directory: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(words)
        .output()
        .or_coded(
            codes::E6121,
            || "cannot run git: install it, or name a checkout by dir:TREE",
        )?;
    ensure!(
        output.status.success(),
        E6121,
        "git {} in {}: {}",
        words[0],
        directory.display(),
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_named() {
        let given = |text: &str| text.parse::<Given>();
        assert_eq!(given("captured"), Ok(Given::Captured));
        assert_eq!(
            given("flags:-O3 '-DX=1 2'"),
            Ok(Given::Flags(vec!["-O3".into(), "-DX=1 2".into()]))
        );
        assert_eq!(given("git:HEAD~1"), Ok(Given::Revision("HEAD~1".into())));
        assert_eq!(given("dir:/x"), Ok(Given::Tree("/x".into())));
        assert_eq!(given("/"), Ok(Given::Store("/".into())));
        for wrong in [
            "flags:",
            "flags:'",
            "git:--output=x",
            "cc:gcc",
            "nowhere",
            "",
        ] {
            assert!(given(wrong).is_err(), "{wrong}");
        }
    }
}
