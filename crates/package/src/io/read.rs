//! A package into memory or into a directory.

use super::archive::{Archive, Receiver};
use super::layout::copy_hashed;
use cere_format::FormatError;
use cere_format::capture::PageRecord;
use cere_format::package::{MEMBER_MANIFEST, Manifest};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

/// A package in memory.
#[derive(Debug, Clone)]
pub struct Package {
    /// The manifest.
    pub manifest: Manifest,
    /// The page table.
    pub pages: Vec<PageRecord>,
    /// All members but the manifest, by name.
    pub members: BTreeMap<String, Vec<u8>>,
}

impl Package {
    /// The bytes of a member; empty if the package has none of that name.
    pub fn member(&self, name: &str) -> &[u8] {
        self.members.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Reads the manifest only. The checksum of the whole is verified all the same.
pub fn read_manifest(path: &Path) -> Result<Manifest, FormatError> {
    let mut file = open(path)?;
    let mut archive = Archive::open(&mut file, path)?;
    archive.manifest()
}

/// Reads the manifest of a package that [`unpack_package`] unpacked into `directory`.
pub fn unpacked_manifest(directory: &Path) -> Result<Manifest, FormatError> {
    let path = directory.join(MEMBER_MANIFEST);
    let text = std::fs::read(&path).map_err(FormatError::io("read", &path))?;
    serde_json::from_slice(&text).map_err(|source| FormatError::Json {
        what: "the manifest".to_owned(),
        source,
    })
}

/// Reads a package into memory; refuses one whose members take more than `limit` bytes.
pub fn read_package(path: &Path, limit: u64) -> Result<Package, FormatError> {
    read_package_from(&mut open(path)?, path, limit)
}

/// [`read_package`] from any source; `path` is for messages.
pub fn read_package_from(
    source: &mut (impl Read + Seek),
    path: &Path,
    limit: u64,
) -> Result<Package, FormatError> {
    struct Memory(BTreeMap<String, Vec<u8>>, PathBuf);
    impl Receiver for Memory {
        fn receive(
            &mut self,
            member: &str,
            contents: &mut dyn Read,
            size: u64,
        ) -> Result<(u64, [u8; 32]), FormatError> {
            let mut bytes = Vec::new();
            let result = copy_hashed(contents, &mut bytes, size)
                .map_err(FormatError::io("decompress", &self.1))?;
            self.0.insert(member.into(), bytes);
            Ok(result)
        }
    }
    let mut memory = Memory(BTreeMap::new(), path.into());
    let (manifest, pages) = Archive::open(source, path)?.read(limit, &mut memory)?;
    Ok(Package {
        manifest,
        pages,
        members: memory.0,
    })
}

/// Unpacks a package into `directory`, which must exist, `manifest.json` last; refuses one whose members take
/// more than `limit` bytes. After an error the directory holds no manifest.
pub fn unpack_package(path: &Path, directory: &Path, limit: u64) -> Result<Manifest, FormatError> {
    struct Files<'a>(&'a Path);
    impl Receiver for Files<'_> {
        fn receive(
            &mut self,
            member: &str,
            contents: &mut dyn Read,
            size: u64,
        ) -> Result<(u64, [u8; 32]), FormatError> {
            let target = self.0.join(member);
            let fail = |source| FormatError::Io {
                action: "unpack to",
                path: target.clone(),
                source,
            };
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent).map_err(fail)?;
            }
            let mut file = File::create(&target).map_err(fail)?;
            copy_hashed(contents, &mut file, size).map_err(fail)
        }
    }
    let mut file = open(path)?;
    let (manifest, _) = Archive::open(&mut file, path)?.read(limit, &mut Files(directory))?;
    let target = directory.join(MEMBER_MANIFEST);
    let json = serde_json::to_vec_pretty(&manifest).map_err(|source| FormatError::Json {
        what: MEMBER_MANIFEST.into(),
        source,
    })?;
    let temporary = directory.join(".manifest.json.tmp");
    let written = std::fs::write(&temporary, json);
    written
        .and_then(|()| std::fs::rename(&temporary, &target))
        .map_err(FormatError::io("write", &target))?;
    Ok(manifest)
}

fn open(path: &Path) -> Result<File, FormatError> {
    File::open(path).map_err(FormatError::io("open", path))
}
