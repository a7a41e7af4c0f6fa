//! Where each file lies in a store (`.cere/`). Paths only; nothing here touches the file system.

use std::path::{Path, PathBuf};

/// CERE's part of the user's cache; `None` where neither `XDG_CACHE_HOME` nor `HOME` names one.
pub fn user_cache() -> Option<PathBuf> {
    let home = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))?;
    Some(home.join("cere"))
}

/// A store's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The store in `root`, which should be absolute.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
    /// The store's own directory.
    pub fn root(&self) -> &Path {
        &self.root
    }
    /// Kept units.
    pub fn units(&self) -> PathBuf {
        self.root.join("units")
    }
    /// The record of a unit.
    pub fn unit_record(&self, id: &str) -> PathBuf {
        self.units().join(format!("{id}.json"))
    }
    /// The IR of a unit.
    pub fn unit_ir(&self, id: &str) -> PathBuf {
        self.units().join(format!("{id}.bc"))
    }
    /// The IR of a unit with the lines of its source, where the kept IR has none because the build asked for no debug
    /// information.
    pub fn unit_lines(&self, id: &str) -> PathBuf {
        self.units().join(format!("{id}.lines"))
    }
    /// Index of the newest unit of each compile: `current/<hash of source and output>` holds an id.
    pub fn current(&self) -> PathBuf {
        self.root.join("current")
    }
    /// Link commands.
    pub fn links(&self) -> PathBuf {
        self.root.join("links")
    }
    /// Modules of Fortran that were made for flang.
    pub fn modules(&self) -> PathBuf {
        self.root.join("modules")
    }
    /// Copies of a link's inputs that the build removes; `link` is the name of its record.
    pub fn inputs(&self, link: &str) -> PathBuf {
        self.root.join("inputs").join(link)
    }
    /// The last build command.
    pub fn build(&self) -> PathBuf {
        self.root.join("build.json")
    }
    /// Compiler wrappers of `cere instrument`.
    pub fn wrappers(&self) -> PathBuf {
        self.root.join("bin")
    }
    /// Compiles that failed to instrument, for the report of `cere instrument`.
    pub fn failures(&self) -> PathBuf {
        self.root.join("failures")
    }
    /// The last profile.
    pub fn profile(&self) -> PathBuf {
        self.root.join("profile.json")
    }
    /// Loops that profiles found too short for a probe.
    pub fn short(&self) -> PathBuf {
        self.root.join("short.json")
    }
    /// Loops whose inner loops become regions too, as the user asked.
    pub fn split(&self) -> PathBuf {
        self.root.join("split.json")
    }
    /// Functions that become regions as a whole, as the user asked.
    pub fn functions(&self) -> PathBuf {
        self.root.join("functions.json")
    }
    /// Scratch directories of runs in progress, one a run.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }
    /// Finished codelets.
    pub fn codelets(&self) -> PathBuf {
        self.root.join("codelets")
    }
    /// Why regions have no codelets.
    pub fn captures(&self) -> PathBuf {
        self.root.join("captures.json")
    }
    /// Why regions take their time: `cere explain`. `<hash of unit and index>.json`, one a region.
    pub fn explanations(&self) -> PathBuf {
        self.root.join("explanations")
    }
    /// The choices that tuning found.
    pub fn tuned(&self) -> PathBuf {
        self.root.join("tuned.toml")
    }
    /// Sources of the fastest right variants that `cere try --watch` saw: a tree for each region, and one for all.
    pub fn best(&self) -> PathBuf {
        self.root.join("best")
    }
    /// Measurement records: an SQLite file.
    pub fn results(&self) -> PathBuf {
        self.root.join("results.db")
    }
    /// Objects and replays that were built, by content.
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }
    /// Lock file: held by a command that writes.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }
}
