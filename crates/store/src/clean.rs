//! What a store and the user's cache can do without, and freeing it: what can be made again first, then what belongs to older builds.

use crate::bound::{self, InUse};
use crate::{built::Current, codelets, state};
use anyhow::{Context, Result, bail};
use cere_format::store::{Store, user_cache};
use cere_package::io::read_manifest;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What a piece is, in the order in which pieces go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Left by a run or a compile that was killed.
    Scratch,
    /// Made again when it is needed: unpacked codelets, replays, objects, listings.
    Cache,
    /// A codelet of an older build.
    Codelet,
    /// The record and the IR of a unit of an older build.
    Unit,
    /// The rest of a store: its current build, profile, codelets, records and choices.
    Current,
}

impl Kind {
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [
        Self::Scratch,
        Self::Cache,
        Self::Codelet,
        Self::Unit,
        Self::Current,
    ];

    /// In words, for a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Scratch => "left by killed commands",
            Self::Cache => "caches",
            Self::Codelet => "codelets of older builds",
            Self::Unit => "units of older builds",
            Self::Current => "the current build and its results",
        }
    }
}

/// Files that go together.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Piece {
    /// What it is.
    pub kind: Kind,
    /// Its files or directories.
    pub paths: Vec<PathBuf>,
    /// Bytes on disk.
    pub bytes: u64,
    /// Seconds since it was used last.
    pub unused_seconds: f64,
}

/// What may stay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// What was used since this long ago.
    pub older_than: Option<Duration>,
    /// Bytes of the store and the user's cache together.
    pub to: Option<u64>,
    /// Nothing of the store, its current build included.
    pub all: bool,
}

/// What is found to remove.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the order in which they go.
    pub pieces: Vec<Piece>,
    /// Bytes of the store and the user's cache now.
    pub before: u64,
}

impl Plan {
    /// Bytes that the pieces take.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }
}

/// The right to remove: no command writes to the store, no replay uses a cache.
pub struct Alone {
    _store: Option<state::Lock>,
    _caches: Vec<InUse>,
}

impl Alone {
    /// Takes the locks of the store, if there is one, and of both caches. Fails if another command holds one of them.
    pub fn lock(store: &Store) -> Result<Self> {
        let there = store.root().is_dir();
        let own = there.then(|| state::lock(store)).transpose()?;
        let caches = [Some(store.cache()), user_cache()].into_iter().flatten();
        let caches = caches.filter(|cache| cache.is_dir()).map(|cache| {
            InUse::lock_alone(&cache).with_context(|| {
                format!(
                    "a replay uses {}: wait for it, then clean again",
                    cache.display()
                )
            })
        });
        Ok(Self {
            _caches: caches.collect::<Result<_>>()?,
            _store: own,
        })
    }
}

/// What goes within `limits`.
pub fn plan(store: &Store, limits: &Limits) -> Result<Plan> {
    let mut pieces = scratch(store);
    for cache in [Some(store.cache()), user_cache()].into_iter().flatten() {
        pieces.extend(cached(&cache));
    }
    pieces.extend(older(store)?);
    let before = disk(store.root()) + user_cache().map_or(0, |cache| disk(&cache));
    if limits.all {
        let gone: HashSet<&PathBuf> = pieces.iter().flat_map(|piece| &piece.paths).collect();
        let rest = rest(store.root(), &gone);
        pieces.extend(rest);
    }
    let age = limits.older_than.map_or(0.0, |age| age.as_secs_f64());
    pieces.retain(|piece| piece.unused_seconds >= age);
    pieces.sort_by(|a, b| {
        let longest = b.unused_seconds.total_cmp(&a.unused_seconds);
        a.kind.cmp(&b.kind).then(longest)
    });
    if let Some(to) = limits.to {
        let mut left = before;
        pieces.retain(|piece| {
            let goes = left > to;
            left -= if goes { piece.bytes.min(left) } else { 0 };
            goes
        });
    }
    Ok(Plan { pieces, before })
}

/// Removes the pieces. What cannot be removed fails, with its name; what went before is gone. `_alone`: nobody uses them.
pub fn remove(plan: &Plan, _alone: &Alone) -> Result<()> {
    let all = |piece: &Piece| piece.kind == Kind::Current;
    for (whole, path) in plan
        .pieces
        .iter()
        .flat_map(|piece| piece.paths.iter().map(move |path| (all(piece), path)))
    {
        let gone = hidden(path);
        // A command killed half way leaves nothing half-removed under its name.
        let found = match fs::rename(path, &gone) {
            Ok(()) => gone,
            Err(_) => path.clone(),
        };
        match bound::remove(&found) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", path.display()));
            }
            _ => {}
        }
        // Where the last of its files went, a directory that stays would look like a build of nothing.
        if whole && let Some(parent) = path.parent() {
            let _ = fs::remove_dir(parent);
        }
    }
    Ok(())
}

/// The name of `path` while it is removed.
fn hidden(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{}{name}", state::GONE))
}

/// Bytes on disk of a store and the user's cache.
pub fn disk(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |metadata| bound::size(path, &metadata))
}

/// The entries of a directory, which need not exist.
fn entries(directory: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> + use<> {
    let all = fs::read_dir(directory).into_iter().flatten().flatten();
    all.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}

fn piece(kind: Kind, files: Vec<(PathBuf, Metadata)>) -> Piece {
    // Reading a codelet's manifest does not use it.
    let used = |metadata: &Metadata| match kind {
        Kind::Cache => Some(bound::used(metadata)),
        _ => metadata.modified().ok(),
    };
    let used = files.iter().filter_map(|(_, metadata)| used(metadata));
    let used = used.max().unwrap_or(SystemTime::UNIX_EPOCH);
    let age = SystemTime::now().duration_since(used).unwrap_or_default();
    Piece {
        kind,
        bytes: files.iter().map(|(path, m)| bound::size(path, m)).sum(),
        paths: files.into_iter().map(|(path, _)| path).collect(),
        unused_seconds: age.as_secs_f64(),
    }
}

/// Runs and compiles in progress are those of the lock's holder.
fn scratch(store: &Store) -> Vec<Piece> {
    let all = entries(&store.runs()).chain(entries(&state::scratch(store)));
    all.map(|entry| piece(Kind::Scratch, vec![entry])).collect()
}

/// Directories of a cache whose entries are made again one by one; other entries of a cache go whole. Measurements of machines, which
/// take minutes and were asked for, are none of them.
const DIVIDED: [&str; 2] = ["packages", "builds"];
const KEPT: [&str; 3] = ["lock", "machines", "trimmed"];

fn cached(cache: &Path) -> Vec<Piece> {
    let divided = DIVIDED.iter().flat_map(|name| entries(&cache.join(name)));
    let whole = entries(cache).filter(|(path, _)| {
        let name = path.file_name().unwrap_or_default();
        let known = |names: &[&str]| names.iter().any(|n| *n == name);
        !known(&DIVIDED) && !known(&KEPT)
    });
    let all = divided.chain(whole);
    all.map(|entry| piece(Kind::Cache, vec![entry])).collect()
}

/// Codelets and units that the current build does not have; none where the store knows no build.
fn older(store: &Store) -> Result<Vec<Piece>> {
    let current = Current::of(store)?;
    let mut pieces = Vec::new();
    for file in codelets::files(store)? {
        // One that cannot be read is not known to be older.
        let older = read_manifest(&file).is_ok_and(|m| current.holds(&m) == Some(false));
        if older && let Ok(metadata) = fs::metadata(&file) {
            pieces.push(piece(Kind::Codelet, vec![(file, metadata)]));
        }
    }
    let mut kept: HashSet<String> = entries(&store.current())
        .filter_map(|(path, _)| Some(fs::read_to_string(path).ok()?.trim().to_owned()))
        .collect();
    if kept.is_empty() {
        return Ok(pieces);
    }
    if store.profile().exists() {
        let Ok(profile) = state::profile(store) else {
            return Ok(pieces);
        };
        kept.extend(profile.regions.into_iter().map(|region| region.key.unit));
    }
    let mut units: BTreeMap<String, Vec<(PathBuf, Metadata)>> = BTreeMap::new();
    for entry in entries(&store.units()) {
        let id = entry.0.file_stem().unwrap_or_default();
        let id = id.to_string_lossy().into_owned();
        if !kept.contains(&id) {
            units.entry(id).or_default().push(entry);
        }
    }
    pieces.extend(units.into_values().map(|files| piece(Kind::Unit, files)));
    Ok(pieces)
}

/// What else lies in a store, but for its lock.
fn rest(root: &Path, gone: &HashSet<&PathBuf>) -> Vec<Piece> {
    let others = entries(root).filter(|(path, _)| path.file_name().is_some_and(|n| n != "lock"));
    let mut pieces = Vec::new();
    for (path, metadata) in others {
        let below: Vec<_> = match metadata.is_dir() {
            true => entries(&path).collect(),
            false => vec![(path, metadata)],
        };
        let below = below
            .into_iter()
            .filter(|(path, _)| !gone.contains(path))
            .filter(|(path, _)| !path.ends_with("cache/lock"))
            .filter(|(path, _)| {
                !path.ends_with("cache/packages") && !path.ends_with("cache/builds")
            });
        pieces.extend(below.map(|entry| piece(Kind::Current, vec![entry])));
    }
    pieces
}

/// A length of time: a number and `s`, `m`, `h`, `d` or `w`.
pub fn age(text: &str) -> Result<Duration> {
    let units = [
        ('s', 1.0),
        ('m', 60.0),
        ('h', 3600.0),
        ('d', 86400.0),
        ('w', 604_800.0),
    ];
    let needed = "a number with s, m, h, d or w is needed, such as 7d";
    let seconds = scaled(text.trim(), &units).filter(|seconds| *seconds <= 1e10);
    Ok(Duration::from_secs_f64(seconds.context(needed)?))
}

/// A number of bytes: a number, alone or with `K`, `M`, `G` or `T` (powers of 1024).
pub fn bytes(text: &str) -> Result<u64> {
    let text = text.trim().trim_end_matches('B').trim_end_matches('i');
    let units =
        [('K', 10), ('M', 20), ('G', 30), ('T', 40)].map(|(u, power)| (u, f64::from(power).exp2()));
    let plain = || text.parse().ok().filter(|n: &f64| *n >= 0.0);
    match scaled(text, &units).or_else(plain) {
        Some(bytes) if bytes < 9e18 => Ok(bytes as u64),
        _ => bail!("a number of bytes is needed, such as 500M or 2G"),
    }
}

/// A number, 0 or more, times what its unit is worth.
fn scaled(text: &str, units: &[(char, f64)]) -> Option<f64> {
    let (_, worth) = units.iter().find(|(unit, _)| text.ends_with(*unit))?;
    let number: f64 = text[..text.len() - 1].trim().parse().ok()?;
    (number >= 0.0 && number.is_finite()).then_some(number * worth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes() {
        let seconds = |text| age(text).map(|age| age.as_secs()).ok();
        assert_eq!(seconds("7d"), Some(604_800));
        assert_eq!(seconds("1.5h"), Some(5400));
        for wrong in ["", "d", "7", "-1d", "infd", "nand", "1e300d", "7 é"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
        let size = |text| bytes(text).ok();
        assert_eq!(size("2G"), Some(2 << 30));
        assert_eq!(size("500 MiB"), Some(500 << 20));
        assert_eq!((size("0"), size("12")), (Some(0), Some(12)));
        for wrong in ["", "G", "-1", "infT", "2X", "9e99"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
