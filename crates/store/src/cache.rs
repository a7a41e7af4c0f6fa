//! Unpacked packages and built replays, by content.

use super::bound::{self, InUse};
use crate::state;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, codes};
use cere_format::package::{MEMBER_MANIFEST, Manifest};
use cere_format::store::Store;
use cere_package::io::{unpack_package, unpacked_manifest};
use cere_system::events::Events;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Free bytes below which a failure to unpack may be for want of space.
const SCARCE: u64 = 1 << 30;

/// A directory for what can be made again; a temporary one goes with it.
pub struct Cache {
    directory: PathBuf,
    in_use: Option<InUse>,
    /// SHA-256 by stamp, of the files that were read: a command replays a codelet many times.
    hashes: Mutex<HashMap<Vec<u8>, String>>,
    events: Events,
    _temporary: Option<tempfile::TempDir>,
}

/// Whether files can be created in `directory`, which is created if need be.
fn writable(directory: &Path) -> bool {
    std::fs::create_dir_all(directory).is_ok() && tempfile::tempfile_in(directory).is_ok()
}

impl Cache {
    /// In the store, if there is one; else in the user's cache directory; else in a temporary one, which `events` hear of.
    pub fn open(store: &Store, events: &Events) -> Result<Self> {
        let places = [
            store.root().is_dir().then(|| store.cache()),
            cere_format::store::user_cache(),
        ];
        let named = |directory: &PathBuf| directory.to_str().is_some();
        for directory in places.into_iter().flatten().filter(named) {
            if writable(&directory) {
                return Ok(Self::at(directory, None, events));
            }
        }
        let temporary = tempfile::Builder::new().prefix("cere").tempdir().or_coded(
            codes::E4021,
            || "there is no writable directory to unpack the codelet in: set TMPDIR",
        )?;
        events.note(format!(
            "neither the store nor the user's cache directory is writable: using {} for this replay alone",
            temporary.path().display()
        ));
        let directory = temporary.path().to_owned();
        Ok(Self::at(directory, Some(temporary), events))
    }

    fn at(directory: PathBuf, temporary: Option<tempfile::TempDir>, events: &Events) -> Self {
        Self {
            in_use: InUse::lock_shared(&directory),
            directory,
            hashes: Mutex::default(),
            events: events.clone(),
            _temporary: temporary,
        }
    }

    /// Objects and executables.
    pub fn builds(&self) -> PathBuf {
        self.directory.join("builds")
    }

    /// Brings the cache within its bounds, unless another replay uses it. What was unpacked before may be gone then.
    pub fn trim(&self) {
        self.trim_to(bound::PACKAGES);
    }

    /// The same between the replays of a command, which may use a package again: a quarter of the free room is theirs.
    pub fn trim_between(&self) {
        self.trim_to(bound::PACKAGES.max(unpack_limit(&self.directory) / 4));
    }

    fn trim_to(&self, packages: u64) {
        let Some(in_use) = &self.in_use else {
            return;
        };
        in_use.if_alone(|| {
            // Their files are many: they are looked through only if packages were added since.
            let stamp = self.directory.join("trimmed");
            bound::if_changed(&self.packages(), packages, &stamp, || {
                bound::trim(&self.packages(), packages, |name, m| {
                    m.is_dir() && !name.starts_with('.')
                });
            });
            bound::trim(&self.builds(), bound::BUILDS, |name, m| {
                m.is_file() && !name.starts_with('.')
            });
        });
    }

    fn packages(&self) -> PathBuf {
        self.directory.join("packages")
    }

    /// The package `file`, unpacked, its manifest, and its SHA-256 in hexadecimal. A package that was unpacked before
    /// is not unpacked again.
    pub fn unpack(&self, file: &Path) -> Result<(PathBuf, Manifest, String)> {
        let packages = self.packages();
        std::fs::create_dir_all(&packages)
            .with_context(|| format!("cannot create {}", packages.display()))?;
        let sha256 = self.hash(file)?;
        let directory = packages.join(&sha256[..32]);
        if directory.join(MEMBER_MANIFEST).is_file() {
            self.events.detail(format!(
                "takes {} unpacked from {}",
                file.display(),
                directory.display()
            ));
            let manifest = unpacked_manifest(&directory)?;
            bound::touch(&directory);
            return Ok((directory, manifest, sha256));
        }
        let temporary = tempfile::Builder::new()
            .prefix(".unpack")
            .tempdir_in(&packages)
            .with_context(|| format!("cannot write in {}", packages.display()))?;
        let room = unpack_limit(&packages);
        let manifest = unpack_package(file, temporary.path(), room).map_err(|error| {
            let error = anyhow::Error::from(error);
            if room > SCARCE {
                return error;
            }
            error.context(format!(
                "{} has room for a package of {room} bytes, half of what is free: make more, or name another --store",
                packages.display()
            ))
        })?;
        let unpacked = temporary.keep();
        if let Err(error) = std::fs::rename(&unpacked, &directory) {
            let _ = std::fs::remove_dir_all(&unpacked);
            // Another replay may have been faster with the same content.
            if !directory.join(MEMBER_MANIFEST).is_file() {
                return Err(error)
                    .with_context(|| format!("cannot create {}", directory.display()));
            }
        }
        Ok((directory, manifest, sha256))
    }

    /// The SHA-256 of a package file, in hexadecimal.
    pub fn hash(&self, file: &Path) -> Result<String> {
        let lock = || self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = cere_toolchain::stamp(file)?;
        if let Some(known) = lock().get(&stamp) {
            return Ok(known.clone());
        }
        let sha256 = state::hash_file(file)?;
        lock().insert(stamp, sha256.clone());
        Ok(sha256)
    }
}

/// Bytes that a package may take: half of what is free, for a small file may unpack to anything.
fn unpack_limit(directory: &Path) -> u64 {
    state::free_space(directory).map_or(u64::MAX, |free| free / 2)
}
