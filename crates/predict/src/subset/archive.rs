//! A subset as one file: a tar archive with `subset.json`, `vectors.json`, the packages, and executables if they were linked before.

use crate::subset::document::Subset;
use crate::subset::vectors::Vector;
use anyhow::{Context, Result};
use cere_catalogue::{bail, ensure};
use cere_format::package::PACKAGE_EXTENSION;
use cere_format::untrusted;
use cere_replay::{Built, SameCode};
use cere_store::state;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tar::{Archive, Builder, EntryType, Header};

/// Member: the subset.
const SUBSET: &str = "subset.json";
/// Member: the metrics of its points.
const VECTORS: &str = "vectors.json";
/// Directory of packages, named by their SHA-256.
const CODELETS: &str = "codelets";
/// Directory of executables and what is known of them, named by the SHA-256 of their package.
const BUILT: &str = "built";
/// Most bytes of a JSON member.
const JSON: u64 = 256 << 20;

/// An executable that was linked when the subset was made.
pub struct Prebuilt {
    /// SHA-256 of its package.
    pub sha256: String,
    /// The executable, and what is known of its code.
    pub built: Built,
}

/// What is known of an executable in an archive.
#[derive(Serialize, Deserialize)]
struct Known {
    /// SHA-256 of the executable, in hexadecimal.
    sha256: String,
    same_code: SameCode,
    other_code: bool,
}

/// What goes into an archive.
pub struct Contents<'a> {
    /// The subset.
    pub subset: &'a Subset,
    /// The metrics of its points, in order.
    pub vectors: &'a [Vector],
    /// Files of the packages, by SHA-256.
    pub packages: &'a BTreeMap<String, PathBuf>,
    /// Executables, compiled as built.
    pub prebuilt: &'a [Prebuilt],
}

/// Writes the archive, whole or not at all.
pub fn write(path: &Path, contents: &Contents) -> Result<()> {
    let failed = || format!("cannot write the archive {}", path.display());
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".unfinished.")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(parent.unwrap_or(Path::new(".")))
        .with_context(failed)?;
    let mut tar = Builder::new(BufWriter::new(file));
    let json = |tar: &mut Builder<_>, name: &str, bytes: Vec<u8>| {
        let mut header = header(bytes.len() as u64, 0o644);
        tar.append_data(&mut header, name, bytes.as_slice())
    };
    json(&mut tar, SUBSET, serde_json::to_vec(contents.subset)?).with_context(failed)?;
    json(&mut tar, VECTORS, serde_json::to_vec(contents.vectors)?).with_context(failed)?;
    for (sha256, file) in contents.packages {
        let name = format!("{CODELETS}/{sha256}.{PACKAGE_EXTENSION}");
        append(&mut tar, &name, file, 0o644).with_context(failed)?;
    }
    for of in contents.prebuilt {
        let known = Known {
            sha256: state::hash_file(&of.built.executable)?,
            same_code: of.built.same_code,
            other_code: of.built.other_code,
        };
        let place = format!("{BUILT}/{}", of.sha256);
        json(
            &mut tar,
            &format!("{place}.json"),
            serde_json::to_vec(&known)?,
        )
        .with_context(failed)?;
        append(&mut tar, &place, &of.built.executable, 0o755).with_context(failed)?;
    }
    let mut buffered = tar.into_inner().with_context(failed)?;
    buffered.flush().with_context(failed)?;
    let file = buffered.into_inner().map_err(|e| e.into_error());
    file.with_context(failed)?
        .persist(path)
        .with_context(failed)?;
    Ok(())
}

fn header(size: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_entry_type(EntryType::Regular);
    header
}

fn append<W: Write>(tar: &mut Builder<W>, name: &str, file: &Path, mode: u32) -> Result<()> {
    let content = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut header = header(content.metadata()?.len(), mode);
    Ok(tar.append_data(&mut header, name, content)?)
}

fn open(path: &Path) -> Result<Archive<BufReader<File>>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Archive::new(BufReader::new(file)))
}

fn not_one(path: &Path) -> String {
    format!(
        "{} is not an archive that `cere subset` wrote",
        path.display()
    )
}

/// A JSON member.
fn json<T: serde::de::DeserializeOwned>(
    name: &str,
    size: u64,
    entry: impl Read,
    path: &Path,
) -> Result<T> {
    ensure!(
        size <= JSON,
        E6306,
        "{name} in {} has {size} bytes, more than {JSON}",
        path.display()
    );
    let mut text = Vec::new();
    entry.take(JSON).read_to_end(&mut text)?;
    ensure!(
        text.len() as u64 == size,
        E6306,
        "{} is cut off within {name}: copy it again",
        path.display()
    );
    untrusted::json(name, &text).with_context(|| not_one(path))
}

/// Reads the subset and the metrics of its points.
///
/// # Errors
/// It is no archive of a subset, a newer one, or damaged.
pub fn read(path: &Path) -> Result<(Subset, Vec<Vector>)> {
    let mut archive = open(path)?;
    let mut entries = archive.entries().with_context(|| not_one(path))?;
    let mut next = |wanted: &str| -> Result<_> {
        let entry = entries.next().with_context(|| not_one(path))?;
        let entry = entry.with_context(|| not_one(path))?;
        if entry.path_bytes() != wanted.as_bytes() {
            bail!(E6306, "{}", not_one(path));
        }
        Ok(entry)
    };
    let entry = next(SUBSET)?;
    let subset: Subset = json(SUBSET, entry.size(), entry, path)?;
    subset
        .check()
        .with_context(|| format!("{} cannot be used", path.display()))?;
    let entry = next(VECTORS)?;
    let vectors: Vec<Vector> = json(VECTORS, entry.size(), entry, path)?;
    ensure!(
        vectors.len() == subset.points.len(),
        E6306,
        "{} has metrics of {} points, and {} points",
        path.display(),
        vectors.len(),
        subset.points.len()
    );
    Ok((subset, vectors))
}

/// Unpacks packages and executables into `directory`; whole files that are there stay. Packages whose content is not
/// that of their name are refused.
pub fn unpack(path: &Path, directory: &Path) -> Result<()> {
    let failed = || {
        format!(
            "cannot unpack {} into {}",
            path.display(),
            directory.display()
        )
    };
    for part in [CODELETS, BUILT] {
        fs::create_dir_all(directory.join(part)).with_context(failed)?;
    }
    let mut archive = open(path)?;
    for entry in archive.entries().with_context(|| not_one(path))? {
        let mut entry = entry.with_context(|| not_one(path))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if name == SUBSET || name == VECTORS {
            continue;
        }
        let Some(place) = place(&name).filter(|_| entry.header().entry_type().is_file()) else {
            bail!(
                E6306,
                "{} holds {}: {}",
                path.display(),
                untrusted::visible(&name),
                not_one(path)
            );
        };
        let to = directory.join(&name);
        // Executables of one package may be several.
        let package = matches!(place, Place::Package(_));
        if package && fs::metadata(&to).is_ok_and(|m| m.len() == entry.size()) {
            continue;
        }
        let mut file = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(match place {
                Place::Executable => 0o755,
                Place::Package(_) | Place::Known => 0o644,
            }))
            .tempfile_in(directory)
            .with_context(failed)?;
        let written = std::io::copy(&mut entry, &mut file).with_context(failed)?;
        ensure!(
            written == entry.size(),
            E6306,
            "{} is cut off within {name}: copy it again",
            path.display()
        );
        if let Place::Package(sha256) = place {
            ensure!(
                state::hash_file(file.path())? == sha256,
                E6307,
                "{name} in {} is damaged: its checksum is not that of its name; copy the archive again",
                path.display()
            );
        }
        file.persist(&to).with_context(failed)?;
    }
    Ok(())
}

/// What a member is.
enum Place<'a> {
    Package(&'a str),
    Executable,
    Known,
}

fn place(name: &str) -> Option<Place<'_>> {
    let (directory, file) = name.split_once('/')?;
    let hash = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let (stem, extension) = file.split_once('.').unwrap_or((file, ""));
    match (directory, extension) {
        _ if !hash(stem) => None,
        (CODELETS, PACKAGE_EXTENSION) => Some(Place::Package(stem)),
        (BUILT, "") => Some(Place::Executable),
        (BUILT, "json") => Some(Place::Known),
        _ => None,
    }
}

/// The packages in the archive, by SHA-256.
///
/// # Errors
/// It is no archive of a subset.
pub fn packages(path: &Path) -> Result<BTreeSet<String>> {
    let mut archive = open(path)?;
    let mut found = BTreeSet::new();
    for entry in archive.entries_with_seek().with_context(|| not_one(path))? {
        let entry = entry.with_context(|| not_one(path))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if let Some(Place::Package(sha256)) = place(&name) {
            found.insert(sha256.to_owned());
        }
    }
    Ok(found)
}

/// The package of a codelet in a directory that an archive was unpacked into.
#[must_use]
pub fn package(directory: &Path, sha256: &str) -> PathBuf {
    let name = format!("{sha256}.{PACKAGE_EXTENSION}");
    directory.join(CODELETS).join(name)
}

/// The executable of a codelet there; none if the archive has none.
///
/// # Errors
/// It is damaged.
pub fn prebuilt(directory: &Path, sha256: &str) -> Result<Option<Built>> {
    let place = directory.join(BUILT).join(sha256);
    let known = place.with_extension("json");
    if !known.is_file() {
        return Ok(None);
    }
    let text = state::read_record(&known)?;
    let known: Known = untrusted::json(&known.display().to_string(), &text)?;
    ensure!(
        state::hash_file(&place)? == known.sha256,
        E6307,
        "{} is damaged: its checksum is not the one that the archive names; copy the archive again",
        place.display()
    );
    Ok(Some(Built {
        executable: place,
        same_code: known.same_code,
        other_code: known.other_code,
    }))
}
