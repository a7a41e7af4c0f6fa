//! The folder of the tests: limits, and for each region what its test needs, in a folder of its own.

use crate::counts::Counted;
use crate::relocate;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes, ensure};
use cere_format::build::{BUILD_VERSION, Unit};
use cere_format::store::Store;
use cere_store::{names, state};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Its name.
pub const FOLDER: &str = "cere-guard";
/// Its file of limits.
const CONFIG: &str = "guard.toml";
/// Version of its files.
const VERSION: u32 = 1;

/// What a new [`CONFIG`] says.
const NEW: &str = r#"# Performance tests of `cere guard`. This folder belongs into the repository.
version = 1
# The repository, from this folder.
root = ".."
# A region fails if its time grows by more than so many per cent,
time = 1.5
# or one of its counts.
counts = 1.0
# The caches that traffic is simulated for: a name of `cere count --geometry`, or `none`.
geometry = "sapphire-rapids"

# Other limits for regions, by name or glob:
#[regions."solve@*"]
#time = 5.0
#counts = 3.0
"#;

/// [`CONFIG`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(default = "above")]
    root: PathBuf,
    time: f64,
    counts: f64,
    #[serde(default = "no_geometry")]
    geometry: String,
    #[serde(default)]
    regions: BTreeMap<String, Own>,
}

/// What every version of [`CONFIG`] has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Limits of some regions.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    time: Option<f64>,
    counts: Option<f64>,
}

fn above() -> PathBuf {
    "..".into()
}

fn no_geometry() -> String {
    "none".into()
}

/// By how much a region may grow, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limits {
    /// Its time.
    pub time: f64,
    /// Each of its counts.
    pub counts: f64,
}

/// `region.json`: a test.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Version of this file.
    pub version: u32,
    /// The region's name.
    pub name: String,
    /// Symbol of the function that holds it.
    pub symbol: String,
    /// The source, from the root where it is below it.
    pub file: PathBuf,
    /// Its line.
    pub line: u32,
    /// Names of its codelets.
    pub codelets: Vec<String>,
    /// Files of its codelets.
    pub files: Vec<String>,
    /// Ids of the units that its code is made of.
    pub units: Vec<String>,
    /// Whether code of the sources was accepted as baseline since.
    pub accepted: bool,
    /// What the baseline did when it was taken.
    pub baseline: Baseline,
}

/// What a baseline did when it was taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The processor.
    pub cpu: String,
    /// The compiler's version.
    pub compiler: String,
    /// Version of cere.
    pub cere: String,
    /// Counts; none if it could not be counted.
    pub counts: Option<Counted>,
}

/// A test with its folder.
#[derive(Debug, Clone)]
pub struct Guarded {
    /// What it says of itself.
    pub record: Record,
    /// Its folder.
    pub folder: PathBuf,
}

/// The folder of the tests.
#[derive(Debug, Clone)]
pub struct Fixture {
    folder: PathBuf,
    root: PathBuf,
    config: Config,
}

impl Fixture {
    /// The folder of the tests of this directory: the nearest one here or above.
    pub fn find() -> Result<PathBuf> {
        let here = std::env::current_dir().context("the current directory is gone")?;
        let found = here.ancestors().map(|above| above.join(FOLDER));
        found.into_iter().find(|f| f.join(CONFIG).is_file()).or_coded(codes::E6101, ||
            "there is no folder cere-guard here or above: `cere guard add REGION` makes one, --tests names another",
        )
    }

    /// The folder of the tests, which is made if there is none: at the top of the repository, or here.
    pub fn find_or_make(named: Option<&Path>) -> Result<PathBuf> {
        let folder = match (named, Self::find()) {
            (Some(named), _) => named.to_owned(),
            (None, Ok(found)) => found,
            (None, Err(_)) => {
                let here = std::env::current_dir().context("the current directory is gone")?;
                let top = here.ancestors().find(|above| above.join(".git").exists());
                top.unwrap_or(&here).join(FOLDER)
            }
        };
        if !folder.join(CONFIG).exists() {
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
            state::write_text(&folder.join(CONFIG), NEW)?;
        }
        Ok(folder)
    }

    /// Reads the limits in `folder`.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(CONFIG);
        let text = state::read_text(&path).with_context(|| {
            format!(
                "cannot read {}: `cere guard add REGION` makes a folder of tests",
                path.display()
            )
        })?;
        let invalid = || format!("{} is not valid", path.display());
        // Whatever else another version has, its number is what matters.
        let Versioned { version } = toml::from_str(&text).with_context(invalid)?;
        ensure!(
            version == VERSION,
            E6103,
            "{} has version {version}, this cere reads {VERSION}: use the cere that made it, or remove the folder and add the regions again",
            path.display()
        );
        let config: Config = toml::from_str(&text).with_context(invalid)?;
        let own = config
            .regions
            .values()
            .flat_map(|own| [own.time, own.counts]);
        for limit in [Some(config.time), Some(config.counts)]
            .into_iter()
            .chain(own)
            .flatten()
        {
            ensure!(
                (0.0..=1000.0).contains(&limit),
                E6104,
                "{}: a limit is {limit}: a number of per cent from 0 to 1000 is needed",
                path.display()
            );
        }
        let root = folder.join(&config.root);
        let root = root.canonicalize().with_context(|| {
            format!(
                "{}: root {} cannot be opened",
                path.display(),
                root.display()
            )
        })?;
        Ok(Self {
            folder: folder.canonicalize().unwrap_or_else(|_| folder.to_owned()),
            root,
            config,
        })
    }

    /// The repository.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Which caches are simulated.
    pub fn geometry(&self) -> &str {
        &self.config.geometry
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The limits of the region: the most special entry decides.
    pub fn limits(&self, region: &str) -> Limits {
        let fits = |pattern: &str| pattern == region || names::glob(pattern, region);
        let entries = self
            .config
            .regions
            .iter()
            .filter(|(pattern, _)| fits(pattern));
        let own = entries.max_by_key(|(pattern, _)| (*pattern == region, pattern.len()));
        let own = own.map(|(_, own)| own);
        Limits {
            time: own.and_then(|o| o.time).unwrap_or(self.config.time),
            counts: own.and_then(|o| o.counts).unwrap_or(self.config.counts),
        }
    }

    /// Entries of limits that are of no region.
    pub fn unused_limits(&self, all: &[Guarded]) -> Vec<String> {
        let patterns = self.config.regions.keys();
        let unused = patterns.filter(|pattern| {
            !all.iter().any(|guarded| {
                let name = &guarded.record.name;
                name == *pattern || names::glob(pattern, name)
            })
        });
        unused.cloned().collect()
    }

    fn regions(&self) -> PathBuf {
        self.folder.join("regions")
    }

    /// Whether a region of the function is a test.
    pub fn tests_function(&self, function: &str) -> bool {
        let all = self.tests(&[]).unwrap_or_default();
        let name = |test: &Guarded| test.record.name.split('@').next().map(str::to_owned);
        all.iter()
            .any(|test| test.record.symbol == function || name(test).as_deref() == Some(function))
    }

    /// All tests, by name; those of `what` if it is not empty.
    pub fn tests(&self, what: &[String]) -> Result<Vec<Guarded>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(self.regions()).into_iter().flatten() {
            let folder = entry?.path();
            let hidden = folder
                .file_name()
                .is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
            if !hidden && folder.is_dir() {
                all.push(Guarded::open(&folder)?);
            }
        }
        all.sort_by(|a, b| a.record.name.cmp(&b.record.name));
        if all.is_empty() {
            bail!(
                E6102,
                "{} holds no tests: `cere guard add REGION` adds one",
                self.folder.display()
            );
        }
        if what.is_empty() {
            return Ok(all);
        }
        let known: Vec<&str> = all.iter().map(|g| g.record.name.as_str()).collect();
        let mut chosen = std::collections::BTreeSet::new();
        for pattern in what {
            chosen.extend(
                names::pick(&known, pattern)
                    .with_context(|| format!("no test of {} is meant", self.folder.display()))?,
            );
        }
        Ok(chosen.into_iter().map(|at| all[at].clone()).collect())
    }

    /// Writes a test in the place of one of the same region: `fill` writes its files into a folder.
    pub fn write(
        &self,
        record: &Record,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Guarded> {
        let regions = self.regions();
        state::make_directory(&regions)?;
        let new = tempfile::Builder::new()
            .prefix(".new.")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .tempdir_in(&regions)
            .with_context(|| format!("cannot write in {}", regions.display()))?;
        fill(new.path())?;
        // People read how it changes.
        let text = serde_json::to_string_pretty(record)? + "\n";
        state::write_text(&new.path().join("region.json"), &text)?;
        let folder = self.place(&record.name);
        let failed = || format!("cannot write {}", folder.display());
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(failed)?;
        }
        std::fs::rename(new.keep(), &folder).with_context(failed)?;
        Guarded::open(&folder)
    }

    /// Where the test of the region is.
    pub fn place(&self, region: &str) -> PathBuf {
        let file = cere_store::codelets::file_of(&Store::new("/"), region);
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        // Checkouts on Windows have no colons.
        self.regions().join(name.replace(':', "."))
    }

    /// The path from the root, where it is below it: without the `..` of a compile in another directory.
    pub fn from_root(&self, path: &Path) -> PathBuf {
        let path = plain(path);
        path.strip_prefix(&self.root).unwrap_or(&path).to_owned()
    }
}

impl Guarded {
    fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("region.json");
        let record: Record = state::read_json(&path)
            .with_context(|| format!("{} is no test: remove it", folder.display()))?;
        ensure!(
            record.version == VERSION,
            E6103,
            "{} has version {}, this cere reads {VERSION}: add the region again with `cere guard add`",
            path.display(),
            record.version
        );
        Ok(Self {
            record,
            folder: folder.to_owned(),
        })
    }

    /// A test's record of the version that is written.
    pub const VERSION: u32 = VERSION;

    /// The files of its codelets.
    pub fn codelets(&self) -> Vec<PathBuf> {
        let files = self.record.files.iter();
        files.map(|file| self.folder.join(file)).collect()
    }

    /// The records of its units, with paths in the repository `root`.
    pub fn units(&self, root: &Path) -> Result<BTreeMap<String, Unit>> {
        let root = root.to_str().context("the repository's path is no UTF-8")?;
        let mut found = BTreeMap::new();
        for id in &self.record.units {
            let path = unit_file(&self.folder, id);
            let mut value: serde_json::Value = state::read_json(&path)?;
            relocate::with_root(&mut value, root);
            let unit: Unit = serde_json::from_value(value)
                .or_coded(codes::E4009, || format!("{} is damaged", path.display()))?;
            ensure!(
                unit.version == BUILD_VERSION,
                E6103,
                "{} has version {}, this cere reads {BUILD_VERSION}: add the region again with `cere guard add`",
                path.display(),
                unit.version
            );
            found.insert(id.clone(), unit);
        }
        Ok(found)
    }

    /// Accepted code of a unit.
    pub fn accepted(&self, id: &str) -> Option<PathBuf> {
        let path = accepted_file(&self.folder, id);
        path.is_file().then_some(path)
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        fn below(folder: &Path) -> u64 {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let each = entries.map(|entry| match entry.path().is_dir() {
                true => below(&entry.path()),
                false => entry.metadata().map_or(0, |m| m.len()),
            });
            each.sum()
        }
        below(&self.folder)
    }
}

fn unit_file(folder: &Path, id: &str) -> PathBuf {
    folder.join("units").join(format!("{id}.json"))
}

/// Where the accepted code of a unit is in a test's `folder`.
pub fn accepted_file(folder: &Path, id: &str) -> PathBuf {
    folder.join("accepted").join(format!("{id}.bc"))
}

/// `path` without `..`, unless that leads elsewhere because of links.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    let whole = |path: &Path| path.canonicalize().ok();
    match path.exists() && whole(path) != whole(&plain) {
        true => path.to_owned(),
        false => plain,
    }
}

/// Writes the record of a unit of the repository `root` into a test's `folder`.
pub fn write_unit(folder: &Path, unit: &Unit, root: &Path) -> Result<()> {
    let root = root.to_str().context("the repository's path is no UTF-8")?;
    let mut unit = unit.clone();
    unit.source = plain(&unit.source);
    for source in &mut unit.sources {
        // The directory of a build is not in a checkout, and times of files are those of one.
        source.file = plain(&source.file);
        source.modified = 0;
    }
    let mut value = serde_json::to_value(&unit)?;
    relocate::without_root(&mut value, root);
    state::write_json(&unit_file(folder, &unit.id), &value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Result<Fixture> {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join(FOLDER);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join(CONFIG), text).unwrap();
        Fixture::open(&folder)
    }

    #[test]
    fn the_most_special_limit_holds() {
        let fixture = with(&format!(
            "{NEW}\n[regions.\"s*\"]\ntime = 9.0\n[regions.\"solve@*\"]\ncounts = 4.0\n[regions.\"solve@a.c:1\"]\ntime = 7.0\n"
        ))
        .unwrap();
        let limits = |name| {
            let found = fixture.limits(name);
            (found.time, found.counts)
        };
        assert_eq!(limits("step@a.c:1"), (9.0, 1.0));
        assert_eq!(limits("solve@a.c:2"), (1.5, 4.0));
        assert_eq!(limits("solve@a.c:1"), (7.0, 1.0));
        assert_eq!(limits("other"), (1.5, 1.0));
        assert_eq!(fixture.unused_limits(&[]).len(), 3);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| format!("{:#}", with(text).unwrap_err());
        assert!(error("version = 2\nnew = 1\n").contains("has version 2, this cere reads 1"));
        assert!(error("version = 1\ntime = 2.0\ncounts = 1.0\nlimit = 1\n").contains("limit"));
        assert!(error(&NEW.replace("1.5", "-1.5")).contains("a limit is -1.5"));
        assert!(error(&NEW.replace("\"..\"", "\"gone\"")).contains("root"));
    }
}
