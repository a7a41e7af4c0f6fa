//! Reading and writing the store: units, lock, JSON files written to a temporary name and renamed.

use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes};
use cere_format::build::{
    BUILD_VERSION, ChosenFunctions, ShortLoop, ShortLoops, SplitLoop, SplitLoops, Unit,
};
use cere_format::hexadecimal;
use cere_format::profile::{PROFILE_VERSION, Profile};
use cere_format::store::Store;
use cere_package::io::PACKAGE_UNFINISHED;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// Directory for files of compiles in progress.
pub fn scratch(store: &Store) -> PathBuf {
    store.root().join("tmp")
}

/// A directory in there for one compile, which is removed afterwards.
pub fn own_scratch(store: &Store) -> Result<TempDir> {
    let all = scratch(store);
    make_directory(&all)?;
    let own = tempfile::Builder::new().prefix("wrap").tempdir_in(&all);
    own.with_context(|| format!("cannot write in {}", all.display()))
}

/// 32 hexadecimal digits of a hash over `text`.
pub fn hash(text: &str) -> String {
    hexadecimal(&Sha256::digest(text.as_bytes())[..16])
}

/// SHA-256 of a file's content, in hexadecimal.
pub fn hash_file(file: &Path) -> Result<String> {
    let failed = || format!("cannot read {}", file.display());
    let mut hasher = Sha256::new();
    let mut content = File::open(file).with_context(failed)?;
    let mut block = vec![0; 1 << 20];
    loop {
        let read = content.read(&mut block).with_context(failed)?;
        if read == 0 {
            return Ok(hexadecimal(&hasher.finalize()));
        }
        hasher.update(&block[..read]);
    }
}

/// Creates a directory of the store.
pub fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).or_coded(codes::E4005, || {
        format!(
            "cannot create {}: give a writable place with --store",
            path.display()
        )
    })
}

/// Writes `value` to `path`, whole or not at all.
pub fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<()> {
    let parent = path.parent().context("a path without a directory")?;
    make_directory(parent)?;
    write_bytes(path, &serde_json::to_vec(value)?)
}

/// Writes `text` to `path`, whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    write_bytes(path, text.as_bytes())
}

/// What the name of an entry begins with that is being removed.
pub(crate) const GONE: &str = ".gone.";

/// What the name of a file begins with that is not whole yet; the process that writes it follows.
const UNFINISHED: &str = ".unfinished.";

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix(&format!("{UNFINISHED}{}.", std::process::id()))
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(parent.unwrap_or(Path::new(".")))
        .with_context(failed)?;
    file.write_all(bytes).with_context(failed)?;
    file.persist(path).with_context(failed)?;
    Ok(())
}

/// Most bytes of a record in the store.
const RECORD: u64 = 1 << 30;
/// Most bytes of a text that a user wrote.
const TEXT: u64 = 16 << 20;

/// A file of at most `most` bytes.
fn read_bounded(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let large = format!("it has more than {} MiB", most >> 20);
        return Err(std::io::Error::other(large));
    }
    Ok(bytes)
}

/// A text that a user wrote: flags, a space of them.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    String::from_utf8(read_bounded(path, TEXT)?).map_err(std::io::Error::other)
}

/// A record, from this store or from elsewhere.
pub fn read_record(path: &Path) -> std::io::Result<Vec<u8>> {
    read_bounded(path, RECORD)
}

/// Reads JSON; the error names the file.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes =
        read_bounded(path, RECORD).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes)
        .or_coded(codes::E4009, || format!("{} is damaged", path.display()))
}

/// Bytes free for this user on the file system of `path`, if that is known.
pub fn free_space(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail * found.f_frsize)
}

/// The exclusive right to write to a store; given back when dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Opens a file to lock; it is created if it is not there, and its content stays.
pub(crate) fn open_lock(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

/// Takes the store's lock, or says which process holds it.
pub fn lock(store: &Store) -> Result<Lock> {
    make_directory(store.root())?;
    let path = store.lock();
    let mut file = open_lock(&path).or_coded(codes::E4005, || {
        format!(
            "cannot open the lock {}: give a writable place with --store",
            path.display()
        )
    })?;
    if file.try_lock().is_err() {
        let mut holder = String::new();
        let _ = file.read_to_string(&mut holder);
        // The holder writes its number after it has taken the lock.
        let holder = match holder.trim() {
            "" => "another process".to_owned(),
            number => format!("process {number}"),
        };
        bail!(
            E4004,
            "the store {} is in use by {holder}: wait for it, or use another --store",
            store.root().display()
        );
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    sweep(store);
    Ok(Lock { _file: file })
}

/// Removes what commands left that were killed, for the lock's holder.
fn sweep(store: &Store) {
    // The lock's holder alone has runs and makes packages.
    let _ = fs::remove_dir_all(store.runs());
    let left = |name: &str| {
        let process = name
            .strip_prefix(UNFINISHED)
            .and_then(|rest| rest.split('.').next());
        let package = name.starts_with('.') && name.ends_with(PACKAGE_UNFINISHED);
        name.starts_with(GONE)
            || package
            || process.is_some_and(|id| !Path::new("/proc").join(id).exists())
    };
    for directory in [store.root().to_owned(), store.codelets()] {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if left(&entry.file_name().to_string_lossy()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The store's last profile.
pub fn profile(store: &Store) -> Result<Profile> {
    let path = store.profile();
    if !path.exists() {
        bail!(
            E6001,
            "there is no profile in {}: run `cere profile -- ./app input` first, or name the store with --store",
            store.root().display()
        );
    }
    let profile: Profile = read_json(&path)?;
    let versions = [profile.version, PROFILE_VERSION];
    check_version(&path, versions, "run `cere profile` again")?;
    Ok(profile)
}

/// An error unless the file has the version that this cere reads, the second one. `remedy`: what to do.
fn check_version(path: &Path, [found, read]: [u32; 2], remedy: &str) -> Result<()> {
    cere_catalogue::ensure!(
        found == read,
        E4008,
        "{} has version {found}, this cere reads {read}: {remedy}",
        path.display()
    );
    Ok(())
}

/// The loops that profiles found too short for a probe; none if there was no profile.
pub fn short_loops(store: &Store) -> Result<Vec<ShortLoop>> {
    let path = store.short();
    if !path.exists() {
        return Ok(Vec::new());
    }
    let short: ShortLoops = read_json(&path)?;
    check_version(
        &path,
        [short.version, ShortLoops::VERSION],
        "remove it and run `cere profile` again",
    )?;
    Ok(short.loops)
}

/// The loops whose inner loops become regions too, as the user asked.
pub fn split_loops(store: &Store) -> Result<Vec<SplitLoop>> {
    let path = store.split();
    if !path.exists() {
        return Ok(Vec::new());
    }
    let split: SplitLoops = read_json(&path)?;
    check_version(
        &path,
        [split.version, SplitLoops::VERSION],
        "remove it and name the loops again with `cere instrument --split`",
    )?;
    Ok(split.loops)
}

/// Names and globs of the functions that become regions as a whole, as the user asked.
pub fn chosen_functions(store: &Store) -> Result<Vec<String>> {
    let path = store.functions();
    if !path.exists() {
        return Ok(Vec::new());
    }
    let chosen: ChosenFunctions = read_json(&path)?;
    check_version(
        &path,
        [chosen.version, ChosenFunctions::VERSION],
        "remove it and name the functions again with `cere instrument --functions`",
    )?;
    Ok(chosen.patterns)
}

/// Whether the name of a file begins with a dot: it is being written.
pub(crate) fn is_hidden(path: &Path) -> bool {
    let name = path.file_name();
    name.is_some_and(|n| n.as_encoded_bytes().starts_with(b"."))
}

/// The record of a unit.
pub fn unit(store: &Store, id: &str) -> Result<Unit> {
    let path = store.unit_record(id);
    let unit: Unit = read_json(&path)?;
    if unit.version != BUILD_VERSION {
        bail!(
            E4008,
            "{} has version {}, this cere reads {BUILD_VERSION}: run `cere instrument` on a clean build",
            path.display(),
            unit.version
        );
    }
    Ok(unit)
}

/// Ids of the units that the last profile ran code of, if its program's file is still the same.
fn profiled_units(store: &Store) -> HashSet<String> {
    let Ok(profile) = profile(store) else {
        return HashSet::new();
    };
    let name = profile.command.first().map_or("", String::as_str);
    // A program that was found by PATH counts as the same.
    let same = !name.contains('/') || profiled_program(&profile).is_some();
    let regions = profile.regions.into_iter().filter(|_| same);
    regions.map(|region| region.key.unit).collect()
}

/// The file of the profile's program, if it is still the same: what the command names, or what that started.
pub fn profiled_program(profile: &Profile) -> Option<PathBuf> {
    let name = profile.command.first()?;
    let files = [
        profile.directory.join(name),
        profile.process.program.clone(),
    ];
    let same = |file: &PathBuf| hash_file(file).is_ok_and(|hash| hash == profile.program);
    files.into_iter().find(same)
}

/// The newest unit of each compile whose source still exists and whose output was kept, by source and output. One whose
/// source is gone counts as long as the profiled program is there that ran its code.
pub fn current_units(store: &Store) -> Result<Vec<Unit>> {
    let Ok(entries) = fs::read_dir(store.current()) else {
        bail!(
            E4003,
            "no build is recorded in {}: run `cere instrument -- <build command>` first, or name its store with --store",
            store.root().display()
        );
    };
    // By id: compiles of the same content share a unit, whose record names the output of the last one.
    let mut units: BTreeMap<(PathBuf, String), Unit> = BTreeMap::new();
    let profiled = LazyLock::new(|| profiled_units(store));
    for entry in entries {
        let path = entry?.path();
        if is_hidden(&path) {
            continue;
        }
        let id =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let unit = unit(store, id.trim())?;
        let output = unit.command.output.as_deref();
        let kept = output.is_none_or(|o| o != Path::new("/dev/null") && !o.ends_with("-"));
        let there = || unit.source.exists() || unit.source.ends_with("-");
        if kept && (there() || profiled.contains(&unit.id)) {
            units.insert((unit.source.clone(), unit.id.clone()), unit);
        }
    }
    Ok(units.into_values().collect())
}
