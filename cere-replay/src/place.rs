//! The files of a replay that runs.

use crate::ReplayError;
use cere_format::replay::ReplayPlan;
use cere_toolchain::{CompileError, io};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes that are kept of what a replay writes to standard error.
const MESSAGE: u64 = 64 << 10;

/// A replay's own directory. It may write the outcome's file there, and standard error.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn in_cache(cache: &Path) -> Result<Self, CompileError> {
        let cache = std::path::absolute(cache).map_err(io("find", cache))?;
        let new = tempfile::Builder::new().prefix("run.").tempdir_in(&cache);
        new.map(Self).map_err(io("write into", &cache))
    }
    pub(crate) fn directory(&self) -> &Path {
        self.0.path()
    }
    pub(crate) fn plan(&self) -> PathBuf {
        self.0.path().join("plan")
    }
    pub(crate) fn outcome(&self) -> PathBuf {
        self.0.path().join("outcome")
    }
    pub(crate) fn errors(&self) -> PathBuf {
        self.0.path().join("stderr")
    }
    /// Writes the plan, and empties what the replay writes.
    pub(crate) fn prepare(&self, plan: &ReplayPlan) -> Result<(), ReplayError> {
        let text = serde_json::to_vec(plan).map_err(ReplayError::Json)?;
        let files = [
            (self.plan(), text.as_slice()),
            (self.outcome(), b""),
            (self.errors(), b""),
        ];
        for (path, content) in files {
            std::fs::write(&path, content).map_err(io("write", &path))?;
        }
        Ok(())
    }
    /// What was written to standard error, after a colon, unless it is nothing.
    pub(crate) fn message(&self) -> String {
        let said = read(&self.errors(), MESSAGE).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        match said.is_empty() {
            true => said,
            false => format!(": {said}"),
        }
    }
}

/// The first `limit` bytes of a file that a stranger's code may have written: a plain one, not what it put in its place.
pub(crate) fn read(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut open = File::options();
    let file = open
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is no plain file"));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
