//! Files that are there whole or not at all.

use crate::error::{NodesError, Result, failed};
use rustix::fs::{FallocateFlags, fallocate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Most bytes of a file of a job, its inputs aside.
const MOST: u64 = 1 << 30;

/// A file in the making; its space was asked for at the start, so that a full disk is met before the work is done.
pub struct Unfinished {
    file: NamedTempFile,
    path: PathBuf,
}

impl Unfinished {
    /// Begins the file `path` with `reserve` bytes of space, where the file system can say.
    pub fn begin(path: &Path, reserve: u64) -> Result<Self> {
        let failed = || failed("write", path);
        let parent = path.parent().unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(".unfinished.")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(parent)
            .map_err(failed())?;
        match fallocate(&file, FallocateFlags::empty(), 0, reserve.max(1)).map_err(Into::into) {
            Err(error) if is_space(&error) => return Err(failed()(error)),
            // Not every file system can reserve: the write itself tells then.
            _ => {}
        }
        let path = path.to_owned();
        Ok(Self { file, path })
    }

    /// Gives it its content and its name. Whether it is this content that now has the name: with `replace` always, without
    /// it only if there was none.
    pub fn finish(mut self, content: &[u8], replace: bool) -> Result<bool> {
        let failed = || failed("write", &self.path);
        self.file.write_all(content).map_err(failed())?;
        let file = self.file.as_file();
        file.set_len(content.len() as u64)
            .and_then(|()| file.sync_all())
            .map_err(failed())?;
        let kept = if replace {
            self.file.persist(&self.path)
        } else {
            self.file.persist_noclobber(&self.path)
        };
        match kept {
            Ok(_) => {}
            Err(error) if !replace && error.error.kind() == ErrorKind::AlreadyExists => {
                return Ok(false);
            }
            Err(error) => return Err(failed()(error.error)),
        }
        // The name too outlasts a crash of the machine.
        let parent = self.path.parent().unwrap_or(Path::new("."));
        File::open(parent)
            .and_then(|directory| directory.sync_all())
            .map_err(failed())?;
        Ok(true)
    }
}

fn is_space(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

/// Writes `value` as JSON, whole or not at all.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let content = serde_json::to_vec(value).map_err(|error| failed("write", path)(error.into()))?;
    Unfinished::begin(path, content.len() as u64)?.finish(&content, true)?;
    Ok(())
}

/// Reads JSON; none where there is no such file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let mut bytes = Vec::new();
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed("read", path))?,
    };
    file.take(MOST + 1)
        .read_to_end(&mut bytes)
        .map_err(failed("read", path))?;
    let damaged = |why: String| NodesError::Damaged {
        file: path.to_owned(),
        why,
    };
    if bytes.len() as u64 > MOST {
        return Err(damaged(format!("more than {} MiB", MOST >> 20)));
    }
    let value = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    Ok(Some(value))
}

/// Creates a directory and those above it.
pub fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(failed("create", path))
}

/// Removes what killed workers left in `directory`.
pub fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".unfinished.") {
            let _ = fs::remove_file(entry.path());
        }
    }
}
