//! Keeps the cache within bounds: what was not used for longest goes first, never what a running replay uses.
//!
//! Every replay holds the cache's lock shared. Things are removed under the exclusive lock alone, hence when no other
//! replay runs, and are renamed before, so that a command killed half way leaves nothing half-removed under its name.

use crate::state::{self, GONE};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes on disk that unpacked packages may take.
pub const PACKAGES: u64 = 2 << 30;
/// Bytes on disk that objects and executables may take.
pub const BUILDS: u64 = 512 << 20;

/// A replay's share in a cache; given back when dropped.
pub struct InUse(File);

impl InUse {
    /// Waits while another command removes things. None where files cannot be locked: nothing is removed then.
    pub fn lock_shared(cache: &Path) -> Option<Self> {
        let file = state::open_lock(&cache.join("lock")).ok()?;
        file.lock_shared().ok()?;
        Some(Self(file))
    }

    /// Fails at once if a replay shares the cache, or if its files cannot be locked.
    pub fn lock_alone(cache: &Path) -> io::Result<Self> {
        let file = state::open_lock(&cache.join("lock"))?;
        file.try_lock()?;
        Ok(Self(file))
    }

    /// Runs `f` if no other replay shares the cache.
    pub fn if_alone(&self, f: impl FnOnce()) {
        // On Linux a descriptor has one lock, which these calls convert.
        if self.0.try_lock().is_ok() {
            f();
        }
        let _ = self.0.lock_shared();
    }
}

/// Notes that `path` was used now; a cache that cannot be written keeps its order.
pub fn touch(path: &Path) {
    let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Runs `f` unless `directory` is as the last one left it for this limit or a lower one: when, and for which, the file `stamp`
/// says. The caller is alone.
pub fn if_changed(directory: &Path, limit: u64, stamp: &Path, f: impl FnOnce()) {
    let changed = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    let Some(at) = changed(directory) else {
        return;
    };
    let bound = || fs::read_to_string(stamp).ok()?.parse::<u64>().ok();
    let unchanged = changed(stamp).is_some_and(|seen| at < seen);
    if !unchanged || bound().is_none_or(|bound| bound > limit) {
        f();
        let _ = fs::write(stamp, limit.to_string());
    }
}

/// Bytes on disk below `path`.
pub(crate) fn size(path: &Path, metadata: &Metadata) -> u64 {
    let below = match metadata.is_dir() {
        true => fs::read_dir(path).ok(),
        false => None,
    };
    let entries = below.into_iter().flatten().flatten();
    let inner: u64 = entries
        .filter_map(|e| Some(size(&e.path(), &e.metadata().ok()?)))
        .sum();
    metadata.blocks() * 512 + inner
}

/// When an entry was used last.
pub(crate) fn used(metadata: &Metadata) -> SystemTime {
    let accessed = metadata.accessed().unwrap_or(SystemTime::UNIX_EPOCH);
    match metadata.is_dir() {
        // Listing a directory counts as access.
        true => metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        false => metadata.modified().map_or(accessed, |m| m.max(accessed)),
    }
}

/// Removes a file or a directory with all that is in it.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Removes what killed commands left in `directory`, then entries for which `kept` holds, the least recently used
/// first, until they take at most `limit` bytes; the last used one stays whatever its size. Best effort: the caller
/// is alone, and what cannot be removed stays.
pub fn trim(directory: &Path, limit: u64, kept: impl Fn(&str, &Metadata) -> bool) {
    let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if !kept(&entry.file_name().to_string_lossy(), &metadata) {
            let _ = remove(&path);
            continue;
        }
        entries.push((used(&metadata), size(&path, &metadata), path));
    }
    entries.sort_by_key(|(used, _, _)| std::cmp::Reverse(*used));
    let mut sum = 0;
    for (place, (_, bytes, path)) in entries.iter().enumerate() {
        sum += bytes;
        if place > 0 && sum > limit {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let gone = directory.join(format!("{GONE}{name}"));
            if fs::rename(path, &gone).is_ok() {
                let _ = remove(&gone);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut all: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        all.sort();
        all
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let now = SystemTime::now();
        for (age, name) in ["newest", "middle", "oldest"].iter().enumerate() {
            let package = at.join(name);
            fs::create_dir(&package).unwrap();
            fs::write(package.join("pages"), vec![1; 100_000]).unwrap();
            let file = File::open(&package).unwrap();
            file.set_modified(now - Duration::from_secs(100 * (age as u64 + 1)))
                .unwrap();
        }
        fs::create_dir(at.join(".unpack1")).unwrap();
        let kept = |name: &str, m: &Metadata| m.is_dir() && !name.starts_with('.');
        trim(at, u64::MAX, kept);
        assert_eq!(names(at), ["middle", "newest", "oldest"]);
        touch(&at.join("oldest"));
        trim(at, 250_000, kept);
        assert_eq!(names(at), ["newest", "oldest"]);
        trim(at, 1, kept);
        assert_eq!(names(at), ["oldest"]);
    }

    #[test]
    fn what_has_not_changed_is_not_looked_through_again() {
        let directory = tempfile::tempdir().unwrap();
        let (at, stamp) = (directory.path().join("all"), directory.path().join("stamp"));
        fs::create_dir(&at).unwrap();
        let looks_for = |limit| {
            let mut looked = false;
            if_changed(&at, limit, &stamp, || looked = true);
            looked
        };
        let looks = || looks_for(5);
        let settle = || std::thread::sleep(Duration::from_millis(20));
        settle();
        assert_eq!([looks(), looks()], [true, false]);
        settle();
        fs::create_dir(at.join("new")).unwrap();
        settle();
        assert_eq!([looks(), looks()], [true, false]);
        assert_eq!([looks_for(6), looks_for(4)], [false, true]);
    }

    #[test]
    fn nothing_is_removed_beside_another_replay() {
        let directory = tempfile::tempdir().unwrap();
        let ran_alone = |mine: &InUse| {
            let mut ran = false;
            mine.if_alone(|| ran = true);
            ran
        };
        let mine = InUse::lock_shared(directory.path()).unwrap();
        let other = InUse::lock_shared(directory.path()).unwrap();
        assert!(!ran_alone(&mine));
        drop(other);
        assert!(ran_alone(&mine));
        // The share is still held.
        let other = InUse::lock_shared(directory.path()).unwrap();
        assert!(!ran_alone(&other));
    }
}
